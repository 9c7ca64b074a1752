"""``zorder demo``: the whole chain on TPC-H lineitem, through the real Dagster job, measured on queries nobody saw."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import VerificationError, ZorderError
from zorder_pipeline.model.progress import Progress
from zorder_pipeline.model.whole_file import write_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.assets.run import ChainRun
    from zorder_pipeline.model.results import Evaluation

__all__ = ["DemoResult", "example_home", "run_demo"]

FILES = 256
SEED = 0
TABLE = "lineitem"
KEYS = 3
STAMP = "demo.json"
"""What the demo knows of its folder. It stands there before anything else does: what lies beside it is the demo's."""
PLAN = "plan.json"
MADE = ("as_stored", "zorder", TABLE, "state", PLAN, "train.jsonl", "unseen.jsonl", "dagster_home")
"""What the demo writes, and deletes or writes over, beside its stamp."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found.

    Attributes:
        contenders: figures by layout (``stored``, ``zorder``, ``ours``), as JSON-ready data.
        zorder_columns: the most frequent columns of the training log, given to Delta's ZORDER.
        decision: the gate's answer and figures.
        layout: the learned layout in sentences.
        costs: seconds of ZORDER's rewrite, of learning and of our rewrite, by name.
        places: where plan, state, log and Dagster home are.
        seconds: time taken in all.
    """

    contenders: dict[str, dict[str, Any]]
    zorder_columns: tuple[str, ...]
    decision: dict[str, Any]
    layout: tuple[str, ...]
    costs: dict[str, float]
    places: dict[str, str]
    queries: int
    seconds: float

    @property
    def ratio(self) -> float:
        """Rows read after ours, as a share of those read after ZORDER."""
        return float(self.contenders["ours"]["rows_read_mean"] / max(1e-9, self.contenders["zorder"]["rows_read_mean"]))

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder demo --json`` prints."""
        return {**vars(self), "rows_ours_to_zorder": self.ratio}


def run_demo(workdir: str | Path, scale: float, queries: int, progress: Progress) -> DemoResult:
    """Make the data, run the Dagster job, compare.

    A second run on the same folder keeps the table, the log and the copies, and finds nothing to do.

    Args:
        workdir: where everything goes.
        scale: TPC-H scale factor.
        queries: statements to learn from, and as many unseen ones to measure by.

    Raises:
        ZorderError: nothing can be written to ``workdir``, or what lies there is not the demo's, or the Dagster job
            failed.
        VerificationError: a query's result differs from the untouched copy's.
    """
    from zorder_pipeline import pipeline
    from zorder_pipeline.benchmarks.compare import same_results
    from zorder_pipeline.benchmarks.data import make_folder
    from zorder_pipeline.benchmarks.workloads import read_log
    from zorder_pipeline.model.plan import read_plan, write_plan
    from zorder_pipeline.spark import session

    started = time.monotonic()
    root = Path(workdir).absolute()
    make_folder(root, "--workdir")
    _refuse_others(root)
    progress(f"the demo at scale {scale:g}: at 0.1 it takes about two minutes on two cores that do nothing else")
    spark = session({"spark.driver.memory": "2g"}, "zorder demo")
    facts = _prepare(spark, root, scale, queries, progress)
    home = _home(root, facts["rows"] // FILES)
    progress("running the Dagster job: query log, candidates, correlations, search, gate, relayout")
    with _environment(DAGSTER_HOME=str(home), ZORDER_CONFIG=str(home / "tables.yaml")):
        done = _run_job(progress)
    if done.relayout is not None or "ours" not in facts["costs"] or not (root / PLAN).is_file():
        write_plan(done.plan, root / PLAN)  # a later run that finds nothing to do keeps the plan that was applied
    if done.relayout is not None:
        facts["costs"]["learn"] = done.plan.seconds
        facts["costs"]["ours"] = done.relayout.result.seconds
    _stamp(root, facts)
    unseen = str(root / "unseen.jsonl")
    measured: dict[str, Evaluation] = {}
    for name, path in _tables(root).items():
        progress(f"measuring {queries} unseen queries: {name}")
        measured[name] = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
    progress("comparing every query's result with the untouched copy")
    statements = [record["statement"] for record in read_log(unseen)]
    if different := same_results(spark, statements, _tables(root)["stored"], _tables(root)["ours"], name=TABLE):
        raise VerificationError(f"{len(different)} queries answer otherwise after the relayout, e.g. {different[0]}")
    return DemoResult(
        contenders={name: found.to_json() for name, found in measured.items()},
        zorder_columns=tuple(facts["columns"]),
        decision=done.preview.to_json(),
        layout=pipeline.in_words(read_plan(root / PLAN)),
        costs=facts["costs"],
        places={
            "table": str(_tables(root)["ours"]),
            "plan": str(root / PLAN),
            "state": str(root / "state"),
            "log": str(root / "train.jsonl"),
            "dagster home": str(home),
        },
        queries=queries,
        seconds=time.monotonic() - started,
    )


def example_home() -> Path:
    """The folder with the example's dagster.yaml and tables.yaml: in the checkout, or shipped with the package."""
    here = Path(__file__).resolve().parent
    for folder in (here.parent / "dagster_home", here / "dagster_home"):
        if (folder / "tables.yaml").is_file():
            return folder
    raise ZorderError("the example dagster_home is missing; reinstall zorder-pipeline")


