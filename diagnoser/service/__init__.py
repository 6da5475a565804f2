"""The service: watches engines, remembers verdicts, answers and alerts. `diagnose serve` is the only way in."""
