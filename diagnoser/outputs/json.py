"""One JSON document with every diagnosis, as described by diagnoser/schema/diagnosis.schema.json ($defs/report)."""

from __future__ import annotations

import json

from diagnoser.outputs.base import Look, Output, Report, exit_code, urgency
from diagnoser.outputs.contract import SCHEMA_VERSION, as_data


def render(report: Report, look: Look) -> str:
    """The document, indented. `exit_code` is that of the worst diagnosis."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "exit_code": exit_code(urgency(diagnosis) for diagnosis in report.diagnoses),
        "notes": list(report.notes),
        "diagnoses": [as_data(diagnosis) for diagnosis in report.diagnoses],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


OUTPUT = Output("json", "application/json", render, instants=True)
