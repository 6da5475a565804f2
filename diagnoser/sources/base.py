"""What all sources share: the size limit, how bytes become text, and how a page becomes a Scrape or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from diagnoser.model import Sample, Scrape, Target

MAX_PAGE_BYTES = 32 * 1024 * 1024
"""Largest page we read, decompressed. A real page has 10-200 KB."""


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """The wanted samples of one page, named exactly as on the page, in page order, duplicates included.

    `series_total` counts every readable series, wanted or not; `bad_lines` what is neither series nor comment.
    `other_names` is empty on a page of an engine, else up to five metric names that tell whose page this is.
    """

    samples: tuple[Sample, ...]
    series_total: int
    bad_lines: int
    other_names: tuple[str, ...] = ()


ParsePage = Callable[[str], ParsedPage]
"""Reads a page, never raises; `PageParser(...).parse` is one."""

GENERIC_PREFIXES = ("process_", "python_", "http_", "promhttp_", "go_")
"""Metrics that a client library adds to any process: they do not tell whose page it is."""

EXPORTERS = (
    ("node_", "node_exporter"),
    ("DCGM_", "dcgm-exporter"),
    ("nvidia_smi_", "nvidia_gpu_exporter"),
    ("container_", "cAdvisor"),
    ("kube_", "kube-state-metrics"),
    ("kubelet_", "a kubelet"),
    ("prometheus_", "Prometheus itself"),
    ("nv_", "Triton Inference Server"),
    ("tgi_", "text-generation-inference"),
    ("trtllm_", "TensorRT-LLM"),
    ("ray_", "Ray"),
    ("envoy_", "Envoy"),
    ("nginx_", "nginx"),
)


def decode_page(body: bytes) -> str:
    """Bytes to text. Invalid UTF-8 becomes lone surrogates: the parser rejects exactly the lines that hold one."""
    return body.decode("utf-8", "surrogateescape")


def to_scrape(target: Target, at: float, text: str, parse: ParsePage) -> Scrape:
    """One page as a Scrape: its samples, or `error` if this is no page of engine metrics. Never raises."""
    page = parse(text)
    scrape = Scrape(target, at, page.samples, None, page.series_total, page.bad_lines)
    refusal = _refusal(text, page)
    return scrape if refusal is None else replace(scrape, samples=(), error=f"{target.name} {refusal}")


def _refusal(text: str, page: ParsedPage) -> str | None:
    """What is wrong with the page as a predicate ("answers with ..."), None if it is usable."""
    if not text.strip():
        return "answers with an empty page: send it a first request, or check that metrics are switched on."
    if page.series_total == 0:
        kind = "an HTML page" if text.lstrip().startswith("<") else "something that is not Prometheus text"
        return f"answers with {kind}, not with metrics: give the address of /metrics on the engine's API port."
    if not page.other_names:
        return None
    listed = ", ".join(page.other_names)
    if page.other_names[0].startswith(GENERIC_PREFIXES):
        return (
            f"answers, but with metrics of its process only ({listed}): is this vLLM with --disable-log-stats, "
            "SGLang without --enable-metrics, or another program?"
        )
    looks = next((name for prefix, name in EXPORTERS if page.other_names[0].startswith(prefix)), "")
    looks = f"it looks like {looks} ({listed})" if looks else f"it has {listed}"
    return f"answers, but it is not a vLLM or SGLang page: {looks}. Give the engine's own port."
