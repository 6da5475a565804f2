"""What the API answers with. Times are unix seconds (UTC) unless a name says otherwise, sizes are tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from diagnoser.language import Language

BOTTLENECKS = (
    "none", "l1", "slots", "prefill", "external", "l2_transfer", "stalled", "leak", "unknown", "unreachable",
)  # fmt: skip
Bottleneck = Literal[
    "none", "l1", "slots", "prefill", "external", "l2_transfer", "stalled", "leak", "unknown", "unreachable"
]
Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
Point = Annotated[list[float | None], Field(min_length=2, max_length=2)]
Amount = Annotated[float | Pair | None, Field(description="A number, a range [low, high], or null where unknown.")]
ENGINE = "10.0.3.7:8000/0"
CURSOR = "5f3a9c1e.412"


class Model(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True)


class ProblemDocument(Model):
    """An error (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:l1-diagnoser:problem:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": f"No engine {ENGINE!r} is watched; /api/v1/engines lists those that are.",
                }
            ]
        }
    )
    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


class Pool(Model):
    """The KV pool of the device at the end of the window. The three states sum to the capacity."""

    capacity: float | None = None
    used: Amount = None
    evictable: Amount = None
    available: Amount = None


class Engine(Model):
    """One engine rank in a line: who, its verdict, its numbers."""

    id: Annotated[str, Field(description="target/rank; percent-encode it in a path.", examples=[ENGINE])]
    target: str
    rank: str
    family: Annotated[str, Field(examples=["vllm"])]
    version: str | None
    model: str | None
    bottleneck: Bottleneck
    mode: str | None
    severity: Severity
    confidence: Literal["high", "medium", "low"]
    headline: str
    trend: Literal["rising", "steady", "recovering"]
    l2: str
    shares: dict[str, float]
    urgency: Annotated[int, Field(ge=0, le=4, description="0 none, 1 unknown, 2 warning, 3 unreachable, 4 critical.")]
    since: Annotated[float, Field(description="When the present verdict began.")]
    at: Annotated[float, Field(description="End of the window that was evaluated.")]
    window_seconds: float
    l1: Pool
    waiting: Annotated[float | None, Field(description="Requests waiting at the end of the window.")]
    running: Annotated[float | None, Field(description="Mean of running requests.")]
    ttft_p99: Annotated[Point | None, Field(description="Bucket (low, high] in seconds, high null: no upper edge.")]
    first_remedy: Annotated[str | None, Field(description="What to do first.")]


class Engines(Model):
    """Engines, the worst first."""

    cursor: Annotated[str, Field(description="Give it as `since` to be told only what has changed.", examples=[CURSOR])]
    complete: Annotated[
        bool, Field(description="false: only what changed since the cursor given; `ids` says who is still there.")
    ]
    ids: Annotated[list[str], Field(description="Every engine that matches, worst first.")]
    engines: list[Engine]


class Checklist(Model):
    """The questions behind a verdict with their answers and the numbers they rest on."""

    id: str
    at: float
    headline: str
    because: list[str]
    checks: list[dict[str, Any]]
    findings: list[dict[str, Any]]


class WhatIfs(Model):
    """What each change would do to admission."""

    id: str
    at: float
    bottleneck: Bottleneck
    load: Annotated[dict[str, Any], Field(description="The signals that the prediction rests on.")]
    changes: list[dict[str, Any]]


class EngineCapacity(Model):
    """How much one engine holds, and how much its load asks for."""

    id: str
    at: float
    l1: Pool
    facts: Annotated[dict[str, Any], Field(description="What the engine told of its size, each with its origin.")]
    signals: Annotated[dict[str, Any], Field(description="Size of requests, concurrency the pool allows, rho, ...")]


class VerdictPoint(Model):
    """The worst verdict of one engine in one step."""

    id: str
    at: Annotated[float, Field(description="Start of the step.")]
    bottleneck: Bottleneck
    mode: str | None
    severity: Severity
    confidence: str
    l2: str
    headline: Annotated[str, Field(description="Empty where the history no longer knows it.")]


class VerdictHistory(Model):
    """Verdicts over a range."""

    start: float
    end: float
    step: float
    points: list[VerdictPoint]


class SignalHistory(Model):
    """Signals of one engine over a range, as [unix seconds, value or null]."""

    id: str
    start: float
    end: float
    step: float
    signals: dict[str, list[Point]]


class TransitionItem(Model):
    """A change of verdict."""

    id: Annotated[int, Field(description="Grows by one. 0: could not be stored.")]
    engine: Annotated[str, Field(examples=[ENGINE])]
    target: str
    rank: str
    at: float
    before: Annotated[str | None, Field(description="bottleneck[/mode]; null: it was not known.")]
    after: Annotated[str, Field(examples=["l1/reservation"])]
    severity_before: str | None
    severity: Severity
    headline: str
    model: str
    family: str


class Transitions(Model):
    """Changes in the order they happened. `next`: give it as `after` for those that follow."""

    transitions: list[TransitionItem]
    next: Annotated[int, Field(ge=0)]


class Target(Model):
    """One target of the configuration."""

    name: str
    url: str
    source: str
    healthy: bool | None
    last_error: str
    last_scrape_at: float | None
    interval: float
    labels: dict[str, str] = {}


class Targets(Model):
    """All targets."""

    targets: list[Target]


class RulePart(Model):
    """A paragraph of an explanation."""

    name: str
    text: str
    language: Annotated[Language, Field(description="Of its text.")]


class Rule(Model):
    """One thing that has a name: a check, verdict, remedy, threshold, gate, signal or fact."""

    kind: str
    id: str
    title: Annotated[str, Field(description="One line.")]
    text: Annotated[str, Field(description="The explanation, in lines; as `diagnose explain` prints it.")]
    parts: Annotated[list[RulePart], Field(description="The same, a paragraph each.")]


class RuleLine(Model):
    """A rule in a list."""

    id: str
    title: str


class Rules(Model):
    """Rules by kind."""

    rules: dict[str, list[RuleLine]]
    errors: Annotated[list[str], Field(description="Rule files that were skipped, and why.")]


class Diagnosed(Model):
    """The diagnosis of an upload or of a live sample."""

    notes: Annotated[list[str], Field(description="What to know beside it.")]
    diagnoses: Annotated[
        list[dict[str, Any]],
        Field(description="One an engine rank, in the output contract: the worst moment of a recording."),
    ]
    timeline: Annotated[list[dict[str, Any]], Field(description="Of a recording: the verdict at every step.")] = []


class Status(Model):
    """The service itself."""

    version: str
    started_at: float
    cursor: str
    engines: int
    by_bottleneck: dict[str, int]
    targets: int
    targets_failing: int
    last_evaluation_at: float | None
    history: dict[str, Any]
    notifications: dict[str, Any]
    config: dict[str, Any]
    problems: Annotated[list[str], Field(description="What is wrong with the service itself, in sentences.")]


class Health(Model):
    """Alive, or ready."""

    status: Literal["ok"]
