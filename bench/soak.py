"""`diagnose serve` against many mock engines for minutes: CPU, memory and how it grows, missed polls.

usage: python bench/soak.py [ENGINES [MINUTES [INTERVAL]]]        default: 200 engines, 10 minutes, 2s

The engines play vLLM and SGLang recordings over and over, in a process of their own. The slope of the resident memory
is of a straight line through the second half, when all windows are full. Exit code 1 if polls were missed or the
memory grows by more than 20 MiB an hour an engine-hundred.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path[0] = str(Path(__file__).parent)
import farm  # noqa: E402

sys.path[0] = str(Path(__file__).parents[1])
import httpx  # noqa: E402

TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
EVERY_SECONDS = 5.0
MIB = 2**20
SHOWN = (
    "scrapes_total",
    "scrape_failures_total",
    "missed_polls_total",
    "overrun_polls_total",
    "evaluations_total",
    "evaluation_failures_total",
    "evaluation_duration_seconds_sum",
    "scrape_duration_seconds_sum",
)


class Served:
    """The process of the service."""

    def __init__(self, targets: list[str], folder: str, interval: str) -> None:
        config = Path(folder) / "soak.yaml"
        config.write_text(
            f"targets:\n- static: [{', '.join(targets)}]\n  interval: {interval}\n"
            f"history: {{path: h.db}}\nweb: {{listen: '127.0.0.1:0'}}\nlog: {{level: info}}\n"
        )
        argv = [sys.executable, "-m", "diagnoser", "serve", "--config", str(config)]
        self._log = open(Path(folder) / "log", "w+")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(argv, stderr=self._log)
        self.url = self._listening(Path(folder) / "log")

    def _listening(self, log: Path) -> str:
        while self._process.poll() is None:
            for line in log.read_text().splitlines():
                if "listening" in line:
                    return f"http://{line.rpartition('address=')[2].strip()}"
            time.sleep(0.1)
        raise SystemExit(f"it did not start:\n{log.read_text()}")

    def cpu(self) -> float:
        """Seconds so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss(self) -> int:
        """Bytes."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * PAGE

    def metrics(self) -> dict[str, float]:
        """Totals of its own /metrics, added over labels."""
        found: dict[str, float] = {}
        for line in httpx.get(f"{self.url}/metrics", trust_env=False, timeout=30).text.splitlines():
            if line and line[0] != "#":
                name = line.partition("{")[0].partition(" ")[0]
                found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
        return found

    def end(self) -> tuple[int, str]:
        """Exit code, and the lines of its log that are warnings or worse."""
        self._process.terminate()
        code = self._process.wait(30)
        self._log.seek(0)
        bad = [line for line in self._log if any(f" {level}" in line for level in ("warning", "error", "critical"))]
        return code, "".join(bad[:20])


@dataclass
class Seen:
    """What one run showed. `rss` and `cpu` are (seconds since the start, bytes or CPU seconds)."""

    engines: int
    interval: str
    rss: list[tuple[float, float]] = field(default_factory=list)
    cpu: list[tuple[float, float]] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    history: int = 0
    code: int = 0
    warnings: str = ""

    @property
    def slope(self) -> float:
        """Bytes an hour, over the second half."""
        return statistics.linear_regression(*zip(*self.rss[len(self.rss) // 2 :], strict=True)).slope * 3600

    @property
    def cores(self) -> float:
        """CPU seconds a second, after the first quarter."""
        (since, before), (until, after) = self.cpu[len(self.cpu) // 4], self.cpu[-1]
        return (after - before) / (until - since)


def main() -> int:
    """Runs, prints, judges."""
    words = sys.argv[1:] + ["200", "10", "2s"][len(sys.argv) - 1 :]
    seen, seconds = Seen(int(words[0]), words[2]), float(words[1]) * 60
    with tempfile.TemporaryDirectory() as folder, farm.farm(seen.engines, "mixed") as targets:
        served, begun = Served(targets, folder, seen.interval), time.monotonic()
        while (now := time.monotonic() - begun) < seconds:
            seen.rss.append((now, served.rss()))
            seen.cpu.append((now, served.cpu()))
            time.sleep(EVERY_SECONDS)
        seen.totals = served.metrics()
        seen.history = sum(path.stat().st_size for path in Path(folder).glob("h.db*"))
        seen.code, seen.warnings = served.end()
    return report(seen, seconds)


def report(seen: Seen, seconds: float) -> int:
    """Prints it; 1 if it is not good."""
    print(f"{seen.engines} engines, a page every {seen.interval} from each, {seconds / 60:.1f} minutes")
    print(f"  CPU               {100 * seen.cores:.0f} % of a core")
    print(
        f"  memory            {seen.rss[-1][1] / MIB:.0f} MiB at the end,"
        f" {max(size for _, size in seen.rss) / MIB:.0f} at most"
    )
    print(f"  memory slope      {seen.slope / MIB:+.1f} MiB an hour, second half (pages fill up for five minutes)")
    for name in SHOWN:
        print(f"  {seen.totals.get(f'diagnoser_{name}', 0.0):<17.1f} {name}")
    print(f"  history           {seen.history / MIB:.1f} MiB on disk")
    print(f"  exit code         {seen.code}")
    print(seen.warnings or "  no warnings")
    missed = seen.totals.get("diagnoser_missed_polls_total", 0.0)
    return int(bool(seen.code) or missed > 0 or seen.slope > 20 * MIB * max(1.0, seen.engines / 100))


if __name__ == "__main__":
    sys.exit(main())
