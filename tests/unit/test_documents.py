"""The documents say what is: versions, folders and links are held to the code."""

import math
import re
import tomllib
from pathlib import Path

import pytest

import zorder_pipeline
from zorder_pipeline.assets.openmetrics import FAMILIES
from zorder_pipeline.benchmarks import WORKLOADS
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.model.choices import COPY_BYTES
from zorder_pipeline.model.file_stats import BLOOM_BITS
from zorder_pipeline.pipeline.rewriting.calibration import RUNS, SIZES
from zorder_pipeline.reading.gather import MOST_PLACES
from zorder_pipeline.versions import SUPPORTED, minor

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_version_stands_in_one_place_and_in_the_changelog() -> None:
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == zorder_pipeline.__version__
    assert released == sorted(released, key=lambda v: [int(part) for part in v.split(".")], reverse=True)
    assert "version" not in PYPROJECT["project"]


def test_the_notes_of_the_newest_release_can_be_read() -> None:
    """Lines that a merge brought back, or that tell more than a user asks."""
    notes = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[2]
    lines = [line for line in notes.splitlines() if line.startswith("- ")]
    assert len(lines) < 250
    assert [line for line in lines if len(line) > 320] == []
    assert len(lines) == len({line[:60] for line in lines})


def test_the_architecture_page_has_every_folder_and_no_other() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    package = ROOT / "zorder_pipeline"
    folders = {f"{folder.name}/" for folder in package.iterdir() if (folder / "__init__.py").is_file()}
    modules = {module.stem for module in package.glob("*.py") if not module.stem.startswith("__")}
    assert set(re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE)) == folders | modules
    named = re.findall(r"`(?:tests/)?(\w+/[\w/]*\w+\.py)`", page)
    assert [path for path in named if not (package / path).is_file() and not (ROOT / "tests" / path).is_file()] == []


def test_the_architecture_page_has_the_layers_that_are_enforced() -> None:
    page = (ROOT / "docs/architecture.md").read_text().split("## The rule of dependency")[1]
    drawn = [set(line.split()) for line in re.findall(r"^    (.+)$", page.split("\n## ")[0], re.MULTILINE)]
    enforced = next(c for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    assert drawn == [set(re.findall(r"\w+", layer)) for layer in enforced]


def test_the_supported_versions_are_the_tested_ones() -> None:
    rows = [
        row.split()
        for row in (ROOT / ".ci/versions.sh").read_text().split("ROWS='")[1].split("'")[0].splitlines()
        if row
    ]
    assert {minor(spark) for spark, _, _ in rows} == set(SUPPORTED)
    for spark, delta, _ in rows:
        assert minor(delta) in SUPPORTED[minor(spark)]
    for spark, deltas in SUPPORTED.items():  # the oldest and the newest of each range
        assert {deltas[0], deltas[-1]} == {minor(d) for s, d, _ in rows if minor(s) == spark}
    pythons = {name.rsplit(" ", 1)[1] for name in PYPROJECT["project"]["classifiers"] if "Python :: 3." in name}
    assert pythons == {f"Python :: {python}".rsplit(" ", 1)[1] for _, _, python in rows}
    page = (ROOT / "docs/versions.md").read_text()
    for spark, deltas in SUPPORTED.items():
        span = deltas[0] if len(deltas) == 1 else f"{deltas[0]} to {deltas[-1]}"
        assert f"| {spark} | {span} |" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_on_a_page_exist(page: Path) -> None:
    wrong = []
    for name, words in re.findall(r"(?:`|^ {4})zorder ([a-z]+)([^`\n]*)", page.read_text(), re.MULTILINE):
        known = zorder.commands.get(name)
        options = {option for parameter in known.params for option in parameter.opts} if known else set()
        unknown = set(re.findall(r"(?<!\S)--[a-z-]+", words.split("#")[0])) - options
        wrong += [f"{name} {unknown or ''}"] if known is None or unknown else []
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_workloads_on_a_page_exist(page: Path) -> None:
    named = set(re.findall(r"--workload ([a-z]+)", page.read_text()))
    assert named <= {"all", *(name for name, _ in WORKLOADS)}


def test_the_page_on_benchmarks_tells_of_every_workload() -> None:
    rows = (ROOT / "docs/benchmarks.md").read_text().split("| workload | ")[1].split("\n\n")[0]
    told = [
        name for first in re.findall(r"^\| (`.+?`) \| ", rows, re.MULTILINE) for name in re.findall("`(.+?)`", first)
    ]
    assert sorted(told) == sorted(name for name, _ in WORKLOADS)


def test_measured_figures_stand_below_their_command() -> None:
    measured = (ROOT / "docs/benchmarks.md").read_text().split("\n## Measured\n")[1].split("\n## ")[0]
    sections = re.split(r"^### ", measured, flags=re.MULTILINE)[1:]
    assert len(sections) > 10
    bare = [part.split("\n")[0] for part in sections if not part.split("\n\n")[1].startswith("    zorder bench ")]
    assert bare == []


def test_the_page_on_reading_tells_of_how_many_values_bloom_filters_are_kept() -> None:
    """As many as set so many of its bits, which each value chooses at random."""
    most = -BLOOM_BITS * math.log1p(-MOST_PLACES / BLOOM_BITS)
    assert f"up to about {round(most, -2):,.0f} different values" in (ROOT / "docs/reading.md").read_text()


def test_what_a_calibration_takes_is_what_its_copies_and_relayouts_write() -> None:
    page = " ".join((ROOT / "docs/costs.md").read_text().split())
    warm_up = {len(SIZES) - 1: 2}
    relaid = [sum(run.copy == copy for run in RUNS) + warm_up.get(copy, 0) for copy in range(len(SIZES))]
    assert (SIZES, relaid, len(RUNS)) == ((1.0, 0.4, 0.15), [4, 4, 6], 12)
    assert round(sum(size * (1 + times) for size, times in zip(SIZES, relaid, strict=True))) == 8
    assert "times a dozen relayouts, and three scans after each" in page
    assert "0.4 and 0.15 times that. They are relaid as a whole four, four and six times" in page
    assert "about eight times the largest copy, 2 GB by default" in page
    assert round(8 * COPY_BYTES / 1e9) == 2


def test_the_interval_of_a_cost_before_anything_was_measured_is_as_wide_as_told() -> None:
    assert "(a factor of four to five either way)" in (ROOT / "docs/costs.md").read_text()
    for size, files in ((1e8, 8), (1e9, 60), (1e11, 1000)):
        cost = CostModel().relayout(RelayoutWork(size, 3, files=files))
        assert round(cost.high / cost.expected) in (4, 5)
        assert round(cost.expected / cost.low) in (4, 5)


def test_the_operations_page_has_every_metric() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert re.findall(r"^\| `(zorder_\w+)` \|", page, re.MULTILINE) == list(FAMILIES)
