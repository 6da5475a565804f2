"""The catalogue is whole, and a sentence finds its way back to the template that it was made of."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from babel.messages.catalog import Message
from babel.messages.pofile import read_po

from diagnoser.data import data_dir
from diagnoser.explain import WORDS
from diagnoser.language import LANGUAGES, told
from diagnoser.language.catalogue import HOLE, LOCALE, catalogue, holes
from diagnoser.rulebook.load import load
from diagnoser.service.notify.words import PHRASES
from diagnoser.units import FORMATS
from language.english import alternatives, of_code, of_problems, of_reasons, of_rules

OTHERS = [language for language in LANGUAGES if language != "en"]
CHINESE = re.compile("[\u4e00-\u9fff]")
FIXED = {"message": set(PHRASES.values()), "explain": set(WORDS)}
"""Words that are put together for a reader, by the context in which they are translated."""


@cache
def english() -> dict[str, str]:
    """Every English template and where it is from. What is nothing but a value needs no translation."""
    rules = [(one, where) for text, where in of_rules(load([data_dir("rules")])) for one in alternatives(text)]
    found = (*rules, *of_code(), *of_reasons(), *of_problems())
    return {text: where for text, where in found if HOLE.sub("", text).strip()}


@cache
def entries(language: str) -> list[Message]:
    with (LOCALE / f"{language}.po").open("rb") as file:
        return [entry for entry in read_po(file) if entry.id]


@pytest.mark.parametrize("language", OTHERS)
def test_every_english_text_is_translated_and_nothing_else(language: str) -> None:
    known = {str(entry.id) for entry in entries(language) if not entry.context}
    assert {text: where for text, where in english().items() if text not in known} == {}
    assert known - set(english()) == set(), "translations of what nobody says any more"
    for context, words in FIXED.items():
        assert {str(entry.id) for entry in entries(language) if entry.context == context} == words


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_values_of_its_template(language: str) -> None:
    for entry in entries(language):
        assert entry.string and not entry.fuzzy, entry.id
        assert Counter(holes(str(entry.string))) == Counter(holes(str(entry.id))), entry.id
    assert len({(entry.context, entry.id) for entry in entries(language)}) == len(entries(language))


def test_chinese_is_chinese_with_blanks_where_latin_begins() -> None:
    for entry in entries("zh"):
        text = re.sub(r"\{[^{}]*\}|[A-Za-z-]+=\S*|--\S+|`[^`]*`", "", str(entry.string))
        if entry.context != "mark" and re.search("[a-z] [a-z]", str(entry.id)):
            assert CHINESE.search(str(entry.string)) or str(entry.id) == str(entry.string), entry.id
        assert not re.search("[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]", text), text
        assert not re.search("[\u4e00-\u9fff][,;:.?!]", text), f"full-width marks: {text}"


SAMPLES = {"count": (1234.0, 0.5, 7.0), "rate": (0.0004, 12.0, 1.25), "percent": (0.995, 0.42, 0.0)} | {
    "seconds": (float("inf"), 0.037, 40.0), "bytes": (3.5e9, 12.0, 2.0e6)
}  # fmt: skip
NAMES = ("vllm:num_requests_waiting", "10.0.3.7:8000", "vLLM")


def value(hole: str, turn: int) -> str:
    """What may stand in a hole of a template: a value of its format, a number, or a name."""
    form = hole.rpartition(":")[2] if ":" in hole else hole.partition("(")[0]
    if form in SAMPLES:
        return FORMATS[form](SAMPLES[form][turn])
    return f"{(0.25, 3.0, 41.0)[turn]:{form}}" if ":" in hole else NAMES[turn]


@pytest.mark.parametrize("turn", range(3))
def test_a_finished_sentence_is_told_with_its_own_values(turn: int) -> None:
    """Of each template, for all kinds of values: the translation of that template and no other's."""
    translations = {str(entry.id): str(entry.string) for entry in entries("zh") if not entry.context}
    wrong = {}
    for template, translation in translations.items():
        values = {hole: value(hole, turn) for hole in holes(template)}
        sentence, wanted = template, translation
        for hole, shown in values.items():
            sentence = sentence.replace(f"{{{hole}}}", shown)
            wanted = wanted.replace(f"{{{hole}}}", catalogue("zh").value(shown))
        if squeezed(told(sentence, "zh")) != squeezed(wanted):
            wrong[sentence] = told(sentence, "zh")
    assert wrong == {}


def squeezed(text: str) -> str:
    return text.replace(" ", "")


def test_what_is_put_together_is_told_in_parts() -> None:
    assert told("cannot tell: needs two pages", "zh") == "无法判断：需要两次采样"
    assert told("cannot tell: this tier does not export hits; needs two pages", "zh") == (
        "无法判断：该缓存不导出 hits；需要两次采样"
    )
    assert told("L2: shared by the node's engines: cannot tell.", "zh") == "L2：由本节点的引擎共享：无法判断。"
    assert told("No first token for 5 s while 3 wait.", "zh") == "5 秒没有首个 token，同时有 3 个请求排队。"
    assert told("10.0.3.7:8000 cannot be read (Oops).", "zh") == "10.0.3.7:8000 无法读取（Oops）。"
    assert told("cannot tell: the database said no", "zh") == "无法判断：the database said no"


@pytest.mark.parametrize(
    "text",
    [
        ". " * 60,
        "." * 1900,
        ", " * 55,
        "a.b " * 59,
        "A: b; " * 20,
        "x:y z: " * 25,
        "needs two pages; " * 20,
        "{" * 99,
        "É: ?",
    ],
)
def test_whatever_comes_from_the_network_is_told_somehow(text: str) -> None:
    assert told(text, "zh")


def test_what_is_not_known_stays_as_it_is() -> None:
    for text in ("", "GPU on fire", "my own rule: it is 5 o'clock", "Tokens. And more tokens; many.", "x" * 5000):
        assert told(text, "zh") == text
    assert told("needs two pages", "en") == "needs two pages"
