"""Settings that a session reads and writes by, however they are called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.relayout.session_conf import as_others_read, exactly, reads_otherwise
from zorder_pipeline.state.session_conf import set_for_a_while

TODAY, BEFORE = ("spark.sql.parquet.{}RebaseModeInRead", "spark.sql.legacy.parquet.{}RebaseModeInRead")
STRUCTS = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"


def session(conf: dict[str, str]) -> Any:
    settings = SimpleNamespace(get=conf.get, set=conf.__setitem__, unset=conf.pop)
    return SimpleNamespace(conf=settings, session_id="one")


@pytest.mark.parametrize("kind", ["datetime", "int96"])
def test_a_calendar_of_old_is_seen_by_the_name_of_today_and_that_before(kind: str) -> None:
    name, before = TODAY.format(kind), BEFORE.format(kind)
    for conf in ({name: "LEGACY"}, {before: "legacy"}, {name: "LEGACY", before: "CORRECTED"}):
        for found in (exactly(session(conf), instants=True), as_others_read(session(conf))):
            assert found[name] == "EXCEPTION"
        assert reads_otherwise(session(conf))
    for conf in ({}, {before: "CORRECTED"}, {name: "CORRECTED", before: "LEGACY"}):  # the one of today counts
        assert name not in exactly(session(conf), instants=True)
        assert not reads_otherwise(session(conf))


@pytest.mark.parametrize("name", [STRUCTS, IDS])
def test_what_a_file_lacks_is_not_null_whatever_the_session_makes_of_it(name: str) -> None:
    odd = session({name: "true"})
    assert exactly(odd, instants=False)[name] == as_others_read(odd)[name] == "false"
    assert reads_otherwise(odd)


def test_what_another_relayout_has_set_for_a_while_is_not_the_session_s_own() -> None:
    """It puts it back as soon as it ends, in the middle of one that thought that it need not set it."""
    name, shifted = TODAY.format("datetime"), "spark.sql.parquet.int96TimestampConversion"
    odd = session({name: "LEGACY", shifted: "true"})
    others = as_others_read(odd)
    with set_for_a_while(odd, others):
        assert odd.conf.get(name) == "EXCEPTION"
        assert as_others_read(odd) == others
        assert reads_otherwise(odd)
        with pytest.raises(UnsupportedTableError, match=shifted):
            exactly(odd, instants=True)
    assert odd.conf.get(name) == "LEGACY"
