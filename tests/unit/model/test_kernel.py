"""Compiled functions: where nothing can be written, and where what was kept is of an earlier source."""

import importlib
import sys
from pathlib import Path
from typing import Any

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


BASE = """
from typing import NamedTuple
from zorder_pipeline.model.kernel import kernel
class Pair(NamedTuple):
    {fields}
LIMIT = {limit}
@kernel
def factor():
    return {factor}
"""
USE = """
from zorder_pipeline.model.kernel import kernel
from kernels_base import LIMIT, Pair, factor
@kernel
def used(pair):
    return factor() * pair.left + LIMIT
"""
FIRST = {"fields": "left: int; right: int", "limit": 100, "factor": 2}


@pytest.mark.parametrize(
    ("changed", "result"),
    [({}, 114), ({"factor": 1000}, 7100), ({"limit": 1000}, 1014), ({"fields": "right: int ; left: int"}, 126)],
)
def test_what_was_kept_is_compiled_anew_where_what_it_calls_has_changed(
    changed: dict[str, Any], result: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiled form has the kernels that it calls in itself, whichever module they are of."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "kernels_use.py").write_text(USE)

    def run(values: dict[str, Any]) -> tuple[int, bool]:
        (tmp_path / "kernels_base.py").write_text(BASE.format(**values))
        for name in ("kernels_base", "kernels_use"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        use = importlib.import_module("kernels_use")
        return use.used(use.Pair(7, 13)), bool(use.used.stats.cache_hits)

    assert run(FIRST) == (114, False)
    assert run(FIRST | changed) == (result, not changed)
    for name in ("kernels_base", "kernels_use"):
        del sys.modules[name]
