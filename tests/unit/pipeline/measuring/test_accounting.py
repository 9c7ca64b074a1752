"""Whether a promise was kept, told in what was promised."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.gate.accounts import Account, Kept, monthly_savings, widening
from zorder_pipeline.gate.benefit import observed_rate
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning.volumes import FileVolumes
from zorder_pipeline.pipeline.measuring import accounting, comparing
from zorder_pipeline.pipeline.measuring.promises import account_of, check_of
from zorder_pipeline.pipeline.measuring.standing import standing
from zorder_pipeline.pipeline.measuring.undoing import ended_at, note_ends
from zorder_pipeline.relayout import history
from zorder_pipeline.state.entry import Entry

COSTS = CostModel(scan=10.0, per_opened_file=0.1)
ENTRY = {
    "table_id": "id", "location": "t", "layout_id": "a", "version": 1, "replaced_version": 0, "committed_at": 0,
    "bytes_rewritten": 1e9, "rows": 1, "files": 1, "columns": 1, "additional": 0, "predicates": 0, "hashed": False,
    "cost_expected": None, "cost_low": None, "cost_high": None, "cost_measured": 1.0, "promise_queries": 9,
    "credited": 1.0, "promised_before": 0.5, "promised_after": 0.4995, "promised_low": 0.0, "promised_bytes": 5e5,
    "promised_files": 40.0, "bytes_before": 1e9, "files_before": 50.0, "queries_per_day": 1.0, "log_watermark": None,
    "measured_queries": 9, "measured_before": 0.5, "measured_after": 0.501, "measured_bytes": -1e6,
    "measured_files": 38.0, "measured_per_day": None, "gate": {},
}  # fmt: skip


def kept(**others: Any) -> tuple[float | None, bool]:
    check = check_of(Entry(**{**ENTRY, **others}), 1.5, COSTS)
    return check.kept, check.broken


def test_a_promise_is_judged_by_bytes_and_files_at_what_they_cost() -> None:
    """Worth it for its files: 0.05% of the rows less were promised, and 0.1% more are read."""
    share, broken = kept()
    assert share == pytest.approx((38 * 0.1 - 0.01) / (40 * 0.1 + 0.005))
    assert not broken
    assert kept(measured_files=10.0)[1], "a quarter of the files"


@pytest.mark.parametrize(
    ("promised_after", "told"), [(0.4, True), (0.4993, True), (0.4996, False), (0.5, False), (0.501, False)]
)
def test_a_broken_promise_is_told_in_rows_where_rows_were_promised(promised_after: float, told: bool) -> None:
    broken = {"promised_files": 48.0, "measured_files": 3.0, "promised_after": promised_after}
    warning = check_of(Entry(**{**ENTRY, **broken}), 1.5, COSTS).warning
    assert warning is not None
    share = f", and -0.1% of the rows instead of the promised {0.5 - promised_after:.1%}" if told else ""
    assert f" of what it promised{share}, by" in warning
    assert warning.endswith("by 9 queries; the next promises are trusted less")


def test_rows_that_are_read_more_for_fewer_files_are_told_of() -> None:
    merged = check_of(Entry(**{**ENTRY, "promised_before": 0.10, "promised_after": 0.13}), None, COSTS)
    assert merged.remark is not None
    assert "that they read 3.0% of the rows more" in merged.remark
    assert check_of(Entry(**ENTRY), None, COSTS).remark is None
    merged = check_of(Entry(**{**ENTRY, "promised_before": 0.10, "promised_after": 0.1004}), None, COSTS)
    assert merged.remark is None, "0.0% more: each night's compaction of a month said so"


def test_a_promise_is_broken_by_the_factor_that_it_was_decided_with() -> None:
    """What the configuration said then; a ledger from before that was noted has the usual one."""
    quarter = Entry(**{**ENTRY, "measured_files": 10.0})
    generous = Entry(**{**ENTRY, "measured_files": 10.0, "gate": {"assumptions": {"broken_promise_factor": 5.0}}})
    assert [check_of(entry, None, COSTS).broken for entry in (quarter, generous)] == [True, False]
    assert check_of(generous, 1.5, COSTS).broken, "what is asked for goes first"


def test_a_promise_that_is_missed_by_just_the_factor_is_not_broken() -> None:
    rows = {"measured_bytes": None, "promised_before": 0.75, "promised_after": 0.25, "measured_before": 0.75}
    for after, broken in ((0.5, False), (0.51, True)):
        check = check_of(Entry(**{**ENTRY, **rows, "measured_after": after}), 2.0, COSTS)
        assert (check.broken, check.warning is not None) == (broken, broken)
        assert check.measured == pytest.approx(0.75 - after)


def test_what_turned_into_a_loss_saves_nothing_of_what_was_promised() -> None:
    warning = check_of(Entry(**{**ENTRY, "measured_files": -20.0}), None, COSTS).warning
    assert warning is not None
    assert "saves 0% of what it promised" in warning


def test_what_was_not_checked_yet_is_neither_measured_nor_warned_of() -> None:
    """The state has zeros for it, which would be a saving of nothing."""
    check = check_of(Entry(**{**ENTRY, "measured_queries": 0, "measured_bytes": None}), None, COSTS)
    assert (check.measured, check.kept, check.broken, check.warning) == (None, None, False, None)


@pytest.mark.parametrize(
    ("others", "by_hand"),
    [
        ({"promised_after": 0.5}, True),
        ({"promise_queries": 0}, True),
        ({}, False),
        ({"promised_after": 0.5, "cost_expected": 9.0}, False),  # files were merged
    ],
)
def test_a_layout_by_hand_is_one_of_which_neither_rows_nor_costs_were_foretold(
    others: dict[str, Any], by_hand: bool
) -> None:
    assert check_of(Entry(**{**ENTRY, **others}), None, COSTS).by_hand == by_hand


def test_a_picture_shows_the_foretold_cost_only_where_all_of_it_is_known() -> None:
    foretold = {"cost_low": 0.0, "cost_expected": 2.0, "cost_high": 3.0}
    for missing in (None, *foretold):
        told = foretold | ({} if missing is None else {missing: None})
        check = check_of(Entry(**{**ENTRY, "location": "/data/events/", "version": 7, **told}), None, COSTS)
        assert check.drawn.name == "events v7"
        assert check.drawn.foretold == ((0.0, 2.0, 3.0) if missing is None else None)


PAGES = {"promised_page_bytes": 8e8, "page_bytes_before": 1e9, "measured_page_bytes": 4e8}
"""Half of what was promised of the pages, where all that was promised of row groups was kept."""
GROUPS = {"promised_bytes": 5e8, "measured_bytes": 5e8, "promised_files": 0.0, "measured_files": 0.0}


@pytest.mark.parametrize(
    ("others", "share", "size"),
    [
        ({}, 0.5, 4e8),
        ({"gate": {"assumptions": {"page_skipping": True}}}, 0.5, 4e8),
        ({"gate": {"assumptions": {"page_skipping": False}}}, 1.0, 5e8),  # the readers do not skip by them
        ({"measured_page_bytes": None}, 1.0, 5e8),  # read for the newest relayout alone
        ({"promised_page_bytes": None}, 1.0, 5e8),
        ({"page_bytes_before": None}, 1.0, 5e8),
    ],
)
def test_a_promise_is_held_to_the_pages_where_the_gate_weighed_them(
    others: dict[str, Any], share: float, size: float
) -> None:
    entry = Entry(**{**ENTRY, **PAGES, **GROUPS, **others})
    assert check_of(entry, None, COSTS).kept == pytest.approx(share)
    assert account_of(entry, COSTS).saved_per_query == pytest.approx(COSTS.saved(size, 0.0, "id"))


def test_a_promise_of_a_version_that_told_no_bytes_is_held_to_its_rows() -> None:
    """What a query read then is not told, so nothing says whether the promise is worth a measure by bytes."""
    rows = {"bytes_before": 0.0, "files_before": 0.0, "promised_after": 0.1, "measured_after": 0.2}
    assert kept(**rows)[0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("others", "saved"),
    [
        ({"measured_queries": 0}, (5e8, 30.0)),
        ({"measured_queries": 0, "credited": 0.5}, (2.5e8, 15.0)),
        ({"measured_queries": 0, "promised_page_bytes": 7e8, "credited": 0.5}, (3.5e8, 15.0)),
        ({"measured_queries": 1}, (4e8, 20.0)),
        ({"measured_bytes": None, "measured_after": 0.3}, (2.5e8, 20.0)),  # by rows: half of it was kept
        ({"measured_bytes": None, "measured_after": 0.3, "credited": 0.5}, (5e8 / 2, 20.0)),  # all of the half
    ],
)
def test_what_a_query_saves_is_booked_as_measured_else_as_promised(
    others: dict[str, Any], saved: tuple[float, float]
) -> None:
    told = {"promised_bytes": 5e8, "promised_files": 30.0, "promised_after": 0.1, "measured_bytes": 4e8}
    entry = Entry(**{**ENTRY, **told, "measured_files": 20.0, "committed_at": 3, "cost_measured": 7.0, **others})
    account = account_of(entry, COSTS)
    assert account.saved_per_query == pytest.approx(COSTS.saved(*saved, "id"))
    assert account.checked == (entry.measured_queries > 0)
    assert (account.table, account.committed_at, account.cost, account.until) == ("t", 3, 7.0, None)


def test_a_saving_is_booked_at_the_rate_of_later_queries_else_at_the_one_that_was_decided_with() -> None:
    decided = {"gate": {"assumptions": {"queries_per_day": 20.0, "horizon_days": 7.0}}}
    for others, rate in (
        ({"measured_per_day": 5.0}, 5.0), ({"measured_per_day": 0.0}, 0.0), ({}, 20.0), ({"gate": {}}, 1.0)
    ):  # fmt: skip
        account = account_of(Entry(**{**ENTRY, **decided, **others}), COSTS)
        assert (account.queries_per_day, account.days) == (rate, 30.0 if "gate" in others else 7.0)
    assert account_of(Entry(**{**ENTRY, "ended_at": DAY}), COSTS).until == DAY


FADING = {"days": [0.0, 2.0], "shares": [1.0, 0.0], "since": 0.0}


def fading(days: float, **others: Any) -> Entry:
    """A relayout whose saving was foretold to be over after two days, measured so many days after its log."""
    gate = {"assumptions": {"lasting": {**FADING, "credited": 1.0}, "horizon_days": 30.0}}
    watermark = 40 * DAY
    given = {"committed_at": watermark + DAY // 2, "log_watermark": watermark, "gate": gate}
    return Entry(**{**ENTRY, **given, "measured_until": watermark + int(days * DAY), **others})


def test_a_promise_is_held_to_what_was_foretold_of_the_time_that_it_is_measured_over() -> None:
    for days, left in ((-1.0, 1.0), (1.0, 0.75), (2.0, 0.5), (20.0, 0.05)):
        measured = {"measured_files": 40.0 * left, "measured_bytes": 5e5 * left}
        check = check_of(fading(days, **measured), 1.5, COSTS)
        assert (check.kept, check.broken) == (pytest.approx(1.0), False), days
        assert check.promised == pytest.approx(0.0005 * left)
    rows = {"measured_bytes": None, "promised_after": 0.1, "measured_before": 0.5, "measured_after": 0.3}
    assert check_of(fading(2.0, **rows), 1.5, COSTS).kept == pytest.approx(1.0), "by rows, too"
    late = {"measured_since": 43 * DAY, "measured_files": 0.0, "measured_bytes": 0.0}
    assert check_of(fading(20.0, **late), 1.5, COSTS).kept is None, "by queries of days of which nothing was foretold"
    part = fading(2.0, credited=0.5, measured_files=10.0, measured_bytes=1.25e5)
    assert check_of(part, 1.5, COSTS).kept == pytest.approx(1.0), "of a bin that was all that was done"


def test_savings_are_booked_while_queries_ask_for_what_was_laid_out() -> None:
    """Half a day after the log three quarters are left, and one and a half days later nothing."""
    whole = COSTS.saved(5e5, 40.0, "id")
    foretold = account_of(fading(0.0, measured_queries=0, measured_until=None), COSTS)
    assert foretold.saved(0.0, 1.5) == pytest.approx(whole * 1.5 * 0.75 / 2)
    assert foretold.saved(1.5, 30.0) == pytest.approx(0.0)
    so_far = account_of(fading(2.0, measured_files=10.0, measured_bytes=1.25e5), COSTS)
    assert so_far.saved(0.0, 30.0) == pytest.approx(foretold.saved(0.0, 30.0) / 2), "half of it was kept"
    later = {"days": [0.0, 2.0, 2.1], "since": 0.0, "credited": 0.5}
    for shares in ([0.0, 0.0, 0.0], [1e-3, 1e-3, 1.0]):
        gate = {"assumptions": {"lasting": {**later, "shares": shares}, "horizon_days": 30.0}}
        for rows in ({}, {"measured_bytes": None}):
            odd = account_of(fading(1.0, measured_files=10.0, credited=0.5, gate=gate, **rows), COSTS)
            booked = odd.saved(0.0, 1.0)
            assert booked == pytest.approx(whole * shares[0]), "where next to nothing was foretold that is booked"
    broken = fading(2.0, gate={"assumptions": {"lasting": {"days": "x"}, "horizon_days": 30.0}})
    assert broken.credited_over(30.0) == 1.0, "a note that is none is as good as none"


def test_of_a_part_of_the_promise_that_part_has_to_be_kept() -> None:
    assert kept(credited=0.1, measured_files=4.0, measured_bytes=5e4)[0] == pytest.approx(1.0)


def test_rows_tell_it_where_the_replaced_files_are_gone() -> None:
    rows = {"measured_bytes": None, "promised_after": 0.1, "measured_after": 0.2}
    assert kept(**rows)[0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    "others",
    [
        {"measured_queries": 0},
        {"promised_files": 0.5},  # of 50
        {"measured_bytes": None},  # 0.05% of the rows
        {"promised_files": -40.0},
    ],
)
def test_a_promise_of_next_to_nothing_is_neither_kept_nor_broken(others: dict[str, Any]) -> None:
    assert kept(**others) == (None, False)


def commit(version: int, operation: str, label: str | None = None, /, **others: Any) -> Any:
    metrics = {name: told for name, told in others.items() if name.startswith("num")}
    return {
        "version": version, "operation": operation, "userMetadata": label, "operationParameters": others,
        "operationMetrics": metrics, "timestamp": datetime.fromtimestamp(version),
    }  # fmt: skip


ZORDER = commit(3, "OPTIMIZE", numRemovedBytes="900000000")
OURS = commit(9, "OPTIMIZE", "zorder layout a again", numRemovedBytes="900000000")


ZORDER4 = commit(4, "OPTIMIZE", numRemovedBytes="900000000")


@pytest.mark.parametrize(
    ("later", "left", "end"),
    [
        ([commit(2, "WRITE")], 0, None),
        ([commit(2, "RESTORE", version="0")], 0, 2),
        ([commit(2, "RESTORE", timestamp="1969-12-24 00:00:00")], 0, 2),  # before all that is looked at
        ([commit(2, "RESTORE", timestamp="2069-12-24 06:30:00")], 40, 2),  # by the clock of a zone to the east
        ([commit(2, "RESTORE", timestamp="1969-12-24 00:00:00")], 60, None),  # to the west
        ([commit(2, "RESTORE", version="1")], 0, None),
        ([commit(2, "RESTORE", version="0"), commit(3, "RESTORE", version="1")], 0, None),
        ([commit(2, "WRITE"), ZORDER], 40, 3),
        ([commit(2, "WRITE"), ZORDER], 60, None),
        ([commit(2, "WRITE"), ZORDER], None, None),
        ([commit(2, "OPTIMIZE", numRemovedBytes="1000"), OURS], 0, None),
        (
            [*(commit(i, "OPTIMIZE", numRemovedBytes="90000000") for i in (2, 3, 4)), OURS],
            0,
            2,
        ),  # partition by partition
        ([commit(2, "WRITE", numRemovedBytes="900000000"), OURS], 0, 2),  # an overwrite, though it was relaid since
        ([commit(2, "WRITE", mode="Overwrite"), OURS], 40, 2),
        ([commit(2, "MERGE", numTargetBytesRemoved="900000000")], 40, 2),
        ([commit(2, "DELETE", numDeletionVectorsAdded="1")], 40, 2),
        ([commit(2, "OPTIMIZE", numFilesRemoved="1")], 40, 2),  # delta-rs tells no bytes
        ([commit(2, "WRITE", mode="Append"), commit(3, "SET TBLPROPERTIES")], 40, None),
        ([commit(2, "OPTIMIZE", "zorder layout b run", numRemovedBytes="900000000")], 0, None),
        ([commit(2, "OPTIMIZE", "zorder layout b run"), commit(3, "DELETE", numDeletionVectorsAdded="1")], 0, None),
        ([commit(2, "OPTIMIZE", "zorder layout b run"), commit(3, "RESTORE", version="0")], 0, 3),
        ([commit(2, "OPTIMIZE", "zorder layout b run"), commit(3, "RESTORE", version="1"), ZORDER4], 0, 4),
        # the same to a moment: what another layout of ours followed had no rows left before, and what cannot be told is
        # told by the moment
        (
            [commit(2, "OPTIMIZE", "zorder layout b run"), commit(3, "RESTORE", timestamp="2069-12-24 00:00:00")],
            0,
            None,
        ),
        ([commit(2, "DELETE", numDeletionVectorsAdded="1"), commit(3, "RESTORE", timestamp="1969-12-24")], None, 3),
    ],
)
def test_a_saving_ends_where_the_relayout_was_undone(later: list[Any], left: int | None, end: int | None) -> None:
    entry = Entry(**{**ENTRY, "rows": 100})
    found = ended_at(entry, [*reversed(later), commit(1, "OPTIMIZE", "zorder layout a run")], lambda *_: left)
    assert found == (None if end is None else end * 1_000_000)


RUN = "zorder layout a run"


@pytest.mark.parametrize(("to", "end"), [(4, 7), (1, 7), (5, None), (6, None)])
def test_a_restore_to_right_before_a_relayout_ends_it_whatever_others_committed_while_it_was_at_work(
    to: int, end: int | None
) -> None:
    """As ``zorder rollback`` does it: to the version before its first commit, not to that which it began with."""
    entry = Entry(**{**ENTRY, "version": 6, "replaced_version": 0, "run": RUN, "rows": 100})
    bins = [commit(5, "OPTIMIZE", f"{RUN} of the session"), commit(6, "OPTIMIZE", RUN)]
    past = [*(commit(v, "WRITE", mode="Append") for v in range(1, 5)), *bins, commit(7, "RESTORE", version=str(to))]
    assert ended_at(entry, past[::-1], lambda *_: 100) == (None if end is None else end * 1_000_000)


class Past:
    """A table with a history, and the state's ledger.

    Attributes:
        commits: oldest first.
        read, opened: versions of commits that were read, and of the table that were opened.
        counts: rows that lie by the layout from a version on; those of the newest relayout, or of each generation.
        others: what was asked of tables that were there before.
    """

    table_id, location, created_at = "id", "t", 7

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits = [commit(0, "WRITE"), commit(1, "OPTIMIZE", "zorder layout a run")]
        self.read, self.opened = list[int](), list[int]()
        self.counts: dict[int, int | dict[int, int]] = {0: 100}
        self.entries = [Entry(**{**ENTRY, "rows": 100})]
        self.others = list[tuple[Any, ...]]()
        monkeypatch.setattr(history, "history_of", self.newest)

    @property
    def version(self) -> int:
        return int(self.commits[-1]["version"])

    def newest(self, _: object, limit: int) -> list[Any]:
        self.read += [int(row["version"]) for row in self.commits[-limit:]]
        return self.commits[: -limit - 1 : -1]

    def at(self, version: int) -> Any:
        self.opened.append(version)
        return self._files(version)

    def files(self) -> Any:
        return self._files(self.version).files()

    def _files(self, version: int) -> Any:
        rows = self.counts[max(since for since in self.counts if since <= version)]
        by_generation = rows if isinstance(rows, dict) else {self.entries[-1].version: rows}
        found = SimpleNamespace(generations=lambda layout: by_generation if layout == "a" else {})
        return SimpleNamespace(files=lambda: found)

    def ended(self, entry: Entry, moment: int) -> None:
        self.entries = [replace(one, ended_at=moment) if one.key == entry.key else one for one in self.entries]

    def looked(self, entry: Entry, until: int) -> None:
        self.entries = [replace(one, looked_until=until) if one.key == entry.key else one for one in self.entries]

    def replaced(self, *asked: Any) -> None:
        self.others.append(asked)

    def night(self, *commits: Any, stream: int = 0) -> list[int | None]:
        """What is noted of each relayout once these came, and before them so many small ones of a stream."""
        for one in [*(commit(0, "STREAMING UPDATE", numAddedFiles="1") for _ in range(stream)), *commits]:
            moved = {"version": self.version + 1, "timestamp": datetime.fromtimestamp(self.version + 1)}
            self.commits.append({**one, **moved})
        self.read, self.opened = [], []
        note_ends(self, self, self.entries)  # type: ignore[arg-type]
        return [one.ended_at and one.ended_at // 1_000_000 for one in self.entries]


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch) -> Past:
    return Past(monkeypatch)


def test_each_commit_of_a_streamed_table_is_looked_at_once(past: Past) -> None:
    """A month of it has 40,000, and each night read all since the first relayout that is still credited."""
    assert past.night(stream=3_000) == [None]
    assert len(past.read) == 3_001
    read = 0
    for _ in range(10):
        assert past.night(stream=1_400) == [None]
        read += len(past.read)
    assert read <= 2 * 14_000, "a few are read again, which is quicker than to note each night that they were"
    assert past.entries[0].looked_until == past.version
    past.counts[past.version + 701] = 40
    here = past.version
    assert past.night(*[commit(0, "STREAMING UPDATE")] * 700, ZORDER, *[commit(0, "STREAMING UPDATE")] * 700) == [
        here + 701
    ]
    assert len(past.read) == 1_401
    assert len(past.opened) == 1


def test_a_relayout_that_came_since_is_looked_at_from_its_own_version_on(past: Past) -> None:
    past.night(stream=3_000)
    past.commits.append(commit(past.version + 1, "OPTIMIZE", "zorder layout a again"))
    new = Entry(**{**ENTRY, "version": past.version, "replaced_version": past.version - 1, "rows": 30})
    past.entries.append(new)
    past.counts[past.version + 1] = 20
    assert past.night(commit(0, "WRITE", mode="Overwrite")) == [past.version, None]
    past.counts[past.version + 1] = 0
    first = past.version
    assert past.night(commit(0, "WRITE", mode="Overwrite")) == [first, first + 1]


def test_a_restore_to_a_moment_long_ago_is_seen_on_a_night_that_reads_the_newest_commits(past: Past) -> None:
    past.night(stream=3_000)
    past.counts[past.version + 1] = 0
    back = commit(0, "RESTORE", timestamp=str(datetime.fromtimestamp(0.5)))
    assert past.night(back, stream=5) == [past.version]


def test_a_month_of_rewrites_by_others_opens_each_version_once(past: Past) -> None:
    """They take files out each day, we lay those out each night: half of the rows lie by the layout at any time."""
    for _ in range(3):
        past.night(commit(0, "MERGE", numTargetBytesRemoved="900000000"), {**OURS})
        assert past.opened == [past.version - 1]


def relaid_at(version: int, rows: int, merged: dict[int, int] | None) -> Entry:
    told = {"version": version, "replaced_version": version - 1, "rows": rows, "merged": merged}
    return Entry(**{**ENTRY, **told})


OVERWRITE = commit(0, "WRITE", mode="Overwrite", numRemovedBytes="900000000")


def test_what_others_write_anew_ends_its_own_relayout_whatever_lies_by_the_layout_beside_it(past: Past) -> None:
    """Of a table of daily partitions the loader overwrites the newest: each night's relayout of it stood for ever."""
    past.counts = {1: {1: 3_000}}
    for night in range(3):
        laid_out = past.version + 1
        past.counts[laid_out] = {1: 3_000, laid_out: 100}
        past.counts[laid_out + 1] = {1: 3_000}
        past.commits.append({**OURS, "version": laid_out})
        past.entries.append(relaid_at(laid_out, 100, {}))
        ends = past.night(OVERWRITE)
        assert ends == [None, *(3 + 2 * i for i in range(night + 1))]
    past.counts[past.version + 1] = {1: 40}
    assert past.night(OVERWRITE)[0] == past.version


