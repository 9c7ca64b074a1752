"""Checks of a relayout: what must never differ blocks; files that are not as promised warn."""

from collections.abc import Callable, Iterator
from functools import wraps

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetIn,
    MetadataValue,
    multi_asset_check,
)

from zorder_pipeline.model.wording import counted

from .common import Shelf
from .metadata import percent
from .records import Relayout

__all__ = ["CHECKS", "check_content", "check_file_sizes", "check_promise", "check_row_count", "check_schema"]
__all__ += ["relayout_checks"]

UNDO = "take it back with zorder rollback, and report it"
SLACK = 0.01
"""Share of the table's rows by which a measured saving may miss the promised interval."""
SMALL, LARGE, ODD = 0.5, 2.0, 0.2
"""A new file is odd below or above these multiples of the target; more than this share of odd ones is worth a look."""


def _not_without_proof(check: Callable[[Relayout], AssetCheckResult]) -> Callable[[Relayout], AssetCheckResult]:
    """The check, which also fails where nothing was compared: what nobody has looked at is not as it should be."""

    @wraps(check)
    def checked(relayout: Relayout) -> AssetCheckResult:
        found = check(relayout)
        if not relayout.proof.nothing:
            return found
        how, version = relayout.proof.compared, relayout.result.version
        sentence = f"compared was {how}; version {version} is committed: look at DESCRIBE HISTORY, or {UNDO}"
        return found._replace(passed=False, description=sentence, metadata={"compared": MetadataValue.text(how)})

    return checked


@_not_without_proof
def check_row_count(relayout: Relayout) -> AssetCheckResult:
    """The commit added and removed no row."""
    before, after = relayout.proof.rows
    same = before == after
    sentence = (
        f"{counted(after, 'row')} before and after" if same else f"{before:,} rows before, {after:,} after: {UNDO}"
    )
    return AssetCheckResult(passed=same, description=sentence, metadata={"rows before": before, "rows after": after})


@_not_without_proof
def check_content(relayout: Relayout) -> AssetCheckResult:
    """The rows hold what they held: by a hash of every row (layout.verify: hash), else by the nulls of every column."""
    before, after = relayout.proof.contents
    how = relayout.proof.compared
    sentence = f"the same by {how}" if before == after else f"the rows differ by {how}: {UNDO}"
    return AssetCheckResult(passed=before == after, description=sentence, metadata={"compared": how})


@_not_without_proof
def check_schema(relayout: Relayout) -> AssetCheckResult:
    """The commit left schema and table properties as they were."""
    (old, new), (was, is_now) = relayout.proof.schemas, relayout.proof.properties
    wrong = [name for name, same in (("schema", old == new), ("table properties", was == is_now)) if not same]
    sentence = f"{' and '.join(wrong)} differ from the version before: {UNDO}" if wrong else "both are the same"
    return AssetCheckResult(passed=not wrong, description=sentence)


@_not_without_proof
def check_file_sizes(relayout: Relayout) -> AssetCheckResult:
    """The new files are about as large as the plan wanted each of them."""
    rows, target = relayout.proof.file_rows, max(1, relayout.target_file_rows)
    odd = sum(not SMALL * target <= count <= LARGE * target for count in rows)
    share = odd / len(rows) if rows else 0.0
    sentence = (
        f"{odd:,} of {len(rows):,} new files have less than half or more than twice the rows that they were meant to "
        f"have, {target:,} on average"
    )
    return AssetCheckResult(
        passed=share <= ODD, severity=AssetCheckSeverity.WARN, description=sentence, metadata={"rows wanted": target}
    )


@_not_without_proof
def check_promise(relayout: Relayout) -> AssetCheckResult:
    """The queries that the plan promised by read as much less of the new files as it said, within its interval."""
    if relayout.promised is None:
        return AssetCheckResult(passed=True, description="nothing was promised: the layout was given by hand")
    if relayout.unread:
        sentence = f"what its queries read now could not be told: {relayout.unread}; zorder evaluate tells it later"
        return AssetCheckResult(passed=False, severity=AssetCheckSeverity.WARN, description=sentence)
    kept = relayout.measured >= relayout.promised_low - SLACK
    sentence = (
        f"promised: {percent(relayout.promised)} fewer of the rows per query (at least "
        f"{percent(relayout.promised_low)}); measured: {percent(relayout.measured)}"
    )
    figures = {"promised": relayout.promised, "at least": relayout.promised_low, "measured": relayout.measured}
    return AssetCheckResult(passed=kept, severity=AssetCheckSeverity.WARN, description=sentence, metadata=figures)


CHECKS: tuple[tuple[str, Callable[[Relayout], AssetCheckResult], bool], ...] = (
    ("row_count_unchanged", check_row_count, True),
    ("content_unchanged", check_content, True),
    ("schema_unchanged", check_schema, True),
    ("promise_kept", check_promise, False),
    ("file_sizes", check_file_sizes, False),
)
"""Name, function, and whether a failure blocks what comes after."""


def relayout_checks(shelf: Shelf) -> AssetChecksDefinition:
    """The checks of one table's ``clustered_table``, in one step."""
    key = shelf.key("clustered_table")

    @multi_asset_check(
        name=f"{shelf.table.name}__clustered_table_checks",
        specs=[
            AssetCheckSpec(name, asset=key, blocking=blocking, description=function.__doc__)
            for name, function, blocking in CHECKS
        ],
        ins={"relayout": AssetIn(key=key)},
        can_subset=True,  # else none of them could be executed again from the UI
    )
    def _run(context: AssetCheckExecutionContext, relayout: Relayout) -> Iterator[AssetCheckResult]:
        for name, function, _ in CHECKS:
            if AssetCheckKey(key, name) in context.selected_asset_check_keys:
                yield function(relayout)._replace(asset_key=key, check_name=name)

    return _run
