"""A server of our own on a free loopback port: started, awaited, measured, and stopped by its own process id."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import httpx

READY_SECONDS, STOP_SECONDS = 600.0, 120.0
"""A server that holds ten thousand engines takes its time."""


@dataclass(frozen=True)
class Running:
    """Ends with the `with` block."""

    process: subprocess.Popen[bytes]
    url: str
    ready_seconds: float

    def memory(self, when: str) -> dict[str, float]:
        """Its resident memory and the most it ever had, in MB, and its CPU seconds so far."""
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if line
        )
        return {f"{when}_mb": _mb(status["VmRSS"]), f"{when}_peak_mb": _mb(status["VmHWM"]), f"{when}_cpu": self.cpu()}

    def cpu(self) -> float:
        """CPU seconds since it started, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def __enter__(self) -> Running:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _mb(text: str) -> float:
    return round(int(text.split()[0]) / 1024, 1)


def running(binary: str, package: str, words: Sequence[str], listen: str, health: str, folder: Path) -> Running:
    """Starts it and waits until it answers. Its log is written into `folder`."""
    found = shutil.which(binary)
    if found is None:
        raise SystemExit(f"{binary} is missing: apt-get install -y --no-install-recommends {package}")
    address, start = f"127.0.0.1:{free_port()}", time.perf_counter()
    log = folder / f"{binary}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([found, *words, f"{listen}{address}"], stdout=out, stderr=subprocess.STDOUT)
    try:
        await_ready(process, f"http://{address}{health}", log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Running(process, f"http://{address}", time.perf_counter() - start)


def await_ready(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float = READY_SECONDS) -> None:
    """Returns once it answers 200 there. RuntimeError with the end of its log if it ends or never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended at once:\n{log.read_text()[-2000:]}")
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"{url} is not ready after {seconds:g} s:\n{log.read_text()[-2000:]}")


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
