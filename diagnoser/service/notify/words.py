"""Messages in words, English or Chinese: headline, numbers, first remedy, link. Short: people read them on a phone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diagnoser import language as languages
from diagnoser.language import Language, told
from diagnoser.service.notify.event import Event, Message
from diagnoser.units import count, duration, percent, rate, seconds

CONTEXT = "message"
"""Of the parts of a message in the catalogue."""
LISTED = 10
"""Engines or messages that one message spells out; the others are counted."""

PHRASES: Mapping[str, str] = {
    "share_l1": "KV space closed {share} of the window",
    "share_slots": "slots taken {share} of the window",
    "share_prefill": "prefill saturated {share} of the window",
    "share_external": "parked outside the pool {share} of the window",
    "share_l2_transfer": "waiting for L2 {share} of the window",
    "share_stalled": "no progress {share} of the window",
    "waiting": "up to {max} wait ({last} at the end)",
    "used": "pool used up to {used}",
    "ttft": "TTFT P99 in ({low}, {high}]",
    "preempted": "{rate} thrown out for each that finished",
    "do": "Do: {action}: {flag}",
    "resolved": "resolved",
    "after": "lasted {time}",
    "now": "Now: {headline}",
    "gone": "The engine is no longer watched.",
    "was": "Before: {headline}",
    "critical": "critical",
    "warning": "warning",
    "info": "info",
    "rank": "rank {rank}",
    "many": "{firing} engine ranks bound, {resolved} resolved",
    "more": "and {count} more",
    "digest": "{count} messages in one (rate limit)",
    "answer": "Alert {name} ({status}) diagnosed",
    "worst": "It names {named} engine ranks; these are the {shown} worst now.",
    "newest": "No page of that time is kept: the newest verdict of {engines}.",
    "firing": "firing",
    "ended": "resolved",
    "attempt": " (sent again, attempt {attempt}: may be a repeat)",
    "colon": ": ",
    "join": " · ",
}


def phrase(language: Language, part: str, /, **values: str) -> str:
    """One part of a message."""
    return languages.phrase(PHRASES[part], language, CONTEXT).format(**values)


def headline(event: Event, language: Language) -> str:
    """The verdict in a line."""
    return told(event.headline, language)


def numbers(event: Event, language: Language) -> str:
    """The numbers behind a verdict in a line; where there are none, its first sentence."""
    found = phrase(language, "join").join(_numbers(event, language))
    return found or " ".join(told(said, language) for said in event.because[:1])


def _numbers(event: Event, language: Language) -> Iterator[str]:
    known = event.numbers
    share = f"share_{event.bottleneck}"
    if event.share and share in PHRASES:
        yield phrase(language, share, share=percent(event.share))
    if event.bottleneck in ("unreachable", "unknown"):
        return
    if known.get("waiting_max_requests"):
        last = known.get("waiting_last_requests", known["waiting_max_requests"])
        yield phrase(language, "waiting", max=count(known["waiting_max_requests"]), last=count(last))
    if event.mode == "preempting" and "preemptions_per_completion" in known:
        yield phrase(language, "preempted", rate=rate(known["preemptions_per_completion"]))
    if "l1_used_ratio_max" in known:
        yield phrase(language, "used", used=percent(known["l1_used_ratio_max"]))
    if "ttft_p99_low_seconds" in known and known["ttft_p99_low_seconds"] > 0:
        high = known.get("ttft_p99_high_seconds", float("inf"))
        low = known["ttft_p99_low_seconds"]
        yield phrase(language, "ttft", low=_time(seconds(low), language), high=_time(seconds(high), language))


def _time(text: str, language: Language) -> str:
    """ "12 min" in the reader's language."""
    number, _, unit = text.rpartition(" ")
    return f"{number} {languages.phrase(unit, language, languages.UNIT)}".strip()


def first_remedy(event: Event, language: Language) -> str:
    """What to do first, with the flag."""
    if event.remedy is None:
        return ""
    return f"{told(event.remedy['action'], language)}{phrase(language, 'colon')}{told(event.remedy['flag'], language)}"


