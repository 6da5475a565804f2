"""Reads what somebody uploaded, in a process of its own: little memory, little CPU time, and none of the service's.

`python -m diagnoser.service.api.worker` takes one job as JSON on stdin and prints {"result": ...} or {"error": "..."}.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnoser.errors import DiagnoserError

if TYPE_CHECKING:
    from diagnoser.language import Language
    from diagnoser.model import Diagnosis

MEMORY_BYTES = 2 * 2**30
CPU_SECONDS = 60
MAX_UNPACKED_BYTES = 512 * 2**20
MAX_INSTANTS = 400
"""Windows of one recording: a longer one is looked at in larger steps."""
ARCHIVES = (b"\x1f\x8b", b"\xfd7zXZ\0")


def main() -> int:
    """One job."""
    job = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    answer: dict[str, Any]
    try:
        answer = {"result": {"diagnose": diagnosed, "capacity": capacity}[job["do"]](job)}
    except DiagnoserError as error:
        said = str(error).replace(str(job.get("path") or "\0"), "the upload")
        answer = {"error": _as_fields(said) if job["do"] == "capacity" else said}
    except MemoryError:
        answer = {"error": "the upload needs too much memory to be read"}
    except RecursionError:
        answer = {"error": "the upload is nested too deeply"}
    json.dump(answer, sys.stdout)
    return 0


def _as_fields(sentence: str) -> str:
    """Flags of the command as the fields of the request that they are: --kv-heads is kv_heads."""
    return re.sub(r"--([a-z0-9-]+)", lambda flag: flag[1].replace("-", "_"), sentence)


def diagnosed(job: Mapping[str, Any]) -> dict[str, Any]:
    """An uploaded page or recording."""
    from diagnoser.data import data_dir
    from diagnoser.engines.base import FACTS
    from diagnoser.facts import facts_of
    from diagnoser.rulebook.load import load

    book = load([data_dir("rules"), *map(Path, job["rules"])])
    facts, notes = facts_of([], job["facts"], FACTS)
    path = Path(job["path"])
    with path.open("rb") as stream:
        head = stream.read(512)
    archive = head.startswith(ARCHIVES) or head[257:262] == b"ustar"
    found = _recording(path, book, facts, job) if archive else _page(path, book, facts, job["language"])
    return {**found, "notes": [*notes, *found["notes"]]}


def _page(path: Path, book: Any, facts: Mapping[str, Any], language: Language) -> dict[str, Any]:
    import time

    from diagnoser.errors import RecordingError
    from diagnoser.language.diagnosis import in_language
    from diagnoser.model import Target
    from diagnoser.outputs.contract import as_data
    from diagnoser.pipeline import History, diagnose, wanted_metrics
    from diagnoser.sources.base import MAX_PAGE_BYTES, decode_page, to_scrape
    from diagnoser.sources.exposition import PageParser

    if path.stat().st_size > MAX_PAGE_BYTES:
        raise RecordingError("the upload is too large for one page of metrics, and it is no archive")
    at, history = time.time(), History("upload", 1.0, facts)
    scrape = to_scrape(Target("upload"), at, decode_page(path.read_bytes()), PageParser(wanted_metrics()).parse)
    if scrape.error is not None:
        raise RecordingError(f"The {scrape.error}")
    history.add(scrape)
    found = diagnose(history.windows(at, 1.0), book)
    note = "one page has no rates, so the closed gate cannot be named: upload a recording of half a minute"
    return {"notes": [note], "diagnoses": [as_data(in_language(one, language)) for one in found], "timeline": []}


def _recording(path: Path, book: Any, facts: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    from diagnoser.sources.recording import open_recording

    recording = open_recording(path, MAX_UNPACKED_BYTES)
    # Only now: they take a second to import, which a wrong upload need not wait for.
    from diagnoser.language import told
    from diagnoser.language.diagnosis import in_language
    from diagnoser.outputs.base import badness, moment
    from diagnoser.outputs.contract import as_data
    from diagnoser.replay import replay, span
    from diagnoser.stretch import with_what_if

    first, last = span(recording)
    step = max(job["step"], (last - first) / MAX_INSTANTS)
    worst: tuple[Diagnosis, ...] = ()
    bad, moments = (-1, 0.0), []
    for diagnoses in replay(recording, book, facts, job["window"], step):
        moments += [moment(one) for one in diagnoses]
        now = max(map(badness, diagnoses))
        if now >= bad:
            worst, bad = diagnoses, now
    timeline = [
        {"at": round(m.at, 3), "target": m.target, "rank": m.rank, "bottleneck": m.bottleneck,
         "headline": told(m.headline, job["language"]), "urgency": m.urgency}
        for m in moments
    ]  # fmt: skip
    shown = [as_data(in_language(with_what_if(one, book), job["language"])) for one in worst]
    return {"notes": list(recording.warnings), "diagnoses": shown, "timeline": timeline}


def capacity(job: Mapping[str, Any]) -> dict[str, Any]:
    """What `diagnose capacity` computes, from its flags as a mapping."""
    from diagnoser.capacity import command
    from diagnoser.capacity.config import model_from
    from diagnoser.capacity.data import as_data

    parser = ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args([])
    for name, value in job["flags"].items():
        setattr(args, name, value)
    model = model_from(job["config"], "config") if job["config"] is not None else command.model_of(args)
    return as_data(*command.computed(args, model))


if __name__ == "__main__":
    sys.exit(main())
