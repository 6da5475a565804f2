"""The dashboards as files."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from boards import engine, fleet, fleet_infinity, tiers

BOARDS = (fleet, engine, tiers, fleet_infinity)
FOLDER = Path(__file__).parents[1]
"""Where the committed JSON is."""


def files() -> dict[str, str]:
    """File names, which are the uids, and their text."""
    encoder = JSONEncoder(sort_keys=True, indent=1, ensure_ascii=False)
    made = [module.dashboard() for module in BOARDS]
    return {f"{one.uid}.json": encoder.encode(one) + "\n" for one in made}