def test_what_another_layout_of_ours_replaced_is_not_undone_by_what_comes_nights_later(past: Past) -> None:
    """That it was replaced was known only on the night that read the commit, and any DELETE after it an end."""
    past.counts = {0: {1: 100}, 2: {}}
    told = {"version": 2, "replaced_version": 1, "layout_id": "b", "rows": 100, "ended_at": 7_000_000}
    delete = commit(0, "DELETE", numDeletionVectorsAdded="1")
    past.commits.append(commit(2, "OPTIMIZE", "zorder layout b run", numRemovedBytes="900000000"))
    past.entries.append(Entry(**{**ENTRY, **told}))
    assert past.night(commit(0, "WRITE")) == [None, 7]
    for _ in range(2):
        assert past.night(delete) == [None, 7]
    assert past.night(commit(0, "RESTORE", version="0")) == [past.version, 7], "by which both are gone"


@pytest.mark.parametrize(
    ("merged", "left", "ends"),
    [
        ({1: 100}, {2: 300}, [None, None]),  # all lies in what a later night made of it and of 200 new rows
        ({1: 100}, {2: 160}, [None, None]),
        ({1: 100}, {2: 140}, [3, 3]),  # of which half is gone, whosever rows these were
        ({1: 30}, {1: 70, 2: 20}, [None, 3]),
        ({1: 30}, {1: 20, 2: 250}, [3, None]),  # 20 are its own, and 30 of 300 among those of the later one
        ({}, {1: 40, 2: 300}, [3, None]),
        (None, {1: 40, 2: 300}, [None, None]),  # of a row that an older version wrote nobody knows
        ({}, {1: 40, 2: 300, 3: 20}, [None, None]),  # nor of a relayout that is in no ledger
        ({}, {0: 900, 1: 40, 2: 140}, [3, 3]),  # what lay there before them is another's
    ],
)
def test_what_we_merged_ourselves_stands_with_what_it_was_merged_into(
    past: Past, merged: dict[int, int] | None, left: dict[int, int], ends: list[int | None]
) -> None:
    past.commits.append({**OURS, "version": 2})
    past.entries.append(relaid_at(2, 300, merged))
    past.counts = {1: {1: 100}, 2: {1: 100 - sum((merged or {}).values()), 2: 300}, 3: left}
    assert past.night(commit(0, "MERGE", numTargetBytesRemoved="1")) == ends


