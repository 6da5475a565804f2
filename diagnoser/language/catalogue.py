"""One language: translations by template, and the way back from a sentence to its template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

LOCALE = Path(__file__).parents[1] / "locale"
HOLE = re.compile(r"\{([^{}]*)\}")
MARK, UNIT = "mark", "unit"
"""Contexts of the catalogue: what stands between two sentences, and units of values."""
LONGEST = 2000
"""Longer texts are somebody else's."""
MOST_WORDS, MOST_PLACES = 60, 5
"""Of what is looked through for parts: errors come from the network, and must not cost us time."""
CJK = "[\u3400-\u9fff]"
_SPACES = (
    (re.compile(rf"(?<={CJK})(?=[A-Za-z0-9])|(?<=[A-Za-z0-9%])(?={CJK})"), " "),
    (re.compile(rf"(?<={CJK}) (?={CJK})"), ""),
)
"""Where a value meets its sentence: a blank between Chinese and Latin, none between Chinese and Chinese."""
_PROSE = re.compile("[a-z]+ [a-z]+")
_NUMBER = r"[<>]? ?-?(?:\d[\d.,]*(?:e[+-]?\d+)?|inf|nan)"
_VALUES: Mapping[str, str] = {
    "percent": f"{_NUMBER} %",
    "count": _NUMBER,
    "rate": _NUMBER,
    "seconds": f"{_NUMBER} s|more",
    "bytes": f"{_NUMBER} (?:[KMGT]i)?B",
}
"""What diagnoser/units.py writes."""


def holes(template: str) -> list[str]:
    """What is filled in, as it stands between the braces."""
    return HOLE.findall(template)


def _value(hole: str) -> str:
    """The pattern of what can stand in a hole: "{share:percent}", "{count(waits)}", "{rho:.2g}", "{reason}"."""
    expression, _, form = hole.rpartition(":") if ":" in hole else (hole, "", "")
    known = _VALUES.get(form) or _VALUES.get(expression.partition("(")[0])
    if known is None and form:
        known = _NUMBER + ("%" if form.endswith("%") else "")
    return rf"({known}|\?)" if known else "(.+?)"


@dataclass(frozen=True, slots=True)
class _Template:
    """An English template with holes. `least` is a part of it that every sentence made of it has."""

    least: str
    pattern: re.Pattern[str]
    holes: tuple[str, ...]
    translation: str

    @classmethod
    def of(cls, template: str, translation: str) -> _Template:
        texts = HOLE.split(template)[::2]
        values = [_value(hole) for hole in holes(template)]
        if sum(len(text.strip()) for text in texts) < 4:
            values = [value.replace("(.+?)", r"(\S+)") for value in values]
        pattern = "".join(re.escape(text) + value for text, value in zip(texts, [*values, ""], strict=True))
        return cls(max(texts, key=len), re.compile(pattern), tuple(holes(template)), translation)


class Catalogue:
    """The translations into one language."""

    def __init__(self, path: Path) -> None:
        from babel.messages.pofile import read_po  # only who asks for another language waits for it

        with path.open("rb") as file:
            entries = [entry for entry in read_po(file) if entry.id and entry.string]
        self._phrases = {(entry.context or "", str(entry.id)): str(entry.string) for entry in entries}
        said = {text: translation for (context, text), translation in self._phrases.items() if not context}
        templates = [text for text in said if holes(text) and HOLE.sub("", text).strip()]
        # The one with most words of its own comes first: the others may match by chance.
        templates.sort(key=lambda text: -len(HOLE.sub("", text)))
        self._exact = {text: translation for text, translation in said.items() if not holes(text)}
        self._templates = [_Template.of(text, said[text]) for text in templates]
        self._find = lru_cache(16384)(self._found)

    def phrase(self, template: str, context: str = "") -> str:
        """The translation of a template, or itself."""
        return self._phrases.get((context, template), template)

    def told(self, text: str) -> str:
        """A finished sentence in this language; unknown ones as they are."""
        return text if len(text) > LONGEST else self._find(text, True) or self._find(text, False) or text

    def _found(self, text: str, strict: bool) -> str | None:
        """`strict`: all of it must be known. Else a sentence may hold words of somebody else, as an error does."""
        exact = self._exact.get(text)
        if exact is not None:
            return exact
        for template in self._templates:
            match = template.pattern.fullmatch(text) if template.least in text else None
            if match is not None and (not strict or all(map(self._sure, match.groups()))):
                return self._filled(template, match.groups())
        return self._joined(text, strict)

    def _sure(self, value: str) -> bool:
        """Is it a number, a name or a sentence that is known? Else the template may have matched by chance."""
        return _PROSE.search(value) is None or self._find(value, True) is not None

    def _filled(self, template: _Template, values: tuple[str, ...]) -> str:
        shown = {hole: self.value(value) for hole, value in zip(template.holes, values, strict=True)}
        said = HOLE.sub(lambda hole: shown[hole[1]], template.translation)
        for place, blank in _SPACES:
            said = place.sub(blank, said)
        return said

    def value(self, value: str) -> str:
        """What stands in a hole: a number with its unit, a name, or a sentence."""
        number, blank, unit = value.rpartition(" ")
        own = self._phrases.get((UNIT, unit)) if not number or re.fullmatch(_NUMBER, number) else None
        return f"{number}{blank}{own}" if own else self.told(value)

    def _joined(self, text: str, strict: bool) -> str | None:
        """Sentences that the code puts together: "; " and ": " between two, a full stop or a name at an end."""
        if text.count(" ") > MOST_WORDS:
            return None
        lead, first, (name, _, rest) = text[:2], text[:1], text.partition(" ")
        stopped = text.endswith(".") and not text.endswith("..")
        return (
            (self._around(strict, self.phrase(lead, MARK), text[2:]) if lead in (", ", "; ") else None)
            or self._split(text, "; ", strict)
            or self._split(text, ": ", strict)
            or (self._around(strict, "", text[:-1], self.phrase(".", MARK)) if stopped else None)
            or (self._find(first.lower() + text[1:], strict) if first.isupper() else None)
            or (self._around(strict, f"{name} ", rest) if re.search("[.:/]", name) else None)
        )

    def _split(self, text: str, mark: str, strict: bool) -> str | None:
        """At the first place with a known sentence before it and, if `strict`, behind it."""
        for place in islice(re.finditer(re.escape(mark), text), MOST_PLACES):
            before, rest = self._find(text[: place.start()], True), text[place.end() :]
            after = self._find(rest, strict) if before else None
            if before and (after or not strict):
                return f"{before}{self.phrase(mark, MARK)}{after or rest}"
        return None

    def _around(self, strict: bool, lead: str, text: str, tail: str = "") -> str | None:
        found = self._find(text, strict) if text else None
        return None if found is None else f"{lead}{found}{tail}"


@cache
def catalogue(language: str) -> Catalogue:
    """Of that language, read when it is first asked for."""
    return Catalogue(LOCALE / f"{language}.po")
