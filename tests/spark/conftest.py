"""What the tests of this folder share beside the session: their marker."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them are `spark`, whether they start a session themselves or take the shared one."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("spark")
