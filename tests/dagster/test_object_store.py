"""Table, log and state in an object store: an emulated S3, and every program of ours as a process of its own."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pytest
from dagster import DagsterInstance, SensorResult, build_sensor_context
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs

from zorder_pipeline.assets import build_definitions
from zorder_pipeline.config import load_config
from zorder_pipeline.model.places import filesystem_of

pytestmark = [pytest.mark.dagster, pytest.mark.slow, pytest.mark.timeout(1500)]

ROWS, FILES, DAYS = 24_000, 12, 3

SERVER = """
from moto.core.serialize import TimestampSerializer
from moto.s3 import models
from moto.server import main

def told(time):
    return time.isoformat(timespec="milliseconds")[:23] + "Z"

# As MinIO and Ceph do, and S3 does not: milliseconds in a listing, whole seconds of an object that is asked for alone.
models.iso_8601_datetime_without_milliseconds_s3 = told
TimestampSerializer._timestamp_iso8601_zeroed = lambda self, time: told(time)
main()
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The URL of an S3 that knows one bucket, ``lake``; the environment names it for pyarrow and delta-rs.

    It is a process of its own: delta-rs waits for answers with Python's lock held, which a thread could not give then.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    named = {
        "AWS_ACCESS_KEY_ID": "of-nobody",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    words = [sys.executable, "-c", SERVER, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _made(f"{url}/lake", server)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in named.items():
                patch.setenv(name, value)
            yield url
    finally:
        server.kill()
        server.wait()


def _made(bucket: str, server: subprocess.Popen[bytes]) -> None:
    """Make a bucket as soon as the server listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urlopen(Request(bucket, method="PUT")):
                return
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.fixture(scope="module")
def home(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``zorder init`` makes for a table and a log in the bucket, with the settings that only a person knows."""
    order = np.random.default_rng(3).permutation(ROWS)
    for part in np.array_split(order, FILES):
        rows = pa.table({"id": part, "a": part * 7919 % 1000, "b": part * 104_729 % 5000, "day": part % DAYS})
        write_deltalake("s3a://lake/orders", rows.select(["id", "a", "b"]), mode="append")
        write_deltalake("s3a://lake/days", rows, mode="append", partition_by=["day"])
    files, path = filesystem_of("s3://lake/logs/queries.jsonl")
    with files.open_output_stream(path) as log:
        for statement in statements():
            log.write(json.dumps(statement).encode() + b"\n")
    folder = tmp_path_factory.mktemp("home")
    told = zorder(folder, "init", str(folder), "--table", "s3a://lake/orders", "--log", "s3://lake/logs")
    assert told["table"] == "s3a://lake/orders"
    written = folder / "tables.yaml"
    text = written.read_text()
    assert "org.apache.hadoop:hadoop-aws:" in text
    of_hadoop = {"endpoint": endpoint, "path.style.access": "true", "connection.ssl.enabled": "false"}
    conf = "".join(f'    spark.hadoop.fs.s3a.{key}: "{value}"\n' for key, value in of_hadoop.items())
    conf += "    spark.driver.memory: 1g\n    spark.sql.shuffle.partitions: '2'\n    spark.master: local[2]\n"
    text = text.replace("    spark.jars", f"{conf}    spark.jars").replace("state: state", "state: s3a://lake/state")
    text += "    search: {trials: 30}\n    layout: {target_file_rows: 1000, verify: hash}\n"
    text += "    gate: {queries_per_day: 100000}\n"
    text += "  - {name: days, location: 's3a://lake/days', partitions: true, search: {trials: 20}}\n"
    written.write_text(text)
    return folder


def statements() -> Iterator[dict[str, str]]:
    """Queries of twenty days, each with literals of its own."""
    draw = random.Random(5)
    for number in range(300):
        a, b = draw.randrange(990), draw.randrange(4900)
        where = draw.choice([f"a BETWEEN {a} AND {a + 9}", f"b BETWEEN {b} AND {b + 60}", f"a = {a} AND b < {b}"])
        moment = f"2026-11-{1 + number // 15:02d}T{number % 15:02d}:00:00Z"
        yield {"timestamp": moment, "statement": f"SELECT count(*) FROM orders WHERE {where}"}


def zorder(home: Path, *words: str) -> dict[str, Any]:
    """What a command prints with ``--json``, started as a person would with this home."""
    environment = {**os.environ, "DAGSTER_HOME": str(home), "COLUMNS": "200"}
    environment.pop("ZORDER_SPARK_CONF", None)
    command = [sys.executable, "-m", "zorder_pipeline", *words, "--json"]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows_of(version: int) -> list[dict[str, int]]:
    """The table's rows as delta-rs reads them."""
    found = DeltaTable("s3a://lake/orders", version=version).to_pyarrow_table()
    return sorted(found.to_pylist(), key=lambda row: int(row["id"]))


def test_sensors_see_new_data_and_partitions(home: Path) -> None:
    defs = build_definitions(load_config(home / "tables.yaml"))
    with DagsterInstance.ephemeral() as instance:
        watch = defs.resolve_sensor_def("delta_tables")
        seen = watch(build_sensor_context(instance=instance, definitions=defs))
        assert isinstance(seen, SensorResult)
        assert sorted(json.loads(seen.cursor or "{}")) == ["days", "orders"]
        (added,) = seen.dynamic_partitions_requests or []
        assert list(added.partition_keys) == [f"day={day}" for day in range(DAYS)]


def test_a_night_in_an_object_store(home: Path) -> None:
    before = DeltaTable("s3a://lake/orders").version()
    told = zorder(home, "run")["tables"]
    assert told["orders"]["decision"] == "applied", told
    assert told["days"]["decision"] == "not_asked"
    after = DeltaTable("s3a://lake/orders")
    assert after.version() > before
    assert rows_of(after.version()) == rows_of(before)
    files, path = filesystem_of("s3a://lake/state")
    kept = {info.base_name for info in files.get_file_info(fs.FileSelector(path))}
    assert {"query_log", "log_files", "relayouts"} <= kept

    again = zorder(home, "run")["tables"]["orders"]
    assert again["decision"] == "nothing_to_do"
    assert DeltaTable("s3a://lake/orders").version() == after.version()

    ours = zorder(home, "inspect", "--table", "s3a://lake/orders")
    assert ours["layouts"]
    zorder(home, "rollback", "--table", "s3a://lake/orders")
    restored = DeltaTable("s3a://lake/orders")
    assert restored.version() == after.version() + 1
    assert rows_of(restored.version()) == rows_of(before)
