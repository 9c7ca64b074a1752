"""Writers of all kinds that race with relayouts, and a plain Python model of what the table has to hold.

Every operation is a pure function of the rows before it and carries a token into its commit. So the log itself says
which operation made which version, and replaying the operations in that order has to give the table's rows.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import SparkSession

from tests.conftest import COMPILED
from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.layout.cells import cut_cells
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.relayout.clustering import Clustering
from zorder_pipeline.relayout.job import RelayoutResult, Safety
from zorder_pipeline.relayout.rewrite import rewrite
from zorder_pipeline.relayout.snapshot import open_table

BLOCK = 20
"""Ids are given out in blocks; the rows of a block lie in one partition."""
SPAN = 3000
TARGET = 300
SPARK_KINDS = ("append", "delete", "update", "merge", "optimize", "property")
RUST_KINDS = ("rust_append", "rust_delete")
Model = dict[int, int]
Row = tuple[int, int, int, int]


def row_of(number: int, value: int) -> Row:
    """The whole row (id, k, v, p) of an id and its value."""
    return number, number * 7919 % SPAN, value, number // BLOCK % 3


def spec_for(*columns: str, bits: int = 3) -> KeySpec:
    """Interleaved bits of bigint columns whose values are about 0 .. `SPAN`."""
    features = tuple(
        rank_encoding(c, "bigint", np.arange(SPAN), np.ones(SPAN, np.bool_)).feature(bits) for c in columns
    )
    return KeySpec(features, tuple(range(len(columns))) * bits, tie_break=columns)


def relayout(
    spark: SparkSession, path: str, spec: KeySpec, *, target: int = TARGET, full: bool = False, **options: Any
) -> RelayoutResult:
    """A relayout to files of about ``target`` rows; options are those of `rewrite` and `Safety`."""
    snapshot = options.pop("snapshot", None) or open_table(spark, path)
    job = Clustering(spec, lambda k, c: cut_cells(k, c, target), target, options.pop("extend", None), full=full)
    return rewrite(snapshot, job, where=options.pop("where", None), safety=Safety(**options))


def create(
    spark: SparkSession,
    path: Path,
    properties: Mapping[str, str] | None = None,
    *,
    rows: int = 2000,
    files: int = 6,
    partitioned: bool = False,
) -> str:
    """A table of ids 0 .. ``rows`` with value 0, in ``files`` files (per partition) in an order that helps nobody."""
    frame = spark.range(rows).selectExpr("id", *(f"{text} AS {name}" for name, text in COLUMNS.items()), "0L AS v")
    frame = frame.select("id", "k", "v", "p")
    writer = frame.repartition(files).write.format("delta").options(**dict(properties or {}))
    (writer.partitionBy("p") if partitioned else writer).save(str(path))
    return str(path)


COLUMNS = {"k": f"(id * 7919) % {SPAN}", "p": f"(id DIV {BLOCK}) % 3"}


def rows_at(spark: SparkSession, path: str, version: int | None = None) -> list[Row]:
    """The table's rows, sorted."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    found = reader.load(path).select("id", "k", "v", "p").toArrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def rows_of(model: Model) -> list[Row]:
    """The rows that a model stands for, sorted."""
    return sorted(itertools.starmap(row_of, model.items()))


# ------------------------------------------------------------------------------------------------------- the log


@dataclass(frozen=True)
class Commit:
    """One version as its log entry tells it."""

    version: int
    operation: str
    token: str
    rows: int
    data_changes: bool


def log_folder(path: str) -> Path:
    return Path(path) / "_delta_log"


def versions(path: str) -> list[int]:
    """The versions that have a log entry."""
    return sorted(int(entry.stem) for entry in log_folder(path).glob("[0-9]*.json") if entry.stem.isdigit())


def commits(path: str) -> Iterator[Commit]:
    """The table's history from its log entries alone, with the live rows of each version.

    Raises:
        AssertionError: a version is missing or half written, removes a file that is not live, or adds one that is.
    """
    live: dict[tuple[str, str], int] = {}
    found = versions(path)
    assert found == list(range(len(found)))
    for version in found:
        text = (log_folder(path) / f"{version:020d}.json").read_text()
        assert text.endswith(("}", "}\n")), f"version {version} is cut off"
        actions = [json.loads(line) for line in text.splitlines()]
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        removed = [action["remove"] for action in actions if "remove" in action]
        added = [action["add"] for action in actions if "add" in action]
        for action in removed:
            assert live.pop(_key(action), None) is not None, f"version {version} removes what is not live: {action}"
        for action in added:
            assert _key(action) not in live, f"version {version} adds what is live already: {action}"
            hidden = (action.get("deletionVector") or {}).get("cardinality", 0)
            live[_key(action)] = json.loads(action["stats"])["numRecords"] - hidden
        assert len({name for name, _ in live}) == len(live), f"version {version} has a file twice"
        token = str(info.get("userMetadata") or "")
        changes = any(action["dataChange"] for action in removed + added)
        yield Commit(version, str(info["operation"]), token, sum(live.values()), changes)


