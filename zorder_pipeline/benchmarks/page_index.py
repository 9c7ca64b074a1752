"""Pages that a query skips by the Parquet page index, as parquet-hadoop itself decides it, in Spark's JVM.

pyarrow says whether a file has a page index but not what is in it. The library that Spark reads with answers through
py4j: each column index is asked which of its pages may match, and the offset indexes say which pages of the other
columns those rows lie in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PageIndex"]


@dataclass(frozen=True)
class _Chunk:
    """A column chunk: its column index in the JVM, and the first and last row of each page."""

    index: Any
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]


class PageIndex:
    """The page indexes of some Parquet files.

    Args:
        paths: files on the local disk.

    Raises:
        ValueError: a file has no page index.
    """

    def __init__(self, spark: SparkSession, paths: list[Path]) -> None:
        jvm: Any = spark._jvm
        self._filters = jvm.org.apache.parquet.filter2.predicate.FilterApi
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._groups: list[dict[str, _Chunk]] = []
        for path in paths:
            source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
                jvm.org.apache.hadoop.fs.Path(str(path)), conf
            )
            reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
            try:
                for block in reader.getFooter().getBlocks():
                    chunks = block.getColumns()
                    rows = block.getRowCount()
                    self._groups.append({c.getPath().toDotString(): _chunk(reader, c, rows, path) for c in chunks})
            finally:
                reader.close()

    @property
    def pages(self) -> int:
        """Pages of all columns."""
        return sum(len(chunk.first) for group in self._groups for chunk in group.values())

    def filtered(self, column: str, value: int, read: str | None = None) -> float:
        """Share of the pages that ``column = value`` need not read: of all columns, or of the one called ``read``.

        Args:
            column: a 32-bit integer column.
        """
        predicate = self._filters.eq(self._filters.intColumn(column), value)
        kept = total = 0
        for group in self._groups:
            own = group[column]
            matching = predicate.accept(own.index)
            hit: list[int] = []
            while matching.hasNext():
                hit.append(matching.nextInt())
            for name, chunk in group.items():
                if read is None or name == read:
                    total += len(chunk.first)
                    kept += int(_overlapping(chunk, own.first[hit], own.last[hit]).sum())
        return 1 - kept / total


def _chunk(reader: Any, column: Any, rows: int, path: Path) -> _Chunk:
    index, offsets = reader.readColumnIndex(column), reader.readOffsetIndex(column)
    if index is None or offsets is None:
        raise ValueError(f"{path} has no page index for column {column.getPath().toDotString()}")
    first = np.array([offsets.getFirstRowIndex(i) for i in range(offsets.getPageCount())], dtype=np.int64)
    return _Chunk(index, first, np.append(first[1:], rows) - 1)


def _overlapping(chunk: _Chunk, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Pages that hold a row of one of the ascending, disjoint ranges first .. last."""
    return np.searchsorted(first, chunk.last, "right") > np.searchsorted(last, chunk.first, "left")
