"""What a metrics server is asked for a signal: small expression trees over readings, written beside the Python.

A tree knows readings (engines/base.py), not metric names: a dialect (diagnoser/promql) spells it for one engine family.
Rendering gives None where the family, or PromQL itself, cannot say it; the signal is unknown then.
"""

from diagnoser.signals.promql.joins import AnySum, Expr, First, Sum, Unless
from diagnoser.signals.promql.leaves import (
    Cannot,
    Edge,
    Gauge,
    Grew,
    IfTold,
    Label,
    Labelled,
    Lately,
    Number,
    Observed,
    Of,
    Pages,
    Ranks,
    Recently,
    Stepped,
    Told,
    Trait,
)
from diagnoser.signals.promql.overtime import MaxLately, Over, Quiet, Start, Third, Total
from diagnoser.signals.promql.protocol import Ask, Dialect
from diagnoser.signals.promql.trees import known, mean_of, of_signals, parts

__all__ = [
    "AnySum",
    "Ask",
    "Cannot",
    "Dialect",
    "Edge",
    "Expr",
    "First",
    "Gauge",
    "Grew",
    "IfTold",
    "Label",
    "Labelled",
    "Lately",
    "MaxLately",
    "Number",
    "Observed",
    "Of",
    "Over",
    "Pages",
    "Quiet",
    "Ranks",
    "Recently",
    "Start",
    "Stepped",
    "Sum",
    "Third",
    "Told",
    "Total",
    "Trait",
    "Unless",
    "known",
    "mean_of",
    "of_signals",
    "parts",
]