def test_merged_rows_are_followed_from_night_to_night(past: Past) -> None:
    past.entries += [relaid_at(2, 200, {1: 100}), relaid_at(3, 400, {2: 200}), relaid_at(4, 100, {})]
    past.commits += [{**OURS, "version": version} for version in (2, 3, 4)]
    for rows, gone in ((210, False), (190, True)):  # of 400, of which 100 were the first one's and 100 the second's
        of_each = [standing(entry, past.entries)({3: rows, 4: 100}) for entry in past.entries]
        assert of_each == [rows / 4, rows / 2, rows, 100]
        past.counts = {2: {2: 200}, 3: {3: 400}, past.version + 1: {3: rows, 4: 100}}
        ends = past.night(commit(0, "MERGE", numTargetBytesRemoved="1"))
        assert ends == ([past.version] * 3 if gone else [None] * 3) + [None]


def test_only_of_a_table_with_few_relayouts_it_is_asked_what_was_there_before(past: Past) -> None:
    past.night()
    past.entries *= 2
    past.night()
    assert past.others == [("t", "id", 7)]


def test_an_undone_relayout_is_credited_until_then() -> None:
    days = 86_400_000_000
    accounts = [Account("t", 0, 10.0, 2.0, 5.0, 30.0, True, until) for until in (None, 3 * days)]
    saved = [sum(row.saved for row in monthly_savings([one], datetime(1970, 1, 11, tzinfo=UTC))) for one in accounts]
    assert saved == [100.0, 30.0]


