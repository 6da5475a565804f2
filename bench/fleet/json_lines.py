"""The fleet as VictoriaMetrics' JSON lines: a line a series with all its samples, so labels are written once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from .members import Settings
from .shots import MODEL, Shot, shots
from .takes import stamps

_Line = tuple[str, bool, str, np.ndarray | None]
"""Text before the engine's labels, whether its model follows, text behind them, which scrapes show it (None: all)."""


def blocks(settings: Settings, size: int) -> Iterator[bytes]:
    """Bodies of import requests of about `size` bytes."""
    waiting: list[str] = []
    length = 0
    for text in (text for shot in shots(settings) for text in _engines(shot)):
        waiting.append(text)
        length += len(text)
        if length >= size:
            yield "".join(waiting).encode()
            waiting, length = [], 0
    if waiting:
        yield "".join(waiting).encode()


def _engines(shot: Shot) -> Iterator[str]:
    """All lines of one engine after the other."""
    series = zip(shot.take.footage.series, shot.take.values, strict=True)
    lines = [_line(name, labels, values) for (name, labels), values in series]
    lines.append(_line("up", {}, np.ones(len(shot.take.offsets))))
    for member in shot.members:
        own = "".join(f",{json.dumps(key)}:{json.dumps(value)}" for key, value in member.labels.items())
        with_model = f'{own},"{MODEL}":{json.dumps(member.model)}'
        times = stamps(shot.take, member.start)
        usual = _times(times)
        yield "".join(
            head + (with_model if modelled else own) + tail + (usual if shown is None else _times(times[shown]))
            for head, modelled, tail, shown in lines
        )


def _line(name: str, labels: Mapping[str, str], values: np.ndarray) -> _Line:
    head = json.dumps({"__name__": name, **{k: v for k, v in labels.items() if k != MODEL}}, separators=(",", ":"))
    there = ~np.isnan(values)
    tail = ",".join(f"{value:.0f}" if value % 1 == 0 else repr(value) for value in values[there].tolist())
    shown = None if there.all() else there
    return f'{{"metric":{head[:-1]}', MODEL in labels, f'}},"values":[{tail}]', shown


def _times(times: np.ndarray) -> str:
    return f',"timestamps":{json.dumps(times.tolist(), separators=(",", ":"))}}}\n'
