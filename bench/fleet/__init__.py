"""Synthetic fleets: thousands of engines that replay real recordings, in a real VictoriaMetrics or Prometheus.

    with served_fleet("prometheus", engines=1000, keep="/tmp/fleet") as fleet:
        ask(fleet.url, fleet.end), fleet.truth["10.0.0.8:8000"]["cause"]

`python -m bench.fleet --help` makes and serves them from the command line.
"""

from .members import Settings
from .serving import Fleet, kept_fleet, served_fleet

__all__ = ["Fleet", "Settings", "kept_fleet", "served_fleet"]
