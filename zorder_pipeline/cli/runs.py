"""The commands about runs of more than one step: ``zorder demo``, ``run``, ``metrics``, ``bench`` and ``ui``."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from zorder_pipeline.errors import ConfigError, ZorderError
from zorder_pipeline.model.wording import queries_a_day

from .common import (
    Payload,
    Progress,
    UnfinishedError,
    command,
    err,
    is_said,
    leave_no_warehouse,
    out,
    print_columns,
)
from .numbers import FiniteRange
from .targets import replaceable

if TYPE_CHECKING:
    from zorder_pipeline.assets.run import TableOutcome
    from zorder_pipeline.config import PipelineConfig
    from zorder_pipeline.demo import DemoResult

__all__ = ["bench", "demo", "metrics", "run", "ui"]


@command
@click.option("--scale", type=FiniteRange(min=0.001), default=0.1, show_default=True, help="TPC-H scale factor.")
@click.option("--queries", type=click.IntRange(20), default=500, show_default=True, help="Statements in each log.")
@click.option(
    "--workdir", default=".demo", show_default=True, type=click.Path(file_okay=False), help="Where everything goes."
)
def demo(scale: float, queries: int, workdir: str) -> Payload:
    """The whole chain on TPC-H lineitem through the real Dagster job, measured on queries nobody has seen."""
    from zorder_pipeline.demo import run_demo

    leave_no_warehouse()
    found = run_demo(workdir, scale, queries, Progress())
    _show_demo(found)
    out.print(f"  UI: make ui, or zorder ui --workdir {workdir} (then open the address it prints)", soft_wrap=True)
    return found.to_json()


def _show_demo(found: DemoResult) -> None:
    labels = {"stored": "as stored", "zorder": f"OPTIMIZE ZORDER BY ({', '.join(found.zorder_columns)})"}
    rows = [
        (
            labels.get(name, name),
            f"{figures['files_read_mean']:.1f} of {figures['files']}",
            f"{figures['rows_read_mean']:,.0f}",
            f"{figures['rows_read_fraction']:.1%}",
            f"{figures['bytes_read_mean'] / 1e6:.2f}",
        )
        for name, figures in found.contenders.items()
    ]
    header = ("layout", "files", "rows", "share of the rows", "MB")
    print_columns(f"What {found.queries:,} unseen queries read on average", header, rows, best="ours")
    after = " of the rows that are read after ZORDER; every result is the same."
    out.print(Text.assemble("Ours reads ", (f"{found.ratio:.2f}", "bold"), after))
    out.print("\nThe layout", style="bold")
    for sentence in found.layout:
        out.print(f"  {sentence}", soft_wrap=True)
    out.print(Text.assemble(("\nThe gate", "bold"), f": {_spoken(found.decision['decision'])}"))
    for sentence in found.decision["reasons"]:
        out.print(f"  {sentence}", soft_wrap=True)
    assumed = found.decision.get("gate", {}).get("assumptions", {})
    if assumed:
        rate = f"{queries_a_day(assumed['queries_per_day'])} ({assumed['rate_source']})"
        out.print(f"  it assumed {rate} and a horizon of {assumed['horizon_days']:g} days", soft_wrap=True)
    costs = {"learn": "learning", "ours": "our rewrite", "zorder": "OPTIMIZE ZORDER on the copy"}
    spent = [f"{costs[name]} {seconds:.1f} s" for name, seconds in found.costs.items() if name in costs]
    out.print(Text.assemble(("\nWhat it cost", "bold"), f": {', '.join(spent)}"))
    out.print("\nWhere things are", style="bold")
    for name, place in found.places.items():
        out.print(f"  {name}: {place}", soft_wrap=True)


@command
@click.option("--config", "config_path", type=click.Path(), help="tables.yaml; by default the one of DAGSTER_HOME.")
@click.option("--table", "tables", multiple=True, help="Only this table of the configuration; may be repeated.")
@click.option(
    "--partition", "partitions", multiple=True, metavar="KEY", help="Only this partition of the table, ds=2026-01-01."
)
def run(config_path: str | None, tables: tuple[str, ...], partitions: tuple[str, ...]) -> Payload:
    """The configured pipeline for all tables, without the UI; a table that fails does not stop the others."""
    from zorder_pipeline.assets.instance import instance_at_hand, quiet_dagster
    from zorder_pipeline.assets.openmetrics import write_metrics
    from zorder_pipeline.assets.run import run_tables

    config = _configuration(config_path)
    leave_no_warehouse()
    with quiet_dagster(), instance_at_hand() as instance:
        outcomes, unwritten = run_tables(config, tables, partitions, instance=instance, progress=Progress()), []
        if config.monitoring.metrics_file and not os.environ.get("DAGSTER_HOME"):  # which knows of this run alone
            err.print(
                f"{config.monitoring.metrics_file} stays as it is: the figures are those of Dagster's runs, so set "
                "DAGSTER_HOME to the home of these",
                soft_wrap=True,
            )
        elif config.monitoring.metrics_file:
            try:
                write_metrics(instance, config)
            except ZorderError as error:  # what was rewritten is told all the same
                unwritten = [str(error)]
    rows = [(o.table, _spoken(o.decision), o.reasons[0] if o.reasons else "") for o in outcomes]
    for outcome in outcomes:
        rows += [
            (f"  {key}", _spoken(part["decision"]), part["reasons"][0]) for key, part in outcome.partitions.items()
        ]
    print_columns("Tables", ("table", "decision", "reason"), rows, left=3)
    found = {"tables": {o.table: _told(o) for o in outcomes}}
    broken = [f"{o.table}: {_problem(o)}" for o in outcomes if o.decision == "failed" or o.failed_checks]
    if broken or unwritten:
        raise UnfinishedError("; ".join([*broken, *unwritten]), found)
    return found


def _spoken(decision: str) -> str:
    return decision.replace("_", " ")


def _told(outcome: TableOutcome) -> Payload:
    from zorder_pipeline.assets.events import scripted

    told = {"decision": outcome.decision, "reasons": list(outcome.reasons), **scripted(outcome.figures)}
    if outcome.failed_checks:
        told["failed_checks"] = list(outcome.failed_checks)
    if outcome.partitions:
        told["partitions"] = {key: scripted(part) for key, part in outcome.partitions.items()}
    return told


def _configuration(given: str | None) -> PipelineConfig:
    """The configuration of ``--config``, else the one that was found; a table that is not there fails on its own.

    Of the shipped example, whose data may not be there yet, it is said that it is that.

    Raises:
        ConfigError: it is wrong.
    """
    from zorder_pipeline.config import config_file, load_config

    example = not given and not any(map(os.environ.get, ("ZORDER_CONFIG", "DAGSTER_HOME")))
    place = given or config_file()
    try:
        config = load_config(place, check_paths=example)
    except ConfigError as error:
        if not example:
            raise
        raise ConfigError(f"{error}; that is the example of zorder demo: name your own with --config") from error
    if example:
        err.print(f"this is the example of zorder demo, {place}: name your own with --config", soft_wrap=True)
    return config


def _problem(outcome: TableOutcome) -> str:
    if outcome.decision == "failed":
        return outcome.reasons[0].removeprefix(f"{outcome.table}: ")  # as a failed step has it for the UI
    return f"it was rewritten, but did not pass {', '.join(outcome.failed_checks)}"


@command
@click.option("--config", "config_path", type=click.Path(), help="tables.yaml; by default the one of DAGSTER_HOME.")
@click.option(
    "--out", "target", type=click.Path(), callback=replaceable, help="File to write; else the figures are printed."
)
def metrics(config_path: str | None, target: str | None) -> Payload:
    """Figures for alerting, as OpenMetrics: decisions, checks and ages of every table."""
    from zorder_pipeline.assets.instance import instance_at_hand
    from zorder_pipeline.assets.openmetrics import open_metrics, write_metrics
    from zorder_pipeline.config import config_file, load_config

    config = load_config(config_path or config_file(example=False), check_paths=False)
    if not os.environ.get("DAGSTER_HOME"):
        raise ZorderError("the figures are those of Dagster's runs: set DAGSTER_HOME to the home of these")
    with instance_at_hand() as instance:
        text = open_metrics(instance, config)
        if target is not None:
            write_metrics(instance, config, target)
    if target is None:
        out.print(text, end="", soft_wrap=True)
    return {"figures": sum(not line.startswith("#") for line in text.splitlines()), "file": target, "text": text}


@command
@click.option("--workload", default="demo", show_default=True, help="What to run; all: one after the other.")
@click.option("--quick", is_flag=True, help="The small version.")
@click.option("--scale", type=FiniteRange(min=0.001), help="Size of the data; the workload's own by default.")
@click.option("--seeds", type=click.IntRange(1), help="Repetitions; 2 when quick, else 5.")
@click.option(
    "--files", type=click.IntRange(2), help="Files (or row groups) of each table; the workload's own by default."
)
@click.option("--against", default="", help="Peers, comma-separated: default,sort,zorder,liquid,seed,...")
@click.option("--tables", default="", help="Of a workload's tables those to measure, comma-separated.")
@click.option(
    "--out", "target", default=".bench", show_default=True, type=click.Path(file_okay=False), help="Reports' folder."
)
def bench(
    workload: str,
    quick: bool,
    scale: float | None,
    seeds: int | None,
    files: int | None,
    against: str,
    tables: str,
    target: str,
) -> Payload:
    """Measure a workload against its peers in one run; writes JSON, Markdown and a picture."""
    from zorder_pipeline.benchmarks import reports, running

    leave_no_warehouse()
    peers, some = ([name.strip() for name in names.split(",") if name.strip()] for names in (against, tables))
    if workload == running.ALL:
        for option, given in (("--files", files), ("--tables", some)):
            if given:
                raise ZorderError(f"{option} means nothing to all workloads; name one, or leave it out")
        done = running.bench_all(out=target, quick=quick, seeds=seeds, scale=scale, against=peers, progress=Progress())
        out.print(f"written to {done['index']}")
        return done
    report = running.bench(
        workload,
        out=target,
        quick=quick,
        seeds=seeds,
        scale=scale,
        against=peers,
        files=files,
        tables=some,
        progress=Progress(),
    )
    out.print(reports.rich_table(report))
    out.print(f"written to {target}/{workload}.json and {target}/{workload}.md")
    return {key: value for key, value in report.items() if key != "outcomes"}


@click.command()
@click.option("--workdir", default=".demo", show_default=True, type=click.Path(), help="Folder of zorder demo.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the only line of stdout, at once.")
def ui(workdir: str, port: int, as_json: bool) -> None:
    """Open the Dagster UI on the demo's state (or on DAGSTER_HOME, when that is set and no --workdir is given)."""
    demos = is_said("workdir") or not os.environ.get("DAGSTER_HOME")
    place = os.path.join(workdir, "dagster_home") if demos else os.environ["DAGSTER_HOME"]
    home = Path(os.path.expanduser(place)).absolute()
    if not (home / "dagster.yaml").is_file():
        first = f"run zorder demo --workdir {workdir} first, or set DAGSTER_HOME"
        other = (
            "DAGSTER_HOME has to be the folder that zorder init made; without it, or with --workdir, it is the demo's"
        )
        raise ZorderError(f"{home} holds no dagster.yaml; {first if demos else other}")
    _free(port)
    environment = {**os.environ, "DAGSTER_HOME": str(home)}
    if demos:
        environment.pop("ZORDER_CONFIG", None)  # that of other tables
    program = Path(sys.executable).with_name("dagster")
    words = [str(program), "dev", "-m", "zorder_pipeline.assets", "-a", "defs", "-p", str(port)]
    address = f"http://127.0.0.1:{port}"
    err.print(Text.assemble("the UI will be at ", (address, "bold"), ", Ctrl-C ends it"))
    if as_json:
        print(json.dumps({"url": address, "dagster_home": str(home), "pid": os.getpid()}), flush=True)
        os.dup2(2, 1)  # Dagster's own lines go where other commands print theirs
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a script's background job: Dagster takes SIGTERM alike
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(words[0], words, environment)


def _free(port: int) -> None:
    """Refuse a port that is in use, before Dagster does: its daemon would go on without the UI, beside the first one.

    Raises:
        ZorderError: something listens there.
    """
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the UI does: one that just ended is no reason
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            way_out = "give another with --port"
            if error.errno == errno.EADDRINUSE:
                way_out = f"open http://127.0.0.1:{port} if that is this UI, or {way_out}"
            raise ZorderError(f"port {port} cannot be used ({error.strerror}): {way_out}") from error
