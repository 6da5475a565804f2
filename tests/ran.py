"""What a run of the command leaves behind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """Exit code, and what was printed where."""

    code: int
    out: str
    err: str
