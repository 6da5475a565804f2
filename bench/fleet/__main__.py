"""Makes a fleet, says what it took, and serves it on request.

usage: python -m bench.fleet --kind prometheus --engines 10000 --keep DIR          makes it (or takes what DIR holds)
       python -m bench.fleet --keep DIR --serve                                    serves it until interrupted
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from .members import Settings
from .products import PRODUCTS
from .serving import Fleet, kept_fleet, served_fleet

_IDLE_SECONDS = 5.0


def arguments() -> argparse.ArgumentParser:
    """One option a field of Settings."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__.splitlines()[0])
    usual = Settings()
    parser.add_argument("--kind", choices=sorted(PRODUCTS), default="victoriametrics")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder to make it in, or that holds it already")
    parser.add_argument("--serve", action="store_true", help="serve it until interrupted")
    parser.add_argument("--engines", type=int, default=usual.engines)
    parser.add_argument("--span", type=float, default=usual.span, metavar="SECONDS")
    parser.add_argument("--interval", type=float, default=usual.interval, metavar="SECONDS")
    parser.add_argument("--bound", type=float, default=usual.bound, metavar="SHARE", help="share that is bound")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--end", type=float, default=usual.end, metavar="UNIX", help="instant of the last scrapes")
    parser.add_argument("--all-series", action="store_true", help="whole pages, not only what diagnose reads")
    return parser


def report(fleet: Fleet, serve: bool) -> None:
    """Prints its figures; with `serve`, waits for Ctrl-C or SIGTERM."""
    time.sleep(_IDLE_SECONDS)
    served = {"ready_seconds": round(fleet.server.ready_seconds, 2), **fleet.server.memory("served")}
    print(json.dumps({**fleet.about, **served}, indent=1), flush=True)
    if serve:
        print(f"{fleet.url} at {fleet.end:.0f}", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


def main() -> None:
    """The command."""
    given = vars(arguments().parse_args())
    kind, keep, serve = given.pop("kind"), given.pop("keep"), given.pop("serve")
    known = keep is not None and (keep / "fleet.json").exists()
    with kept_fleet(keep) if known and serve else served_fleet(kind, keep=keep, **given) as fleet:
        report(fleet, serve)


if __name__ == "__main__":
    main()
