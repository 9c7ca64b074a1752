"""Which tables a relayout keeps its hands off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from .failures import unwritable

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["why_unsupported", "why_unwritable"]

OWN_COLUMNS = "__zorder_"
"""What the names of the columns start with that a relayout adds while it runs."""
SUPPORTED_FEATURES = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"),
        *("identityColumns", "deletionVectors", "rowTracking", "timestampNtz", "typeWidening", "typeWidening-preview"),
        *("domainMetadata", "v2Checkpoint", "inCommitTimestamp", "inCommitTimestamp-preview", "icebergCompatV1"),
        *("icebergCompatV2", "variantType", "variantType-preview", "variantShredding-preview", "variantShredding"),
        *("allowColumnDefaults", "clustering"),  # a liquid table is one that has clustering columns
        *("vacuumProtocolCheck", "checkpointProtection", "collations", "collations-preview"),
    }
)


def why_unsupported(location: str, features: Collection[str], columns: Sequence[str], clustered: bool) -> str | None:
    """Why a table may not be rewritten, as a sentence with the way out; None when it may.

    Args:
        features: its table features.
        columns: names of its top-level columns.
        clustered: whether it has columns of a liquid clustering.

    >>> why_unsupported("file:/t", ["appendOnly"], ["id"], False)
    >>> print(why_unsupported("file:/t", [], ["__zorder_key"], False))
    file:/t has a column __zorder_key, a name that zorder itself uses; rename the column
    """
    if clustered:
        return (
            f"{location} uses liquid clustering, and its own OPTIMIZE would undo any other layout; use the learned "
            "columns as advice: ALTER TABLE ... CLUSTER BY (<columns>), or CLUSTER BY NONE to let zorder lay it out"
        )
    if unknown := sorted(set(features) - SUPPORTED_FEATURES):
        feature = unknown[0]
        return (
            f"{location} has the table feature {feature}, which this version cannot rewrite safely; use the learned "
            "columns as advice for OPTIMIZE ... ZORDER BY or CLUSTER BY, or drop the feature if it is not needed: "
            "ALTER TABLE ... DROP FEATURE"
        )
    if own := [name for name in columns if name.lower().startswith(OWN_COLUMNS)]:
        return f"{location} has a column {own[0]}, a name that zorder itself uses; rename the column"
    return None


def why_unwritable(location: str, log: JavaObject, snapshot: JavaObject) -> str | None:
    """Why the session's Delta cannot write a table, which it says at a commit alone, as `why_unsupported` does."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        log.protocolWrite(snapshot.protocol())
    except (Py4JJavaError, PySparkException) as error:
        if (reason := unwritable(location, error)) is None:
            raise
        return str(reason)
    return None
