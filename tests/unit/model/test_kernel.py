"""Compiled functions where nothing can be written."""

import pytest
from numba.core.caching import CompileResultCacheImpl

from zorder_pipeline.model.kernel import kernel


def doubled(number: int) -> int:
    return 2 * number


def test_what_is_compiled_need_not_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs from a read-only image, by a user who has no home."""
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    compiled = kernel(doubled)
    assert compiled(21) == 42
    assert not compiled.stats.cache_path  # type: ignore[attr-defined]
