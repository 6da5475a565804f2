"""Right by the engines own count, too: the server path judged by the truth beside the recordings, every 5 s."""

from __future__ import annotations

from pathlib import Path

from score.scoring import Score, expected, judge_pool, score_recording, thinned, truth_of
from story import BOOK

from diagnoser.pipeline import diagnose

from .conftest import KILLED, PREEMPTING, RECORDINGS, SGLANG, ask, bare
from .servers import Stored, prometheus

EVERY, WINDOW, STEP = 5, 40.0, 10.0
JUDGED = (PREEMPTING, KILLED, SGLANG, "vllm-0.32.0--d-l1-admission", "sglang-0.5.23--c-l1-retract")


def score_served(url: str, stored: Stored, path: Path) -> Score:
    """As score_recording does, with the windows asked from the server."""
    truth, score, target = truth_of(path), Score(), stored.recorded
    polls = [(page.at, page.text is not None) for page in target.pages()]
    at = polls[0][0] + WINDOW
    while at <= polls[-1][0] + 0.02:
        found = ask(url, at, f'instance="{target.name}"', WINDOW).served.windows
        for diagnosis in diagnose(found, BOOK):
            rows = truth.get(diagnosis.engine.rank, [])
            want = expected(at, WINDOW, rows, polls)
            if want is not None:
                got = diagnosis.verdict.bottleneck
                score.judged += 1
                score.right += got in want
                score.wrong[f"{'|'.join(sorted(want))} -> {got}"] += got not in want
                if "unreachable" not in want:
                    judge_pool(score, diagnosis, rows)
        at += STEP
    return score


def test_as_right_as_directly(tmp_path: Path) -> None:
    paths = [RECORDINGS / f"{name}.tar.xz" for name in JUDGED]
    kept = [Stored(thinned(bare(name), EVERY), {"job": "llm", "instance": name}) for name in JUDGED]
    with prometheus(tmp_path, kept) as url:
        served = [score_served(url, stored, path) for stored, path in zip(kept, paths, strict=True)]
    directly = [score_recording(path, BOOK, thin=EVERY, window=WINDOW, step=STEP) for path in paths]
    judged, right = sum(one.judged for one in served), sum(one.right for one in served)
    assert judged >= 15 and right / judged >= 0.96, [+one.wrong for one in served]
    assert [(one.judged, one.right) for one in served] == [(one.judged, one.right) for one in directly]
    assert [one.pool_right for one in served] == [one.pool_right for one in directly]
