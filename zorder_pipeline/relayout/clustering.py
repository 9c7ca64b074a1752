"""Rewriting files by a layout: key, target file and tags of every row's new file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import canonical_array, order_key, readable

from .committer import Committer
from .file_list import GENERATION_TAG, KEY_HIGH_TAG, KEY_LOW_TAG, LAYOUT_TAG, SIZE_TAG, FileList
from .history import OURS
from .job import Arranged, by_partition
from .key_column import FILE, KEY, PAYLOAD, with_key
from .routing import Cutter, cut, histogram_of, routed, sampled_share, surely_bounded
from .select import select_files
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Clustering", "Columns", "Extender", "extended_for"]

EXTENSION_ROWS = 20_000
"""Rows looked at to extend a layout for values beyond its range."""

Columns = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
Extender = Callable[[KeySpec, Columns, int], KeySpec]
"""From a key, a sample of rows and their number in all to the key that also divides values beyond its range."""


@dataclass(frozen=True)
class Clustering:
    """The `zorder_pipeline.relayout.job.Job` of a layout.

    Attributes:
        spec: the layout's key.
        cutter: makes files out of a histogram of keys.
        target_rows: rows a file should have.
        extend: gives values beyond the key's range codes of their own; without it they share the last one.
        hilbert_table: see `with_key`.
        full: rewrite files that lie by ``spec`` already, too.
        done: with ``full``, the version after which a run before has written such files: these are left; None for none.
    """

    spec: KeySpec
    cutter: Cutter
    target_rows: int
    extend: Extender | None = None
    hilbert_table: npt.NDArray[np.int64] | None = None
    full: bool = False
    done: int | None = None

    @property
    def label(self) -> str:
        """Whose commit it is, for the table's history."""
        return OURS + self.spec.layout_id

    @property
    def layout_id(self) -> str:
        """The layout that rows are laid out by."""
        return self.spec.layout_id

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the layout."""
        return self.spec.table_columns

    def refuse_unless_fits(self, schema: TableSchema, *, changed: bool) -> None:
        """See `KeySpec.refuse_unless_fits`."""
        self.spec.refuse_unless_fits(schema, changed=changed)

    def select(self, snapshot: TableSnapshot, where: str | None) -> npt.NDArray[np.int64]:
        """Files that do not lie by the layout or no longer do well; see `select_files`."""
        found = select_files(
            snapshot,
            self.spec.layout_id,
            self.target_rows,
            where=where,
            full=self.full,
            done=self.done,
            smallest=self.spec.smallest_file,
        )
        return found.rewrite

    def expected_files(self, snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> int:
        """Files of the target size that the rows of each partition make."""
        counts = _rows_of_partitions(snapshot.files(), chosen)
        return sum(max(1, round(count / self.target_rows)) for count in counts)

    def arrange(
        self, committer: Committer, files: FileList, chosen: npt.NDArray[np.int64], rows: DataFrame
    ) -> Arranged:
        """Cut the keys that occur into files."""
        spec, snapshot = self.spec, committer.current
        partitions, paths = snapshot.partition_columns, snapshot.paths
        smallest = max(1, round(self.target_rows * spec.smallest_file))
        share = sampled_share(_rows_of_partitions(files, chosen), smallest)
        with _sample(rows, spec, snapshot, share) as some:
            if self.extend is not None:
                spec = extended_for(spec, self.extend, snapshot, files, chosen, some, share)
            found = histogram_of(with_key(some, spec, paths, self.hilbert_table), partitions, share)
        cuts = cut(found, self.cutter)
        keyed = with_key(rows, spec, paths, self.hilbert_table, beside=partitions)
        if share < 1 and not (cuts and surely_bounded(cuts, self.target_rows)):
            cuts = cut(histogram_of(keyed, partitions), self.cutter)
        if not cuts:
            raise LostRaceError(f"the rows to rewrite in {snapshot.location} were deleted meanwhile; run it again")
        targeted, ranges = routed(keyed, cuts, partitions, spec.highest)
        targeted = targeted.select(f"{PAYLOAD}.*", KEY, FILE)
        # FILE changes nothing in a file's order, but a sort that did not name it would have each row copied to drop it
        by = [*by_partition(rows, partitions), f"{KEY} + 0 * {FILE}"]
        by += [column_sql(snapshot.paths[name]) for name in spec.tie_break]
        mine = {LAYOUT_TAG: spec.layout_id, GENERATION_TAG: str(committer.read_version + 1)}
        tags = [mine | {KEY_LOW_TAG: str(low), KEY_HIGH_TAG: str(high)} for low, high, _ in ranges]
        if spec.smallest_file != 1:
            tags = [of | {SIZE_TAG: f"{size:.4g}"} for of, (_, _, size) in zip(tags, ranges, strict=True)]
        return Arranged(targeted, len(ranges), by, tags)


def extended_for(
    spec: KeySpec,
    extend: Extender,
    snapshot: TableSnapshot,
    files: FileList,
    chosen: npt.NDArray[np.int64],
    rows: DataFrame,
    share: float = 1.0,
) -> KeySpec:
    """The key that the chosen files are laid out by: ``spec``, extended where they have values beyond its range.

    Args:
        rows: those of the chosen files, or ``share`` of them; not read where the files tell that nothing lies beyond.
    """
    if not (beyond := _beyond(spec, files, chosen)):
        return spec
    total = int(files.rows[chosen].sum())
    return extend(spec, _values(rows, snapshot, beyond, share * total), total)


def _rows_of_partitions(files: FileList, chosen: npt.NDArray[np.int64]) -> list[int]:
    """Rows of the chosen files in each of their partitions."""
    rows = np.bincount(files.partition_codes[chosen], weights=files.rows[chosen])
    return [int(count) for count in rows if count]


def _beyond(spec: KeySpec, files: FileList, chosen: npt.NDArray[np.int64]) -> list[str]:
    """Columns of the key with values beyond the range that it was learned from, as far as the files tell.

    What a file does not tell may lie beyond: there are writers that keep no statistics.
    """
    found = []
    highs = {one.column: one.high for one in spec.features if one.high is not None and not one.expression}
    told = files.zones_of(highs) if highs else {}
    rows, every = files.rows[chosen], (files.rows + files.deleted)[chosen]
    for column, high in highs.items():
        zones = told.get(column)
        if zones is None:
            found.append(column)
            continue
        known = zones.known[chosen]
        untold = ~known & (rows > 0) & (zones.null_count[chosen] != every)
        bounds = zones.high[chosen][known].tolist()
        if untold.any() or (bounds and order_key(max(bounds, key=order_key)) > order_key(high)):
            found.append(column)
    return found


@contextmanager
def _sample(rows: DataFrame, spec: KeySpec, snapshot: TableSnapshot, share: float) -> Iterator[DataFrame]:
    """So many of the rows, the same ones each time, with what the key needs of them; read once, however often asked."""
    from pyspark.sql import functions as F

    if share == 1:
        yield rows
        return
    some = rows
    if not any(feature.expression for feature in spec.features):
        needed = [*(snapshot.paths[name][0] for name in spec.table_columns), *snapshot.partition_columns]
        some = rows.select(*(F.col(column_sql((name,))) for name in dict.fromkeys(needed)))
    some = some.sample(share, seed=0).persist()
    try:
        yield some
    finally:
        some.unpersist()


def _values(rows: DataFrame, snapshot: TableSnapshot, names: Sequence[str], expected: float) -> Columns:
    """Canonical values and validity of some columns of some of about ``expected`` rows, the same ones each time."""
    from pyspark.sql import functions as F

    asked = [F.col(column_sql(snapshot.paths[name])).alias(f"c{i}") for i, name in enumerate(names)]
    some = rows.select(*asked)
    if expected > EXTENSION_ROWS:
        some = some.sample(fraction=EXTENSION_ROWS / expected, seed=1)
    table = some.toArrow()
    types = {leaf.column.name: leaf.column.value_type for leaf in snapshot.leaves}
    return {name: canonical_array(readable(table[f"c{i}"]), types[name]) for i, name in enumerate(names)}
