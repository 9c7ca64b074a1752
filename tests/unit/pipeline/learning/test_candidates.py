"""Which partition brings how much of a saving: against rows counted file by file, and page by page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.pipeline.learning.stored_tables import stored_table
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.candidate import ANOTHER, Candidate
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan, Promise
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import PAGE_ROWS, ZoneMap
from zorder_pipeline.pipeline.learning import sizes, volumes
from zorder_pipeline.pipeline.learning.candidates import Unseen, candidates_at_first
from zorder_pipeline.pipeline.learning.volumes import FileVolumes, present_volumes
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.reading.footers import Footers

ROWS = 6 * PAGE_ROWS
VALUES = np.random.default_rng(0).permutation(ROWS).astype(np.int64)
PARTITION = np.arange(ROWS) * 3 // ROWS
"""A partition of a file of two pages, one of two files of a page each, and one of a file that nobody asks for."""
STORED = np.where(PARTITION == 1, 1 + (np.arange(ROWS) % 2), np.where(PARTITION == 0, 0, 3))
SPEC = KeySpec((FeatureCodes("v", "bigint", tuple(range(64, ROWS, 64)), tuple(range(ROWS // 64)), 11),), (0,) * 11)


def unseen() -> Unseen:
    sample = SimpleNamespace(
        rows=ROWS,
        total_rows=ROWS,
        stands_for=1.0,
        file=STORED,
        names=[f"file:/t/{i}" for i in range(4)],
        arrays={"v": (VALUES, np.ones(ROWS, dtype=np.bool_)), "p": (PARTITION, np.ones(ROWS, dtype=np.bool_))},
        columns={"v": None, "p": None},
    )
    columns = (Column("v", "bigint"), Column("p", "bigint", partition=True))
    zones = ZoneMap(np.ones(4, np.int64), np.ones(4, np.int64), {})
    files = SimpleNamespace(
        path=[str(i) for i in range(4)], partitions=[("0",), ("1",), ("1",), ("2",)], zone_map=lambda: zones
    )
    snapshot = SimpleNamespace(
        location="file:/t", partition_columns=("p",), schema=TableSchema(columns), files=lambda: files
    )
    asked = [
        ((Range("p", "bigint", (Interval(p, p),)), Range("v", "bigint", (Interval(low, low + 99),))),)
        for p in (0, 1)
        for low in range(ROWS // 20, ROWS, ROWS // 10)
    ]
    queries = [LoggedQuery("t", And(()))] * len(asked)
    analysis: Any = SimpleNamespace(sample=sample, snapshot=snapshot, boxes=asked, queries=queries)
    every = np.arange(len(asked))
    return Unseen(analysis, LearnSettings(), Asked.of(every, every), analysis.boxes, np.zeros(0), (1.0, "observed"))


def laid_out() -> np.ndarray:
    """File of each row in files of as many rows as now, in the order of the values."""
    block = np.empty(ROWS, dtype=np.int32)
    first = 0
    for p, files in enumerate((1, 2, 1)):
        rows = np.flatnonzero(p == PARTITION)
        block[rows[np.argsort(VALUES[rows])]] = first + np.arange(len(rows)) * files // len(rows)
        first += files
    return block


def shared_out(block: np.ndarray, spec: KeySpec | None) -> tuple[Any, Any]:
    told = unseen().shared_out(Candidate(ANOTHER, spec, 1, Promise()), block)
    assert (told.lasting, told.page_lasting) == ({}, {})
    return told.partitions, told.page_partitions


def test_a_partition_of_a_single_file_brings_what_its_pages_save() -> None:
    whole, paged = shared_out(laid_out(), SPEC)
    assert whole == pytest.approx({"p=0": 0.0, "p=1": 1.0, "p=2": 0.0}), "a single file is read whole, however it lies"
    assert paged == pytest.approx({"p=0": 0.5, "p=1": 0.5, "p=2": 0.0})


def test_an_order_inside_files_skips_nothing_now_where_they_have_no_page_index() -> None:
    """As of a column of INT96: a layout brings the index, and with it what is skipped."""
    proof, block, values = unseen(), laid_out(), VALUES.copy()
    values[PARTITION == 0] = np.sort(values[PARTITION == 0])
    proof.analysis.sample.arrays["v"] = (values, np.ones(ROWS, dtype=np.bool_))  # type: ignore[index]
    brought = []
    for indexed in (frozenset({"v"}), frozenset[str]()):
        nothing = np.zeros(len(proof.boxes))
        now = FileVolumes(nothing, nothing, nothing, nothing, indexed=indexed)
        told = replace(proof, now=now).shared_out(Candidate(ANOTHER, SPEC, 1, Promise()), block)
        brought.append((told.page_partitions or told.partitions)["p=0"])
    assert brought == pytest.approx([0.0, 0.5])


def test_files_that_are_only_merged_save_where_rows_are_read_now() -> None:
    merged = np.where(PARTITION == 1, 1, STORED).astype(np.int32)
    assert shared_out(merged, None) == (pytest.approx({"p=0": 0.5, "p=1": 0.5, "p=2": 0.0}), {})


def test_of_a_layout_by_what_was_not_sampled_only_files_are_told() -> None:
    other = KeySpec((FeatureCodes("x", "bigint", (1,), (0, 1), 1),), (0,))
    assert shared_out(laid_out(), other)[1] == {}


def test_what_asks_beyond_the_sample_reads_what_it_reads_now() -> None:
    proof = unseen()
    beyond: Boxes = ((Range("p", "bigint", (Interval(9, 9),)), Range("v", "bigint", (Interval(0, 99),))),)
    boxes = [*proof.boxes, beyond]
    every, before = np.arange(len(boxes)), np.full(len(boxes), 0.3)
    asking = replace(proof, unseen=Asked.of(every, every), boxes=boxes, before=before)
    sampled = replace(proof, before=before[:-1])
    block = laid_out().astype(np.int32)
    assert asking.shares(block, 0.5)[:-1] == pytest.approx(sampled.shares(block) * 0.5)
    assert asking.shares(block, 0.5)[-1] == 0.3


def many_small_files(folder: Path) -> tuple[Unseen, np.ndarray]:
    """Files of ten days each, of which one row in 5,000 is of the year 9999, hardly any of them sampled; and what of
    the table queries read once 16 files at a time are one."""
    rng, files, rows = np.random.default_rng(1), 160, 5_000
    days = [i * 10 + rng.integers(0, 10, rows) for i in range(files)]
    for each in days:
        each[rng.random(rows) < 1 / 5_000] = 2_932_896
    snapshot = stored_table(folder, [pa.table({"d": each}) for each in days], rows)
    snapshot.properties, snapshot.table_id, snapshot.target_file_bytes = {}, "id", None
    snapshot.spark = SimpleNamespace(conf=SimpleNamespace(get=lambda _, default: default))
    taken = np.sort(rng.choice(files * rows, 12_000, replace=False))
    sample = SimpleNamespace(
        rows=len(taken), total_rows=files * rows, stands_for=files * rows / len(taken), columns={"d": None},
        file=(taken // rows).astype(np.int32), names=[f"file:{folder}/{i}.parquet" for i in range(files)],
        arrays={"d": (np.concatenate(days)[taken], np.ones(len(taken), dtype=np.bool_))},
    )  # fmt: skip
    starts = rng.integers(0, files * 10, 60)
    boxes: list[Boxes] = [((Range("d", "bigint", (Interval(int(start), None),)),),) for start in starts]
    queries, every = [LoggedQuery("t", And(()))] * len(boxes), np.arange(len(boxes))
    analysis: Any = SimpleNamespace(sample=sample, snapshot=snapshot, queries=queries, boxes=boxes)
    now, settings = present_volumes(snapshot, queries, boxes), LearnSettings(target_file_rows=16 * rows)
    before = snapshot.files().zone_map().shares_read(boxes)
    proof = Unseen(analysis, settings, Asked.of(every, every), boxes, before, (1.0, "observed"), now)
    highest = np.array([each.max() for each in days]).reshape(-1, 16).max(axis=1)
    return proof, np.array([(highest >= start).mean() for start in starts])


def test_merging_many_small_files_saves_files_to_open_and_nothing_else(tmp_path: Path) -> None:
    """What they read is told by their statistics; the sample, which lacks the outliers, told less of merged ones."""
    proof, really = many_small_files(tmp_path)
    (merged,) = candidates_at_first(proof, Plan("t", "id", "", 0, None, "learned", 1))
    promised = merged.promise
    assert promised.after == pytest.approx(really.mean())
    assert promised.after > promised.before
    assert promised.bytes_saved_per_query <= 0
    assert promised.page_bytes_saved_per_query is not None
    assert promised.page_bytes_saved_per_query <= 0
    assert promised.groups_after >= promised.groups_before
    assert promised.files_saved_per_query > 0.8 * promised.files_before


def _without_footers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (volumes, sizes):
        monkeypatch.setattr(module, "read_footers", lambda _, paths: Footers((None,) * len(paths)))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("footers", [True, False])
def test_what_changes_nothing_saves_nothing_by_what_the_sample_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool, footers: bool
) -> None:
    """Of files that stay for the most part, and of those that are laid out anew."""
    if not footers:
        _without_footers(monkeypatch)
    proof, _ = many_small_files(tmp_path)
    file = proof.analysis.sample.file
    if not exact:
        proof = replace(proof, before=proof.shares(file))
    after = proof.shares_in_proportion(file)
    assert after == pytest.approx(proof.before)
    stays = proof.promise(Plan("t", "id", "", 0, SPEC, "kept", 1), after, file)
    assert stays.bytes_saved_per_query == pytest.approx(0.0, abs=1e-6 * stays.bytes_before)
    assert stays.files_saved_per_query == pytest.approx(0.0, abs=1e-6)


def test_where_no_footer_can_be_read_bytes_are_told_by_shares_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All counted as 0 bytes now, and those of new files as their own: each layout seemed to cost bytes."""
    _without_footers(monkeypatch)
    proof, _ = many_small_files(tmp_path)
    spec = KeySpec((FeatureCodes("d", "bigint", tuple(range(20, 1600, 20)), tuple(range(80)), 7),), (0,) * 7)
    after = np.full(len(proof.boxes), 0.1)
    promised = proof.promise(Plan("t", "id", "", 0, spec, "learned", 10_000), after)
    whole = float(proof.analysis.snapshot.files().bytes.sum())
    assert promised.bytes_before == pytest.approx(promised.before * whole)
    assert promised.bytes_saved_per_query == pytest.approx((promised.before - 0.1) * whole)
    assert promised.page_bytes_saved_per_query is not None
    assert promised.page_bytes_before is not None
    assert 0 < promised.page_bytes_saved_per_query < promised.page_bytes_before
    assert promised.files_before > 1
    assert proof.now is not None
    assert not proof.now.weighed
    assert proof.now.mean.bytes == promised.bytes_before, "by which it is told whether a search may pay"
