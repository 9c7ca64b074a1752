# Every target sets up what it needs; `make` alone lists them. ARGS="..." is passed on.

# Runs a program of .venv with the Java that `make setup` found, whatever JAVA_HOME says.
RUN = JAVA_HOME="$$(cat .venv/java_home)" .venv/bin/

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-matrix test-full test-versions check licences ui bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: .venv/.ready ## .venv with the locked packages, Java and Delta's jars (PYTHON=... picks the interpreter)

.venv/.ready: requirements.lock pyproject.toml
	@.ci/setup.sh

demo: setup ## the main job end to end on TPC-H lineitem
	@$(RUN)zorder demo $(ARGS)

# Two processes, each with a Spark session of its own: most tests wait for the driver, not for the cores.
test: setup ## what most changes can break, doctests included, in less than a quarter of an hour
	$(RUN)python -m pytest -m "not matrix and not slow and not browser" -n 2 --dist loadfile $(ARGS)

test-matrix: setup ## further cases and parts, as many minutes again; CI runs both
	$(RUN)python -m pytest -m "matrix and not slow and not browser" -n 2 --dist loadfile $(ARGS)

test-full: setup ## all tests: also those of minutes, races, kills, peers and the browser
	@.ci/chromium.sh
	@.ci/postgres.sh
	$(RUN)python -m pytest $(ARGS)

test-versions: setup ## the tests of Spark and Delta under every supported version (ARGS="4.1.2 4.4.0 3.12": one)
	@.ci/versions.sh $(ARGS)

check: setup ## style, types, the rule of dependency, licences
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/pip-licenses >/dev/null

licences: setup ## list the dependencies' licences; an unknown one fails (pyproject.toml says which are known)
	@.venv/bin/pip-licenses

ui: setup ## the Dagster UI on the demo's state
	@$(RUN)zorder ui $(ARGS)

bench: setup ## the benchmarks, e.g. ARGS="--quick --workload demo"
	@$(RUN)zorder bench $(ARGS)

lock: setup ## write requirements.lock anew from pyproject.toml (ARGS=--upgrade takes newer versions)
	.venv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock $(ARGS)

clean: ## remove everything that the other targets made
	rm -rf .venv .demo .bench build dist spark-warehouse metastore_db derby.log
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find zorder_pipeline tests -name __pycache__ -prune -exec rm -rf {} +
