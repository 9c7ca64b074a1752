"""Which files a compaction merges: small ones of one kind, into files near the target, once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.relayout.compaction import Group, groups_of
from zorder_pipeline.relayout.file_list import FileList
from zorder_pipeline.relayout.select import much_deleted

TARGET = 100
File = tuple[int, int, int, int]
"""Rows, deleted rows, partition, and 0 for a foreign file or the generation of one of ours."""
FILES = st.lists(
    st.tuples(st.integers(0, 300), st.sampled_from([0, 0, 0, 1, 90]), st.integers(0, 1), st.integers(0, 2)), max_size=40
)


def listed(files: list[File]) -> FileList:
    """Files of ours follow each other in the key's order as they do in the list."""
    number = np.arange(len(files))
    rows, deleted, partition, generation = (np.array(items, dtype=np.int64) for items in zip(*files, strict=True))
    ours = generation > 0
    return FileList(
        path=np.array([f"part-{i:05d}" for i in number], dtype=object),
        bytes=rows * 10,
        rows=rows,
        deleted=deleted,
        layout=tuple("mine" if our else "" for our in ours),
        generation=np.where(ours, generation, -1),
        key_low=np.where(ours, number * 10, -1),
        key_high=np.where(ours, number * 10 + 9, -1),
        modified=number,
        partitions=tuple((str(p),) for p in partition),
        load_zones=lambda columns: {},
    )


def after(files: list[File], groups: list[Group]) -> list[File]:
    """The table once the groups are merged, each where its first file was."""
    first = {group[0]: group for group in groups}
    gone = {i for group in groups for i in group}
    result = []
    for i, item in enumerate(files):
        if i in first:
            result.append((sum(files[j][0] for j in first[i]), 0, *item[2:]))
        elif i not in gone:
            result.append(item)
    return result


@given(FILES)
def test_groups_are_of_one_kind_near_the_target_and_a_second_compaction_finds_none(files: list[File]) -> None:
    if not files:
        return
    found = listed(files)
    everywhere = np.ones(len(files), dtype=np.bool_)
    groups = groups_of(found, everywhere, TARGET, keep_ours=False)
    members = [i for group in groups for i in group]
    assert len(members) == len(set(members))
    deleted = much_deleted(found)
    assert set(np.flatnonzero(deleted)) <= set(members)
    assert all(files[i][0] < TARGET / 2 or deleted[i] for i in members)
    for group in groups:
        assert len({files[i][2:] for i in group}) == 1
        assert list(group) == sorted(group)
        rows = sum(files[i][0] for i in group)
        assert rows <= 2 * TARGET or len(group) == 1
        if files[group[0]][3]:  # nothing of the generation lies in between
            span = range(group[0], group[-1] + 1)
            assert not [i for i in span if files[i][2:] == files[group[0]][2:] and i not in group]
    then = after(files, groups)
    assert groups_of(listed(then), np.ones(len(then), dtype=np.bool_), TARGET, keep_ours=False) == []


def test_files_of_a_layout_keep_their_present_size() -> None:
    files = listed([(10, 0, 0, 1)] * 20 + [(2, 0, 0, 1)] * 4 + [(2, 0, 0, 0)] * 4)
    everywhere = np.ones(len(files), dtype=np.bool_)
    kept = groups_of(files, everywhere, TARGET, keep_ours=True)
    assert kept == [(20, 21, 22, 23), (24, 25, 26, 27)]
    assert groups_of(files, everywhere, TARGET, keep_ours=False)[0] == tuple(range(10))
