"""Statistics of one table's files, as the state holds them: a row per file and feature."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.model.file_stats import Feature

from .gather import STATS
from .session import without_rules

__all__ = ["FILE", "KEY", "STORED", "Gathered", "counts_in", "keys", "sought", "zoned"]

KEY = ("path", "vector", "session", "feature", "kind", "sql")
"""What a row tells of; there are several where runs gathered the same at once, of which all hold."""
FILE = list(KEY[:2])
"""Which file, as it was."""
STORED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("path", "vector", "session")),
        *(field for field in STATS if field.name != "file"),
        *(pa.field("schema_version", pa.int32()), pa.field("stats_date", pa.date32()), pa.field("version", pa.int64())),
        pa.field("kept_since", pa.date32()),
    ]
)
"""A row of the state, without the table's id. Rows of before that column tell the day by their own, ``stats_date``."""
_UNITS = "year|quarter|month|week|day|hour|minute|second|millisecond|microsecond"
INSTANTS = (
    "timestamp|unixtime|timezone|interval|date_?trunc|date_?part|date_format|months_between|to_date"
    r"|\bextract\s*\(|\b(?:hour|minute|second|to_char|to_varchar|unix_\w+)\s*\("
    rf"|date_?(?:add|diff)\s*\(\s*(?:{_UNITS})s?\s*,"
)
"""What the SQL of an expression says that makes an instant, of a text or a date too, or another value of one."""


@dataclass(frozen=True)
class Gathered:
    """Rows of ``file_stats`` of one table.

    Attributes:
        rows: one per file and feature, with ``path``, ``vector`` and ``session``.
    """

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def since(self) -> dt.date | None:
        """The day since when statistics are kept of the table, which rows tell also once the first ones are gone."""
        first = pc.min(pc.coalesce(self.rows["kept_since"], self.rows["stats_date"])).as_py()
        return first if isinstance(first, dt.date) else None

    def of(self, paths: Sequence[str]) -> Gathered:
        """Those of some files."""
        return Gathered(self.rows.filter(pc.is_in(self.rows["path"], pa.array(paths, pa.string()))))

    def outdated(self, vectors: Mapping[str, str], version: int) -> set[tuple[str, ...]]:
        """Path and deletion vector of files that are gone, or have another vector than they had then.

        What was gathered without a vector holds under every; what is of later versions tells of files of theirs.

        Args:
            vectors: id of the deletion vector of each file that there is in ``version``.
        """
        older = self.rows.filter(pc.less_equal(self.rows["version"], version))
        pairs = keys(older.group_by(FILE).aggregate([]), FILE)
        return {pair for pair in pairs if pair[0] not in vectors or pair[1] not in ("", vectors[pair[0]])}

    def under(self, stored_as: Mapping[str, str]) -> Gathered:
        """Those of features whose columns are still the ones that were looked at, of the same type.

        Args:
            stored_as: where the files keep each column, and as what type, by its name, now.
        """
        texts = self.rows["columns"].unique().to_pylist()
        same = [text for text in texts if all(stored_as.get(k) == v for k, v in json.loads(text).items())]
        if len(same) == len(texts):
            return self
        return Gathered(self.rows.filter(pc.is_in(self.rows["columns"], pa.array(same, pa.string()))))

    def within(self, session: str) -> Gathered:
        """Those that count in a session, see `zorder_pipeline.reading.session.session_of`."""
        return Gathered(self.rows.filter(counts_in(self.rows, session)))

    def features(self) -> tuple[Feature, ...]:
        """What there are statistics of: what was gathered last first, and of those what was first gathered last."""
        told = ["feature", "kind", "type", "sql", "columns"]
        rows = self.rows.select([*told, "version"]).append_column("sought", sought(self.rows))
        seen = rows.group_by(told).aggregate([("sought", "max"), ("version", "max"), ("version", "min")]).to_pylist()
        seen.sort(key=lambda row: (-row["version_max"], -row["version_min"], row["kind"], row["feature"]))
        return tuple(
            Feature(
                row["feature"],
                row["kind"],
                row["type"],
                row["sql"] or "",
                tuple(json.loads(row["columns"])),
                row["sought_max"],
            )
            for row in seen
            if row["sql"] or row["kind"] == "column"
        )

    def complete(self, features: Sequence[Feature], session: str) -> set[tuple[str, str]]:
        """Files, by path and deletion vector, of which every feature's statistics are known in a session."""
        rows = self.within(session).rows
        of_columns = pc.equal(rows["kind"], "column")  # of which the SQL may be written in several ways
        rows = rows.set_column(rows.column_names.index("sql"), "sql", pc.if_else(of_columns, None, rows["sql"]))
        files, file_of = _numbered(rows, "path", "vector")
        told, told_of = _numbered(rows, "feature", "kind", "sql")
        valued = sought(rows).to_numpy()
        known = np.ones(len(files), bool)
        for feature in features:
            which = (feature.name, feature.kind, None if feature.kind == "column" else feature.sql)
            having = told_of == (told.index(which) if which in told else -1)
            here = np.zeros(len(files), bool)
            here[file_of[having & valued if feature.equality else having]] = True
            known &= here
        return {(str(path), str(vector)) for (path, vector), whole in zip(files, known.tolist(), strict=True) if whole}


def _numbered(rows: pa.Table, *names: str) -> tuple[list[tuple[str | None, ...]], npt.NDArray[np.int64]]:
    """The different values of some columns together, and which of them each row has."""
    codes = np.zeros(rows.num_rows, np.int64)
    for name in names:
        encoded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return list(zip(*(rows[name].take(first).to_pylist() for name in names), strict=True)), which


def counts_in(rows: pa.Table, session: str) -> pa.ChunkedArray:
    """Which rows count in a session: the rules of time zones matter to those alone that have to do with instants."""
    of_instants, of_others = (pa.array(["", text], pa.string()) for text in (session, without_rules(session)))
    return pc.if_else(zoned(rows), pc.is_in(rows["session"], of_instants), pc.is_in(rows["session"], of_others))


def zoned(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are of instants, or of an expression that may make one: ``hour(txt)`` does of a text."""
    said = {"type": "timestamp", "columns": "timestamp", "sql": INSTANTS}
    found = [pc.match_substring_regex(rows[name], pattern, ignore_case=True) for name, pattern in said.items()]
    of_types, of_columns, of_texts = (pc.fill_null(one, False) for one in found)
    return pc.or_(pc.or_(of_types, of_columns), of_texts)


def keys(rows: pa.Table, names: Sequence[str] = KEY) -> list[tuple[str, ...]]:
    """The `KEY` of each row, or a part of it."""
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def sought(rows: pa.Table) -> pa.ChunkedArray:
    """Of which rows the file's values were looked for; where there are none these were too many."""
    return pc.fill_null(pc.or_kleene(rows["sought"], rows["places"].is_valid()), False)
