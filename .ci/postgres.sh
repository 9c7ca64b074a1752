#!/usr/bin/env bash
# Sees to PostgreSQL's server programs for the test of Dagster's storage there.
set -euo pipefail
. "$(dirname "$0")/common.sh"

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

if ! has_postgres && may_apt; then
    apt_update
    apt_install postgresql || true
fi
has_postgres || fail "the storage test needs PostgreSQL: install it (Debian, Ubuntu: apt-get install postgresql), then run make again."
