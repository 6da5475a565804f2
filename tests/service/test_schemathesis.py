"""schemathesis reads the description of the API and tries to make the running service contradict it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from diagnoser.service.api.tokens import hash_of, new_token
from service.web_kit import BOUND, HEALTHY, IDLE_L2, TWO_RANKS, Web, named, recorded, serve

CONFIG = Path(__file__).with_name("schemathesis.toml")
SLOW = ("/api/v1/diagnose", "/api/v1/capacity")
"""Each request starts a process: fewer of them."""
ENDLESS = "/api/v1/events"


def test_service_does_what_its_description_says(tmp_path: Path) -> None:
    token = new_token()
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(f"tokens:\n- {{name: test, hash: '{hash_of(token)}', scopes: [read, write, webhook]}}\n")
    with serve({"tokens_file": str(tokens), "allow": {"cidrs": ["127.0.0.0/8"], "ports": [1]}}) as web:
        bound, calm = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
        web.evaluated(named(bound, "10.0.3.7:8000"), named(calm, "10.0.3.8:30000"), *recorded(TWO_RANKS))
        web.evaluated(*recorded(IDLE_L2))
        excluded = [word for path in (ENDLESS, *SLOW) for word in ("--exclude-path", path)]
        _run(web, token, tmp_path, "examples,coverage,fuzzing", "4", *excluded)
        slow = [word for path in SLOW for word in ("--include-path", path)]
        _run(web, token, tmp_path, "examples,fuzzing", "3", *slow)


def _run(web: Web, token: str, folder: Path, phases: str, examples: str, *which: str) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG),
        "run", f"{web.url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}", "--phases", phases,
        "--max-examples", examples, "--checks", "all", "--request-timeout", "60", "--seed", "1", "--workers", "2",
        "--generation-database", "none", *which,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
