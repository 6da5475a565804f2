"""Panels with what every one of them has: a title, a description, a unit, thresholds, targets."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardLink,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMapping,
)

from boards.promql import Query
from boards.words import nothing

PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${datasource}")
Panel = Any
"""A builder of the SDK; its kinds share no type but their methods."""
Steps = Sequence[tuple[float | None, str]]
CALM: Steps = ((None, "green"),)
PALETTE = FieldColorModeId.PALETTE_CLASSIC


def finished(panel: Panel, title: str, words: str, size: tuple[int, int], steps: Steps = CALM) -> Panel:
    """What all have; size is width (of 24) and height. Charts draw their thresholds as dashed lines."""
    if isinstance(panel, timeseries.Panel) and len(steps) > 1:
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED))
    made = panel.title(title).description(words).span(size[0]).height(size[1]).datasource(PROMETHEUS)
    found = [Threshold(value=value, color=colour) for value, colour in steps]
    return made.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found))


def asked(panel: Panel, queries: Sequence[Query]) -> Panel:
    """With these targets: A, B, ..."""
    for ref, query in zip(ascii_uppercase, queries, strict=False):
        panel.with_target(query.target(ref))
    return panel


def lines(
    queries: Sequence[Query], unit: str, axis: str = "", stacked: bool = False, top: float | None = None
) -> Panel:
    """Time series, stacked as areas or as lines; `axis` says what is counted where the unit does not."""
    made = timeseries.Panel().unit(unit).min(0).axis_label(axis).color_scheme(FieldColor().mode(PALETTE))
    # The outline of a stacked area that is empty would lie on top of all the others.
    made.line_width(0 if stacked else 1).fill_opacity(55 if stacked else 5)
    if unit == "percentunit":
        made.decimals(0)
    made.show_points(kinds.VisibilityMode.NEVER).line_interpolation(kinds.LineInterpolation.STEP_AFTER)
    mode = kinds.StackingMode.NORMAL if stacked else kinds.StackingMode.NONE
    made.stacking(common.StackingConfig().mode(mode).group("A"))
    made.legend(_legend(kinds.LegendDisplayMode.LIST, kinds.LegendPlacement.BOTTOM))
    made.tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.NONE))
    return asked(made if top is None else made.max(top), queries)


def _legend(mode: kinds.LegendDisplayMode, place: kinds.LegendPlacement) -> common.VizLegendOptions:
    return common.VizLegendOptions().show_legend(True).display_mode(mode).placement(place).calcs(["lastNotNull"])


def ranked(panel: Panel) -> Panel:
    """Many lines: the legend is a table with the largest on top, and so is what the pointer shows."""
    panel.fill_opacity(0)
    panel.tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
    legend = _legend(kinds.LegendDisplayMode.TABLE, kinds.LegendPlacement.RIGHT)
    return panel.legend(legend.sort_by("Last *").sort_desc(True))


def number(
    queries: Sequence[Query], unit: str, mappings: Sequence[ValueMapping] = (), field: str = "", empty: str = "unknown"
) -> Panel:
    """A large number, or the text of a label named `field`; `empty`, in grey, where there is none."""
    made = stat.Panel().unit(unit).mappings([*mappings, nothing(empty)])
    made.color_mode(kinds.BigValueColorMode.BACKGROUND)
    made.graph_mode(kinds.BigValueGraphMode.NONE).no_value(empty).text_mode(kinds.BigValueTextMode.VALUE)
    if unit == "percentunit":
        made.decimals(0)
    made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields(f"/^{field}$/" if field else ""))
    return asked(made, queries)


def plain(panel: Panel) -> Panel:
    """A number that is neither good nor bad: without a colour."""
    return panel.color_mode(kinds.BigValueColorMode.NONE)


def states(queries: Sequence[Query], mappings: Sequence[ValueMapping]) -> Panel:
    """A state timeline."""
    made = statetimeline.Panel().unit("none").mappings(list(mappings)).merge_values(True).fill_opacity(80)
    made.show_value(kinds.VisibilityMode.AUTO).row_height(0.85).line_width(0)
    return asked(made, queries)


def bars(queries: Sequence[Query], unit: str, mappings: Sequence[ValueMapping] = ()) -> Panel:
    """Horizontal bars."""
    made = bargauge.Panel().unit(unit).min(0).mappings(list(mappings)).orientation(kinds.VizOrientation.HORIZONTAL)
    made.display_mode(kinds.BarGaugeDisplayMode.BASIC).reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return asked(made, queries)


def rows(queries: Sequence[Query], *largest: str) -> Panel:
    """A table, the largest of these columns on top: of the first, among equals of the second, and so on."""
    made = table.Panel().unit("none").filterable(True).cell_height(kinds.TableCellHeight.SM)
    made.sort_by([common.TableSortByFieldState().display_name(name).desc(True) for name in largest])
    return asked(made, queries)


# ---------------------------------------------------------------- overrides and transformations


def column(panel: Panel, name: str, **values: Any) -> Panel:
    """Sets properties of one field: column(panel, "waiting", unit="short", custom_width=90)."""
    return panel.override_by_name(name, properties(**values))


def properties(**values: Any) -> list[DynamicConfigValue]:
    """As an override has them; custom_x_y stands for custom.xY."""
    return [DynamicConfigValue(id_val=_spelled(name), value=value) for name, value in values.items()]


def _spelled(name: str) -> str:
    own = name.startswith("custom_")
    head, *rest = name.removeprefix("custom_").split("_")
    return "custom." * own + head + "".join(part.capitalize() for part in rest)


def coloured(panel: Panel, name: str, mappings: Sequence[ValueMapping]) -> Panel:
    """A column whose cells are filled with the colour of their value."""
    filled = {"type": "color-background", "mode": "basic"}
    return column(panel, name, mappings=list(mappings), custom_cell_options=filled, custom_align="center")


def gauge(panel: Panel, name: str, steps: Steps = ((None, "blue"),), width: int = 105) -> Panel:
    """A column of parts of a whole, as bars. Blue: neither good nor bad."""
    found = {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}
    bar = {"type": "gauge", "mode": "basic"}
    part: dict[str, Any] = {"unit": "percentunit", "decimals": 0, "min": 0, "max": 1}
    return column(panel, name, **part, thresholds=found, custom_cell_options=bar, custom_width=width)


def wide(panel: Panel, **widths: int) -> Panel:
    """Columns that need no more; the others share what is left. `KV_held` stands for "KV held"."""
    for name, width in widths.items():
        column(panel, name.replace("_", " "), custom_width=width)
    return panel


def painted(panel: Panel, colours: dict[str, str], names: dict[str, str] | None = None) -> Panel:
    """Fixed colours of series, by name; and what they are called instead of their labels."""
    for name, colour in colours.items():
        called = {"display_name": names[name]} if names and name in names else {}
        column(panel, name, color=FieldColor().mode(FieldColorModeId.FIXED).fixed_color(colour).build(), **called)
    return panel


def hidden(panel: Panel, *names: str) -> Panel:
    """Columns that only links read."""
    for name in names:
        column(panel, name, custom_hidden=True)
    return panel


def band(panel: Panel, low: str, high: str) -> Panel:
    """Fills between two series: a range is shown as a range."""
    column(panel, high, custom_fill_below_to=low, custom_fill_opacity=30)
    return column(panel, low, custom_fill_opacity=0)


def limit(panel: Panel, name: str, colour: str = "text") -> Panel:
    """A dashed line that is not stacked."""
    style = {"fill": "dash", "dash": [8, 6]}
    column(panel, name, custom_stacking={"mode": "none", "group": "limit"}, custom_fill_opacity=0, custom_line_width=2)
    return painted(column(panel, name, custom_line_style=style), {name: colour})


def linked(panel: Panel, name: str, title: str, url: str) -> Panel:
    """Cells of a column lead somewhere."""
    link = DashboardLink(title=title, url=url, type_val=DashboardLinkType.LINK, target_blank=not url.startswith("/"))
    return column(panel, name, links=[link])


def transformed(panel: Panel, **options: Any) -> Panel:
    """Transformations in this order: transformed(panel, merge={}, organize={...})."""
    for name, value in options.items():
        panel.with_transformation(DataTransformerConfig(id_val=name, options=value))
    return panel
