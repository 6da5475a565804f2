"""The page parser against prometheus_client's own parsers, on recorded and generated pages, met once and met again."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from diagnoser.model import Target
from diagnoser.sources.base import decode_page, to_scrape
from diagnoser.sources.exposition import PageParser

PAGES = {
    path.name.removesuffix(".prom.xz"): lzma.decompress(path.read_bytes()).decode()
    for path in sorted((Path(__file__).parents[1] / "data" / "pages").glob("*.prom.xz"))
}
Plain = list[tuple[str, dict[str, str], str]]


def plain(samples: Iterable[tuple[str, dict[str, str], float]]) -> Plain:
    """Comparable form: repr tells NaN and every digit. Not the sign of zero: prometheus_client reads "-0" as int."""
    return [(name, dict(labels), repr(float(value) + 0.0)) for name, labels, value in samples]


def by_prometheus_client(page: str) -> Plain:
    """Every sample under its name on the page: without TYPE lines prometheus_client renames nothing."""
    bare = "".join(line + "\n" for line in page.split("\n") if line and not line.startswith("#"))
    found = [sample for family in read_text(bare) for sample in family.samples]
    return plain((s.name, s.labels, s.value) for s in found if not s.name.endswith("_created"))


def names_of(page: str) -> set[str]:
    return {name for name, _, _ in by_prometheus_client(page)}


def one(line: str, wanted: str = "vllm:x") -> Plain:
    page = PageParser([wanted]).parse(line + "\n")
    assert page.series_total + page.bad_lines == 1
    return plain(page.samples)


# ------------------------------------------------------------------------------------- equal to prometheus_client


@pytest.mark.parametrize("name", PAGES)
def test_recorded_page_reads_the_same_the_first_and_every_later_time(name: str) -> None:
    page = PAGES[name]
    expected, parser = by_prometheus_client(page), PageParser(names_of(page))
    for _ in range(3):
        parsed = parser.parse(page)
        assert plain(parsed.samples) == expected
        assert parsed.bad_lines == 0
    assert parsed.series_total == sum(1 for line in page.split("\n") if line and not line.startswith("#"))


def test_openmetrics_page_reads_as_by_the_openmetrics_parser() -> None:
    readable = {}
    for name in PAGES:
        if name.endswith("openmetrics"):
            families = list(read_openmetrics(PAGES[name]))
            readable[name] = plain(
                (s.name, s.labels, s.value) for f in families for s in f.samples if not s.name.endswith("_created")
            )
    assert readable, "a page that the strict parser takes belongs into tests/data/pages"
    for name, expected in readable.items():
        assert plain(PageParser(names_of(PAGES[name])).parse(PAGES[name]).samples) == expected


label_names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)
label_values = st.text(
    st.one_of(st.sampled_from('{}#, ="\\\nne_1é'), st.characters(exclude_categories=["Cs"])), max_size=12
)
numbers = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1.3488881664e+010", "1e-300", "-0", "007", "+5", ".5", "5.", "1E3"]),
)
blanks = st.sampled_from(["", " ", "  "])


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def label_sets(draw: st.DrawFn) -> str:
    labels = draw(st.dictionaries(label_names, label_values, max_size=4))
    if not labels:
        return draw(st.sampled_from(["", "{}"]))
    odd = draw(st.booleans())
    gap = draw(blanks) if odd else ""
    joined = f",{gap}".join(f'{name}{gap}={gap}"{escaped(value)}"' for name, value in labels.items())
    return "{" + gap + joined + ("," if odd else "") + gap + "}"


@st.composite
def text_lines(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["vllm:x", "vllm_x", "sglang:y_total", "z_bucket", "z"]))
    labels, gap = draw(label_sets()), draw(st.sampled_from([" ", "  ", "\t"]))
    stamp = draw(st.sampled_from(["", " 1795975896468", " -1"])) if gap != "\t" else ""
    return draw(blanks) + name + labels + gap + draw(numbers) + stamp + draw(blanks)


@settings(deadline=None, max_examples=60)
@given(st.lists(text_lines(), max_size=8), st.lists(text_lines(), max_size=8))
def test_generated_pages_read_the_same(lines: list[str], others: list[str]) -> None:
    parser = PageParser(["vllm:x", "sglang:y", "z"])
    for page in ("\n".join([*part, ""]) for part in (lines, others, lines, lines + others)):
        parsed = parser.parse(page)
        assert plain(parsed.samples) == by_prometheus_client(page)
        assert parsed.bad_lines == 0


@st.composite
def openmetrics_pages(draw: st.DrawFn) -> str:
    lines = []
    for i in range(draw(st.integers(1, 5))):
        value = draw(st.sampled_from(["0", "1.0", "1.3488881664e+010", "17", "+Inf", "5e-324"]))
        stamp = draw(st.sampled_from(["", " 1795975896.468", " 17"]))
        exemplar = draw(
            st.sampled_from(["", ' # {trace_id="a b} # 1"} 1 123', " # {} 0.5", ' # {t="\\"\\\\"} 1e3 1795975896.123'])
        )
        lines += [f"# TYPE vllm:c{i} counter", f"vllm:c{i}_total{draw(label_sets())} {value}{stamp}{exemplar}"]
    return "\n".join([*lines, "# EOF", ""])


@settings(deadline=None)
@given(openmetrics_pages())
def test_generated_openmetrics_pages_with_exemplars_read_the_same(page: str) -> None:
    try:
        expected = plain((s.name, s.labels, s.value) for f in read_openmetrics(page) for s in f.samples)
    except ValueError:  # blanks that only the older format allows
        return
    parser = PageParser([f"vllm:c{i}" for i in range(5)])
    for _ in range(2):
        parsed = parser.parse(page)
        assert (plain(parsed.samples), parsed.bad_lines) == (expected, 0)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"vllm:x", label="v"} 3', "3.0"),
        ('{"vllm:x"} 3 1795975896468', "3.0"),
        ('vllm:x{a="}",b=" # ",c=","} 4', "4.0"),
        ('vllm:x{a="b",} NaN', "nan"),
        ("vllm:x 1.3488881664e+010", "13488881664.0"),
        ('vllm:x {a="b"}\t-Inf', "-inf"),
        ('vllm:x{a="b"}7', "7.0"),
    ],
)
def test_odd_spellings(line: str, value: str) -> None:
    found = one(line)
    assert found == by_prometheus_client(line)
    assert [v for _, _, v in found] == [value]


def test_exemplar_without_labels_and_with_braces() -> None:
    assert one('vllm:x_total 5 # {a="b"} 1 123') == [("vllm:x_total", {}, "5.0")]


# ------------------------------------------------------------------------------------- what is selected


@pytest.mark.parametrize(
    ("on_page", "wanted"),
    [
        ("vllm:num_requests_waiting", True),
        ("vllm_num_requests_waiting", True),
        ("vllm:num_requests_waiting_total", True),
        ("vllm:num_requests_waiting_bucket", True),
        ("vllm_num_requests_waiting_sum", True),
        ("vllm:num_requests_waiting_count", True),
        ("vllm:num_requests_waiting_created", False),
        ("vllm:num_requests_waiting_by_reason", False),
        ("vllm:num_requests", False),
    ],
)
def test_names_that_belong_to_a_wanted_metric(on_page: str, wanted: bool) -> None:
    page = PageParser(["vllm:num_requests_waiting"]).parse(f"{on_page} 1\n")
    assert [sample.name for sample in page.samples] == ([on_page] if wanted else [])
    assert page.series_total == 1


def test_name_with_two_colons_may_come_with_underscores_only() -> None:
    page = PageParser(["lmcache:mp:used"]).parse("lmcache_mp_used 1\nlmcache_mp:used 2\nlmcache:mp:used 3\n")
    assert [sample.value for sample in page.samples] == [1, 2, 3]


def test_duplicate_series_are_kept_in_page_order() -> None:
    page = PageParser(["vllm:x"]).parse('vllm:x{pid="1"} 1\nvllm:x{pid="1"} 2\n')
    assert [sample.value for sample in page.samples] == [1, 2]


# ------------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    "line",
    [
        "vllm:x",
        "vllm:x ",
        "vllm:x{",
        'vllm:x{a="b" 5',
        'vllm:x{a="b} 5',
        "vllm:x{a=b} 5",
        'vllm:x{a="b",a="c"} 5',
        'vllm:x{1a="b"} 5',
        'vllm:x{="b"} 5',
        'vllm:x{a="b"c="d"} 5',
        'vllm:x{a="b",,c="d"} 5',
        'vllm:x{__name__="y"} 5',
        "vllm:x five",
        "vllm:x 1_000",
        "vllm:x 0x10",
        "vllm:x 1,5",
        "vllm:x 5 soon",
        "vllm:x 5 6 7",
        "vllm:x 5 # not an exemplar",
        'vllm:x 5 ## {a="b"} 1',
        'vllm:x=y{a="b"} 5',
        "{} 5",
        '{a="b"} 5',
        "5",
        "<html>",
        "vllm:x 5\x00",
        decode_page(b'vllm:x{a="\xff"} 5'),
        decode_page(b"vllm:x 5\xff"),
    ],
)
def test_unreadable_line_is_counted_and_the_rest_is_read(line: str) -> None:
    parser = PageParser(["vllm:x"])
    page = f'vllm:x{{i="1"}} 1\n{line}\nvllm:x{{i="2"}} 2\n'
    for _ in range(2):
        parsed = parser.parse(page)
        assert [sample.value for sample in parsed.samples] == [1, 2]
        assert (parsed.series_total, parsed.bad_lines) == (2, 1)


@pytest.mark.parametrize("value", ["1_0", "five", "", "5\udcff", "0x1"])
def test_bad_value_of_a_series_already_known(value: str) -> None:
    parser = PageParser(["vllm:x", "vllm:y"])
    assert parser.parse("vllm:x 1\nvllm:y 2\n").bad_lines == 0
    parsed = parser.parse(f"vllm:x {value}\nvllm:y 3\n")
    assert plain(parsed.samples) == [("vllm:y", {}, "3.0")]
    assert (parsed.series_total, parsed.bad_lines) == (1, 1)


def test_unreadable_unwanted_series_is_counted_every_time() -> None:
    parser = PageParser(["vllm:x"])
    assert parser.parse("vllm:x 1\nother 2\n").bad_lines == 0
    for _ in range(2):
        assert parser.parse("vllm:x 1\nother two\n").bad_lines == 1


def test_valid_replacement_character_is_text_like_any_other() -> None:
    assert one('vllm:x{a="\ufffd"} 5') == [("vllm:x", {"a": "\ufffd"}, "5.0")]


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_page_cut_anywhere_never_yields_a_wrong_number(data: st.DataObject) -> None:
    page = PAGES[data.draw(st.sampled_from(sorted(PAGES)))]
    parser = PageParser(names_of(page))
    whole = plain(parser.parse(page).samples)
    cut = page[: data.draw(st.integers(0, len(page) - 1))]
    parsed = parser.parse(cut)
    assert plain(parsed.samples) == whole[: len(parsed.samples)]
    mid_line = cut[-1:] not in ("", "\n") and not cut.endswith("\n# EOF")
    assert parsed.bad_lines == mid_line


@given(st.text() | st.text(alphabet='vllm:x_y{}=",\\ #\n0123.eE+-\t'))
def test_any_text_is_survived(text: str) -> None:
    parser = PageParser(["vllm:x"])
    first = parser.parse(text)
    assert parser.parse(text) == first or "nan" in repr(first)


def test_hostile_line_takes_linear_time() -> None:
    line = "vllm:x{" + 'a="b\\' * 200_000
    assert PageParser(["vllm:x"]).parse(line + "\n" + "x" * 500_000 + "\n").bad_lines == 2


# ------------------------------------------------------------------------------------- the cache


def test_labels_are_shared_between_scrapes() -> None:
    parser, line = PageParser(["vllm:x"]), 'vllm:x{model_name="m"} '
    first, second = (parser.parse(f"{line}{value}\n").samples[0] for value in (1, 2))
    assert first.labels is second.labels
    assert (first.value, second.value) == (1, 2)


def test_series_that_come_and_go_do_not_fill_the_memory() -> None:
    parser = PageParser(["vllm:x"])
    for round_ in range(40):
        parser.parse("".join(f'vllm:x{{id="{round_}-{i}"}} {i}\n' for i in range(200)))
    assert len(parser._known) < 3_000
    assert len(parser.parse('vllm:x{id="0-0"} 5\n').samples) == 1


# ------------------------------------------------------------------------------------- whose page it is

WANTED = ["vllm:num_requests_waiting", "sglang:token_usage", "lmcache_mp_l1_usage_ratio", "process_start_time_seconds"]


def refusal(page: str) -> str | None:
    scrape = to_scrape(Target("gpu-7:8000"), 1.0, page, PageParser(WANTED).parse)
    assert scrape.error is None or (scrape.samples == () and scrape.error.startswith("gpu-7:8000 "))
    return scrape.error


@pytest.mark.parametrize("name", PAGES)
def test_recorded_engine_page_is_taken(name: str) -> None:
    wanted = [*WANTED, "lmcache:local_cache_usage"]
    scrape = to_scrape(Target("t"), 1.0, PAGES[name], PageParser(wanted).parse)
    assert scrape.error is None
    assert (scrape.at, scrape.bad_lines) == (1.0, 0)
    assert scrape.series_total > 50


def test_engine_page_without_any_metric_we_know_is_still_an_engine_page() -> None:
    assert refusal("vllm_brand_new 1\n") is None
    assert refusal("lmcache_mp_l1_usage_ratio 0.5\n") is None


def test_another_exporter_is_named() -> None:
    page = "go_threads 1\nprocess_start_time_seconds 1\n" + "".join(f"node_{i} 1\n" for i in range(9))
    error = refusal(page)
    assert error is not None
    assert "not a vLLM or SGLang page: it looks like node_exporter (node_0, node_1, node_2, node_3, node_4)" in error
    assert "it has my_app_requests" in (refusal("my_app_requests 1\n") or "")


def test_process_metrics_only_point_to_the_switched_off_statistics() -> None:
    error = refusal("python_info 1\nprocess_start_time_seconds 1\nhttp_requests_total 1\n")
    assert error is not None
    assert "--disable-log-stats" in error and "--enable-metrics" in error


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("", "empty page"),
        (" \n\n", "empty page"),
        ("<!doctype html>\n<html>\n", "an HTML page"),
        ('{"detail":"Not Found"}\n', "not Prometheus text"),
        (decode_page(b"\xff\xfe\x00\x01\n"), "not Prometheus text"),
    ],
)
def test_other_answers(page: str, words: str) -> None:
    assert words in (refusal(page) or "")


def test_decoding_keeps_every_byte() -> None:
    body = b'vllm:x{a="\xff\xc3\xa9"} 5\n'
    assert decode_page(body).encode("utf-8", "surrogateescape") == body
    assert re.search("é", decode_page(body))
