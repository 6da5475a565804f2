"""Lines of styled text, wrapped and aligned by display width, and how they become a string."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from diagnoser.outputs.base import Look
from diagnoser.outputs.words import NO_BREAK, clean

INDENT = 2
SEVERITY = {"critical": "bold red", "warning": "bold yellow", "info": "bold green"}
URGENCY = ("bold green", "bold magenta", "bold yellow", "bold red", "bold red")
"""Style by urgency: no bottleneck, unknown, warning, unreachable, critical."""
_ASCII = str.maketrans(
    {
        "·": "|",
        "…": "~",
        "█": "#",
        "▓": "+",
        "▒": "=",
        "░": ".",
        "▏": "|",
        "→": ">",
        "–": "-",
        "×": "x",
        "↑": "^",
        "↓": "v",
        "▁": "_",
        "▂": "_",
        "▃": "-",
        "▄": "-",
        "▅": "=",
        "▆": "=",
        "▇": "#",
    }
)


def rendered(lines: Sequence[Text], look: Look) -> str:
    """The lines as one string, with colour codes only if asked for."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        force_terminal=look.colour,
        color_system="standard" if look.colour else None,
        no_color=not look.colour,
        width=look.width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        soft_wrap=True,
    )
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True)
    text = buffer.getvalue().replace(NO_BREAK, " ")
    return text if look.unicode else plain(text)


def plain(text: str) -> str:
    """ASCII only."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def wrapped(text: str, width: int, first: Text | None = None, hang: int | None = None, style: str = "") -> list[Text]:
    """`text` behind `first`, wrapped at `width`; later lines hang under the first one's end, or at column `hang`."""
    line = (first if first is not None else Text(" " * INDENT)).copy()
    indent = line.cell_len if hang is None else hang
    out: list[Text] = []
    begun, breakable = False, line.cell_len > indent
    for word in filter(None, clean(text).split(" ")):
        if (begun or breakable) and line.cell_len + begun + cell_len(word) > width:
            out.append(line)
            line, begun, breakable = Text(" " * indent), False, False
        line.append((" " if begun else "") + word, style)
        begun = True
    return [*out, line] if begun else out


def clipped(text: str, width: int, first: Text, style: str = "") -> Text:
    """`text` behind `first` on one line, cut with an ellipsis."""
    line = first.copy().append(clean(text), style)
    line.truncate(width, overflow="ellipsis")
    return line


def between(left: Text, right: Text, width: int) -> Text | None:
    """Left and right text on one line, None if they do not fit."""
    gap = width - left.cell_len - right.cell_len
    return Text.assemble(left, " " * gap, right) if gap >= 2 else None


def fitted(text: str, width: int) -> str:
    """Exactly `width` columns: cut with an ellipsis, or filled with blanks."""
    text = clean(text)
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return set_cell_size(text, width)
