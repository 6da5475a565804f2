"""How right verdicts are that a metrics server computes (PromQL), beside those from the pages themselves.

usage: python bench/promql_score.py [FOLDER]        default: the bundled recordings with their truth files

All recordings lie in one real Prometheus and one real VictoriaMetrics, with a page every 5, 15 and 30 seconds; both
evaluators are judged at the same instants. Needs the Debian packages prometheus and victoria-metrics.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[0] = str(TESTS)  # instead of bench/, where prometheus.py would hide the package of that name

from fleet.recordings_into import PRODUCTS  # noqa: E402
from promql.scored import Judged, score, truths  # noqa: E402

JUDGED = (Judged(5, 40.0, 10.0), Judged(15, 60.0, 15.0), Judged(30, 90.0, 15.0))


def main() -> None:
    """Prints one line an interval and evaluator."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TESTS / "data" / "recordings"
    paths = [path for path in folder.glob("*.tar.xz") if path.with_name(_truth(path)).is_file()]
    for how in JUDGED:
        known = truths(paths, how.every)
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as held:
            urls = {
                kind: held.enter_context(serve(Path(scratch) / kind, [one.stored for one in known]))
                for kind, serve in PRODUCTS.items()
            }
            for name, tally in score(urls, known, how).items():
                print(
                    f"a page every {how.every:2} s, windows of {how.window:g} s, {name:<10} "
                    f"{tally.right:4} of {tally.judged:4} right ({tally.accuracy:.3f})   {dict(tally.wrong)}",
                    flush=True,
                )


def _truth(path: Path) -> str:
    return path.name.replace(".tar.xz", ".truth.jsonl.xz")


if __name__ == "__main__":
    main()