def _tables(root: Path) -> dict[str, Path]:
    """The three copies; the folders' names all end in the table's name, which the log uses."""
    return {"stored": root / "as_stored" / TABLE, "zorder": root / "zorder" / TABLE, "ours": root / TABLE}


def _prepare(spark: SparkSession, root: Path, scale: float, queries: int, progress: Progress) -> dict[str, Any]:
    """Table, logs and ZORDER's copy, unless a run with the same figures left them; returns what there is to know."""
    from zorder_pipeline.benchmarks.dashboards import DASHBOARD_TEMPLATES
    from zorder_pipeline.benchmarks.data import copy_table, lineitem_table
    from zorder_pipeline.benchmarks.peers import frequent_columns, zorder
    from zorder_pipeline.benchmarks.workloads import two_logs, write_log

    wanted = {"scale": scale, "queries": queries, "seed": SEED, "files": FILES, "format": 3}
    found = _stamped(root)
    if "rows" in found and {key: found.get(key) for key in wanted} == wanted:
        progress(f"keeping table, logs and copies of an earlier run in {root}")
        return found
    _stamp(root, wanted)  # a run that ends from here on is begun anew
    for folder in ("as_stored", "zorder", TABLE, "state"):
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / PLAN).unlink(missing_ok=True)
    tables = _tables(root)
    progress(f"writing TPC-H lineitem at scale {scale:g} with tpchgen-cli as {FILES} files")
    lineitem_table(spark, tables["stored"], scale, FILES)
    train, unseen = two_logs(queries, queries, SEED, DASHBOARD_TEMPLATES, scale=scale)
    write_log(train, root / "train.jsonl")
    write_log(unseen, root / "unseen.jsonl")
    copy_table(spark, tables["stored"], tables["ours"])
    columns = frequent_columns([record["statement"] for record in train], KEYS)
    progress(f"Delta's own OPTIMIZE ZORDER BY ({', '.join(columns)}) on a copy")
    seconds = zorder(spark, str(tables["stored"]), str(tables["zorder"]), columns, FILES)
    rows = spark.read.format("delta").load(str(tables["ours"])).count()
    facts = {**wanted, "rows": rows, "columns": columns, "costs": {"zorder": seconds}}
    _stamp(root, facts)
    return facts


def _stamp(root: Path, facts: dict[str, Any]) -> None:
    write_whole(root / STAMP, json.dumps(facts))


def _stamped(root: Path) -> dict[str, Any]:
    """What a demo has noted of its folder; empty where none has begun there.

    Raises:
        ZorderError: a file of that name is another's.
    """
    stamp = root / STAMP
    if not os.path.lexists(stamp):
        return {}
    try:
        found = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a folder, or no JSON
        found = None
    if not isinstance(found, dict) or not {"scale", "queries", "format"} <= found.keys():
        raise ZorderError(f"--workdir: {stamp} was not written by zorder demo; name a folder of its own")
    return found


def _refuse_others(root: Path) -> None:
    """Refuse a folder where the demo would delete, or write over, what it has not made.

    Raises:
        ZorderError: there is such a thing; a home of ``zorder init`` is one, stamp or not, as both have one state.
    """
    names = ("tables.yaml", *(() if _stamped(root) else MADE))
    if found := [name for name in names if os.path.lexists(root / name)]:
        raise ZorderError(
            f"--workdir: {root} holds {', '.join(found)} of something else, which zorder demo would delete, write over "
            f"or share; name a folder of its own, or remove what the demo of an earlier version has left half-made"
        )


def _home(root: Path, file_rows: int) -> Path:
    """A Dagster home for this folder: the example's, with its paths and rows per file.

    The files stand in for those of a table a thousand times as large. Left to itself the gate would merge them all into
    one, rightly: a query spends more on opening a hundred kilobytes than on reading them.
    """
    home = root / "dagster_home"
    home.mkdir(parents=True, exist_ok=True)
    example = example_home()
    shutil.copy(example / "dagster.yaml", home / "dagster.yaml")
    text = (example / "tables.yaml").read_text(encoding="utf-8").replace("../.demo/", f"{root}/")
    text = re.sub(r"target_file_rows: \d+", f"target_file_rows: {max(1, file_rows)}", text)
    (home / "tables.yaml").write_text(text, encoding="utf-8")
    return home


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


def _run_job(progress: Progress) -> ChainRun:
    """Run the nightly job in this process, on the instance that the UI shows."""
    from dagster import DagsterInstance

    from zorder_pipeline.assets.definitions import load_definitions
    from zorder_pipeline.assets.instance import quiet_dagster
    from zorder_pipeline.assets.run import run_job

    with quiet_dagster(), DagsterInstance.get() as instance:
        return run_job(load_definitions(), instance, TABLE, progress)
