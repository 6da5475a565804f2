"""The fleet as Prometheus' remote write: protobuf by hand, since its shape is fixed and its samples are arrays.

A sample is 18 bytes: tag and length, tag and double, tag and a time stamp whose varint has six bytes until 2109.
Snappy allows to send bytes as they are, so nothing is compressed and no library is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .members import Settings
from .shots import MODEL, Shot, shots
from .takes import stamps

_SAMPLE = 18


def blocks(settings: Settings, size: int) -> Iterator[bytes]:
    """Bodies of remote-write requests of about `size` bytes."""
    waiting: list[bytes] = []
    length = 0
    for part in (part for shot in shots(settings) for part in _engines(shot)):
        waiting.append(part)
        length += len(part)
        if length >= size:
            yield uncompressed(b"".join(waiting))
            waiting, length = [], 0
    if waiting:
        yield uncompressed(b"".join(waiting))


def uncompressed(data: bytes) -> bytes:
    """A Snappy block of one literal."""
    return varint(len(data)) + b"\xfc" + (len(data) - 1).to_bytes(4, "little") + data


def varint(number: int) -> bytes:
    """As protobuf and Snappy write it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(tag: int, data: bytes) -> bytes:
    return bytes([tag]) + varint(len(data)) + data


def label(name: str, value: str) -> bytes:
    """One label of a series."""
    return _field(0x0A, _field(0x0A, name.encode()) + _field(0x12, value.encode()))


def _engines(shot: Shot) -> Iterator[bytes]:
    """All series of one engine after the other."""
    own = ("instance", "job", "pod")
    series = [*shot.take.footage.series, ("up", {})]
    patterns = [_pattern(name, labels, own) for name, labels in series]
    values = np.vstack([shot.take.values, np.ones(len(shot.take.offsets))])
    samples, there = _samples(values), ~np.isnan(values)
    whole = there.all(axis=1)
    for member in shot.members:
        filled = [label(key, member.labels[key]) for key in own] + [label(MODEL, member.model)]
        samples[:, :, 12:] = _stamp_bytes(stamps(shot.take, member.start))
        rows = [(samples[i] if whole[i] else samples[i, there[i]]).tobytes() for i in range(len(series))]
        yield b"".join(
            _field(0x0A, b"".join([part if isinstance(part, bytes) else filled[part] for part in pattern]) + row)
            for pattern, row in zip(patterns, rows, strict=True)
        )


def _pattern(name: str, labels: Mapping[str, str], own: tuple[str, ...]) -> list[bytes | int]:
    """Labels in the order of their names, as remote write wants them; a number stands for an engine's own label."""
    kept = {"__name__": name, **{key: value for key, value in labels.items() if key not in own}}
    places: dict[str, bytes | int] = {key: label(key, value) for key, value in kept.items()}
    places |= {key: place for place, key in enumerate(own)}
    if MODEL in labels:
        places[MODEL] = len(own)
    joined: list[bytes | int] = []
    for _, part in sorted(places.items()):
        if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _samples(values: np.ndarray) -> np.ndarray:
    """Series x scrapes x bytes, the stamps left open."""
    out = np.empty((*values.shape, _SAMPLE), dtype=np.uint8)
    out[:, :, :3] = (0x12, _SAMPLE - 2, 0x09)
    out[:, :, 3:11] = np.ascontiguousarray(values, dtype="<f8").view(np.uint8).reshape(*values.shape, 8)
    out[:, :, 11] = 0x10
    return out


def _stamp_bytes(times: np.ndarray) -> np.ndarray:
    """Scrapes x the six bytes of their varints."""
    shifts = np.arange(6) * 7
    return ((times[:, None] >> shifts) & 127 | np.where(shifts < 35, 128, 0)).astype(np.uint8)
