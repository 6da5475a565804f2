"""Recordings: written and read back, and read although they are disordered, damaged or hostile."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from diagnoser.errors import RecordingError
from diagnoser.sources import recording as module
from diagnoser.sources.recorder import RecordingWriter
from diagnoser.sources.recording import Recording, open_recording

Members = list[tuple[str, bytes]]
PAGE = b"vllm:x 1\n"
SUFFIXES = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz"]


def tar_bytes(members: Members, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def make(tmp_path: Path, members: Members, kind: str = ".tar") -> Path:
    path = tmp_path / f"incident{kind}"
    if kind:
        mode = {"": "w", "gz": "w:gz", "xz": "w:xz"}[kind[-2:].replace("ar", "")]
        path.write_bytes(tar_bytes(members, mode))
        return path
    for name, data in members:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def pages(recording: Recording) -> list[tuple[float, str | None, str | None]]:
    (target,) = recording.targets
    found = [(page.at, page.text, page.error) for page in target.pages()]
    assert [at for at, _, _ in found] == list(target.times) and len(found) == len(target)
    return found


# ------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("kind", ["", ".tar", ".tar.gz", ".tar.xz"])
def test_pages_come_in_time_order_from_any_container(tmp_path: Path, kind: str) -> None:
    meta = {"engine": "vllm", "version": "0.32.0", "facts": {"max_num_seqs": 5}, "load": "L1-bound", "scenario": "c"}
    members = [
        ("./1795975897000.prom", b"vllm:x 2\n"),
        ("1795975896500.prom", PAGE),
        ("1795975899250.error", b"URLError"),
        ("./meta.json", json.dumps(meta).encode()),
    ]
    recording = open_recording(str(make(tmp_path, members, kind)))
    assert pages(recording) == [
        (1795975896.5, "vllm:x 1\n", None),
        (1795975897.0, "vllm:x 2\n", None),
        (1795975899.25, None, "the recorded poll failed (URLError)."),
    ]
    assert recording.targets[0].name == "incident"
    assert recording.targets[0].meta == {"engine": "vllm", "version": "0.32.0"}
    assert "L1-bound" not in repr(recording)
    assert recording.warnings == ()


def test_one_page_is_a_recording(tmp_path: Path) -> None:
    assert pages(open_recording(make(tmp_path, [("5.prom", PAGE)]))) == [(0.005, "vllm:x 1\n", None)]


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    ((_, text, _),) = pages(open_recording(make(tmp_path, [("5.prom", b'x{a="\xff"} 1\r\n')])))
    assert text is not None and text.encode("utf-8", "surrogateescape") == b'x{a="\xff"} 1\r\n'


@pytest.mark.parametrize("kind", ["", ".tar.xz"])
@pytest.mark.parametrize("top", ["", "incident-7/"])
def test_several_targets_have_a_folder_each(tmp_path: Path, kind: str, top: str) -> None:
    members = [(f"{top}{name}/{at}.prom", PAGE) for at in (2000, 1000) for name in ("b", "a")]
    members += [(f"{top}meta.json", b'{"engine": "sglang"}'), (f"{top}b/meta.json", b'{"engine": "vllm"}')]
    targets = open_recording(make(tmp_path, members, kind)).targets
    assert [target.name for target in targets] == ["a", "b"]
    assert [target.meta["engine"] for target in targets] == ["sglang", "vllm"]
    assert [target.times for target in targets] == [(1.0, 2.0)] * 2


def test_folders_that_share_a_name_further_down(tmp_path: Path) -> None:
    targets = open_recording(make(tmp_path, [("a/x/1.prom", PAGE), ("b/x/1.prom", PAGE), ("1.prom", PAGE)])).targets
    assert [target.name for target in targets] == ["incident", "a/x", "b/x"]


def test_one_poll_at_one_time(tmp_path: Path) -> None:
    members = [("1.prom", b"old 1\n"), ("./1.prom", PAGE), ("1.error", b"x"), ("2.error", b"x"), ("2.prom", PAGE)]
    recording = open_recording(make(tmp_path, members))
    assert pages(recording) == [(0.001, "vllm:x 1\n", None), (0.002, "vllm:x 1\n", None)]
    assert "ignored 3 files" in recording.warnings[0]


def test_names_that_are_no_polls_are_ignored_and_told(tmp_path: Path) -> None:
    names = ["README.md", "x.prom", "-1.prom", "1.5.prom", "._1.prom", "١.prom", "1.prom.tmp", "9" * 40 + ".prom"]
    recording = open_recording(make(tmp_path, [("1.prom", PAGE), *((name, b"?") for name in names)]))
    assert len(pages(recording)) == 1
    (warning,) = recording.warnings
    assert "ignored 8 files" in warning and "README.md" in warning


@pytest.mark.parametrize("meta", [b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"engine": {"facts": 1}}'])
def test_unusable_meta_is_no_reason_to_fail(tmp_path: Path, meta: bytes) -> None:
    recording = open_recording(make(tmp_path, [("1.prom", PAGE), ("meta.json", meta)]))
    assert recording.targets[0].meta == {}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_archive_is_told_by_its_content(tmp_path: Path, suffix: str) -> None:
    path = make(tmp_path, [("1.prom", PAGE)], suffix)
    assert len(pages(open_recording(path.rename(tmp_path / "other.bin")))) == 1


@pytest.mark.parametrize("kind", [".tar", ".tar.gz", ".tar.xz"])
def test_cut_off_archive_gives_what_is_readable(tmp_path: Path, kind: str) -> None:
    path = make(tmp_path, [(f"{i}.prom", os.urandom(3000)) for i in range(60)], kind)
    path.write_bytes(path.read_bytes()[:-60_000])
    recording = open_recording(path)
    found = pages(recording)
    assert 20 < len(found) < 60
    assert all(text is not None and len(text) > 1000 for _, text, _ in found)
    assert "cut off or damaged" in recording.warnings[0]


def test_damaged_header_is_told(tmp_path: Path) -> None:
    path = make(tmp_path, [(f"{i}.prom", b"x 1\n" * 1000) for i in range(60)])
    data = bytearray(path.read_bytes())
    start = data.index(b"9.prom")
    data[start : start + 512] = b"\xee" * 512
    path.write_bytes(data)
    recording = open_recording(path)
    assert len(pages(recording)) == 9
    assert "damaged" in recording.warnings[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"?" * 50, b"\xfd7zXZ\x00???", b"\0" * 10240, b"\xff" * 2000],
)
def test_no_archive_at_all(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "incident.tar.gz"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"incident\.tar\.gz: .*; give a folder or a \.tar"):
        open_recording(path)


@pytest.mark.parametrize("kind", ["", ".tar"])
def test_recording_without_a_page(tmp_path: Path, kind: str) -> None:
    with pytest.raises(RecordingError, match="holds no page named"):
        open_recording(make(tmp_path, [("notes.txt", b"")], kind))


def test_no_such_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such recording"):
        open_recording(tmp_path / "nowhere.tar")


def test_names_that_lead_out_of_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "incident.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("../1.prom", "/2.prom", "a/../../3.prom", "4.prom"):
            info = tarfile.TarInfo(name)
            info.size = len(PAGE)
            archive.addfile(info, io.BytesIO(PAGE))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("5.prom")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    recording = open_recording(path)
    assert [at for at, _, _ in pages(recording)] == [0.004]
    assert sorted(os.listdir(tmp_path)) == ["incident.tar"]
    assert "ignored 6 files" in recording.warnings[0]


@pytest.mark.parametrize("kind", ["", ".tar.gz"])
def test_page_that_is_too_large_becomes_an_error(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGE_BYTES", 2**20)
    first, second = pages(open_recording(make(tmp_path, [("1.prom", b"#" * (2**20 + 1)), ("2.prom", PAGE)], kind)))
    assert first[1] is None and "larger than 1 MiB" in str(first[2])
    assert second == (0.002, "vllm:x 1\n", None)


@pytest.mark.parametrize("kind", [".tar.gz", ".tar.xz"])
def test_bomb_is_not_unpacked(tmp_path: Path, kind: str) -> None:
    members = [("1.prom", PAGE), ("2.prom", b"#" * 30_000_000), ("3.prom", PAGE)]
    recording = open_recording(make(tmp_path, members, kind), max_bytes=2**20)
    assert len(pages(recording)) == 1
    assert "only the beginning was read" in recording.warnings[0]


def test_page_that_vanishes_while_replaying(tmp_path: Path) -> None:
    path = make(tmp_path, [("1.prom", PAGE), ("2.prom", PAGE)], "")
    recording = open_recording(path)
    (path / "1.prom").unlink()
    first, second = pages(recording)
    assert "cannot be read" in str(first[2]) and second[1] is not None


# ------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("kind", ["", *SUFFIXES])
def test_what_is_written_is_read_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"incident{kind}"
    with RecordingWriter(path, ["gpu-7:8000"], poll_interval_seconds=2.0) as writer:
        writer.write_page("gpu-7:8000", 1795975896.468, PAGE)
        writer.describe("gpu-7:8000", engine="vllm", version="0.32.0", model=None)
        writer.describe("gpu-7:8000", engine="vllm")
        writer.write_error("gpu-7:8000", 1795975898.5, "gpu-7:8000 refuses the connection.")
    recording = open_recording(path)
    assert pages(recording) == [
        (1795975896.468, "vllm:x 1\n", None),
        (1795975898.5, None, "gpu-7:8000 refuses the connection."),
    ]
    (target,) = recording.targets
    assert target.name == "gpu-7:8000"
    meta = {"target": "gpu-7:8000", "engine": "vllm", "version": "0.32.0", "poll_interval_seconds": 2.0}
    assert target.meta == meta
    assert (recording.warnings, os.listdir(tmp_path)) == ((), [path.name])


def test_archive_does_not_tell_who_wrote_it(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "a.tar", ["t"], poll_interval_seconds=1) as writer:
        writer.write_page("t", 1.0, PAGE)
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert {(member.uid, member.uname, member.mode) for member in archive} == {(0, "", 0o644)}
        assert archive.getnames() == ["1000.prom", "meta.json"]


def test_several_targets_keep_their_names(tmp_path: Path) -> None:
    names = ["gpu-7:8000", "gpu-7_8000", "http://gw/a/metrics", "../..", "é"]
    with RecordingWriter(tmp_path / "a.tar.gz", names, poll_interval_seconds=1) as writer:
        for name in names:
            writer.write_page(name, 1.0, PAGE)
    targets = open_recording(tmp_path / "a.tar.gz").targets
    assert sorted(target.name for target in targets) == sorted(names)
    assert os.listdir(tmp_path) == ["a.tar.gz"]


def test_two_polls_in_one_millisecond_are_both_kept(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "a", ["t"], poll_interval_seconds=1) as writer:
        writer.write_page("t", 1.0, PAGE)
        writer.write_error("t", 1.0001, "x")
        writer.write_page("t", 1.0, PAGE)
    assert [at for at, _, _ in pages(open_recording(tmp_path / "a"))] == [1.0, 1.001, 1.002]


def test_interrupted_recording_is_readable(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "a.tar.xz", ["t"], poll_interval_seconds=1)
    writer.write_page("t", 1.0, PAGE)
    recording = open_recording(tmp_path / "a.tar.xz.partial")  # as after kill -9
    assert len(pages(recording)) == 1 and recording.warnings == ()
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(tmp_path / "a.tar.xz", ["t"], poll_interval_seconds=1)


def test_exception_while_recording_still_closes_it(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        RecordingWriter(tmp_path / "a.tgz", ["t"], poll_interval_seconds=1) as writer,
    ):
        writer.write_page("t", 1.0, PAGE)
        raise KeyboardInterrupt
    writer.close()
    assert len(pages(open_recording(tmp_path / "a.tgz"))) == 1


def test_recording_without_a_page_is_still_an_archive(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "a.tgz", ["t"], poll_interval_seconds=1):
        pass
    assert tarfile.is_tarfile(tmp_path / "a.tgz")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"precious")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(tmp_path / "a.tar", ["t"], poll_interval_seconds=1)
    assert (tmp_path / "a.tar").read_bytes() == b"precious"


def test_disk_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RecordingError, match="cannot be written"):
        RecordingWriter(tmp_path / "file" / "a.tar", ["t"], poll_interval_seconds=1)
    writer = RecordingWriter(tmp_path / "a.tar", ["t"], poll_interval_seconds=1)
    writer.write_page("t", 1.0, PAGE)
    (tmp_path / "a.tar.tmp").mkdir()
    with pytest.raises(RecordingError, match=r"all pages are in .*partial"):
        writer.close()
    assert len(pages(open_recording(tmp_path / "a.tar.partial"))) == 1