def description(event: Event, language: Language) -> str:
    """The verdict's own sentences and the first remedy, for a field of its own."""
    remedy = _do(event, language)
    return "\n".join([*(told(said, language) for said in event.because), *([remedy] if remedy else [])])


def _do(event: Event, language: Language) -> str:
    if event.remedy is None:
        return ""
    action, flag = (told(event.remedy[name], language) for name in ("action", "flag"))
    return phrase(language, "do", action=action, flag=flag)


def text_of(message: Message, language: Language, attempt: int = 1) -> tuple[str, str]:
    """(title, body) of a message. `attempt` above 1 says that an earlier one may have arrived."""
    if message.messages:
        title, lines = _digest(message, language)
    elif message.asked is not None:
        title, lines = _answer(message, language)
    else:
        title, lines = _alerts(message, language)
    again = phrase(language, "attempt", attempt=str(attempt)) if attempt > 1 else ""
    return title + again, "\n".join(line for line in lines if line)


def _shown(message: Message) -> tuple[Event, ...]:
    """Without the ends of alerts whose place another one took: that one says so."""
    firing = {event.key for event in message.events if event.kind == "firing"}
    return tuple(e for e in message.events if e.kind == "firing" or e.key not in firing)


def _who(event: Event, language: Language) -> str:
    rank = "" if event.rank in ("0", "") else f" {phrase(language, 'rank', rank=event.rank)}"
    return f"{event.model} · {event.target}{rank}" if event.model else f"{event.target}{rank}"


def _line(event: Event, language: Language) -> str:
    word = phrase(language, event.severity if event.kind == "firing" else "resolved")
    return f"[{word}] {headline(event, language)} · {_who(event, language)}"


def _alerts(message: Message, language: Language) -> tuple[str, list[str]]:
    shown = _shown(message)
    if len(shown) == 1:
        return _line(shown[0], language), _details(shown[0], language)
    firing = sum(event.kind == "firing" for event in shown)
    title = phrase(language, "many", firing=str(firing), resolved=str(len(shown) - firing))
    group = ", ".join(message.group.values())
    lines = [line for event in shown[:LISTED] for line in (_line(event, language), f"  {numbers(event, language)}")]
    first = next((event for event in shown if event.kind == "firing"), None)
    rest = [_do(first, language), first.url] if first else [shown[0].url]
    return (f"{title} · {group}" if group else title), [*lines, *_rest(len(shown), language), *rest]


def _details(event: Event, language: Language) -> list[str]:
    if event.kind == "firing":
        was = phrase(language, "was", headline=told(event.was["headline"], language)) if event.was else ""
        return [numbers(event, language), was, _do(event, language), event.url]
    length = duration(max(0.0, (event.ends_at or event.at) - event.starts_at))
    lasted = phrase(language, "after", time=_time(length, language))
    now = phrase(language, "now", headline=told(event.now["headline"], language)) if event.now else ""
    return [lasted, phrase(language, "gone") if event.reason == "gone" else now, event.url]


def _answer(message: Message, language: Language) -> tuple[str, list[str]]:
    asked = message.asked
    assert asked is not None
    status = phrase(language, "firing" if asked.status == "firing" else "ended")
    title = phrase(language, "answer", name=asked.name, status=status)
    lines: list[str] = []
    for event in message.events[:LISTED]:
        lines += [_line(event, language), *(f"  {line}" for line in _details(event, language)[:3] if line), event.url]
    shown = len(message.events)
    worst = phrase(language, "worst", named=str(asked.named), shown=str(shown)) if asked.named > shown else ""
    newest = phrase(language, "newest", engines=", ".join(asked.newest[:LISTED])) if asked.newest else ""
    return title, [*lines, *_rest(shown, language), worst, newest]


def _digest(message: Message, language: Language) -> tuple[str, list[str]]:
    titles = [text_of(one, language)[0] for one in message.messages]
    urls = [event.url for one in message.messages for event in one.events[:1]]
    lines = [*titles[:LISTED], *_rest(len(titles), language), *urls[:1]]
    return phrase(language, "digest", count=str(len(titles))), lines


def _rest(total: int, language: Language) -> list[str]:
    return [phrase(language, "more", count=str(total - LISTED))] if total > LISTED else []
