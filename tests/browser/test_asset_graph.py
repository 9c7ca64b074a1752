"""The Dagster UI as `zorder ui` serves it: its GraphQL answers, and the asset graph that Chromium draws."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.dagster]

CHAIN = ("query_log", "feature_candidates", "correlation_graph", "bit_allocation", "cost_benefit", "clustered_table")
TABLE, BUDGET = "sales", "night/nightly_budget"
CONFIG = f"""
state: state
query_logs: [{{path: log.jsonl, format: sql}}]
tables: [{{name: {TABLE}, location: {TABLE}}}]
"""
ROOT = Path(__file__).parents[2]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--window-size=2400,1600", "--virtual-time-budget=30000"),  # wide enough for every node to be drawn
)
START, DRAW, ATTEMPTS = 120, 90, 3
QUERY = "{ assetNodes { assetKey { path } groupName dependencyKeys { path } } }"


class Server(NamedTuple):
    """A running UI: its address and the file of its messages."""

    address: str
    log: Path

    def post(self, query: str) -> Any:
        """The data of a GraphQL answer."""
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self.address}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"]


@contextmanager
def running(home: Path) -> Iterator[Server]:
    """`zorder ui` on a Dagster home."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "DAGSTER_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("ZORDER_CONFIG", None)
    log = home / "ui.log"
    with log.open("wb") as messages:
        process = subprocess.Popen(
            [sys.executable, "-m", "zorder_pipeline.cli", "ui", "--port", str(port)],
            env=environment, stdout=messages, stderr=messages, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        found = Server(f"http://127.0.0.1:{port}", log)
        wait_for(found, process)
        yield found
    finally:
        stop(process)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The UI on a configuration with one table, which need not exist: nothing is materialised."""
    home = tmp_path_factory.mktemp("home")
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", home)
    (home / "tables.yaml").write_text(CONFIG)
    (home / "log.jsonl").touch()
    with running(home) as found:
        yield found


def wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if server.post(QUERY)["assetNodes"]:
                return
        time.sleep(0.5)
    pytest.fail(f"the UI did not answer within {START} s:\n{server.log.read_text()[-2000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End `dagster dev`, and whatever is left of its session."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


class Graph(HTMLParser):
    """Names and places of the nodes in the page's graph: each is a <foreignObject> at its x."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.x: dict[str, float] = {}
        self._place: float | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "foreignobject":
            self._place = float(dict(attrs).get("x") or 0)

    def handle_endtag(self, tag: str) -> None:
        if tag == "foreignobject":
            self._place = None

    def handle_data(self, data: str) -> None:
        if self._place is not None:
            self.x.setdefault(data.strip(), self._place)


def drawn(chromium: str, address: str, profile: Path) -> Graph:
    """The graph of a page as Chromium has drawn it; loaded anew when a busy machine was not done in time."""
    graph = Graph("")
    for attempt in range(ATTEMPTS):
        command = [chromium, *FLAGS, f"--user-data-dir={profile / str(attempt)}", "--dump-dom", address]
        page = subprocess.run(command, capture_output=True, text=True, timeout=DRAW, check=True).stdout
        graph = Graph(page)
        if set(CHAIN) <= graph.x.keys():
            break
    return graph


def test_the_lineage_of_the_table_is_the_chain(server: Server) -> None:
    nodes = {"/".join(node["assetKey"]["path"]): node for node in server.post(QUERY)["assetNodes"]}
    chain = [CHAIN[0], *(f"{TABLE}/{stage}" for stage in CHAIN[1:])]
    assert set(nodes) == {*chain, f"{TABLE}/data", "night/offers", BUDGET}
    above = {name: {"/".join(key["path"]) for key in node["dependencyKeys"]} for name, node in nodes.items()}
    for first, second in pairwise(chain):
        assert first in above[second]
    for place, name in enumerate(chain):
        assert above[name] <= {*chain[:place], f"{TABLE}/data", BUDGET}  # nothing depends on a later stage
    assert {nodes[name]["groupName"] for name in chain[1:]} == {TABLE}


@pytest.mark.timeout(START + ATTEMPTS * DRAW)
def test_chromium_draws_the_chain_from_left_to_right(chromium: str, server: Server, tmp_path: Path) -> None:
    place = "locations/__repository__@zorder_pipeline.assets:defs/asset-groups"
    graph = drawn(chromium, f"{server.address}/{place}/{TABLE}/lineage", tmp_path)
    assert set(CHAIN) <= graph.x.keys(), f"the page shows only {sorted(graph.x)}"
    assert sorted(CHAIN, key=graph.x.__getitem__) == list(CHAIN)
    assert len({graph.x[name] for name in CHAIN}) == len(CHAIN)
