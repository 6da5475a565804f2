"""What `-v` adds: every signal with its series or the reason why it is missing, and every fact with its origin."""

from __future__ import annotations

from rich.text import Text

from diagnoser.model import Diagnosis, Fact, SignalValue
from diagnoser.outputs.base import Look
from diagnoser.outputs.terminal.page import wrapped
from diagnoser.units import quantity

NAME = 30


def details(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """Signals, then facts."""
    signals = sorted(diagnosis.signals.values(), key=lambda signal: signal.value is None)
    out = [Text("  Signals", "bold")]
    for signal in signals:
        out += _signal(signal, look)
    return out + facts(diagnosis, look)


def facts(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """Every fact with its origin."""
    if not diagnosis.facts:
        return []
    out = [Text(), Text("  Facts", "bold")]
    for fact in diagnosis.facts.values():
        out += wrapped(f"{_value(fact)} ({fact.origin})", look.width, _head(fact.name))
    return out


def _head(name: str) -> Text:
    return Text("  ").append(f"{name:<{NAME}} ")


def _signal(signal: SignalValue, look: Look) -> list[Text]:
    if signal.value is None:
        return wrapped(f"unknown: {signal.missing_reason}", look.width, _head(signal.name), style="dim")
    series = f" from {', '.join(dict.fromkeys(signal.series))}" if signal.series else ""
    return wrapped(quantity(signal.value, signal.unit) + series, look.width, _head(signal.name))


def _value(fact: Fact) -> str:
    if isinstance(fact.value, bool):
        return "true" if fact.value else "false"
    return f"{fact.value:,.12g}" if isinstance(fact.value, int | float) else fact.value
