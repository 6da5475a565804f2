"""Every difference between the two evaluators that the way a server reads pages does not explain, with its reason.

A test fails if one of these no longer occurs, or if another does.
"""

from __future__ import annotations

from dataclasses import dataclass

from .compare import Difference


@dataclass(frozen=True)
class Listed:
    """`what`: "unknown" (Python knows, PromQL does not), "extra" (the reverse) or "value". Empty fields match all."""

    signals: tuple[str, ...]
    what: str
    reason: str
    family: str = ""
    product: str = ""
    recording: str = ""
    begun: bool = False
    """Only where the target was not yet scraped when the window began."""

    def matches(self, found: Difference) -> bool:
        """Is it one of these?"""
        pairs = ((self.family, found.family), (self.product, found.product), (self.recording, found.recording))
        fits = all(wanted in ("", got) for wanted, got in pairs) and (found.begun or not self.begun)
        return fits and found.signal in self.signals and found.what == self.what


CANNOT = (
    Listed(("invalid_series",), "unknown", "a query joins the copies of a series and cannot tell that they differ"),
    Listed(("newer_readings",), "unknown", "no page carries its release, and a query compares no lists of names"),
    Listed(("scrape_gap_seconds",), "unknown", "PromQL has no distance between samples"),
    Listed(
        ("step_stretch_ratio", "required_pool_low_tokens", "required_pool_tokens", "required_pool_high_tokens"),
        "unknown",
        "they need the fastest quarter of the steps, or whether the pool refused page by page",
    ),
    Listed(
        ("ttft_tail_edge_seconds", "ttft_tail_ratio", "ttft_tail_queue_ratio", "ttft_tail_rest_ratio"),
        "unknown",
        "they compare two histograms at the bucket edges that they share",
    ),
)
"""PromQL has no way to say them; docs/signals.md."""

DIFFER = (
    Listed(
        ("used_trend_fit_ratio",),
        "value",
        "a query knows how many pages there were, not when: it takes them as evenly spaced. A page that is missing or"
        " late moves the share of the variance by as much",
    ),
    Listed(("time_to_exhaustion_seconds",), "unknown", "needs that share above a threshold", family="sglang"),
    Listed(("time_to_exhaustion_seconds",), "value", "the same, in a window just begun", family="sglang", begun=True),
)
"""Both say something, and not the same."""

BEGUN = (
    Listed(
        (
            "arrival_rate",
            "waiting_ahead_requests",
            "ttft_queue_age_estimate_seconds",
            "queue_upper_ratio",
            "token_seconds_per_request",
            "service_rate_max",
            "rho",
            "l1_used_slope",
            "waiting_slope",
            "prompt_growth_ratio",
            "output_growth_ratio",
            "inter_token_growth_ratio",
            "first_tokens_growth_ratio",
        ),
        "unknown",
        "a query looks for the first page at the window's first step; Python takes the first page there is",
        begun=True,
    ),
    Listed(("waiting_slope",), "value", "thirds of the window, not of the pages", family="sglang", begun=True),
    Listed(
        ("l1_reserved_low_tokens", "l1_reserved_high_tokens"),
        "value",
        "the steps since the last prefill are counted to a quarter of the window, and increase() stretches them",
        recording="sglang-0.5.23--k-bursty",
        begun=True,
    ),
)
"""A target that was not scraped yet when the window began."""

BORN = (
    Listed(
        (
            "prompt_per_output_ratio",
            "service_rate",
            "service_rate_max",
            "output_mean_tokens",
            "decode_hold_ratio",
            "queue_share_ratio",
            "head_need_tokens",
            "ttft_mean_seconds",
        ),
        "value",
        "counters split by priority: each part is born with its first request, and Prometheus stretches each by itself"
        " and no further than to zero. Python adds the parts up first",
        recording="sglang-0.5.23--m-priority",
    ),
    Listed(
        ("ttft_p50_low_seconds", "ttft_p50_high_seconds"),
        "value",
        "the same",
        product="prometheus",
        recording="sglang-0.5.23--m-priority",
    ),
    Listed(
        ("ttft_of_parts_seconds", "queue_share_ratio", "ttft_load_share_ratio"),
        "unknown",
        "the same",
        product="prometheus",
        recording="sglang-0.5.23--m-priority",
    ),
    Listed(
        ("prompt_tokens_rate", "generation_tokens_rate", "finished_requests", "ttft_parts_requests"),
        "value",
        "the same: with one sample in the window a part has not grown",
        product="prometheus",
        recording="sglang-0.5.23--m-priority",
    ),
    Listed(
        ("preemptions", "preemptions_rate", "preemptions_per_completion"),
        "value",
        "born in the window with the first preemption; Prometheus stretches what it grew since",
        product="prometheus",
        recording="sglang-0.5.23--c-l1-retract",
    ),
    Listed(
        ("l2_stored_rate",),
        "value",
        "born in the window with the first copy; Prometheus does not count its first value",
        product="prometheus",
        recording="sglang-0.5.23--j1-hicache-l1-bound-l2-idle",
    ),
)
"""Counters that are not on the page before their first event."""
RESTARTED = (
    Listed(
        ("ttft_p50_low_seconds", "ttft_p50_high_seconds"),
        "value",
        "VictoriaMetrics takes a fall by less than an eighth for no new process (removeCounterResets), so that some"
        " buckets of a histogram begin anew and others do not",
        product="victoria",
        recording="restarted",
    ),
)
"""In the window of a restart, which no recording has: test_lost.py makes one."""
LISTED = (*CANNOT, *DIFFER, *BEGUN, *BORN)


@dataclass(frozen=True)
class Verdicts:
    """Bottleneck and mode that differ, in one recording. `product` empty: in both servers."""

    recording: str
    got: str
    want: str
    reason: str
    product: str = ""
    begun: bool = False

    def matches(self, found: Difference) -> bool:
        """Is it one of these?"""
        same = (found.signal, found.recording, found.got, found.want) == (
            "verdict",
            self.recording,
            self.got,
            self.want,
        )
        return same and self.product in ("", found.product) and (found.begun or not self.begun)


_STEPS = (
    "Python takes the time between two pages as half queued if only one of them shows a queue, a query as all or none"
)
VERDICTS = (
    Verdicts("vllm-0.32.0--q-engine-hung", "stalled", "none", "the standstill left the window but for its last steps"),
    Verdicts(
        "vllm-0.32.0--q-engine-hung",
        "none",
        "stalled",
        "the standstill is 9 s old; a query asks for one step more than the 5 s that make one, being out of step with"
        " the scrapes",
    ),
    Verdicts("vllm-0.32.0--u-l1-marginal", "none", "l1 (preempting)", f"spikes shorter than the interval: {_STEPS}"),
    Verdicts(
        "sglang-0.5.23--c-l1-retract",
        "l1 (preempting)",
        "l1 (reservation)",
        "VictoriaMetrics counts the retraction on the page before the window",
        product="victoria",
    ),
    Verdicts(
        "sglang-0.5.23--h-recovery",
        "l1 (reservation)",
        "l1 (preempting)",
        "VictoriaMetrics counts who finished since the page before the window: one thrown out of 65, not of 46",
        product="victoria",
    ),
)
"""All in windows in which the cause lasts about as long as the threshold asks, or the mode's number is near its own."""
