"""Pages written by hand for tests: a story is a list of polls, each a mapping from series to value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.data import data_dir
from diagnoser.model import Diagnosis, Fact, Scrape, Target
from diagnoser.pipeline import History, diagnose, wanted_metrics
from diagnoser.rulebook.load import load
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser

START = 1_795_900_000.0
BOOK = load([data_dir("rules")])
Poll = Mapping[str, float] | str
"""Series and their values, or the reason why the poll failed."""


def text(poll: Mapping[str, float]) -> str:
    """One exposition page."""
    return "".join(f"{series} {value}\n" for series, value in poll.items())


def play(polls: Sequence[Poll], every: float, facts: Mapping[str, float] | None = None) -> tuple[Diagnosis, ...]:
    """Diagnoses of the window that spans all polls, one an engine rank."""
    target, parser = Target("test:8000"), PageParser(wanted_metrics())
    known = {name: Fact(name, value, "test") for name, value in (facts or {}).items()}
    history = History(target.name, every * len(polls), known)
    for i, poll in enumerate(polls):
        at = START + i * every
        failed = isinstance(poll, str)
        history.add(Scrape(target, at, error=poll) if failed else to_scrape(target, at, text(poll), parser.parse))
    seconds = every * (len(polls) - 1) or 1.0
    return diagnose(history.windows(START + every * (len(polls) - 1), seconds), BOOK)


def vllm(rank: int = 0, **series: float) -> dict[str, float]:
    """vLLM series of one engine: `running=3` is vllm:num_requests_running{engine="0",...}."""
    labels = f'engine="{rank}",model_name="m"'
    names = {
        "running": "num_requests_running",
        "waiting": "num_requests_waiting",
        "usage": "kv_cache_usage_perc",
        "preempted": "num_preemptions_total",
        "prompt": "prompt_tokens_total",
        "generated": "generation_tokens_total",
        "steps": "iteration_tokens_total_count",
        "step_tokens": "iteration_tokens_total_sum",
    }
    page = {f"vllm:{names[k]}{{{labels}}}": v for k, v in series.items() if k in names}
    if "capacity" in series:
        reasons = {"capacity": series["capacity"], "deferred": series.get("deferred", 0.0)}
        page |= {f'vllm:num_requests_waiting_by_reason{{{labels},reason="{r}"}}': v for r, v in reasons.items()}
    if "finished" in series:
        page[f'vllm:request_success_total{{{labels},finished_reason="stop"}}'] = series["finished"]
    if "first" in series:
        page[f'vllm:time_to_first_token_seconds_bucket{{{labels},le="1.0"}}'] = series["first"]
        page[f'vllm:time_to_first_token_seconds_bucket{{{labels},le="+Inf"}}'] = series["first"]
        page[f"vllm:time_to_first_token_seconds_sum{{{labels}}}"] = series["first"] * 0.5
        page[f"vllm:time_to_first_token_seconds_count{{{labels}}}"] = series["first"]
    return page


def pool(blocks: int, block_size: int = 16, rank: int = 0) -> dict[str, float]:
    """vLLM's pool labels."""
    return {
        f'vllm:cache_config_info{{block_size="{block_size}",enable_prefix_caching="True",engine="{rank}",'
        f'kv_cache_size_tokens="{blocks * block_size}",num_gpu_blocks="{blocks}"}}': 1.0
    }


def sglang(**series: float) -> dict[str, float]:
    """SGLang scheduler series of one rank: `num_queue_reqs=3`; counters that the server counts have no rank labels."""
    own = 'engine_type="unified",model_name="m"'
    rank = own + ',moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    server = ("prompt_tokens_total", "generation_tokens_total", "num_requests_total")
    return {f"sglang:{name}{{{own if name in server else rank}}}": value for name, value in series.items()}
