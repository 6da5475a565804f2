"""docs/ is generated: what is committed is what the rules and the code say today."""

from __future__ import annotations

from pathlib import Path

from story import BOOK

from diagnoser.docs import pages, write

DOCS = Path(__file__).parents[1] / "docs"


def test_committed_pages_are_current() -> None:
    wrong = [name for name, text in pages(BOOK) if not (DOCS / name).is_file() or (DOCS / name).read_text() != text]
    assert wrong == [], "run: python -m diagnoser.docs docs"


def test_no_page_is_left_of_a_check_that_is_gone() -> None:
    assert {p.stem for p in (DOCS / "checks").glob("*.md")} == {"README", *(check.id for check in BOOK.checks)}


def test_writing_removes_what_is_stale(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "gone.md").write_text("old")
    written = write(BOOK, tmp_path)
    assert not (tmp_path / "checks" / "gone.md").exists()
    assert len(written) == len(list(tmp_path.rglob("*.md")))
