"""The configuration: what is good, and how everything that is wrong is told at once, with line and path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ran import Ran

from diagnoser.service.config import ConfigError, load

Diagnose = Callable[..., Ran]
FULL = """\
targets:
  - static: [10.0.3.7:8000, "10.0.3.8:8000"]
    labels: {team: chat}
    interval: 2s
    timeout: 4s
    headers: {Authorization: "Bearer ${TOKEN}"}
    facts: {max_num_seqs: 64}
    l2: ["http://10.0.3.7:9000/metrics", "10.0.3.8:8000=http://10.0.3.8:9000"]
  - file_sd: [targets/*.json]
  - http_sd: {url: "http://sd.example/targets", refresh: 1m}
  - dns: {name: vllm.svc, type: SRV}
  - prometheus: {url: "http://prometheus:9090", match: 'job="vllm"', window: 5m, interval: 15s, tenant: a}
window: 30s
evaluate_every: 5s
history: {path: data/diagnoser.db, retention: 7d, max_size: 1GiB}
web: {listen: "127.0.0.1:9180"}
log: {format: json, level: warning}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "diagnoser.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str, **environ: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(ConfigError) as caught:
        load(write(folder, text), environ)
    return list(caught.value.problems)


def test_everything_the_file_may_hold(tmp_path: Path) -> None:
    config = load(write(tmp_path, FULL), {"TOKEN": "s3cr3t"})
    assert [group.kind for group in config.targets] == ["static", "file_sd", "http_sd", "dns", "prometheus"]
    assert (config.targets[0].interval, config.targets[2].http_sd.refresh) == (2.0, 60.0)  # type: ignore[union-attr]
    assert config.targets[0].headers["Authorization"].get_secret_value() == "Bearer s3cr3t"
    assert config.history.path == tmp_path / "data" / "diagnoser.db", "relative to the file"
    assert (config.history.retention, config.history.max_size) == (7 * 86400.0, 2**30)


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    config = load(write(tmp_path, ""))
    assert (config.targets, config.window, config.evaluate_every) == ([], 30.0, 5.0)
    assert (config.history.path, config.web.listen) == (None, "127.0.0.1:9180")


def test_several_mistakes_at_once_each_with_line_and_path(tmp_path: Path) -> None:
    text = """\
targets:
  - static: [a:8000]
  - static: [b:8000]
    interval: soon
    labls: {}
  - dns: {name: x}
history:
  max_size: many
widow: 30s
"""
    found = problems(tmp_path, text)
    assert [(line, path) for line, path, _ in found] == [
        (4, "targets[1].interval"),
        (5, "targets[1].labls"),
        (6, "targets[2].dns"),
        (8, "history.max_size"),
        (9, "widow"),
    ]
    assert "no duration: write 30s" in found[0][2] and found[1][2] == "unknown key"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("targets: [", 2, "not valid YAML"),
        ("window: 30s\nwindow: 1m\n", 2, "given twice"),
        ("[1, 2]", 1, "valid dictionary"),
        ("targets:\n- static: ['a b']\n", 2, "no usable host or port"),
        ("targets:\n- static: [ftp://a]\n", 2, "cannot be scraped"),
        ("targets:\n- static: [a]\n  file_sd: [b]\n", 2, "exactly one of"),
        ("targets:\n- labels: {}\n", 2, "not none"),
        ("targets:\n- static: [a]\n  interval: 20s\n", 3, "fewer than two pages"),
        ("targets:\n- static: [a]\n  facts: {max_num_seq: 3}\n", 3, "no such fact"),
        ("targets:\n- static: [a]\n  facts: {max_num_seqs: many}\n", 3, "is no number"),
        ("targets:\n- http_sd: {url: sd.example}\n", 2, "begins with http://"),
        (
            "targets:\n- static: [a]\n  headers: {Authorization: '${NOT_SET_ANYWHERE}'}\n",
            3,
            "NOT_SET_ANYWHERE is not set",
        ),
        ("web: {listen: '0.0.0.0:9180'}\n", 1, "can be reached from other machines"),
        ("history: {retention: yes}\n", 1, "no duration"),
        ("? [a]\n: b\n", 1, "a key must be a word"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    ((found, _, reason),) = problems(tmp_path, text)
    assert found == line and words in reason


def test_a_value_from_the_environment_is_never_repeated(tmp_path: Path) -> None:
    found = problems(tmp_path, "window: ${SECRET}\ntargets:\n- static: ['${SECRET}']\n", SECRET="s3cr3t value")
    assert found and "s3cr3t" not in str(found)
    assert all("${SECRET}" in reason for _, _, reason in found)


def test_secrets_do_not_show_in_the_configuration(tmp_path: Path) -> None:
    assert "s3cr3t" not in repr(load(write(tmp_path, FULL), {"TOKEN": "s3cr3t"}))


def test_yes_and_no_and_times_are_texts(tmp_path: Path) -> None:
    config = load(
        write(tmp_path, "targets:\n- static: [a]\n  labels: {on: yes, at: 12:30, v: 007, n: nowhere, t: truest}\n")
    )
    assert config.targets[0].labels == {"on": "yes", "at": "12:30", "v": "007", "n": "nowhere", "t": "truest"}


def test_config_check(tmp_path: Path, diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cr3t")
    good = diagnose("config", "check", write(tmp_path, FULL))
    assert good.code == 0 and "good; targets: static, file_sd, http_sd, dns, prometheus" in good.out
    bad = diagnose("config", "check", write(tmp_path, "window: soon\nfoo: 1\n"))
    assert bad.code == 64 and bad.out == ""
    assert "diagnoser.yaml:1: window: 'soon' is no duration" in bad.err
    assert "diagnoser.yaml:2: foo: unknown key" in bad.err
    assert diagnose("config", "check", tmp_path / "nowhere.yaml").code == 64


def test_config_check_reads_the_rules(tmp_path: Path, diagnose: Diagnose) -> None:
    (tmp_path / "mine" / "checks").mkdir(parents=True)
    (tmp_path / "mine" / "checks" / "odd.yaml").write_text("id: odd\n")
    bad = diagnose("config", "check", write(tmp_path, "rules: [mine]\n"))
    assert bad.code == 64 and "odd.yaml" in bad.err
    assert "no such folder" in diagnose("config", "check", write(tmp_path, "rules: [yours]\n")).err


def test_config_check_reads_the_secrets(tmp_path: Path, diagnose: Diagnose) -> None:
    text = "targets:\n- {static: [a], bearer_file: one}\n- http_sd: {url: 'http://sd', bearer_file: two}\n"
    text += "web: {tokens_file: three}\n"
    bad = diagnose("config", "check", write(tmp_path, text))
    assert bad.code == 64 and all(name in bad.err for name in ("one", "two", "three"))
    (tmp_path / "one").write_text("s3cr3t")
    (tmp_path / "two").write_text("")
    again = diagnose("config", "check", write(tmp_path, text))
    assert "it is empty" in again.err and "s3cr3t" not in again.err
