"""One rank among its peers: the replicas and ranks of one model, as signals/fleet.py compares them."""

from __future__ import annotations

from collections.abc import Callable

from diagnoser.promql.dialect import FamilyDialect


def peer_vectors(of: Callable[[str], str], dialect: FamilyDialect) -> dict[str, str]:
    """The signals of signals/fleet.py, from the recorded signals `of`."""
    used, running = of("l1_used_ratio_mean"), of("running_mean_requests")
    everyone = of("scrapes")

    def among(how: str, vector: str) -> str:
        return f"on (model_name) group_left () {how} by (model_name) ({vector})"

    several = f"({everyone} * 0 + {among('count', everyone)} > 1)"
    return {
        "peers": f"{everyone} * 0 + {among('count', everyone)} - 1",
        "peer_used_lead_ratio": f"({used} - {among('avg', used)}) and {several}",
        "peer_running_lead_ratio": (
            f"({running} / ({running} * 0 + {among('sum', running)} > 0)"
            f" - 1 / ({running} * 0 + {among('count', running)})) and {several}"
            f" or ({running} * 0 + {among('sum', running)} == 0) and {several}"
        ),
        "peer_running_total_requests": f"({running} * 0 + {among('sum', running)}) and {several}",
    }
