"""A Prometheus-compatible server as a source: its raw samples become the Scrapes they were stored from.

access.py how to reach it · api.py one instant query · selectors.py PromQL text · targets.py which engines it knows ·
fetch.py their samples, batch by batch · pages.py samples -> Scrapes. HTTP stops here.
"""
