"""What planning a relayout costs on a table of a million files, beside the time in which Delta loads its snapshot.

The table is simulated: a log with one checkpoint, as Delta itself would leave it, that names files which do not exist.
Two thirds of them lie by a layout. Both sides start with Delta's caches emptied, so planning loads the snapshot, too.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .harness import OURS, Options, Outcome, Progress, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WORKLOAD", "simulated_table"]

FILES, QUICK_FILES = 1_000_000, 50_000
DAYS = 365
ROWS = 100_000
BYTES = 4_000_000
LAYOUT = "0123456789abcdef"
HEAP = "4g"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("customer", "long"), ("amount", "double"), ("ds", "string"))
    ],
}


def simulated_table(path: Path, files: int) -> None:
    """The log of a table of ``files`` files in `DAYS` partitions, each with the statistics that Delta writes."""
    log = path / "_delta_log"
    shutil.rmtree(path, ignore_errors=True)
    log.mkdir(parents=True)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    metadata = {
        "id": "5f1d0000-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["ds"],
        "configuration": {},
        "createdTime": 0,
    }
    for version in (0, 1):
        info: dict[str, Any] = {"commitInfo": {"timestamp": version, "operation": "WRITE", "operationParameters": {}}}
        lines = [info, {"protocol": protocol}, {"metaData": metadata}] if version == 0 else [info]
        (log / f"{version:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    adds = pa.StructArray.from_arrays(list(_adds(files).values()), list(_adds(0)))
    text = pa.map_(pa.string(), pa.string())
    kinds = {
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", text)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", text),
                ("createdTime", pa.int64()),
            ]
        ),
        "add": adds.type,
    }
    stored = metadata | {"format": {"provider": "parquet", "options": []}, "configuration": []}
    head = pa.table(
        {
            name: pa.array([value if name == own else None for own in ("protocol", "metaData")], kind)
            for (name, kind), value in zip(kinds.items(), (protocol, stored, None), strict=True)
        }
    )
    rest = pa.table({name: adds if name == "add" else pa.nulls(files, kind) for name, kind in kinds.items()})
    pq.write_table(pa.concat_tables([head, rest]), log / f"{1:020d}.checkpoint.parquet", compression="snappy")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": files + 2}))


def _adds(files: int) -> dict[str, pa.Array]:
    """The fields of AddFile actions."""
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(0, DAYS, files))
    rows = rng.integers(ROWS // 20, 2 * ROWS, files)
    low = rng.integers(0, 1 << 40, files)
    days = [f"2025-{1 + d // 31:02d}-{1 + d % 31:02d}" for d in range(DAYS)]
    names = [days[d] for d in day.tolist()]
    ours = rng.random(files) < 2 / 3
    tags = [
        {"zorder.layout": LAYOUT, "zorder.generation": str(1 + d % 7)} if o else {}
        for d, o in zip(day, ours, strict=True)
    ]
    stats = [
        f'{{"numRecords":{n},"minValues":{{"id":{a},"customer":{a % 1000},"amount":0.5}},'
        f'"maxValues":{{"id":{a + n},"customer":{a % 1000 + 9000},"amount":99.5}},'
        '"nullCount":{"id":0,"customer":0,"amount":3}}'
        for n, a in zip(rows.tolist(), low.tolist(), strict=True)
    ]
    text = pa.map_(pa.string(), pa.string())
    return {
        "path": pa.array(
            [f"ds={name}/part-{i:05d}-{i:032x}.c000.snappy.parquet" for i, name in enumerate(names)], pa.string()
        ),
        "partitionValues": pa.array([[("ds", name)] for name in names], text),
        "size": pa.array(rows * (BYTES // ROWS), pa.int64()),
        "modificationTime": pa.array(np.full(files, 1_700_000_000_000), pa.int64()),
        "dataChange": pa.array(np.zeros(files, dtype=np.bool_)),
        "stats": pa.array(stats, pa.string()),
        "tags": pa.array(tags, text),
    }


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a round."""
    from zorder_pipeline.spark import session

    spark = session({"spark.driver.memory": HEAP})
    files = int(options.scale * FILES) if options.scale else QUICK_FILES if options.quick else FILES
    path = options.work / "simulated"
    progress(f"writing the log of a table of {files:,} files")
    simulated_table(path, files)
    sides: tuple[tuple[str, str, Callable[[], Any]], ...] = (
        ("delta", "Delta loads the snapshot", lambda: _load(spark, path)),
        (OURS, "ours: load, and choose the files to rewrite", lambda: _plan(spark, path)),
    )
    _load(spark, path)
    _plan(spark, path)
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        took = {}
        for place in np.random.default_rng(seed).permutation(len(sides)):
            name, _, act = sides[place]
            _forget(spark)
            start = time.perf_counter()
            act()
            took[name] = time.perf_counter() - start
            progress(f"round {seed}: {name} took {took[name]:.1f} s")
        unit = took["delta"]
        outcomes += options.noted(
            Outcome(
                name,
                label,
                seed,
                {"loads": np.array([took[name] / unit])},
                {"plan": took[name]},
                {"files": files},
            )
            for name, label, _ in sides
        )
    return outcomes


def _forget(spark: SparkSession) -> None:
    """Empty Delta's cache of logs, and with it that of their states, and ours."""
    from zorder_pipeline.java import scala_object
    from zorder_pipeline.relayout.snapshot import forget_snapshots

    forget_snapshots()
    scala_object(spark, "org.apache.spark.sql.delta.DeltaLog").clearCache()
    spark.catalog.clearCache()


def _load(spark: SparkSession, path: Path) -> int:
    """Delta's own snapshot with its state reconstructed; returns its number of files."""
    from zorder_pipeline.relayout.snapshot import open_table

    return int(open_table(spark, str(path)).jsnapshot.numOfFiles())


def _plan(spark: SparkSession, path: Path) -> int:
    """What a dry run does: the number of files that a relayout would rewrite."""
    from zorder_pipeline.relayout.select import bins_of, select_files
    from zorder_pipeline.relayout.snapshot import open_table

    snapshot = open_table(spark, str(path))
    chosen = select_files(snapshot, LAYOUT, ROWS).rewrite
    bins_of(snapshot.files(), chosen, 100 << 30)
    return len(chosen)


WORKLOAD = Workload("planning", "choosing the files of a relayout, in loads of the snapshot by Delta", run)
