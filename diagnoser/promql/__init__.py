"""The same signals, gates, checks and verdicts as PromQL: for a metrics server that computes them for a whole fleet."""
