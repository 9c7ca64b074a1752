"""A plan for a layout that a person gives, without a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zorder_pipeline import __version__
from zorder_pipeline.config.suggest import did_you_mean
from zorder_pipeline.errors import PlanError, TableError, UnsupportedTableError
from zorder_pipeline.features.sample import take_sample
from zorder_pipeline.layout.bits import MAX_RAW_BITS, raw_encoding
from zorder_pipeline.layout.clock import TIMES
from zorder_pipeline.layout.encoding import FINE_BITS, rank_encoding
from zorder_pipeline.layout.interleave import round_robin
from zorder_pipeline.model.feature_codes import MAX_KEY_BITS
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec, most_bits
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.schema import Column
from zorder_pipeline.model.values import Value, order_key
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table

from .looked_up import with_named_filters
from .sizes import target_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["layout_by_hand", "refuse_impossible_bits"]


def layout_by_hand(
    spark: SparkSession,
    table: str,
    bits: Mapping[str, int],
    *,
    encoding: str = "rank",
    curve: str = "interleave",
    settings: LearnSettings | None = None,
    present: Plan | None = None,
    committer: str = AUTO,
) -> Plan:
    """A plan for bits given by hand; the most significant column first.

    Args:
        bits: bits per column.
        encoding: ``rank`` (breakpoints from a sample) or ``bits`` (a value's own most significant bits, after those in
            which the table's smallest and largest value agree).
        present: the plan that the table lies by; where it has these bits in this order, its key is taken over. Ranks
            from a sample of today would make another layout, and a nightly run would rewrite everything again.
        committer: how the table is opened and rewritten, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.
        curve: ``interleave`` (seed 000's round robin), ``gray`` (its cells along a Gray-code curve), ``hilbert``, or
            ``sequence`` (one column after the other).

    Raises:
        PlanError: more bits are asked for than a column or a key can have, or Bloom filters of one that has none.
        TableError: a column is unknown, a struct, a partition column, of a type without an order, or named twice.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
    """
    refuse_impossible_bits(bits, encoding, curve)
    settings = settings or LearnSettings()
    snapshot = open_table(spark, table, committer=committer)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    columns = _columns(snapshot, bits)
    counts = list(bits.values())
    in_sequence = tuple(i for i, count in enumerate(counts) for _ in range(count))
    order = in_sequence if curve == "sequence" else round_robin(counts)
    kind = "interleave" if curve == "sequence" else curve
    features: Sequence[FeatureCodes]
    learned_as: tuple[tuple[str, str, str], ...] = ()
    rows: int | None = int(snapshot.files().rows.sum())
    timed = [column.name for column in columns if column.value_type.family in TIMES]
    known: KeySpec | None
    if encoding == "bits":
        features = [
            raw_encoding(c.name, c.type, count, _bounds(snapshot, c)) for c, count in zip(columns, counts, strict=True)
        ]
        known = present.spec.base if present is not None and present.spec is not None else None
        if known is not None and list(known.features) == features:
            learned_as = known.learned_as  # the same key, be a column renamed since
        known = known if known is not None and _same_raw(known, features, order, kind) else None
    else:
        known = _same_bits(present, columns, counts, order, kind)
        features = _ranked(snapshot, columns, counts, settings) if known is None else ()
    if known is not None:
        features, rows, learned_as = known.features, known.rows, known.learned_as
    ties, clock = tuple(column.name for column in columns), (timed or [column.name for column in columns])[0]
    spec = KeySpec(tuple(features), order, kind, ties, rows=rows, clock=clock, learned_as=learned_as)
    plan = Plan(
        table=snapshot.location,
        table_id=snapshot.table_id,
        schema_hash=snapshot.schema.fingerprint,
        delta_version=snapshot.version,
        spec=spec,
        origin="manual",
        target_file_rows=target_rows(snapshot, settings),
        notes=_without_statistics(columns),
        code_version=__version__,
    )
    return with_named_filters(snapshot.schema, plan, settings.bloom_filters or ())


def refuse_impossible_bits(bits: Mapping[str, int], encoding: str = "rank", curve: str = "interleave") -> None:
    """Check bits given by hand, as far as they need no table.

    Raises:
        PlanError: more are asked for than a column or a key can have.

    >>> refuse_impossible_bits({"day": 16, "origin": 16})
    """
    for name, count in bits.items():
        if encoding == "bits" and count > MAX_RAW_BITS:
            raise PlanError(f"{name}:{count} asks for more than {MAX_RAW_BITS} raw bits; use --encoding rank")
        if count > FINE_BITS:
            raise PlanError(f"{name}:{count} asks for more bits than a column has; give 1 to {FINE_BITS}")
    total, most = sum(bits.values()), most_bits(curve)
    if total > most:
        raise PlanError(f"{total} bits are asked for in all; a key has at most {most} with curve {curve}")
    if curve == "hilbert" and (stretched := len(bits) * max(bits.values(), default=0)) > MAX_KEY_BITS:
        raise PlanError(
            f"curve hilbert counts each of {len(bits)} columns with the bits of the finest, {stretched} in all of at "
            f"most {MAX_KEY_BITS}; give them more equal bits, or take curve gray"
        )


def _same_bits(
    present: Plan | None, columns: Sequence[Column], counts: Sequence[int], order: tuple[int, ...], curve: str
) -> KeySpec | None:
    """The key of a plan given by hand with the same bits of the same columns in the same order, as it was learned."""
    if present is None or present.spec is None or present.spec.curve != curve or present.spec.order != order:
        return None
    asked = [(column.name, column.type, count) for column, count in zip(columns, counts, strict=True)]
    key = present.spec.base
    return key if [(f.column, f.type, f.bits) for f in key.features] == asked else None


def _fields(snapshot: TableSnapshot, name: str) -> list[str]:
    """Leaves of the struct of that name; a dot in a column's own name makes no struct of what stands before it."""
    asked = name.lower()
    return [
        leaf.column.name
        for leaf in snapshot.leaves
        if any(".".join(leaf.path[:n]).lower() == asked for n in range(1, len(leaf.path)))
    ]


def _same_raw(key: KeySpec, features: Sequence[FeatureCodes], order: tuple[int, ...], curve: str) -> bool:
    """Whether a key's raw bits are these in this order, however far the columns' values went when it was made."""
    if (key.curve, key.order, len(key.features)) != (curve, order, len(features)):
        return False
    return all(replace(now, high=was.high) == was for was, now in zip(key.features, features, strict=True))


def _columns(snapshot: TableSnapshot, names: Iterable[str]) -> list[Column]:
    """The table's columns of these names.

    Raises:
        TableError: one is unknown, a struct, a partition column, of a type without an order, or named twice.
    """
    columns: list[Column] = []
    for name in names:
        column = snapshot.schema.find(name)
        if column is None and (fields := _fields(snapshot, name)):
            raise TableError(
                f"column {name} of {snapshot.location} is a struct; name a field of it: {', '.join(fields)}"
            )
        if column is None:
            known = [c.name for c in snapshot.schema.columns if c.value_type.orderable and not c.partition]
            near = did_you_mean(name, known)
            raise TableError(f"column {name} is not in {snapshot.location}{near}; it has {', '.join(known)}")
        if column.partition or not column.value_type.orderable:
            why = "the table is partitioned by it" if column.partition else f"type {column.type} has no order"
            raise TableError(f"column {name} cannot be part of a layout: {why}")
        if column in columns:
            raise TableError(f"column {column.name} of {snapshot.location} is named twice; give it its bits once")
        columns.append(column)
    return columns


def _without_statistics(columns: Iterable[Column]) -> tuple[str, ...]:
    """What to know of columns by which no file is skipped, in sentences."""
    return tuple(
        f"Delta keeps no min and max of {column.name}, so that no file is skipped by it, only pages inside files: "
        + (
            "name it in the table property delta.dataSkippingStatsColumns before the table is laid out"
            if column.value_type.delta_min_max
            else f"it has none for type {column.type}"
        )
        for column in columns
        if not column.delta_stats
    )


def _bounds(snapshot: TableSnapshot, column: Column) -> tuple[Value, Value] | None:
    """A column's smallest and largest value by the files' statistics; None where a file has none, or none has."""
    files = snapshot.files().zone_map()
    zones = files.columns.get(column.name)
    if zones is None or not zones.known.any() or not np.all(zones.known | zones.all_null(files.statistics_rows)):
        return None
    low, high = zones.low[zones.known].tolist(), zones.high[zones.known].tolist()
    return min(low, key=order_key), max(high, key=order_key)


def _ranked(
    snapshot: TableSnapshot, columns: list[Column], counts: list[int], settings: LearnSettings
) -> list[FeatureCodes]:
    """Codes by rank: breakpoints from a sample of the columns."""
    rows = int(snapshot.files().rows.sum())
    wanted = min(rows, settings.sample_rows)
    names = [column.name for column in columns]
    sample = take_sample(snapshot, names, rows=wanted, seed=settings.seed, total_rows=rows).columns
    return [
        rank_encoding(c.name, c.type, sample[c.name].values, sample[c.name].valid).feature(count)
        for c, count in zip(columns, counts, strict=True)
    ]
