"""Which files are rewritten, night after night, in which bins; what is said of a ``--where`` that Spark refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException

from zorder_pipeline.relayout.file_list import FileList
from zorder_pipeline.relayout.select import REFUSED, Selection, _names_one, _problem_of, bins_of, select_files

TARGET = 100


@dataclass(frozen=True)
class File:
    """A file as `select_files` looks at it; ``generation`` -1 is none of ours."""

    rows: int
    generation: int = -1
    partition: str = "p"
    deleted: int = 0
    layout: str = "mine"


def listed(files: list[File]) -> FileList:
    columns = {name: np.array([getattr(file, name) for file in files], np.int64) for name in ("rows", "deleted")}
    generation = np.array([file.generation for file in files], np.int64)
    number = np.arange(len(files))
    return FileList(
        path=np.array([f"part-{i:05d}" for i in number], dtype=object),
        bytes=columns["rows"] * 10,
        **columns,
        layout=tuple(file.layout if file.generation >= 0 else "" for file in files),
        generation=generation,
        key_low=number,
        key_high=number,
        modified=number,
        partitions=tuple((file.partition,) for file in files),
        load_zones=lambda columns: {},
    )


def selected(files: list[File], whole_partitions: bool = False, **how: Any) -> Selection:
    snapshot: Any = SimpleNamespace(files=lambda: listed(files), whole_partitions=whole_partitions)
    return select_files(snapshot, "mine", TARGET, **how)


def rewritten(files: list[File], chosen: list[int], generation: int) -> list[File]:
    """The table once the chosen files were laid out: per partition as many files as the target says, of equal size."""
    kept = [file for i, file in enumerate(files) if i not in set(chosen)]
    for partition in sorted({files[i].partition for i in chosen}):
        rows = sum(files[i].rows for i in chosen if files[i].partition == partition)
        count = max(1, round(rows / TARGET)) if rows else 0
        sizes = [rows // count + (i < rows % count) for i in range(count)]
        kept += [File(size, generation, partition) for size in sizes]
    return kept


FILES = st.lists(
    st.builds(
        File,
        rows=st.integers(0, 3 * TARGET),
        generation=st.sampled_from([-1, -1, 1, 2, 3]),
        partition=st.sampled_from("pqr"),
        deleted=st.sampled_from([0, 0, 0, 1, 90]),
        layout=st.sampled_from(["mine", "mine", "mine", "another"]),
    ),
    min_size=1,
    max_size=30,
)


APART = [File(0), File(277), File(32, 1), File(41, 1), File(205, 1)]
"""What is new makes three files, the small ones one, and all of them together four: as many as are replaced."""


@given(FILES, st.booleans())
@example(APART, False)
def test_what_does_not_lie_by_the_layout_or_lost_rows_is_rewritten_and_a_second_run_finds_nothing(
    files: list[File], whole_partitions: bool
) -> None:
    found = selected(files, whole_partitions)
    chosen, kept = found.rewrite.tolist(), found.keep.tolist()
    assert sorted(chosen + kept) == list(range(len(files)))
    wrong = {i for i, f in enumerate(files) if f.generation < 0 or f.layout != "mine"}
    lost = {i for i, f in enumerate(files) if f.deleted > (f.rows + f.deleted) / 10}
    assert wrong | lost <= set(chosen)
    touched = {files[i].partition for i in wrong | lost}
    for i in chosen:  # any other is merged with something, and for a reason
        file = files[i]
        others = [j for j in chosen if j != i and files[j].partition == file.partition]
        assert i in wrong | lost or others
        if not whole_partitions and file.partition not in touched:
            assert file.rows < TARGET / 2
    if whole_partitions:
        assert not {files[i].partition for i in chosen} & {files[i].partition for i in kept}
    assert selected(rewritten(files, chosen, 9), whole_partitions).rewrite.tolist() == []
    everything = selected(files, whole_partitions, full=True)
    assert (everything.rewrite.tolist(), everything.keep.tolist()) == (list(range(len(files))), [])


@given(FILES, st.booleans())
def test_what_is_done_in_full_goes_on_where_it_was_cut_off(files: list[File], whole_partitions: bool) -> None:
    """Each night began with the same partitions again, and was credited for them again."""
    learned = 4
    assert selected(files, whole_partitions, full=True, done=learned).rewrite.tolist() == list(range(len(files)))
    first = [i for i, file in enumerate(files) if file.partition == files[0].partition]
    begun = rewritten(files, first, 5)
    left = selected(begun, whole_partitions, full=True, done=learned).rewrite.tolist()
    assert left == [i for i, file in enumerate(begun) if file.partition != files[0].partition]
    assert not selected(rewritten(begun, left, 6), whole_partitions, full=True, done=learned).rewrite.tolist()


@pytest.mark.parametrize("appended", [1, 3])
def test_nightly_appends_leave_few_generations_and_rewrite_each_row_few_times(appended: int) -> None:
    """As many as a binary counter has digits."""
    files, written = list[File](), 0
    for night in range(1, 70):
        files += [File(TARGET)] * appended
        chosen = selected(files).rewrite.tolist()
        written += sum(files[i].rows for i in chosen)
        files = rewritten(files, chosen, night)
        assert len({file.generation for file in files}) == night.bit_count()
        assert written <= appended * night * TARGET * night.bit_length()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30))
def test_an_older_generation_has_more_rows_than_all_that_it_was_not_merged_with(appends: list[int]) -> None:
    files = list[File]()
    for night, count in enumerate(appends, 1):
        before, files = files, [*files, *[File(TARGET)] * count]
        chosen = selected(files).rewrite.tolist()
        rows = {each: sum(file.rows for file in before if file.generation == each) for each in range(1, night)}
        newest_kept = max((file.generation for i, file in enumerate(files) if i not in chosen), default=0)
        merged = [files[i].generation for i in chosen if files[i].generation >= 0]
        assert all(generation > newest_kept for generation in merged)
        gathered = sum(files[i].rows for i in chosen)
        assert newest_kept == 0 or rows[newest_kept] > gathered
        for generation in sorted(set(merged)):  # each was no larger than what was gathered before it
            newer = sum(file.rows for file in files if file.generation > generation or file.generation < 0)
            assert rows[generation] <= newer
        files = rewritten(files, chosen, night)


@given(FILES, st.integers(0, 9_000), st.data())
def test_bins_hold_whole_partitions_once_each_and_no_two_that_follow_fit_together(
    files: list[File], most: int, data: st.DataObject
) -> None:
    picked = data.draw(st.lists(st.integers(0, len(files) - 1), unique=True))
    found = listed(files)
    bins = [bin_.tolist() for bin_ in bins_of(found, np.array(sorted(picked), dtype=np.int64), most)]
    assert sorted(i for bin_ in bins for i in bin_) == sorted(picked)
    held = [{files[i].partition for i in bin_} for bin_ in bins]
    assert sum(map(len, held)) == len(set().union(*held))
    sizes = [int(found.bytes[bin_].sum()) for bin_ in bins]
    for members, partitions, size in zip(bins, held, sizes, strict=True):
        assert members == sorted(members)
        assert size <= most or len(partitions) == 1
    for now, following in zip(range(len(bins)), bins[1:], strict=False):
        first = min(files[i].partition for i in following)
        assert sizes[now] + sum(int(found.bytes[i]) for i in following if files[i].partition == first) > most


def test_the_null_partition_is_the_first_of_the_bins() -> None:
    files = listed([File(1, partition=each) for each in "ba"])
    files = replace(files, partitions=(*files.partitions[:1], (None,)))
    assert [bin_.tolist() for bin_ in bins_of(files, np.arange(2), 0)] == [[1], [0]]


def refused(monkeypatch: pytest.MonkeyPatch, condition: str, told: str, **parameters: str) -> AnalysisException:
    """An error as Spark's analysis raises it."""
    for name, value in (("getCondition", condition), ("getMessageParameters", parameters), ("__str__", told)):
        monkeypatch.setattr(AnalysisException, name, lambda _, value=value: value)
    return AnalysisException(told)


