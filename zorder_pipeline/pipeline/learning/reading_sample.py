"""A sample as scans through ``reading/`` see it: with expressions, predicates and an SOP partition index as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.never_failing import never_failing
from zorder_pipeline.features.sop import Sop, Vectors, chosen_bits, vectors_of
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.promise import whole_table_shares
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import PARTITION_INDEX, KeySpec
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.records import TableAnalysis

from .useful_statistics import reading_boxes, reading_schema, sampled_features

__all__ = ["Columns", "ReadingSample", "reading_sample"]

MOST_BITS = 16
"""Predicates that the search places at most, those by which the most can be skipped."""

Columns = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
"""Values and validity by column."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReadingSample:
    """The sample with what Spark computes of it, and the queries of both kinds of readers.

    Attributes:
        columns: values and validity of columns, expressions, predicates and the partition index.
        schema: of all of them.
        plain: boxes of each query, as ordinary readers ask it.
        reading: the same through ``reading/``.
        expressions: SQL of what a layout may use that is no column of the table, by its name.
        rows_per_file: sample rows that stand for a file.
        stored: file of each row as the table lies, shape (rows,).
        partition: table partition of each row, shape (rows,); None when the table has none.
        stands_for: rows of the table that a sampled row stands for.
        index: the partition index by its name; "" without one.
    """

    columns: Columns
    schema: TableSchema
    plain: tuple[Boxes, ...]
    reading: tuple[Boxes, ...]
    expressions: Mapping[str, str]
    rows_per_file: float
    stored: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32] | None
    stands_for: float
    index: str = ""

    def read(self, spec: KeySpec | None, boxes: Sequence[Boxes], lies: npt.NDArray[np.int32] | None = None) -> Floats:
        """Share of the rows that each query reads under a layout, shape (queries,).

        Args:
            spec: None of files as they are.
            lies: file of each row where these are not the present ones.
        """
        estimator = Estimator.build(self.columns, self.schema, boxes, len(self.stored))
        return whole_table_shares(estimator, *self.blocks(spec, lies), self.stands_for)

    def blocks(
        self, spec: KeySpec | None, lies: npt.NDArray[np.int32] | None = None
    ) -> tuple[npt.NDArray[np.int32], int]:
        """File of each row under a layout, and how many files; see `read`."""
        if spec is not None:
            file = files_under(spec, self.columns, self.rows_per_file, self.partition).astype(np.int32)
        else:
            file = self.stored if lies is None else lies
        return file, int(file.max()) + 1


def reading_sample(
    analysis: TableAnalysis,
    target_rows: int,
    partition: npt.NDArray[np.int32] | None,
    weights: Mapping[Feature, float],
) -> ReadingSample:
    """The analysed sample for both kinds of readers.

    Args:
        target_rows: rows per file of the layout that is sought.
        partition: table partition of each sampled row.
        weights: of the features that the layout may use, by the queries that it is learned from: what others ask for
            has statistics, but neither a bit nor a say.
    """
    snapshot, sample = analysis.snapshot, analysis.sample
    schema, names = reading_schema(analysis), sampled_features(analysis)
    reading = reading_boxes(analysis, schema, names)
    columns = dict(sample.arrays)
    rows_per_file = sample.rows / max(1.0, sample.total_rows / target_rows)
    allowed = [feature for feature in names if feature in weights and feature.kind != "column"]
    safe = {f: sql for f in allowed if (sql := never_failing(f.sql, snapshot.schema)) is not None}
    predicates = [feature for feature in safe if feature.kind == "predicate"]
    weighed = [replace(feature, sql=safe[feature], weight=weights[feature]) for feature in predicates]
    truth = [columns[names[f]][0].astype(np.bool_) & columns[names[f]][1] for f in predicates]
    chosen = chosen_bits(weighed, truth, MOST_BITS)
    expressions = {names[predicates[j]]: safe[predicates[j]] for j in chosen}
    expressions |= {names[f]: sql for f, sql in safe.items() if f.kind == "expression"}
    index = ""
    if chosen:
        features = [weighed[j] for j in chosen]
        codes = vectors_of([truth[j] for j in chosen])
        distinct, counts = np.unique(codes, return_counts=True)
        sop = Sop.learn(features, Vectors.of_codes(distinct, counts.astype(np.int64), len(chosen)), rows_per_file)
        sql = sop.sql()  # a layout that the table lies by may have an index of its own
        index = f"{PARTITION_INDEX} {blake2b(sql.encode(), digest_size=4).hexdigest()}"
        columns[index] = sop.index_of(codes), np.ones(len(codes), dtype=np.bool_)
        expressions[index] = sql
        schema = TableSchema((*schema.columns, Column(index, "int")))
    return ReadingSample(
        columns,
        schema,
        analysis.boxes,
        reading,
        expressions,
        rows_per_file,
        sample.file,
        partition,
        sample.stands_for,
        index,
    )
