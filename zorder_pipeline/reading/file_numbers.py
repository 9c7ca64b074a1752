"""Which file a row comes from: by its URI, or by a number that takes less to group rows by than a long text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.places import is_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["number", "numbers", "same_files", "uri"]

SHIFT = 20
"""Bits by which sizes are shifted: files that are written at once differ in the lower bits of their times."""


def uri(rows: DataFrame) -> Column:
    """The URI of each row's file."""
    return rows.metadataColumn("_metadata").getField("file_path")


def number(rows: DataFrame) -> Column:
    """The number of each row's file, as `numbers` makes it."""
    from pyspark.sql import functions as F

    file = rows.metadataColumn("_metadata")
    size, modified = file.getField("file_size"), file.getField("file_modification_time")
    return F.call_function("shiftleft", size, F.lit(SHIFT)).bitwiseXOR(F.unix_millis(modified))


def numbers(sizes: npt.NDArray[np.int64], modified: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """A number for each file of a table, by its size and time as in the AddFile action; None where two have the same.

    Args:
        sizes: bytes, shape (files,).
        modified: milliseconds since 1970, shape (files,).

    >>> import numpy as np
    >>> numbers(np.array([1, 1, 2]), np.array([5, 6, 5])).tolist()
    [1048581, 1048582, 2097157]
    >>> numbers(np.array([1, 1]), np.array([5, 5])) is None
    True
    """
    found = (sizes.astype(np.int64) << SHIFT) ^ modified.astype(np.int64)
    return found if len(np.unique(found)) == len(found) else None


def same_files(uris: Sequence[str], location: str, paths: Sequence[str]) -> list[str | None]:
    """The AddFile path of each file that Spark names by its URI; None where that is not told for sure.

    Args:
        location: URI of the table's folder, as Hadoop writes it: nothing in it is URL-encoded.
        paths: as in AddFile actions: URL-encoded, relative to the folder or absolute.
    """
    found: dict[str, str | None] = {}
    folder = quote(location.rstrip("/"), safe=":/")
    for path in paths:
        whole = path if is_uri(path) else f"{folder}/{path}"
        place = _plain(whole)
        found[place] = None if place in found else path
    return [found.get(_plain(uri)) for uri in uris]


def _plain(uri: str) -> str:
    scheme, colon, rest = unquote(uri).partition(":")
    return f"{scheme}:/{rest.lstrip('/')}" if colon else uri
