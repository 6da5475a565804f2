"""One JSON object a diagnosis and line, described by diagnoser/schema/diagnosis.schema.json: for programs and pipes."""

from __future__ import annotations

import json

from diagnoser.outputs.base import Look, Output, Report
from diagnoser.outputs.contract import as_data


def render(report: Report, look: Look) -> str:
    """Every diagnosis on a line of its own, as it comes. ASCII, so that no terminal or pipe can damage it."""
    return "".join(json.dumps(as_data(diagnosis), allow_nan=False) + "\n" for diagnosis in report.diagnoses)


OUTPUT = Output("jsonl", "application/jsonl", render, instants=True, streams=True)