def test_a_name_that_is_no_partition_column_is_named_and_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ... [`ds`, `__place_ce12`]. SQLSTATE: 42703; line 1 pos 0;\n'Filter"
    error = refused(monkeypatch, "UNRESOLVED_COLUMN.WITH_SUGGESTION", told, objectName="`origin`")
    assert _problem_of(error) == "`origin` is no partition column"


def test_any_other_problem_is_told_in_the_first_of_sparks_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "\n[PARSE_SYNTAX_ERROR] Syntax error at  or near '='. SQLSTATE: 42601; line 1 pos 4;\n== SQL =="
    error = refused(monkeypatch, "PARSE_SYNTAX_ERROR", told)
    assert _problem_of(error) == "[PARSE_SYNTAX_ERROR] Syntax error at or near '='. SQLSTATE: 42601; line 1 pos 4"


@pytest.mark.parametrize("condition", REFUSED)
def test_what_spark_itself_would_take_is_told_in_our_words(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    error = refused(monkeypatch, f"{condition}.DEEPER" if condition.endswith("CATEGORY") else condition, "[X] long")
    assert _problem_of(error) == REFUSED[condition]


def test_a_column_is_named_in_any_case_but_not_in_a_text() -> None:
    assert _names_one("array_contains(array(1), `Ds`)", ["p", "ds"])
    assert not _names_one("'ds' <> \"ds\" /* ds */ AND ds(1) > 0", ["p", "ds"])
    assert _names_one("what sqlglot) cannot read", ["ds"])


def test_rows_that_lie_by_a_layout_are_counted_by_generation() -> None:
    files = listed([File(5, 3), File(6, 3), File(7), File(8, 4, layout="another"), File(9, 12, partition="q")])
    assert files.generations("mine") == {3: 11, 12: 9}
    assert files.generations("mine", np.array([1, 2, 3])) == {3: 6}
    assert files.generations("another") == {4: 8}
    assert (files.generations(""), files.generations("mine", np.array([], np.int64))) == ({}, {})
