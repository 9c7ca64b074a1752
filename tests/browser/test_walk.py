"""A walk through the real UI after a real night: what people see, and a backfill that they launch there.

Its pictures are kept in ``.artifacts/browser`` (or where ``ZORDER_ARTIFACTS`` says), to be looked at.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.json_page import json_printed

from .test_asset_graph import ROOT, Server, running

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.browser, pytest.mark.dagster, pytest.mark.spark, pytest.mark.slow]

CONFIG = """
spark: {master: "local[2]", conf: {spark.driver.memory: 1g}}
state: state
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - name: orders
    location: orders
    owners: ["team:shop"]
    search: {trials: 100, sample_rows: 8000}
    layout: {target_file_rows: 1000}
    gate: {queries_per_day: 10000000}
  - {name: seldom, location: seldom, search: {trials: 40, sample_rows: 4000}, gate: {queries_per_day: 0.000001}}
"""
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
COLUMNS = ("customer", "item", "store")
PATIENCE = 120_000
"""Milliseconds for a page of a busy machine."""
BACKFILL = 600_000


def made(folder: Path) -> None:
    """Two tables, one of them partitioned, with their log; and the night, as ``zorder run`` does it."""
    rng = np.random.default_rng(1)

    def rows(count: int) -> dict[str, Any]:
        return {name: rng.integers(0, 1000, count) for name in COLUMNS}

    for ds in DAYS:
        for _ in range(8):
            table = pa.table({"ds": [ds] * 2000, **rows(2000)})
            write_deltalake(str(folder / "orders"), table, mode="append", partition_by=["ds"])
    for _ in range(16):
        write_deltalake(str(folder / "seldom"), pa.table(rows(500)), mode="append")
    lines = []
    for name, count in (("orders", 150), ("seldom", 90)):
        for i in range(count):
            low = int(rng.integers(0, 980))
            text = f"SELECT count(*) FROM {name} WHERE {COLUMNS[i % 3]} BETWEEN {low} AND {low + 10}"
            lines.append({"statement": text, "timestamp": f"2026-01-{1 + i // 24:02d}T{i % 24:02d}:00:00Z"})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "tables.yaml").write_text(CONFIG)
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", folder)
    environment = {**os.environ, "DAGSTER_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("ZORDER_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-m", "zorder_pipeline.cli", "run", "--json"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json_printed("run", done.stdout)["tables"]
    assert (told["orders"]["decision"], told["seldom"]["decision"]) == ("applied", "declined")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    made(folder)
    return folder


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with running(home) as found:
        yield found


class Walk:
    """A browser that keeps pictures of where it was, and what the console complained of."""

    def __init__(self, page: Any, server: Server, folder: Path) -> None:
        self.page, self.server, self.folder = page, server, folder
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def to(self, path: str) -> None:
        self.page.goto(f"{self.server.address}/{path}", wait_until="domcontentloaded", timeout=PATIENCE)

    def see(self, text: str | re.Pattern[str]) -> Any:
        """The first visible place of a text; fails when it does not come."""
        found = self.page.get_by_text(text).locator("visible=true").first
        found.wait_for(timeout=PATIENCE)
        return found

    def keep(self, name: str) -> None:
        self.page.wait_for_timeout(1500)  # for what is still being faded in
        self.page.screenshot(path=self.folder / f"{name}.png")


@pytest.fixture(scope="module")
def walk(chromium: str, server: Server) -> Iterator[Walk]:
    folder = Path(os.environ.get("ZORDER_ARTIFACTS") or ROOT / ".artifacts") / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1680, "height": 1050})
        page.set_default_timeout(PATIENCE)
        yield Walk(page, server, folder)
        browser.close()


@pytest.mark.timeout(900)
def test_the_lineage_is_drawn_in_order(walk: Walk) -> None:
    stages = ["feature_candidates", "correlation_graph", "bit_allocation", "cost_benefit", "clustered_table"]
    walk.to("locations/__repository__@zorder_pipeline.assets:defs/asset-groups/orders/lineage")
    boxes = [walk.see(re.compile(f"^{stage}$")).bounding_box() for stage in stages]
    walk.keep("lineage")
    places = [(round(box["x"]), round(box["y"])) for box in boxes]
    assert [x for x, _ in places] == sorted({x for x, _ in places}), places


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("asset", "words", "drawn"),
    [
        ("query_log", ["scans by table", "quarantined by reason"], 0),
        ("orders/feature_candidates", ["candidates", "asked over time"], 1),
        ("orders/correlation_graph", ["primary columns"], 1),
        ("orders/bit_allocation", ["share of rows read by layout", "bits that were tried"], 3),
        ("orders/cost_benefit", ["what could be done", "saving and cost"], 1),
        ("orders/clustered_table", ["before and after", "zone maps"], 1),
        ("night/nightly_budget", ["budget, core-hours"], 0),
    ],
)
def test_metadata_and_pictures_are_seen(walk: Walk, asset: str, words: list[str], drawn: int) -> None:
    walk.to(f"assets/{asset}")
    for word in words:
        walk.see(word)
    if drawn:
        opened = walk.page.get_by_text("Show Markdown").locator("visible=true")
        opened.first.wait_for()
        assert opened.count() >= drawn
        opened.first.click()
        picture = walk.page.get_by_role("dialog").locator("img").first
        walk.keep(f"{asset.replace('/', '-')}")
        if picture.count():
            assert picture.evaluate("image => image.naturalWidth") > 200
        walk.page.keyboard.press("Escape")
    else:
        walk.keep(f"{asset.replace('/', '-')}")


@pytest.mark.timeout(600)
def test_a_declined_table_is_green_with_its_reason(walk: Walk) -> None:
    walk.to("assets/seldom/clustered_table?view=events")
    walk.see(re.compile("declined: not worth it")).click()
    walk.keep("declined")
    runs = walk.server.post("{ runsOrError { ... on Runs { results { status } } } }")["runsOrError"]["results"]
    assert {run["status"] for run in runs} == {"SUCCESS"}


@pytest.mark.timeout(1200)
def test_a_backfill_of_two_partitions_ends_green(walk: Walk, home: Path) -> None:
    rng = np.random.default_rng(7)
    for ds in DAYS[:2]:  # something new to lay out
        table = pa.table({"ds": [ds] * 4000, **{name: rng.integers(0, 1000, 4000) for name in COLUMNS}})
        write_deltalake(str(home / "orders"), table, mode="append", partition_by=["ds"])
    before = DeltaTable(str(home / "orders")).version()
    walk.to("assets/orders/clustered_partitions")
    walk.page.get_by_role("button", name="Materialize").first.click()
    walk.page.get_by_text("Select a partition or create one").click()
    walk.page.wait_for_timeout(1500)
    for ds in DAYS[:2]:
        walk.page.get_by_text(f"ds={ds}").locator("visible=true").last.click()
    walk.page.keyboard.press("Escape")
    walk.keep("backfill-chosen")
    walk.page.get_by_role("button", name=re.compile("^Launch")).last.click()
    wanted = "results { id status numPartitions runs { status } }"
    query = f"{{ partitionBackfillsOrError {{ ... on PartitionBackfills {{ {wanted} }} }} }}"
    found: list[Any] = []
    for _ in range(BACKFILL // 2000):
        walk.page.wait_for_timeout(2000)
        found = walk.server.post(query)["partitionBackfillsOrError"]["results"]
        if found and found[0]["status"].startswith(("COMPLETED", "FAILED", "CANCELED")):
            break
    (backfill,) = found
    assert (backfill["status"], backfill["numPartitions"]) == ("COMPLETED_SUCCESS", 2)
    assert [run["status"] for run in backfill["runs"]] == ["SUCCESS"], "one run, one Spark session"
    assert DeltaTable(str(home / "orders")).version() == before + 2
    walk.to(f"assets/orders/clustered_partitions?view=partitions&partition=ds%3D{DAYS[0]}")
    walk.see("rows rewritten")
    walk.keep("backfill-done")
    walk.to(f"runs/b/{backfill['id']}")
    walk.see(re.compile("Completed|Succeeded|Success", re.I))
    walk.keep("backfill")


@pytest.mark.timeout(600)
def test_a_failed_check_is_red_with_its_sentence(walk: Walk, home: Path) -> None:
    """The stored result of the relayout is changed so that a row seems lost; then the checks are run again."""
    stored = home / "state" / "assets" / "orders" / "clustered_table"
    relayout = pickle.loads(stored.read_bytes())
    rows = relayout.proof.rows
    broken = replace(relayout, proof=replace(relayout.proof, rows=(rows[0], rows[1] - 1)))
    stored.write_bytes(pickle.dumps(broken))
    walk.to("assets/orders/clustered_table?view=checks")
    walk.page.get_by_role("button", name=re.compile("Execute all")).first.click()
    walk.page.wait_for_timeout(3000)
    for _ in range(60):
        walk.to("assets/orders/clustered_table?view=checks")
        walk.see("row_count_unchanged").click()
        walk.page.wait_for_timeout(3000)
        if walk.page.get_by_text(re.compile("take it back with zorder rollback")).locator("visible=true").count():
            break
    walk.see(re.compile(f"{rows[0]:,} rows before, {rows[1] - 1:,} after: take it back with zorder rollback"))
    assert walk.page.get_by_text("Failed", exact=True).locator("visible=true").count()
    walk.keep("check-failed")


def test_the_console_has_nothing_to_complain_of(walk: Walk) -> None:
    assert not walk.complaints
