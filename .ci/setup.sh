#!/usr/bin/env bash
# All of `make setup`: a Java, .venv with the locked packages and this project, and Delta's jars.
# The Makefile calls it when requirements.lock or pyproject.toml is newer than .venv/.ready.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/common.sh
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local python
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 or newer."
        echo "$PYTHON"
        return
    fi
    for python in python3 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$python"; then echo "$python"; return; fi
    done
    fail "no Python 3.11 or newer on PATH: install one, or name it: make setup PYTHON=/path/to/python3"
}

can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

make_venv() {
    local python package
    python=$(find_python)
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if ! can_make_venv "$python" && may_apt; then
        apt_update
        apt_install "$package" || true
    fi
    can_make_venv "$python" || fail "$python cannot make virtual environments:" \
        "install its venv module (Debian, Ubuntu: apt-get install $package), then run make again."
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
}

# pip_install LOCK [OPTION...]: exactly the files whose hashes are in LOCK, built with nothing but what is installed.
pip_install() {
    .venv/bin/python -m pip install --require-hashes --no-build-isolation --use-pep517 --progress-bar off -r "$@"
}

# Prints one line now and then for pip's many.
show_progress() {
    local line count=0
    while read -r line; do
        case $line in
            Collecting*) count=$((count + 1)); [ $((count % 30)) -ne 0 ] || say "  $count of $1 fetched" ;;
            "Building wheel for "*started*) line=${line#Building wheel for }; say "  building ${line%% *}" ;;
            "Installing collected packages"*) say "  unpacking" ;;
        esac
    done
}

install_packages() {
    local total
    total=$(grep '==' requirements.lock | grep -vc "sys_platform == 'win32'")
    say "installing $total pinned packages (about 900 MB to fetch where pip has no cache; one to five minutes)"
    awk '/^[^ #]/ { wanted = /^setuptools==/ } wanted' requirements.lock >.venv/build.lock # PySpark is built with it
    { pip_install .venv/build.lock --quiet && pip_install requirements.lock; } 2>&1 | tee .venv/pip.log | show_progress "$total" || {
        grep -A 4 -m 1 '^ERROR' .venv/pip.log >&2 || tail -n 15 .venv/pip.log >&2
        fail "pip could not install requirements.lock; all it said is in .venv/pip.log"
    }
    cp requirements.lock .venv/requirements.lock
}

java_home=$(.ci/java.sh)
if [ -n "${JAVA_HOME:-}" ] && [ ! "$JAVA_HOME" -ef "$java_home" ]; then
    say "JAVA_HOME=$JAVA_HOME is not a Java 17 or newer; make will use $java_home"
fi

if ! cmp -s requirements.lock .venv/requirements.lock || ! .venv/bin/python -c '' 2>/dev/null; then
    make_venv
    install_packages
fi
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
echo "$java_home" >.venv/java_home

say "resolving Delta's jars, archiving Spark's classes with the Java in $java_home and compiling the search (one to two minutes)"
JAVA_HOME=$java_home .venv/bin/python -m zorder_pipeline.installing ||
    fail "Delta's jars could not be resolved (the reason is above)."

touch .venv/.ready
say "ready"
