"""Runs workloads: one, with its report, or all of them in turn."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from zorder_pipeline.errors import ZorderError

from . import find_workload
from .harness import Progress, summarise
from .reports import markdown, plot

__all__ = ["bench"]

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
        ZorderError: the workload is unknown, or an option is out of range or means nothing to it.
    """
    workload = find_workload(name)
    count = seeds if seeds is not None else (2 if quick else 5)
    folder = Path(out)
    place = (Path(work) if work else folder / "work").absolute()  # in SQL Delta takes no other path for a table
    options, missing = workload.options(
        count, place, quick=quick, scale=scale, against=against, files=files, tables=tables
    )
    folder.mkdir(parents=True, exist_ok=True)
    say = progress or (lambda _: None)
    for peer, why in missing.items():
        say(f"{peer} is not run: {why}")
    started = datetime.now(UTC)
    with _alone(options.work):
        outcomes = workload.run(options, say)
    report = {"workload": name, "summary": workload.summary} | summarise(outcomes)
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


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Hold a scratch folder: two benchmarks in one would measure each other's tables. The system frees a dead one's."""
    work.mkdir(parents=True, exist_ok=True)
    held = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ZorderError(f"another benchmark is at work in {work}; give this one another --out") from error
        yield
    finally:
        os.close(held)
