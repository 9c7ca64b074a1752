#!/usr/bin/env bash
# Sees to a Chromium for the browser tests.
set -euo pipefail
. "$(dirname "$0")/common.sh"

has_chromium() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null; }

if ! has_chromium && may_apt; then
    apt_update
    apt_install chromium || true
fi
has_chromium || fail "the browser tests need Chromium: install it (Debian, Ubuntu: apt-get install chromium), then run make again."