def test_a_broken_promise_is_forgotten_by_halves() -> None:
    broken = [Kept(0.0, days) for days in (0.0, 30.0, 300.0)]
    assert [widening([one]) for one in broken] == [10.0, 5.5, pytest.approx(1.0, abs=0.01)]
    assert widening(broken) == 10.0, "the worst of them as it counts now"
    assert widening([Kept(0.0, 10.0)], horizon_days=10.0) == 5.5


class Books:
    """A ledger in memory: a relayout a night.

    Attributes:
        most: relayouts that were read at a time of those that are credited.
        clock: microseconds since 1970.
    """

    def __init__(self, *_: object) -> None:
        self.rows: list[Entry] = []
        self.most, self.clock = 0, 0

    def entries(self, _: str, __: str | None = None, *, credited: float | None = None) -> list[Entry]:
        if credited is None:
            return list(self.rows)
        moment = round(self.clock - (datetime.now(UTC).timestamp() * 1e6 - credited), -7)
        found = [row for row in self.rows if row.committed_at + row.horizon_days * DAY >= moment] or self.rows[-1:]
        self.most = max(self.most, len(found))
        return found

    def measured(self, entry: Entry, values: dict[str, Any]) -> None:
        changed = {f"measured_{name}": value for name, value in values.items()}
        self.rows = [replace(row, **changed) if row.key == entry.key else row for row in self.rows]


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> Books:
    """The state that `check_promises` writes to; a table's versions are not looked at."""
    found = Books()
    table = SimpleNamespace(table_id="id", version=0)
    for name, value in {
        "open_table": lambda *_, **__: table, "Ledger": lambda *_: found, "record_late": lambda *_: None,
        "note_ends": lambda *_: None, "cost_model": lambda *_: COSTS,
        "compared": lambda _, __, queries, *___: {"queries": len(queries), "until": queries[-1].timestamp},
    }.items():  # fmt: skip
        monkeypatch.setattr(accounting, name, value)
    return found


