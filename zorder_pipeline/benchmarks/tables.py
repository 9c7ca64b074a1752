"""Made-up tables with the traits of real ones, seeded: skew, correlation, strings, nulls, NaN, many columns.

Each function returns an Arrow table whose rows are in the order in which they would have arrived;
`zorder_pipeline.benchmarks.data.delta_table` stores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["flights", "skewed", "taxi", "wide"]

Array: TypeAlias = npt.NDArray[Any]
SECOND = 1_000_000
DAY = 86_400 * SECOND
START_2024 = 19_723 * DAY  # 2024-01-01 in microseconds since 1970
DAY_2024 = 19_723


def skewed(rows: int, seed: int) -> pa.Table:
    """Events of tenants: a few tenants have most rows, and a tenant decides country, amount and plan; 12 columns.

    Events arrive by time, a twentieth up to ten days late. ``plan`` and ``closed`` have nulls, ``score`` nulls and NaN;
    ``device`` ids share long prefixes (beyond the 32 characters that Delta keeps).
    """
    rng = np.random.default_rng(seed)
    tenants = max(20, rows // 500)
    tenant = np.minimum(rng.zipf(1.3, rows) - 1, tenants - 1)
    country_of = rng.choice(30, tenants, p=_falling(30))
    late = np.where(rng.random(rows) < 0.05, rng.integers(0, 10 * DAY, rows), 0)
    event = START_2024 + np.sort(rng.integers(0, 90 * DAY, rows)) - late
    amount = np.round(rng.lognormal(2 + rng.normal(0, 1, tenants)[tenant], 0.8), 2)
    score = np.where(rng.random(rows) < 0.03, np.nan, np.round(rng.normal(50, 15, rows), 3))
    plan_of = rng.choice(4, tenants, p=[0.6, 0.25, 0.1, 0.05])
    opened = event // DAY - rng.geometric(0.02, rows)
    device = rng.integers(0, rows // 20 + 1, rows)
    return pa.table(
        {
            "event_id": pa.array(np.arange(rows) + 10_000_000),
            "event_time": pa.array(event, pa.timestamp("us", tz="UTC")),
            "tenant": _names("tenant-", tenant, 6),
            "country": _words(_COUNTRIES.split(), country_of[tenant]),
            "plan": _words(("free", "team", "business", "enterprise"), plan_of[tenant], rng.random(rows) < 0.08),
            "status": _words(("ok", "retry", "failed", "denied"), rng.choice(4, rows, p=[0.93, 0.04, 0.02, 0.01])),
            "amount": pa.array(amount),
            "score": pa.array(score, mask=rng.random(rows) < 0.1),
            "opened": pa.array(opened.astype(np.int32), pa.date32()),
            "closed": pa.array((opened + 30).astype(np.int32), pa.date32(), mask=rng.random(rows) < 0.6),
            "device": _names("urn:example:fleet:eu-central:device:", device, 9),
            "session": pa.array(rng.integers(0, rows // 8 + 1, rows)),
        }
    )


def wide(rows: int, seed: int) -> pa.Table:
    """40 columns: 16 integers, 8 floats, 8 strings, 4 dates, 4 decimals, half of them correlated with another.

    ``i00`` rises with arrival; the last eight columns lie beyond the first 32, for which Delta keeps no statistics.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"i00": pa.array(np.arange(rows) * 3 + rng.integers(0, 500, rows))}
    last = rng.integers(0, 10_000, rows)
    for i in range(1, 16):
        fresh = rng.integers(0, 10 ** (2 + i % 4), rows)
        last = fresh if i % 2 else last * 2 + rng.integers(0, max(2, int(last.max()) // 10), rows)
        columns[f"i{i:02d}"] = pa.array(last)
    for i in range(8):
        base = rng.normal(0, 1, rows) if i % 2 else last / (last.max() + 1) + rng.normal(0, 0.05, rows)
        gaps = rng.random(rows) < 0.05 * (i % 3)
        columns[f"f{i:02d}"] = pa.array(np.round(base * 1000, 3), mask=gaps)
    for i in range(8):
        codes = rng.integers(0, 4 ** (i % 5 + 1), rows)
        columns[f"s{i:02d}"] = _names(f"{'abcdefgh'[i]}-", codes, 5, rng.random(rows) < 0.04 * (i % 4))
    for i in range(4):
        spread = rng.integers(0, 700, rows) if i % 2 else np.arange(rows) * 700 // rows + rng.integers(0, 20, rows)
        columns[f"d{i:02d}"] = pa.array((DAY_2024 + spread).astype(np.int32), pa.date32())
    for i in range(4):
        cents = pa.array(rng.integers(0, 10 ** (4 + i), rows))
        columns[f"n{i:02d}"] = cents.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    return pa.table(columns)


def flights(rows: int, seed: int) -> pa.Table:
    """Departures of a year in the order of their scheduled time; 19 columns as in the well-known flights table.

    Cancelled flights have null times and delays; an aircraft (``tailnum``) belongs to one carrier, a carrier prefers
    some origins, and distance follows from origin and destination.
    """
    rng = np.random.default_rng(seed)
    carrier_share = _falling(16)
    carrier = rng.choice(16, rows, p=carrier_share)
    airports = rng.permutation(100)
    origin = airports[np.minimum((rng.exponential(4, rows) + carrier * 3).astype(int), 99)]
    dest = airports[rng.choice(100, rows, p=_falling(100))]
    place = rng.uniform(0, 2500, (100, 2))
    distance = np.hypot(*(place[origin] - place[dest]).T).round().astype(np.int32) + 80
    minutes = np.sort(rng.integers(0, 366 * 24 * 60, rows))
    scheduled = START_2024 + minutes * 60 * SECOND
    delay = np.round(rng.gamma(0.6, 25, rows) - 6)
    cancelled = rng.random(rows) < 0.025
    air_time = np.round(distance / 7.5 + rng.normal(18, 6, rows))
    arrival_delay = delay + np.round(rng.normal(-4, 14, rows))
    day = np.asarray(scheduled, dtype="datetime64[us]")
    month = day.astype("datetime64[M]").astype(int) % 12 + 1
    hhmm = minutes // 60 % 24 * 100 + minutes % 60
    return pa.table(
        {
            "year": pa.array(np.full(rows, 2024, dtype=np.int32)),
            "month": pa.array(month.astype(np.int32)),
            "day": pa.array(((day.astype("datetime64[D]") - day.astype("datetime64[M]")).astype(int) + 1).astype("i4")),
            "dep_time": pa.array((hhmm + delay).clip(0, 2400).astype(np.float64), mask=cancelled),
            "sched_dep_time": pa.array(hhmm.astype(np.int32)),
            "dep_delay": pa.array(delay, mask=cancelled),
            "arr_delay": pa.array(np.where(rng.random(rows) < 0.004, np.nan, arrival_delay), mask=cancelled),
            "carrier": _words(_CARRIERS.split(), carrier),
            "flight": pa.array((carrier * 211 + rng.integers(1, 900, rows)).astype(np.int32)),
            "tailnum": _names("N", carrier * 250 + rng.integers(0, 250, rows), 5, rng.random(rows) < 0.01),
            "origin": _words(_AIRPORTS, origin),
            "dest": _words(_AIRPORTS, dest),
            "air_time": pa.array(air_time, mask=cancelled),
            "distance": pa.array(distance),
            "hour": pa.array((minutes // 60 % 24).astype(np.int32)),
            "minute": pa.array((minutes % 60).astype(np.int32)),
            "time_hour": pa.array(scheduled // (3600 * SECOND) * 3600 * SECOND, pa.timestamp("us", tz="UTC")),
            "cancelled": pa.array(cancelled),
            "reason": _words(("weather", "carrier", "nas", "security"), rng.integers(0, 4, rows), ~cancelled),
        }
    )


def taxi(rows: int, seed: int) -> pa.Table:
    """Trips of a quarter by pick-up time, 19 columns; times have no zone, as in the published files.

    ``passenger_count`` and the fees are null together for trips of one vendor's feed; zones are skewed, amounts follow
    from distance, and a few recorded times are years off.
    """
    rng = np.random.default_rng(seed)
    pickup = START_2024 + np.sort(rng.integers(0, 91 * 86_400, rows)) * SECOND
    stray = rng.random(rows) < 0.0003
    pickup = np.where(stray, pickup - 5000 * DAY, pickup)
    distance = np.round(rng.lognormal(0.7, 0.8, rows), 2)
    seconds = (distance * 240 * rng.lognormal(0, 0.3, rows) + 120).astype(np.int64)
    fare = np.round(3 + distance * 2.9 + seconds / 90, 2)
    tip = np.where(rng.random(rows) < 0.3, 0.0, np.round(fare * rng.normal(0.2, 0.04, rows).clip(0), 2))
    feed = rng.random(rows) < 0.06
    zone_share = _falling(263)
    zones = rng.permutation(263) + 1
    pu = zones[rng.choice(263, rows, p=zone_share)]
    do = np.where(rng.random(rows) < 0.25, pu, zones[rng.choice(263, rows, p=zone_share)])
    tolls = np.where(rng.random(rows) < 0.07, 6.94, 0.0)
    congestion = np.where(rng.random(rows) < 0.9, 2.5, 0.0)
    airport = np.where(np.isin(pu, zones[:2]), 1.75, 0.0)
    extra = rng.choice([0.0, 1.0, 2.5, 5.0], rows)
    return pa.table(
        {
            "VendorID": pa.array(rng.choice([1, 2, 6], rows, p=[0.25, 0.74, 0.01]).astype(np.int32)),
            "tpep_pickup_datetime": pa.array(pickup, pa.timestamp("us")),
            "tpep_dropoff_datetime": pa.array(pickup + seconds * SECOND, pa.timestamp("us")),
            "passenger_count": pa.array(rng.choice(7, rows, p=_falling(7)).astype(np.float64), mask=feed),
            "trip_distance": pa.array(distance),
            "RatecodeID": pa.array(rng.choice([1.0, 2.0, 5.0, 99.0], rows, p=[0.94, 0.04, 0.01, 0.01]), mask=feed),
            "store_and_fwd_flag": _words(("N", "Y"), (rng.random(rows) < 0.01).astype(int), feed),
            "PULocationID": pa.array(pu.astype(np.int32)),
            "DOLocationID": pa.array(do.astype(np.int32)),
            "payment_type": pa.array(rng.choice(5, rows, p=[0.06, 0.74, 0.16, 0.02, 0.02])),
            "fare_amount": pa.array(fare),
            "extra": pa.array(extra),
            "mta_tax": pa.array(np.full(rows, 0.5)),
            "tip_amount": pa.array(tip),
            "tolls_amount": pa.array(tolls),
            "improvement_surcharge": pa.array(np.full(rows, 1.0)),
            "total_amount": pa.array(np.round(fare + tip + tolls + congestion + airport + extra + 1.5, 2)),
            "congestion_surcharge": pa.array(congestion, mask=feed),
            "Airport_fee": pa.array(airport, mask=feed),
        }
    )


_COUNTRIES = "AT BE BG CH CZ DE DK EE ES FI FR GB GR HR HU IE IS IT LT LU LV MT NL NO PL PT RO SE SI SK"
_CARRIERS = "AA AS B6 DL EV F9 FL HA MQ NK OO UA US VX WN YV"
_AIRPORTS = tuple(f"{a}{b}{c}" for a in "ABCDE" for b in "KLMNO" for c in "WXYZ")


def _falling(n: int) -> Array:
    """Zipf-like shares of ``n`` items, adding up to 1."""
    shares = 1.0 / np.arange(1, n + 1)
    return np.asarray(shares / shares.sum())


def _words(words: Sequence[str], codes: Array, null: Array | None = None) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words)).cast(pa.string())


def _names(prefix: str, codes: Array, digits: int, null: Array | None = None) -> pa.Array:
    distinct, inverse = np.unique(codes, return_inverse=True)
    return _words([f"{prefix}{code:0{digits}d}" for code in distinct.tolist()], inverse, null)
