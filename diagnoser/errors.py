"""One tree of errors. Foreign exceptions are translated where they enter (sources, rules, command line).

DiagnoserError
├── UsageError            the command line or a flag is wrong                        exit 64
├── TargetError           one target gave no usable page; the other targets go on    exit 3
│   ├── UnreachableError  refused, timed out, redirected, answered with an error status
│   └── PageError         answered, but not with a page of engine metrics
├── ServerError           a metrics server gave no usable answer                     exit 3
│   └── TooMuchError      it would, for less: the answer or the query is too large
├── RecordingError        a recording cannot be read or written                      exit 3
├── FactsError            a facts file or flag cannot be used                        exit 64
├── CapacityError         a model or a deployment whose KV size cannot be computed   exit 64
└── RuleError             a rule file is wrong; the file is skipped, the rest goes on
"""

from __future__ import annotations


class DiagnoserError(Exception):
    """Base of every error of this package.

    `str(error)` is a sentence for the user: what happened, to what, what to do.
    """


class UsageError(DiagnoserError):
    """The command was called in a way it cannot serve."""


class TargetError(DiagnoserError):
    """One target cannot be read."""


class UnreachableError(TargetError):
    """No answer, or an answer that says no: refused, timeout, redirect, 4xx, 5xx."""


class PageError(TargetError):
    """An answer that is no page of engine metrics: HTML, too large, not text, another exporter, empty."""


class ServerError(DiagnoserError):
    """A Prometheus-compatible server cannot be asked, refuses, or answers with something else."""


class TooMuchError(ServerError):
    """The answer is longer than we read, or the query is above a limit of the server: ask for less at once."""


class RecordingError(DiagnoserError):
    """A recording cannot be opened, read or written."""


class FactsError(DiagnoserError):
    """A facts file or `--fact` flag is not usable."""


class CapacityError(DiagnoserError):
    """The KV size of this model in this deployment cannot be computed: a field is missing, or the sizes
    do not fit together.
    """


class RuleError(DiagnoserError):
    """A rule file is wrong. Carries the file and, where known, the line."""

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        self.path, self.reason, self.line = path, reason, line
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}")
