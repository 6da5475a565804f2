"""The files as they are served and shipped: policy, tags, nothing inline or from elsewhere, the library as released."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from service.web_kit import Web, serve

import diagnoser.service.page

ROOT = Path(__file__).parents[2]
FOLDER = Path(diagnoser.service.page.__file__).parent
TEXTS = (".js", ".css", ".html")
OWN = sorted(path for path in FOLDER.rglob("*") if path.suffix in TEXTS and "vendor" not in path.parts)
FORBIDDEN = (
    "eval(", "new Function", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "EventSource(",
)  # fmt: skip
UPLOT = {
    "uPlot.esm.js": "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""SHA-256 of the files of uplot 1.6.32 as npm has them."""


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as found:
        yield found


def names(folder: Path) -> list[str]:
    served = (".html", ".js", ".css", ".svg")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in served)


def test_the_page_has_a_strict_policy_and_a_tag(web: Web) -> None:
    answer = web.get("/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
    assert policy["script-src"] == policy["style-src"] == "'self'" and policy["form-action"] == "'none'"
    assert answer.headers["Cache-Control"] == "no-cache" and answer.headers["X-Content-Type-Options"] == "nosniff"
    tag = answer.headers["ETag"]
    again = web.get("/", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert web.client.head("/").status_code == 200


@pytest.mark.parametrize("name", names(FOLDER))
def test_every_file_is_served_as_it_lies_there(web: Web, name: str) -> None:
    path = "/" if name == "index.html" else f"/static/{name}"
    for coding in ("identity", "gzip"):
        answer = web.get(path, headers={"Accept-Encoding": coding})
        assert answer.content == (FOLDER / name).read_bytes()
        assert answer.headers.get("Content-Encoding", "identity") == coding
        assert answer.headers["Vary"] == "Accept-Encoding"
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
    assert answer.headers["Content-Type"].split(";")[0] == kinds[Path(name).suffix]


@pytest.mark.parametrize(
    "path", ["__init__.py", "../api/app.py", "%2e%2e/api/app.py", "", "vendor/uplot/LICENSE", "vendor", "js/", "no.js"]
)
def test_nothing_else_is_served(web: Web, path: str) -> None:
    answer = web.get(f"/static/{path}")
    assert answer.status_code == 404 and answer.headers["Content-Type"] == "application/problem+json"


def test_the_page_is_not_part_of_the_api(web: Web) -> None:
    assert not [path for path in web.json("/api/v1/openapi.json")["paths"] if "static" in path or path == "/"]


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(FOLDER)))
def test_nothing_inline_nothing_from_elsewhere_no_eval(path: Path) -> None:
    text = path.read_text()
    for word in FORBIDDEN:
        assert word not in text
    assert not re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", text.replace("// ", "")), "an address of another origin"
    if path.suffix == ".html":
        assert not re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert len(text.splitlines()) < 260, "small files by topic"


def test_the_chart_library_is_what_was_released() -> None:
    for name, expected in UPLOT.items():
        assert hashlib.sha256((FOLDER / "vendor" / "uplot" / name).read_bytes()).hexdigest() == expected
    assert "1.6.32" in (FOLDER / "vendor" / "uplot" / "README.md").read_text()
    assert "MIT License" in (FOLDER / "vendor" / "uplot" / "LICENSE").read_text()


def test_what_a_reader_loads_is_small(web: Web) -> None:
    total = sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in names(FOLDER))
    assert total < 100_000


def test_the_wheel_has_the_page_and_its_licence(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    shipped = tmp_path / "site" / "diagnoser" / "service" / "page"
    assert names(shipped) == names(FOLDER)
    assert (shipped / "vendor" / "uplot" / "LICENSE").is_file()
    listing = "from diagnoser.service.api import page; print(page.__file__, *sorted(page.contents()))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-P", "-c", listing]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    where, *listed = found.stdout.split()
    assert where.startswith(str(tmp_path)) and listed == sorted(names(FOLDER))
