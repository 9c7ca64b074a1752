#!/usr/bin/env bash
# The matrix of supported versions: a virtual environment for each row below, and the tests that touch Spark and Delta in it.
# `make test-versions` runs all rows, ARGS="4.1.2 4.4.0 3.12" one; uv brings the interpreters that are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/common.sh

# Spark  Delta  Python
ROWS='
4.0.4   4.4.0  3.13
4.1.2   4.4.0  3.12
4.2.0   4.4.0  3.11
4.2.0   4.4.0  3.12
4.2.0   4.4.0  3.13
'
TESTS=(tests/spark/test_relayout.py tests/spark/test_command_line.py tests/spark/test_first_look.py
    tests/spark/test_log_store.py tests/spark/test_versions.py tests/spark/test_add_files.py
    tests/spark/test_quick_forms.py tests/spark/test_key_column.py tests/spark/test_session_conf.py
    tests/spark/test_reading.py tests/spark/test_reading_plans.py tests/spark/test_gathering.py
    tests/spark/test_recording.py tests/spark/test_public_commit.py tests/unit)
UV=${UV:-.venv/bin/uv}
export PYTHONPATH=$PWD JAVA_HOME=${JAVA_HOME:-$(cat .venv/java_home)}

# lock_for SPARK DELTA: requirements.lock with these two instead of its own, and without what only developers need.
lock_for() {
    sed -E 's/ *--hash=[^ ]*//; s/ *\\$//' requirements.lock |
        grep -Ev '^ *(#|$)|^(pyspark|delta-spark|playwright|pyee|uv)(\[|==)' &&
        printf 'pyspark==%s\ndelta-spark==%s\n' "$1" "$2"
}

# make_environment FOLDER SPARK DELTA PYTHON; chained, as a row that may fail is none that `set -e` ends.
make_environment() {
    rm -rf "$1"
    "$UV" venv --quiet --python "$4" "$1" &&
        lock_for "$2" "$3" >"$1/requirements.txt" &&
        "$UV" pip install --quiet --python "$1/bin/python" --requirement "$1/requirements.txt" &&
        "$1/bin/python" -m zorder_pipeline.installing &&
        touch "$1/.ready"
}

# test_row SPARK DELTA PYTHON
test_row() {
    local folder=${VERSIONS_DIR:-.venv/versions}/spark-$1-delta-$2-python-$3
    say "Spark $1, Delta $2, Python $3"
    [ -e "$folder/.ready" ] || make_environment "$folder" "$@" || return
    "$folder/bin/python" -m pytest -q -p no:cacheprovider -m "not slow and not browser" "${TESTS[@]}"
}

if [ $# -gt 0 ]; then ROWS="$*"; fi
failed=()
while read -r spark delta python; do
    [ -n "$spark" ] || continue
    test_row "$spark" "$delta" "$python" </dev/null || failed+=("Spark $spark with Delta $delta on Python $python")
done <<<"$ROWS"
[ ${#failed[@]} -eq 0 ] || fail "failed: $(IFS=';'; echo "${failed[*]}")"
say "every row passed"
