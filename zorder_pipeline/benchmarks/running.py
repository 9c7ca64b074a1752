"""Runs workloads: one, with its report, or all of them in turn."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.progress import Progress, silent

from . import WORKLOADS, find_workload
from .data import make_folder
from .harness import RAW, Workload, summarise
from .reports import index, markdown, plot
from .vocabulary import canonical

__all__ = ["ALL", "INDEX", "bench", "bench_all"]

ALL, INDEX = "all", "index.md"
PACKAGES = ("pyspark", "delta-spark", "numpy", "optuna", "duckdb")


def bench(
    name: str,
    *,
    out: str | Path,
    quick: bool = False,
    seeds: int | None = None,
    scale: float | None = None,
    against: Sequence[str] = (),
    files: int | None = None,
    tables: Sequence[str] = (),
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run one workload; write ``<out>/<name>.json``, ``.md`` and ``.png``; return what the JSON file holds.

    Args:
        seeds: how many repetitions; 2 when quick, else 5.
        against: names of peers, in the spellings of `vocabulary.NAMES`; the workload's own choice when empty.
        files, tables: see `Options`.
        work: scratch folder, ``<out>/work`` when None.

    Raises:
        ZorderError: the workload is unknown, an option is out of range or means nothing to it, or nothing can be
            written to ``out``.
    """
    workload = find_workload(name)
    count = seeds if seeds is not None else (2 if quick else 5)
    folder = Path(out)
    place = (Path(work) if work else folder / "work").absolute()  # in SQL Delta takes no other path for a table
    options, missing = workload.options(
        count, place, quick=quick, scale=scale, against=against, files=files, tables=tables
    )
    make_folder(folder, "--out")
    say = progress or silent
    for peer, why in missing.items():
        say(f"{peer} is not run: {why}")
    started = datetime.now(UTC)
    with _alone(options.work), _kept(options.work / RAW, say):
        summary = summarise(workload.run(options, say))
    report = {"workload": name, "summary": workload.summary} | summary
    report["not_run"] |= missing
    report |= {
        "quick": quick,
        "scale": scale,
        "files": files,
        "against": list(against),
        "tables": list(tables),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 1),
        "machine": {"cores": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "versions": {package: version(package) for package in PACKAGES},
    }
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(report), encoding="utf-8")
    if (png := plot(report)) is not None:
        (folder / f"{name}.png").write_bytes(png)
    return report


def bench_all(
    *,
    out: str | Path,
    quick: bool = False,
    seeds: int | None = None,
    scale: float | None = None,
    against: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run every workload in turn, each in a process of its own, and go on when one fails.

    Writes what `bench` writes, and ``<out>/index.md`` anew after each workload; options that a workload does not know
    are not given to it.

    Returns:
        ``runs`` with the workload, its seconds and its error, None when it went well; and the ``index``.

    Raises:
        ZorderError: an option is wrong, or ``out`` cannot be written, then nothing has run; or workloads failed, then
            all others have run.
    """
    canonical(against)
    folder, say, runs = Path(out), progress or silent, list[dict[str, Any]]()
    workloads = [find_workload(name) for name, _ in WORKLOADS]
    common = [*(["--quick"] if quick else []), *([f"--seeds={seeds}"] if seeds is not None else [])]
    make_folder(folder, "--out")
    for number, workload in enumerate(workloads, 1):
        say(f"workload {number} of {len(workloads)}: {workload.name}")
        given = [f"--scale={scale}"] if scale is not None and workload.scaled else []
        given += [f"--against={','.join(against)}"] if against and workload.peers else []
        start = time.monotonic()
        error = _apart(workload, [f"--out={folder}", *common, *given], say)
        runs.append({"workload": workload.name, "seconds": round(time.monotonic() - start, 1), "error": error})
        (folder / INDEX).write_text(index(runs, workloads), encoding="utf-8")
    if failed := [run["workload"] for run in runs if run["error"]]:
        raise ZorderError(
            f"{len(failed)} of {len(runs)} workloads failed: {', '.join(failed)}; {folder / INDEX} says why, and links "
            "the reports of the others"
        )
    return {"workload": ALL, "runs": runs, "index": str(folder / INDEX)}


def _apart(workload: Workload, options: Sequence[str], say: Progress) -> str | None:
    """Run one workload in a process, as settings of a JVM hold until it ends; returns why it failed."""
    command = [sys.executable, "-m", "zorder_pipeline", "bench", f"--workload={workload.name}", *options]
    said = ""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip():
                said = line.strip()
                say(f"{workload.name}: {said}")
    return None if process.returncode == 0 else said.removeprefix("zorder: ") or f"it ended with {process.returncode}"


@contextlib.contextmanager
def _kept(raw: Path, say: Progress) -> Iterator[None]:
    """Say of a run that fails where the outcomes are that it had by then; one that ends well has them in its report."""
    raw.unlink(missing_ok=True)
    try:
        yield
    except BaseException as error:
        if not raw.is_file():
            raise
        where = f"what was measured by then is in {raw}"
        if isinstance(error, ZorderError):
            raise ZorderError(f"{error}; {where}") from error
        error.add_note(f"{where}.")  # an interrupted command tells it
        say(where)
        raise
    raw.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Hold a scratch folder: two benchmarks in one would measure each other's tables. The system frees a dead one's."""
    make_folder(work, "--out")
    held = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ZorderError(f"another benchmark is at work in {work}; give this one another --out") from error
        yield
    finally:
        os.close(held)
