"""What is said in the reader's language.

Everything is said once, in English, by the rules and by the code. A catalogue (diagnoser/locale/*.po) has the
translation of each template; `told` finds the template that a finished sentence was made of and fills its translation
with the same numbers. So whatever is kept (history, outbox, records) is of no language, and English costs nothing.
"""

from __future__ import annotations

from typing import Literal, get_args

from diagnoser.language.catalogue import MARK, UNIT, catalogue

__all__ = ["LANGUAGES", "MARK", "UNIT", "Language", "phrase", "told"]

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


def told(text: str, language: Language) -> str:
    """A sentence that was said in English; one that the catalogue does not know stays English."""
    return text if language == "en" or not text else catalogue(language).told(text)


def phrase(template: str, language: Language, context: str = "") -> str:
    """A template, or words of their own, in the language. `context` tells apart what is one word in English."""
    return template if language == "en" else catalogue(language).phrase(template, context)
