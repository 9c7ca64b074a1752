"""Statistics that are kept after a commit: what goes wrong there costs nothing but reading time."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from zorder_pipeline.pipeline.reading.statistics import keep_statistics


@pytest.mark.parametrize("error", [pa.ArrowInvalid("a value that Arrow does not have"), AssertionError("not so")])
def test_what_arrow_refuses_or_was_not_expected_is_told(error: Exception) -> None:
    def newest() -> None:
        raise error

    told: list[str] = []
    before = SimpleNamespace(newest=newest, location="/data/t")
    assert keep_statistics(before, None, "/data/state", told.append) is None  # type: ignore[arg-type]
    assert len(told) == 1
    assert told[0].startswith(f"statistics of the new files could not be kept ({error}); run zorder stats --table")