def asked_on(day: int) -> list[LoggedQuery]:
    """Three look-ups in the course of a day."""
    equal = Comparison("c", "=", (Literal("number", "1"),))
    return [LoggedQuery("t", equal, ("c",), "c", day * DAY + quarter * DAY // 4) for quarter in range(1, 4)]


def test_rates_count_from_the_relayout_where_the_queries_reach_back_to_it(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log of one day, read by hand, was taken for all that was asked in months."""
    passed: list[tuple[int, int] | None] = []

    def noting(_: Any, __: Any, queries: Any, ___: bool, spanned: tuple[int, int] | None) -> Any:
        passed.append(spanned)
        return {"queries": len(queries), "until": queries[-1].timestamp}

    monkeypatch.setattr(accounting, "compared", noting)
    books.clock = 70 * DAY
    books.rows = [Entry(**{**ENTRY, "version": 1, "committed_at": 9 * DAY, "log_watermark": 9 * DAY - 5})]
    for queries in ([*asked_on(8), *asked_on(69)], asked_on(66), [*asked_on(8), *asked_on(68)]):
        accounting.check_promises(None, "state", "t", queries)  # type: ignore[arg-type]
    accounting.check_promises(None, "state", "t", [*asked_on(8), *asked_on(67)], version=1)  # type: ignore[arg-type]
    first, *later = [asked_on(day) for day in (66, 67, 68, 69)]
    ends = [some[-1].timestamp for some in (later[2], first, later[1])]
    whole = 9 * DAY - 5
    assert passed == [(whole, ends[0]), (first[0].timestamp, ends[1]), (whole, ends[2]), None]
    passed.clear()
    accounting.check_promises(None, "state", "t", [*asked_on(8), *asked_on(65)], until=80 * DAY)  # type: ignore[arg-type]
    accounting.check_promises(None, "state", "t", [*asked_on(8), *asked_on(64)], until=64 * DAY)  # type: ignore[arg-type]
    assert passed == [(whole, 80 * DAY), (whole, 65 * DAY - DAY // 4)], "where others were asked it was quiet"


def test_a_table_that_nobody_asks_any_more_is_asked_as_seldom_as_the_log_says() -> None:
    """The rate was that of its own busy hours, afterwards as before; of the promise's own queries there is none."""
    queries, equal = asked_on(2), np.ones(3)
    volumes = FileVolumes(rows=np.zeros(3), bytes=np.zeros(3), files=np.ones(3), groups=np.zeros(3), weighed=True)
    rates = [
        comparing._difference(volumes, volumes, queries, equal, spanned).get("per_day")
        for spanned in ((DAY, 4 * DAY), (2 * DAY, 3 * DAY), None)
    ]
    assert rates == [1.0, 3.0, None]


def test_the_rate_of_a_table_that_nobody_asks_any_more_falls_from_night_to_night(books: Books) -> None:
    """It stayed that of the busy hours after the relayout, as nothing was measured while no query came."""
    books.clock = 70 * DAY
    books.rows = [Entry(**{**ENTRY, "version": 1, "committed_at": 9 * DAY, "log_watermark": 9 * DAY - 5})]
    asked, rates = [*asked_on(8), *asked_on(10)], []
    for night in (11, 12, 20, 21, 39, 60):
        accounting.check_promises(None, "state", "t", asked, until=night * DAY)  # type: ignore[arg-type]
        books.rows[0] = replace(books.rows[0], measured_per_day=books.rows[0].measured_per_day or 1.5)
        rates.append(round(books.rows[0].measured_per_day or 0, 2))
    assert rates == [1.5, 1.0, 0.27, 0.27, 0.1, 0.1], "until its saving is credited no more"


def test_a_saving_that_nobody_asked_for_is_not_credited_as_promised(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log went on for a month without a query of the table, and yet a month of the promised rate was booked."""
    monkeypatch.setattr(accounting, "compared", lambda *_: None)  # fewer than five different queries
    own = {"measured_queries": 9, "measured_until": 9 * DAY - 5}  # with the promise's own queries, right after it
    for measured in (own, {"measured_queries": 0, "measured_until": None}):
        books.clock, rates = 70 * DAY, []
        told = {"version": 1, "committed_at": 9 * DAY, "log_watermark": 9 * DAY - 5, **measured}
        books.rows = [Entry(**{**ENTRY, **told})]
        before = asked_on(8)
        few = asked_on(29)[:1]
        for asked, night in ((before, 9.5), (before, 11), (before, 28), ([*before, *few], 30), ([*before, *few], 39)):
            accounting.check_promises(None, "state", "t", asked, until=round(night * DAY))  # type: ignore[arg-type]
            rate = books.rows[0].measured_per_day
            rates.append(rate if rate is None else round(rate, 3))
        assert rates == [None, 0.0, 0.0, 0.048, 0.033]
        booked = books.rows[0].measured_per_day
        untimed = [replace(query, timestamp=None) for query in asked_on(40)]
        accounting.check_promises(None, "state", "t", [*before, *untimed], until=60 * DAY)  # type: ignore[arg-type]
        assert books.rows[0].measured_per_day == booked, "of queries without a time nobody knows"
        accounting.check_promises(None, "state", "t", before, until=8 * DAY, every=True)  # type: ignore[arg-type]
        assert books.rows[0].measured_per_day == booked, "a log that ends before the relayout"


def test_what_later_queries_told_is_not_taken_back_by_a_log_without_them(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "compared", lambda *_: None)
    told = {"version": 1, "committed_at": 9 * DAY, "measured_until": 12 * DAY, "measured_per_day": 7.0}
    books.clock, books.rows = 70 * DAY, [Entry(**{**ENTRY, **told})]
    for asked in (asked_on(8), asked_on(20)):
        accounting.check_promises(None, "state", "t", asked, until=39 * DAY)  # type: ignore[arg-type]
        assert books.rows[0].measured_per_day == 7.0


def with_rate(_: Any, __: Any, queries: Any, ___: bool, spanned: tuple[int, int] | None) -> Any:
    """What the files of two versions would tell, with the rate that `compared` tells beside it."""
    times = [query.timestamp for query in queries]
    if not times:
        return None
    told = {"queries": len(queries), "since": min(times), "until": max(times)}
    return told | ({} if spanned is None else {"per_day": observed_rate(times, len(times), *spanned)[0]})


@pytest.mark.parametrize(("kept_days", "last", "off"), [(90, 59, 0.12), (14, 33, 0.35)])
def test_the_rate_of_each_relayout_falls_once_nobody_asks_any_more(
    books: Books, monkeypatch: pytest.MonkeyPatch, kept_days: int, last: int, off: float
) -> None:
    """Only the newest one's did: of a month of nightly relayouts all others went on at the rate of busier days."""
    monkeypatch.setattr(accounting, "compared", with_rate)
    queries, stop = list[LoggedQuery](), 20
    for night in range(1, 60):
        queries = [query for query in queries if (query.timestamp or 0) >= (night - kept_days) * DAY]
        queries, books.clock = [*queries, *(asked_on(night - 1) if night <= stop else ())], night * DAY
        accounting.check_promises(None, "state", "t", queries, until=night * DAY)  # type: ignore[arg-type]
        if night <= stop:
            new = {**ENTRY, "version": night, "committed_at": night * DAY, "measured_queries": 0}
            books.rows.append(Entry(**new))
    for row in books.rows[:-1]:
        days = min(30, last - row.version)  # of a log of a fortnight nothing is left then
        assert row.measured_per_day == pytest.approx(3 * (stop - row.version) / days, rel=off), row.version
    assert books.rows[-1].measured_per_day == 0.0


def test_a_rate_falls_also_where_delta_s_log_no_longer_tells_what_later_queries_read(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "compared", lambda *_: None)
    books.clock, watermark = 29 * DAY, 9 * DAY - 5
    told = {"committed_at": 9 * DAY, "log_watermark": watermark, "measured_queries": 6, "measured_per_day": 3.0}
    told |= {"measured_since": 9 * DAY, "measured_until": asked_on(10)[-1].timestamp}
    books.rows = [Entry(**{**ENTRY, "version": version, **told}) for version in (1, 2)]
    asked = [query for day in (8, 9, 10, 28) for query in asked_on(day)]
    accounting.check_promises(None, "state", "t", asked, until=29 * DAY)  # type: ignore[arg-type]
    assert [row.measured_per_day for row in books.rows] == [pytest.approx(9 / 20), pytest.approx(9 / 20)]


def test_what_is_asked_after_a_saving_is_over_changes_no_books(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what was undone or stands for longer than its horizon; `evaluate` by hand measures these, too."""
    monkeypatch.setattr(accounting, "compared", with_rate)
    books.clock = 100 * DAY
    told = {"committed_at": 9 * DAY, "measured_queries": 6, "measured_per_day": 3.0, "measured_since": 9 * DAY}
    told |= {"measured_until": asked_on(10)[-1].timestamp}
    books.rows = [
        Entry(**{**ENTRY, **told, "version": version, **others})
        for version, others in enumerate(({"ended_at": 12 * DAY}, {}, {"measured_per_day": None}, {}))
    ]
    asked = [query for day in (8, 9, 10) for query in asked_on(day)]
    for queries in (asked, [*asked, *asked_on(60)]):
        accounting.check_promises(None, "state", "t", queries, until=90 * DAY, every=True)  # type: ignore[arg-type]
        rates = [row.measured_per_day for row in books.rows]
        assert (rates[0], rates[1], rates[3]) == (3.0, 3.0, 3.0)
        assert rates[2] == pytest.approx(6 / 81), "where none was noted what the log tells is better than nothing"
    assert books.rows[3].measured_queries == 9, "it is measured all the same"


def test_a_rate_that_goes_on_as_it_was_is_not_noted_every_night(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    whole = books.measured

    def counting(entry: Entry, values: dict[str, Any]) -> None:
        noted[-1] += "queries" not in values
        whole(entry, values)

    monkeypatch.setattr(accounting, "compared", with_rate)
    monkeypatch.setattr(books, "measured", counting)
    queries: list[LoggedQuery] = []
    for night in range(1, 61):
        queries, books.clock = [*queries, *asked_on(night - 1)], night * DAY
        noted.append(0)
        accounting.check_promises(None, "state", "t", queries, until=night * DAY)  # type: ignore[arg-type]
        books.rows.append(Entry(**{**ENTRY, "version": night, "committed_at": night * DAY, "measured_queries": 0}))
    assert max(noted) == 0


def test_a_month_of_relayouts_is_not_measured_anew_every_night(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was, with all queries since: thirty pairs of versions on the thirtieth night, and thirty UPDATEs."""
    compared: list[list[int]] = []
    stub = accounting.compared

    def counting(now: Any, versions: list[tuple[int, int]], *others: Any) -> Any:
        compared[-1].append(versions[-1][1])
        return stub(now, versions, *others)

    monkeypatch.setattr(accounting, "compared", counting)
    queries: list[LoggedQuery] = []
    for night in range(1, 91):
        queries, books.clock = [*queries, *asked_on(night - 1)], night * DAY
        compared.append([])
        accounting.check_promises(None, "state", "t", queries)  # type: ignore[arg-type]
        new = {**ENTRY, "version": night, "committed_at": night * DAY, "measured_queries": 0}
        books.rows.append(Entry(**new))
    assert all(night - 1 in found for night, found in enumerate(compared[1:], start=2)), "the newest, every night"
    assert max(map(len, compared)) <= 12
    assert sorted(len(found) for found in compared[30:])[-1] <= 10, "as many in the third month as in the first"
    assert min(row.measured_until or 0 for row in books.rows[:50]) >= 20 * DAY, "each for most of its horizon"
    assert books.most <= 31, "each has its plan, of a quarter of a megabyte"
    for horizon in (30.0, 1e9):
        assert accounting.experienced(None, "state", ("id", "t"), GateSettings(horizon_days=horizon)).widening == 1.0  # type: ignore[arg-type]
    first = accounting.check_promises(None, "state", "t", asked_on(90), version=1)  # type: ignore[arg-type]
    assert len(first) == 90, "one that is older is found all the same"
    accounting.check_promises(None, "state", "t", [*queries, *asked_on(90)], every=True)  # type: ignore[arg-type]
    assert {row.measured_until for row in books.rows} == {asked_on(90)[-1].timestamp}, "by hand all of them"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ((), [(0, 2)]),
        ((3, 4), [(0, 2)]),  # later ones are not even looked at
        ((0,), [(1, 3)]),
        ((0, 0, 1, 2), [(2, 3), (4, 5)]),
    ],
)
def test_a_relayout_is_measured_by_its_own_commits(
    past: Past, others: tuple[int, ...], told: list[tuple[int, int]]
) -> None:
    """Sixty appends came while one was at work, and counted for what it had made of the table."""
    bins, past.commits = iter(range(2)), [commit(0, "WRITE")]
    for place in range(5):
        past.commits += [commit(len(past.commits) + i, "WRITE", mode="Append") for i in range(others.count(place))]
        if next(bins, None) is not None:
            past.commits.append(commit(len(past.commits), "OPTIMIZE", f"{RUN} of the session"))
    last = max(one["version"] for one in past.commits if one["userMetadata"])
    entry = Entry(**{**ENTRY, "version": last, "replaced_version": 0, "run": RUN})
    assert comparing.spans_of(past, entry) == told  # type: ignore[arg-type]


def test_a_relayout_is_measured_from_where_it_began_where_its_commits_are_not_known(past: Past) -> None:
    past.commits = [commit(version, "WRITE" if version % 2 else "OPTIMIZE", RUN) for version in range(5)]
    for run in (None, "zorder layout a another"):
        entry = Entry(**{**ENTRY, "version": 4, "replaced_version": 1, "run": run})
        assert comparing.spans_of(past, entry) == [(1, 4)]  # type: ignore[arg-type]
    past.commits = past.commits[3:]
    entry = Entry(**{**ENTRY, "version": 4, "replaced_version": 1, "run": RUN})
    assert comparing.spans_of(past, entry) == [(1, 4)], "of which Delta's log holds no version any more"  # type: ignore[arg-type]


def test_a_relayout_in_very_many_pieces_is_measured_as_one(past: Past) -> None:
    each = 2 * comparing.MOST_SPANS + 3
    past.commits = [commit(v, "OPTIMIZE" if v % 2 else "WRITE", RUN if v > 1 and v % 2 else None) for v in range(each)]
    entry = Entry(**{**ENTRY, "version": each - 2, "replaced_version": 0, "run": RUN})
    assert len(comparing.spans_of(past, entry)) == comparing.MOST_SPANS  # type: ignore[arg-type]
    past.commits += [commit(each, "OPTIMIZE", RUN)]
    longer = replace(entry, version=each)
    assert comparing.spans_of(past, longer) == [(2, each)]  # type: ignore[arg-type]


@pytest.mark.parametrize("pages", [True, False])
def test_what_others_append_between_two_bins_is_no_part_of_what_was_saved(
    pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 files two bins make 40 and 10; those that others append are read before and after the second one alike."""
    files = {1: 100.0, 2: 40.0, 4: 90.0, 5: 60.0}
    one = np.ones(5)

    def at(_: object, version: int, __: object, paged: bool) -> FileVolumes:
        of = files[version] * one
        return FileVolumes(of * 10, of, of / 200, of / 200, of * 5 if paged else None)

    monkeypatch.setattr(comparing, "_at", at)
    monkeypatch.setattr(comparing, "as_called_now", lambda queries, _: queries)
    equal = (Comparison("c", "=", (Literal("number", str(value)),)) for value in range(5))
    queries = [LoggedQuery("t", each, ("c",), str(each)) for each in equal]
    told = comparing.compared(SimpleNamespace(asked_schema=None), [(1, 2), (4, 5)], queries, pages)  # type: ignore[arg-type]
    assert told is not None
    assert (told["files_saved"], told["bytes_saved"]) == (90.0, 900.0)
    assert (told["before"], told["after"]) == pytest.approx((0.5, 0.05))
    assert told["page_bytes_saved"] == (450.0 if pages else None)
    alone = comparing.compared(SimpleNamespace(asked_schema=None), [(1, 2)], queries, pages)  # type: ignore[arg-type]
    assert alone is not None
    assert (alone["files_saved"], alone["before"], alone["after"]) == (60.0, 0.5, 0.2)


def test_how_long_relayouts_stood_is_learned_from_the_ledger(books: Books) -> None:
    books.clock, half = 10 * DAY, DAY // 2
    for ended, life in (((3, 4), 1.75), ((), None), ((4,), None)):
        books.rows = [
            Entry(**{**ENTRY, "version": day, "committed_at": day * DAY, "measured_queries": 0,
                     "ended_at": day * DAY + half if day in ended else None})
            for day in (3, 4, 9)
        ]  # fmt: skip
        now = datetime.fromtimestamp(11.5 * 86_400, UTC)
        told = accounting.experienced(None, "state", ("id", "t"), GateSettings(), now)  # type: ignore[arg-type]
        assert told.life_days == (None if life is None else pytest.approx(life)), ended
    nothing = accounting.experienced(None, None, ("id", "t"), GateSettings())  # type: ignore[arg-type]
    assert nothing == GateSettings()


def test_a_backfill_of_many_partitions_is_measured_and_ended_in_whole(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relayout each, in one evening: of a hundred only the forty newest ever were."""
    standing: list[int] = []
    monkeypatch.setattr(accounting, "note_ends", lambda _, __, entries: standing.append(len(entries)))
    books.rows = [Entry(**{**ENTRY, "version": i, "committed_at": DAY + i, "measured_queries": 0}) for i in range(100)]
    for night in range(2, 40):
        books.clock = night * DAY
        queries = [query for day in range(1, night) for query in asked_on(day)]
        accounting.check_promises(None, "state", "t", queries)  # type: ignore[arg-type]
    assert set(standing[:30]) == {100}
    assert standing[-1] == 1, "the saving of the others is credited no more"
    assert min(row.measured_until or 0 for row in books.rows) >= 20 * DAY


def test_what_was_undone_is_measured_until_then(books: Books) -> None:
    books.rows = [
        Entry(**{**ENTRY, "measured_queries": 3, "measured_until": 2 * DAY, "ended_at": DAY}),
        Entry(**{**ENTRY, "version": 2, "measured_queries": 0, "ended_at": DAY}),
        Entry(**{**ENTRY, "version": 3, "measured_queries": 0}),
    ]
    accounting.check_promises(None, "state", "t", asked_on(9))  # type: ignore[arg-type]
    newest = asked_on(9)[-1].timestamp
    assert [row.measured_until for row in books.rows] == [2 * DAY, newest, newest]
