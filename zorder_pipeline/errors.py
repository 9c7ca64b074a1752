"""The errors a user may see: each message is one sentence that names the thing and the way out."""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "LogError",
    "LostRaceError",
    "NoPartitionError",
    "NothingToLearnError",
    "PlanError",
    "RecordError",
    "TableError",
    "UnsupportedTableError",
    "VerificationError",
    "ZorderError",
]


class ZorderError(Exception):
    """Base of every error meant for a person; the command line prints it as one sentence and exits non-zero."""


class ConfigError(ZorderError):
    """A configuration file or option is wrong; names file, key and what is allowed."""


class LogError(ZorderError):
    """A query log cannot be read at all (a single bad line is quarantined instead)."""


class TableError(ZorderError):
    """The data table is missing, is no Delta table, or lacks what was asked for (a column, a partition)."""


class NoPartitionError(TableError):
    """The table has none of the partitions that were asked for, or has them no more."""


class UnsupportedTableError(TableError):
    """The table has a feature under which we may not rewrite it (e.g. liquid clustering)."""


class NothingToLearnError(TableError):
    """There is nothing to learn of a table: it has no rows, or no query filters by a column that it has."""


class PlanError(ZorderError):
    """A plan.json does not fit the table (other table, schema changed, unknown version) or is malformed."""


class LostRaceError(ZorderError):
    """Another writer changed the files being rewritten; nothing was committed and the run can be repeated."""


class VerificationError(ZorderError):
    """The rewritten rows differ from the input rows, or could not be compared; the sentence says what is committed."""


class RecordError(ZorderError):
    """A relayout is committed and could not be recorded in the state; the sentence names the version."""
