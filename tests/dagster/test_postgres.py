"""The chain with Dagster's storage in PostgreSQL: the same layout and the same rows as with SQLite."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from dagster import DagsterInstance, build_schedule_context
from deltalake import DeltaTable

from zorder_pipeline.assets import build_definitions
from zorder_pipeline.assets.run import ChainRun, run_job
from zorder_pipeline.config import load_config

from .conftest import statements, write_log, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.dagster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

HOME = Path(__file__).parents[2] / "dagster_home"
CONFIG = """
spark: {master: "local[2]"}
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - name: sales
    location: sales
    search: {trials: 60, sample_rows: 4000}
    layout: {target_file_rows: 500}
    gate: {queries_per_day: 10000000}
schedule: {cron: "0 2 * * *", time_zone: Europe/Berlin}
"""


def programs() -> Path | None:
    """Where initdb and postgres are; Debian keeps them off the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of our own on a free port; as user postgres where we are root, which the server refuses to run as."""
    place = programs()
    if place is None:
        pytest.skip("no PostgreSQL; .ci/postgres.sh installs it (Debian, Ubuntu: apt-get install postgresql)")
    root = os.getuid() == 0
    folder = Path("/tmp") / f"zorder-postgres-{os.getpid()}" if root else tmp_path_factory.mktemp("postgres")
    folder.mkdir(exist_ok=True, mode=0o700)
    user: dict[str, object] = {}
    if root:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")
    make = [str(place / "initdb"), "-D", data, "-U", "dagster", "--auth=trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(make, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
    words = [str(place / "postgres"), "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-F"]
    server = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + 60
        ready = [str(place / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(ready, capture_output=True, check=False).returncode:
            assert server.poll() is None, "PostgreSQL ended"
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.2)
        yield f"postgresql+psycopg2://dagster@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def chain(data: Path, folder: Path, home: str) -> tuple[ChainRun, DeltaTable, int]:
    """The job that the schedule's tick asks for, on a copy of ``data``; what runs is recorded as ``home`` says."""
    shutil.copytree(data, folder)
    (folder / "tables.yaml").write_text(CONFIG)
    shutil.copy(HOME / home, folder / "dagster.yaml")
    defs = build_definitions(load_config(folder / "tables.yaml"))
    with DagsterInstance.from_config(str(folder)) as instance:
        schedule = defs.resolve_schedule_def("nightly_relayout_schedule")
        tick = schedule.evaluate_tick(build_schedule_context(instance))
        assert [request.job_name or schedule.job_name for request in tick.run_requests or ()] == ["nightly_relayout"]
        done = run_job(defs, instance, "sales")
        return done, DeltaTable(str(folder / "sales")), instance.get_runs_count()


def test_the_storage_changes_nothing_about_the_result(
    spark: SparkSession, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dagster_postgres")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres)
    data, rng = tmp_path / "data", np.random.default_rng(1)
    data.mkdir()
    write_table(data / "sales", rng)  # once: rows are sampled by the names of their files
    write_log(data / "log.jsonl", statements("sales", 120, rng))
    (local, here, _), (remote, there, runs) = (
        chain(data, tmp_path / name, home)
        for name, home in (("local", "dagster.yaml"), ("pg", "dagster.postgres.yaml"))
    )
    assert local.relayout is not None
    assert remote.relayout is not None
    assert local.plan.spec == remote.plan.spec
    assert local.plan.promise == remote.plan.promise
    order = [("day", "ascending"), ("sent", "ascending"), ("part", "ascending")]
    assert here.to_pyarrow_table().sort_by(order).equals(there.to_pyarrow_table().sort_by(order))
    assert here.version() == there.version() == 16
    assert runs == 1
    assert not list((tmp_path / "pg").rglob("*.db")), "nothing of Dagster's in SQLite"
    assert list((tmp_path / "local").rglob("*.db"))