def _key(action: dict[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector") or {}
    return action["path"], "".join(str(vector.get(name, "")) for name in ("storageType", "pathOrInlineDv", "offset"))


def orphans(path: str) -> set[str]:
    """Parquet files in the table's folder that no version ever had."""
    known: set[str] = set()
    for version in versions(path):
        for line in (log_folder(path) / f"{version:020d}.json").read_text().splitlines():
            if found := json.loads(line).get("add"):
                known.add(found["path"])
    root = Path(path)
    return {str(file.relative_to(root)) for file in root.rglob("*.parquet") if "_delta_log" not in file.parts} - known


# --------------------------------------------------------------------------------------------------- the operations


@dataclass(frozen=True)
class Operation:
    """What one writer wants: its effect on the ids of ``ranges``."""

    token: str
    kind: str
    ranges: tuple[range, ...]
    value: int
    by_partition: bool = False

    def apply(self, model: Model) -> None:
        """Do to the model what the commit did to the table."""
        ids = list(itertools.chain.from_iterable(self.ranges))
        match self.kind:
            case "append" | "rust_append":
                assert not model.keys() & set(ids)
                model.update(dict.fromkeys(ids, self.value))
            case "delete" | "rust_delete":
                for number in ids:
                    model.pop(number, None)
            case "update":
                model.update({number: self.value for number in ids if number in model})
            case "merge":
                model.update(dict.fromkeys(ids, self.value))

    @property
    def condition(self) -> str:
        """SQL for the rows meant; where asked for, with the partition they all lie in."""
        low, high = self.ranges[0].start, self.ranges[0].stop
        ids = f"id >= {low} AND id < {high}"
        return f"p = {low // BLOCK % 3} AND {ids}" if self.by_partition else ids

    def sql(self, table: str) -> str:
        """The statement for Spark."""
        source = " UNION ALL ".join(f"SELECT id FROM range({part.start}, {part.stop})" for part in self.ranges)
        columns = f"id, {COLUMNS['k']} AS k, {self.value}L AS v, {COLUMNS['p']} AS p"
        match self.kind:
            case "append":
                return f"INSERT INTO {table} SELECT {columns} FROM ({source})"
            case "delete":
                return f"DELETE FROM {table} WHERE {self.condition}"
            case "update":
                return f"UPDATE {table} SET v = {self.value} WHERE {self.condition}"
            case "merge":
                return (
                    f"MERGE INTO {table} t USING (SELECT {columns} FROM ({source})) s ON t.id = s.id "
                    f"WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
                )
            case "optimize":
                return f"OPTIMIZE {table}"
            case "property":
                return f"ALTER TABLE {table} SET TBLPROPERTIES ('race.last' = '{self.token}')"
        raise AssertionError(self.kind)


@dataclass
class Race:
    """Writers and relayouts at one table until it has so many versions.

    Args:
        commits: version at which everyone stops, or that times two where no relayout was committed by then.
        patience: seconds after which everyone stops, whatever was reached.

    Attributes:
        succeeded: operations whose writer was told that they are done, by token.
        failed: operations that were given up.
        refused: how often each kind met a conflict.
        relayouts: how the relayouts ended.
        lost: the sentences of relayouts that gave up.
    """

    spark: SparkSession
    path: str
    seed: int
    commits: int
    rows: int = 2000
    patience: float = 240.0
    succeeded: dict[str, Operation] = field(default_factory=dict)
    failed: dict[str, Operation] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    relayouts: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock, self._stop = threading.Condition(), threading.Event()
        self._numbers = itertools.count(1)
        self._fresh = -(-self.rows // BLOCK)
        self._blocks = list(range(self._fresh))
        self._deadline, self._spark_successes, self._relaid = 0.0, 0, False

    def run(self, spark_writers: int = 2, rust_writers: int = 1, layouts: Sequence[Sequence[KeySpec]] = ()) -> None:
        """Start one thread per writer and per entry of ``layouts``, each of which goes round its own specs."""
        self._deadline, self._relaid = time.monotonic() + self.patience, bool(layouts)
        jobs: list[Callable[[], None]] = [self._spark_writer(i) for i in range(spark_writers)]
        jobs += [self._rust_writer(spark_writers + i) for i in range(rust_writers)]
        jobs += [self._relayouter(specs) for specs in layouts]
        with ThreadPoolExecutor(len(jobs)) as pool:
            for future in [pool.submit(self._guarded, job) for job in jobs]:
                future.result()

    def replay(self) -> Iterator[tuple[Commit, Model]]:
        """Each version with the rows it has to hold; the model is the same object every time."""
        model = dict.fromkeys(range(self.rows), 0)
        known = {**self.failed, **self.succeeded}
        for commit in commits(self.path):
            if commit.token in known:
                known[commit.token].apply(model)
            yield commit, model

    # ---------------------------------------------------------------------------------------------- the threads

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            self._stop.set()  # whoever ends first, by success or an error, ends the others
            with self._lock:
                self._lock.notify_all()

    def _over(self) -> bool:
        late = time.monotonic() > self._deadline
        more = self._relaid and not self.relayouts["committed"]  # on a busy machine each may come too late for long
        return self._stop.is_set() or late or versions(self.path)[-1] >= self.commits * (2 if more else 1)

    def _spark_writer(self, thread: int) -> Callable[[], None]:
        def loop() -> None:
            session = self._session()
            for operation in self._schedule(thread, SPARK_KINDS):
                session.conf.set("spark.databricks.delta.commitInfo.userMetadata", operation.token)
                self._try(operation, lambda made=operation: self._run_sql(session, made))  # type: ignore[misc]

        return loop

    def _session(self) -> SparkSession:
        """One of a thread's own, whose plans are compiled if those of the test's session are."""
        made = self.spark.newSession()
        for name in COMPILED:
            made.conf.set(name, self.spark.conf.get(name))
        return made

    def _run_sql(self, session: SparkSession, operation: Operation) -> bool:
        found = session.sql(operation.sql(f"delta.`{self.path}`")).collect()
        return "num_affected_rows" not in (found[0].asDict() if found else {}) or found[0]["num_affected_rows"] > 0

    def _rust_writer(self, thread: int) -> Callable[[], None]:
        def loop() -> None:
            for number, operation in enumerate(self._schedule(thread, RUST_KINDS)):
                if number:
                    self._await_writers(1)
                self._try(operation, lambda made=operation: self._run_rust(made))  # type: ignore[misc]

        return loop

    def _run_rust(self, operation: Operation) -> bool:
        properties = CommitProperties(custom_metadata={"userMetadata": operation.token})
        if operation.kind == "rust_append":
            rows = [row_of(number, operation.value) for part in operation.ranges for number in part]
            table = pa.table(dict(zip("ikvp", (pa.array(c, pa.int64()) for c in zip(*rows, strict=True)), strict=True)))
            table = table.rename_columns(["id", "k", "v", "p"])
            write_deltalake(self.path, table, mode="append", commit_properties=properties)
            return True
        done = DeltaTable(self.path).delete(operation.condition, commit_properties=properties)
        return bool(done["num_deleted_rows"])

    def _relayouter(self, specs: Sequence[KeySpec]) -> Callable[[], None]:
        def loop() -> None:
            session = self._session()
            for number, spec in enumerate(itertools.cycle(specs)):
                self._await_writers()
                if self._over():
                    return
                try:
                    full = number % 4 == 3
                    done = relayout(session, self.path, spec, verify="hash" if number % 5 == 0 else "counts", full=full)
                    ending = "committed" if done.committed else "nothing to do"
                except LostRaceError as error:
                    ending = "lost"
                    self.lost.append(str(error))
                with self._lock:
                    self.relayouts[ending] += 1

        return loop

    def _await_writers(self, successes: int = 2) -> None:
        """Wait until Spark's writers got on.

        Relayouts one after the other would leave a MERGE no gap to commit in, and delta-rs would make all versions.
        """
        with self._lock:
            goal = self._spark_successes + successes
            self._lock.wait_for(lambda: self._spark_successes >= goal or self._stop.is_set(), timeout=self.patience)

    def _schedule(self, thread: int, kinds: Sequence[str]) -> Iterator[Operation]:
        rng = random.Random(f"{self.seed}/{thread}")
        while True:
            for kind in rng.sample(kinds, len(kinds)):
                if kind == "property" and rng.random() < 0.7:
                    continue  # it aborts everyone, so it comes seldom
                if self._over():
                    return
                yield self._operation(kind, rng)

    def _operation(self, kind: str, rng: random.Random) -> Operation:
        """Only rows that are known to be committed are changed: then Delta's history is serial in commit order.

        Under its default isolation a DELETE may overtake an append that it has not read.
        """
        with self._lock:
            number = next(self._numbers)
            ranges: tuple[range, ...] = ()
            if kind in ("append", "rust_append", "merge"):
                fresh, self._fresh = self._fresh, self._fresh + 1
                ranges = (range(fresh * BLOCK, (fresh + 1) * BLOCK),)
            if kind in ("delete", "update", "merge", "rust_delete"):
                low = rng.choice(self._blocks) * BLOCK + rng.randrange(BLOCK // 2)
                ranges = (range(low, low + rng.randint(1, BLOCK // 2)), *ranges)
        return Operation(f"race-{number}", kind, ranges, number, by_partition=rng.random() < 0.5)

    def _try(self, operation: Operation, run: Callable[[], bool]) -> None:
        for _ in range(20):
            try:
                committed = run()
            except Exception as error:
                if not is_conflict(error):
                    raise
                self.refused[operation.kind] += 1
                if self._over():
                    break
                continue
            with self._lock:
                if committed:
                    self.succeeded[operation.token] = operation
                    self._spark_successes += operation.kind in SPARK_KINDS
                    self._lock.notify_all()
                self._blocks += sorted({part.start // BLOCK for part in operation.ranges} - set(self._blocks))
            return
        self.failed[operation.token] = operation


def is_conflict(error: BaseException) -> bool:
    """Whether an engine says that another writer was faster."""
    if isinstance(error, DeltaError):
        return isinstance(error, CommitFailedError) or "conflict" in str(error).lower()
    return any(word in type(error).__name__ for word in ("Concurrent", "MetadataChanged", "ProtocolChanged"))
