"""The command as a user sees it: one screen, JSON with the promised names, errors that say what to give."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser.capacity
from diagnoser.capacity.command import add_arguments, run
from diagnoser.capacity.sizes import human, parse_bytes, parse_tokens
from diagnoser.errors import CapacityError

Cli = Callable[..., str]
Data = Callable[..., dict[str, Any]]


def test_the_screen(cli: Cli) -> None:
    out = cli("llama-3.1-70b", "--tp 8 --pool-bytes 60GiB --prompt 30K --output 2K --observed-tokens 1572864")
    lines = out.splitlines()
    assert lines[2] == "  1,572,864 TOKENS · 48 REQUESTS AT ONCE · bound: tokens"
    assert "  bytes a token       327,680 (320 KiB) · a GPU 40 KiB · all GPUs 320 KiB" in lines
    assert "  blocks              98,304 of 16 tokens · usable 98,303" in lines
    assert "  fit on average      49 · 31,744 tokens each · tokens" in lines
    assert "  the engine reports 1,572,864 tokens, +0.0%" in lines
    assert "  Assumed" in lines
    assert len(lines) <= 40
    assert max(map(len, lines[1:])) <= 80


@pytest.mark.parametrize("flags", [
    "--gpu-memory 180GiB --tp 8 --prompt 6000 --output 1000 --observed-tokens 900000",
    "--gpu-memory 141GB --tp 8 --dp 2 --pp 2 --engine sglang --request 2K:500:3 --request 30K:1K",
])
@pytest.mark.parametrize("name", ["deepseek-v3.2", "qwen3-next-80b", "gemma-3-27b", "gpt-oss-120b"])
def test_every_screen_is_one_screen(cli: Cli, name: str, flags: str) -> None:
    lines = cli(name, flags).splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines[1:])) <= 92


def test_the_error_is_on_the_screen(cli: Cli) -> None:
    out = cli("llama-3-70b", "--tp 8 --gpu-memory 80GiB")
    assert "pool a GPU          54.17 GiB · +-2.49 GiB" in out
    assert "1,354,768 to 1,485,456" in out


def test_json_names(data: Data) -> None:
    found = data("deepseek-v3", "--tp 8 --pool-bytes 60GiB --prompt 4K --output 1K")
    assert found["kv_bytes_per_token"] == found["kv_bytes_per_token_per_gpu"] == 70_272
    assert found["kv_bytes_per_token_aggregate"] == 8 * 70_272
    assert found["pool_tokens"] == found["pool"]["blocks"] * 16
    assert found["pool_tokens_usable"] == found["pool_tokens"] - 16
    assert found["max_concurrency"] == found["concurrency"]["peak"]["requests"] == found["pool"]["blocks"] // 320
    assert found["bound"] == "tokens"
    assert found["max_concurrency_range"] == [found["max_concurrency"]] * 2
    assert set(found["concurrency"]) == {"peak", "mean", "admission"}
    assert "1 MTP layers are not counted; if used: --draft-layers 1" in found["assumptions"]


def test_json_without_a_pool(data: Data) -> None:
    found = data("llama-3-70b")
    assert (found["kv_bytes_per_token"], found["pool_tokens"], found["max_concurrency"]) == (327_680, None, None)


def test_json_of_sglang_has_its_reservation(data: Data) -> None:
    found = data("llama-3-8b", "--engine sglang --pool-bytes 20GiB --prompt 500 --output 200 --max-tokens 1024")
    assert found["reservation"]["burst"]["requests"] < found["max_concurrency"]
    assert found["pool_tokens"] == 163_840


def test_without_lengths_the_full_length_is_assumed(data: Data) -> None:
    found = data("llama-3-8b", "--pool-bytes 16GiB")
    assert (found["max_concurrency"], found["requests"][0]["prompt"]) == (16, 8192)
    assert "no lengths given: requests of the full 8,192 tokens" in found["assumptions"]


def test_a_shape_by_flags(data: Data) -> None:
    found = data(None, "--layers 80 --kv-heads 8 --head-dim 128 --pool-bytes 60GiB --prompt 32K")
    assert (found["kv_bytes_per_token"], found["pool_tokens"], found["max_concurrency"]) == (327_680, 196_608, 6)
    sparse = data(None, "--layers 61 --kv-lora-rank 512 --rope-dim 64 --index-head-dim 128 --kv-dtype fp8")
    assert sparse["kv_bytes_per_token"] == 48_068


def test_a_shape_without_lengths_has_no_concurrency(data: Data) -> None:
    found = data(None, "--layers 80 --kv-heads 8 --head-dim 128 --pool-bytes 60GiB")
    assert (found["pool_tokens"], found["max_concurrency"], found["bound"]) == (196_608, None, None)


@pytest.mark.parametrize(("flags", "said"), [
    ("", "give a config.json or a shape"),
    ("--config x.json --layers 3", "not both"),
    ("--config does-not-exist.json", "cannot be read"),
    ("--layers 0 --kv-heads 1 --head-dim 1", "--layers must be at least 1"),
    ("--layers 2", "--kv-heads is missing"),
    ("--layers 2 --kv-heads 2", "--head-dim is missing"),
    ("--layers 2 --kv-lora-rank 512", "--kv-lora-rank needs --rope-dim"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --window-layers 1", "--window-layers needs --window"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --pool-bytes 1GiB --pool-total 1GiB", "give one of --pool-bytes, --pool-t"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --pool-bytes big", "'big' is no size"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --prompt many", "'many' is no number of tokens"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --request 5", "write PROMPT:OUTPUT"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --request 5:5:x", "write PROMPT:OUTPUT"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --request 5:5:0", "must be above 0"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --prompt 0", "holds nothing"),
    ("--layers 2 --kv-heads 1 --head-dim 8 --observed-tokens 5", "--observed-tokens needs a pool"),
])
def test_errors(flags: str, said: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(CapacityError, match=said):
        run(parser.parse_args(flags.split()))


@pytest.mark.parametrize(("text", "size"), [("60GiB", 60 * 2**30), ("60 gb", 60 * 10**9), ("1.5KiB", 1536), ("7", 7)])
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(("text", "tokens"), [("32K", 32_768), ("1M", 1_048_576), ("1.5k", 1536), ("12", 12)])
def test_token_counts(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 B"), (320 * 1024, "320 KiB"), (4.5 * 2**20, "4.5 MiB"), (1.375 * 2**30, "1.38 GiB"), (2**50, "1,024 TiB"),
])
def test_human_sizes(size: float, text: str) -> None:
    assert human(size) == text


def test_the_package_imports_only_model_and_errors() -> None:
    """The capacity stage knows itself, diagnoser.model and diagnoser.errors, nothing else of ours."""
    for file in Path(diagnoser.capacity.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("diagnoser"):
                assert str(node.module).startswith(("diagnoser.capacity", "diagnoser.errors", "diagnoser.model")), file
