"""A run that was killed leaves its tables; the same command begins anew."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from zorder_pipeline.benchmarks import filters, pages
from zorder_pipeline.benchmarks.harness import Options


class _BegunError(Exception):
    """The first table is about to be written, and nothing lies there."""


def _left(place: Path) -> Path:
    """A table of a run that was killed."""
    (place / "_delta_log").mkdir(parents=True)
    return place


def test_look_ups_begin_anew_after_a_run_that_was_killed(tmp_path: Path) -> None:
    options = Options((0,), tmp_path, quick=True)
    left = _left(tmp_path / "filters" / "0" / "stored" / filters.TABLE)
    spark = MagicMock()

    def save(place: str) -> None:
        assert place == str(left)
        assert not left.exists()
        raise _BegunError

    spark.sql.return_value.repartition.return_value.write.format.return_value.save = save
    with pytest.raises(_BegunError):
        next(filters._one_seed(spark, options, 0, lambda _: None))


def test_pages_begin_anew_after_a_run_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = pages._uniform(1_000, 2, np.random.default_rng(0))
    left = _left(tmp_path / "pages" / f"{case.name}-0" / "lexical" / case.name)

    def written(*_: object) -> None:
        assert not left.exists()
        raise _BegunError

    monkeypatch.setattr(pages, "delta_table", written)
    with pytest.raises(_BegunError):
        next(pages._one(MagicMock(), case, 0, Options((0,), tmp_path), lambda _: None))
