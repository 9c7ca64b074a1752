"""Blackout windows on the wall clock, and the kill switch."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.gate.holds import DAYS, Blackout, held, stopped_by

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
TIMES = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@given(TIMES, TIMES, st.sets(st.sampled_from(DAYS)), ZONES, MOMENTS)
def test_a_moment_lies_inside_exactly_when_the_wall_says_so(
    start: time, end: time, days: set[str], zone: str, now: datetime
) -> None:
    local = now.astimezone(ZoneInfo(zone))
    clock = local.timetz().replace(tzinfo=None)
    today, yesterday = DAYS[local.weekday()], DAYS[(local - timedelta(days=1)).weekday()]
    starts_today, started_yesterday = not days or today in days, not days or yesterday in days
    if start < end:
        inside = starts_today and start <= clock < end
    else:
        inside = (starts_today and clock >= start) or (started_yesterday and clock < end)
    until = Blackout(start, end, tuple(days), zone).until(now)
    assert (until is not None) == inside
    if until is not None:
        assert until.replace(tzinfo=None) > local.replace(tzinfo=None)
        assert until.timetz().replace(tzinfo=None) == end


@pytest.mark.parametrize(
    ("start", "end", "begins", "ends"),
    [
        (time(2, 30), time(5), "00:30", "04:00"),
        (time(22), time(2, 30), "-", "01:30"),
        (time(2, 15), time(2, 45), "00:15", "01:45"),
    ],
)
def test_a_window_in_the_hour_that_comes_twice_has_no_hole(start: time, end: time, begins: str, ends: str) -> None:
    """In Berlin 02:00 to 03:00 comes at 00:00 and at 01:00 UTC on that day."""
    window = Blackout(start, end, time_zone="Europe/Berlin")
    day = datetime(2026, 10, 25, tzinfo=UTC)
    minutes = [day + timedelta(minutes=minute) for minute in range(6 * 60)]
    inside = [f"{moment:%H:%M}" for moment in minutes if window.until(moment) is not None]
    first = 0 if begins == "-" else 60 * int(begins[:2]) + int(begins[3:])
    last = 60 * int(ends[:2]) + int(ends[3:])
    assert inside == [f"{moment:%H:%M}" for moment in minutes[first:last]]


def test_a_window_in_the_hour_that_is_left_out_begins_after_it() -> None:
    """In Berlin 02:00 to 03:00 does not come on that day: 03:00 is at 01:00 UTC."""
    window = Blackout(time(2, 30), time(5), time_zone="Europe/Berlin")
    day = datetime(2026, 3, 29, tzinfo=UTC)
    inside = [hour for hour in range(24) if window.until(day + timedelta(hours=hour, minutes=1)) is not None]
    assert inside == [1, 2]
    until = Blackout(time(22), time(2, 30), time_zone="Europe/Berlin").until(day + timedelta(minutes=45))
    assert until is not None
    assert until.astimezone(UTC) > day + timedelta(minutes=45), "an end that does not come is not before now"


def test_the_window_that_lasts_longest_is_named() -> None:
    windows = (Blackout(time(8), time(18)), Blackout(time(9), time(20), ("thu",), "Europe/Berlin"))
    thursday = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert held(thursday, windows).why == "blackout window until 2026-01-01 20:00 Europe/Berlin"
    assert held(thursday + timedelta(days=1), windows).why == "blackout window until 2026-01-02 18:00 UTC"
    assert held(thursday.replace(hour=19), windows) is None


@pytest.mark.parametrize("value", ["", "0", "false", "No"])
def test_a_switch_that_is_off_stops_nothing(value: str) -> None:
    assert stopped_by({"ZORDER_STOP": value}) is None


def test_each_switch_is_named() -> None:
    assert "stop: true" in stopped_by({}, configured=True).why
    assert "ZORDER_STOP" in stopped_by({"ZORDER_STOP": "1"}).why
    assert stopped_by({}, note="disk full\n").why.startswith("all relayouts are stopped by an operator (disk full);")
    assert stopped_by({}, note="").cause == "stopped"
