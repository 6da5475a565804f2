"""Grafana dashboards, built with Grafana's Foundation SDK. `python dashboards/build.py` writes dashboards/*.json."""
