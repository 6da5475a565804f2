"""Queries of Grafana's Infinity data source to the service's own API. The SDK does not know that data source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import DataSourceRef

SOURCE = DataSourceRef(type_val="yesoreyeram-infinity-datasource", uid="${datasource}")
CHOSEN = ("model", "engine", "bottleneck")
RANGE = {"from": "${__from}", "to": "${__to}"}


@dataclass(frozen=True)
class Rows(Dataquery):
    """One target: rows of an address below the data source's URL. Columns: name -> string, number, timestamp_epoch."""

    path: str
    columns: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    form: str = "table"
    ref: str = "A"

    def target(self, ref: str) -> Rows:
        """As a panel has it."""
        return Rows(self.path, self.columns, self.parameters, self.form, ref)

    def build(self) -> Rows:
        """As the SDK's builders."""
        return self

    def to_json(self) -> dict[str, Any]:
        """As the plug-in reads it."""
        parameters = [{"key": key, "value": value} for key, value in self.parameters.items()]
        return {
            "refId": self.ref, "datasource": SOURCE.to_json(), "type": "json", "parser": "backend", "source": "url",
            "format": self.form, "url": f"/api/v1/grafana/{self.path}", "root_selector": "", "filters": [],
            "url_options": {"method": "GET", "data": "", "params": parameters},
            "columns": [{"selector": name, "text": name, "type": kind} for name, kind in self.columns.items()],
        }  # fmt: skip


def chosen(*more: str) -> dict[str, str]:
    """The variables of the dashboard as query parameters."""
    return {name: f"${{{name}}}" for name in (*CHOSEN, *more)}


def options(name: str, parameters: dict[str, str]) -> dict[str, object]:
    """The query of a variable."""
    columns = [{"selector": end, "text": f"__{end}", "type": "string"} for end in ("text", "value")]
    asked = {**Rows(f"variables/{name}", {}, parameters, ref="variable").to_json(), "columns": columns}
    return {"queryType": "infinity", "query": "", "refId": "variable", "infinityQuery": asked}
