"""What the tests of the command line share."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from zorder_pipeline.cli import common, main


@pytest.fixture
def ended_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Run ``zorder`` as a shell does, its screens where the test captures them, and tell its exit code."""

    def run(*words: str) -> object:
        monkeypatch.setattr(sys, "argv", ["zorder", *words])
        for screen, stream in ((common.out, "stdout"), (common.err, "stderr")):
            monkeypatch.setattr(screen, "_file", getattr(sys, stream))
            monkeypatch.setattr(screen, "quiet", False)
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return run
