"""Checks of a relayout: what must never differ blocks; a broken promise warns."""

from collections.abc import Callable

from dagster import AssetCheckResult, AssetChecksDefinition, AssetCheckSeverity, asset_check

from .common import Shelf
from .metadata import percent
from .records import Relayout

__all__ = ["CHECKS", "check_promise", "check_row_count", "check_schema", "relayout_checks"]

SLACK = 0.01
"""Share of the table's rows by which a measured saving may miss the promised interval."""


def check_row_count(relayout: Relayout) -> AssetCheckResult:
    """The commit added and removed no row."""
    before, after = relayout.rows_before, relayout.rows_after
    same = before == after
    sentence = f"{after:,} rows before and after" if same else f"{before:,} rows before, {after:,} after: roll back"
    return AssetCheckResult(passed=same, description=sentence, metadata={"rows before": before, "rows after": after})


def check_schema(relayout: Relayout) -> AssetCheckResult:
    """The commit left the schema as it was."""
    same = relayout.schema_before == relayout.schema_after
    sentence = "the schema is the same" if same else "the schema differs from that of the version before: roll back"
    return AssetCheckResult(passed=same, description=sentence)


def check_promise(relayout: Relayout) -> AssetCheckResult:
    """The unseen queries save what the plan promised, within its interval."""
    if relayout.promised is None:
        return AssetCheckResult(passed=True, description="nothing was promised: the layout was given by hand")
    kept = relayout.measured >= relayout.promised_low - SLACK
    sentence = (
        f"promised: {percent(relayout.promised)} fewer of the rows per query (at least "
        f"{percent(relayout.promised_low)}); measured: {percent(relayout.measured)}"
    )
    figures = {"promised": relayout.promised, "at least": relayout.promised_low, "measured": relayout.measured}
    return AssetCheckResult(passed=kept, severity=AssetCheckSeverity.WARN, description=sentence, metadata=figures)


CHECKS: tuple[tuple[str, Callable[[Relayout], AssetCheckResult], bool], ...] = (
    ("row_count_unchanged", check_row_count, True),
    ("schema_unchanged", check_schema, True),
    ("promise_kept", check_promise, False),
)
"""Name, function, and whether a failure blocks what comes after."""


def relayout_checks(shelf: Shelf) -> list[AssetChecksDefinition]:
    """The checks of one table's ``clustered_table``."""
    return [_check(shelf, name, function, blocking) for name, function, blocking in CHECKS]


def _check(
    shelf: Shelf, name: str, function: Callable[[Relayout], AssetCheckResult], blocking: bool
) -> AssetChecksDefinition:
    @asset_check(asset=shelf.key("clustered_table"), name=name, blocking=blocking, description=function.__doc__)
    def _run(relayout: Relayout) -> AssetCheckResult:
        return function(relayout)

    return _run
