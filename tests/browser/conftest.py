"""A Chromium for all browser tests."""

import shutil

import pytest


@pytest.fixture(scope="session")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed; .ci/chromium.sh installs it (Debian, Ubuntu: apt-get install chromium)")
    return found
