"""``zorder``, the command line: thin commands over `zorder_pipeline.pipeline` (the contract is design section 4)."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from zorder_pipeline import __version__
from zorder_pipeline.errors import ZorderError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import LearnSettings, LogSource

__all__ = ["main"]

Payload = dict[str, Any]
LOG_FORMATS = click.Choice(["auto", "sql", "spark-events", "query-history"])
err = Console(stderr=True, highlight=False)
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


class _Progress:
    """Lines on stderr with the seconds since the start; a live line on a terminal."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, text: str) -> None:
        end = "\r" if err.is_terminal and text.startswith("trial ") else "\n"
        err.print(f"[dim]{time.monotonic() - self.started:6.1f}s[/] {text}", end=end, soft_wrap=True)


def _command(function: Callable[..., Payload]) -> click.Command:
    """A command with ``--json``: its result is printed by the function, or as one JSON object on the last line."""

    @functools.wraps(function)
    def run(*args: Any, as_json: bool, **kwargs: Any) -> None:
        out.quiet = as_json
        payload = function(*args, **kwargs)
        if as_json:
            print(json.dumps(payload, default=_plain))

    named = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line of stdout.")(
        run
    )
    return click.command(name=function.__name__.rstrip("_"), help=function.__doc__)(named)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _spark(app: str) -> SparkSession:
    from zorder_pipeline.spark import session

    err.print(f"[dim]starting Spark for {app}[/]")
    conf = dict(pair.split("=", 1) for pair in os.environ.get("ZORDER_SPARK_CONF", "").split(";") if "=" in pair)
    return session(conf, f"zorder {app}")


def _logs(paths: tuple[str, ...], log_format: str, dialect: str, zone: str) -> list[LogSource]:
    from zorder_pipeline.pipeline import LogSource

    return [LogSource(path, log_format, dialect, zone) for path in paths]


_table = click.option("--table", required=True, help="Path or catalog name of the Delta table.")
_alias = click.option("--alias", "aliases", multiple=True, help="Another name the log calls the table by.")


def _log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--time-zone", "zone", default="UTC", show_default=True, help="Session time zone of the log."),
        click.option("--dialect", default="spark", show_default=True, help="SQL dialect of the log."),
        click.option("--log-format", type=LOG_FORMATS, default="auto", show_default=True),
        click.option("--log", "logs", multiple=True, required=True, help="Query log: a file or a folder."),
    ):
        function = option(function)
    return function


def _size_options(function: Callable[..., Any]) -> Callable[..., Any]:
    rows = click.option("--target-file-rows", type=click.IntRange(1), help="Rows per file to aim for.")
    size = click.option("--target-file-bytes", type=click.IntRange(1024), help="Bytes per file to aim for.")
    sample = click.option("--sample-rows", type=click.IntRange(1000), default=100_000, show_default=True)
    return rows(size(sample(function)))


def _settings(target_file_rows: int | None, target_file_bytes: int | None, **others: Any) -> LearnSettings:
    from zorder_pipeline.pipeline import LearnSettings

    if target_file_rows and target_file_bytes:
        raise ZorderError("give --target-file-rows or --target-file-bytes, not both")
    return LearnSettings(target_file_rows=target_file_rows, target_file_bytes=target_file_bytes, **others)


def _figures(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in rows:
        table.add_row(f"[bold]{name}[/]", value)
    out.print(table)


@_command
@_log_options
@click.option("--state", help="Folder of the pipeline's state; the log is stored there when given.")
def ingest(logs: tuple[str, ...], log_format: str, dialect: str, zone: str, state: str | None) -> Payload:
    """Read a query log: how many statements can be used, for which tables, and why the others cannot."""
    from zorder_pipeline import pipeline

    sources = _logs(logs, log_format, dialect, zone)
    log = pipeline.ingest(sources)
    if state is not None:
        pipeline.store_log(_spark("ingest"), state, sources, log)
    payload = log.to_json()
    _figures("Query log", [(key, f"{payload[key]:,}") for key in ("lines", "used", "ignored", "quarantined")])
    for title, counts in (("Tables", payload["tables"]), ("Reasons", payload["reasons"])):
        if counts:
            _figures(title, [(name, f"{count:,}") for name, count in sorted(counts.items(), key=lambda item: -item[1])])
    return payload


@_command
@_table
@_log_options
@_alias
@click.option("--trials", type=click.IntRange(1), default=600, show_default=True, help="Layouts to evaluate.")
@click.option("--seed", type=int, default=0, show_default=True)
@_size_options
@click.option("--out", "target", required=True, type=click.Path(), help="Where to write plan.json.")
def learn(
    table: str,
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    aliases: tuple[str, ...],
    trials: int,
    seed: int,
    target: str,
    **sizes: Any,
) -> Payload:
    """Learn the row order that lets the log's queries skip most, and write it to plan.json."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import write_plan

    settings = _settings(trials=trials, seed=seed, **sizes)
    sources = _logs(logs, log_format, dialect, zone)
    plan = pipeline.learn(_spark("learn"), table, sources, aliases=aliases, settings=settings, progress=_Progress())
    write_plan(plan, target)
    payload = pipeline.describe(plan)
    shares = Table(title="Share of rows read by queries that took no part in the search", title_justify="left")
    shares.add_column("layout")
    shares.add_column("share", justify="right")
    for name, share in sorted(
        [*plan.baselines.items(), ("this plan", plan.predicted["validation_fraction"])], key=lambda x: x[1]
    ):
        shares.add_row(f"[bold green]{name}[/]" if name == "this plan" else name, f"{share:.1%}")
    out.print(shares)
    for sentence in pipeline.in_words(plan):
        out.print(sentence, soft_wrap=True)
    out.print(f"plan written to {target}; apply it with: zorder apply --table {table} --plan {target}", soft_wrap=True)
    return payload


@_command
@_table
@click.option("--bits", required=True, help="Bits per column, most significant first, e.g. ship:9,part:4.")
@click.option("--encoding", type=click.Choice(["rank", "bits"]), default="rank", show_default=True)
@click.option(
    "--curve", type=click.Choice(["interleave", "hilbert", "sequence"]), default="interleave", show_default=True
)
@_size_options
@click.option("--out", "target", required=True, type=click.Path(), help="Where to write plan.json.")
def layout(table: str, bits: str, encoding: str, curve: str, target: str, **sizes: Any) -> Payload:
    """Write a plan for a layout given by hand."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import write_plan

    settings = _settings(**sizes)
    allocation = _bits(bits)
    plan = pipeline.layout_by_hand(
        _spark("layout"), table, allocation, encoding=encoding, curve=curve, settings=settings
    )
    write_plan(plan, target)
    for sentence in pipeline.in_words(plan):
        out.print(sentence, soft_wrap=True)
    out.print(
        f"plan written to {target}; apply it with: zorder apply --table {table} --plan {target} --force", soft_wrap=True
    )
    return pipeline.describe(plan)


def _bits(text: str) -> dict[str, int]:
    result: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.rpartition(":")
        if not name.strip() or not count.strip().isdigit() or not int(count):
            raise ZorderError(f"--bits {text!r}: {part!r} is not column:bits with at least one bit, e.g. ship:9,part:4")
        result[name.strip()] = result.get(name.strip(), 0) + int(count)
    return result


@_command
@_table
@click.option("--plan", "plan_path", required=True, type=click.Path(), help="plan.json from zorder learn or layout.")
@click.option("--where", help="Condition on partition columns, e.g. \"ds = '2026-01-01'\".")
@click.option("--full", is_flag=True, help="Rewrite files that already lie by this layout, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--force", is_flag=True, help="Do not ask the gate whether it pays.")
@click.option("--verify", type=click.Choice(["counts", "hash"]), default="counts", show_default=True)
def apply(table: str, plan_path: str, **options: Any) -> Payload:
    """Rewrite the files that the plan wants elsewhere, in one Delta transaction, if the gate finds that it pays."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import read_plan

    plan = read_plan(plan_path)
    result = pipeline.apply(_spark("apply"), table, plan, progress=_Progress(), **options)
    verb = {"applied": "would be applied" if result.dry_run else "applied"}.get(
        result.decision, result.decision.replace("_", " ")
    )
    _figures(
        f"{table}: {verb}",
        [
            ("files removed", f"{result.files_removed:,}"),
            ("files added", f"{result.files_added:,}"),
            ("files left alone", f"{result.skipped_files:,}"),
            ("rows rewritten", f"{result.rows:,}"),
            ("bytes rewritten", f"{result.bytes_rewritten:,}"),
            ("table version", str(result.version)),
        ],
    )
    for reason in result.reasons:
        out.print(f"- {reason}", soft_wrap=True)
    return result.to_json()


@_command
@_table
@_log_options
@_alias
def evaluate(
    table: str, logs: tuple[str, ...], log_format: str, dialect: str, zone: str, aliases: tuple[str, ...]
) -> Payload:
    """What the log's queries read of the table as it lies now, from its own statistics and Parquet footers."""
    from zorder_pipeline import pipeline

    sources = _logs(logs, log_format, dialect, zone)
    found = pipeline.evaluate(_spark("evaluate"), table, sources, aliases=aliases, progress=_Progress())
    payload = found.to_json()
    groups = payload["row_groups_read_fraction"]
    _figures(
        f"{table}: what {found.queries:,} queries read",
        [
            ("files", f"{payload['files_read_mean']:,.1f} of {found.files:,}"),
            ("rows", f"{payload['rows_read_mean']:,.0f} of {found.rows:,} ({payload['rows_read_fraction']:.2%})"),
            ("row groups", "unknown" if groups is None else f"{groups:.2%}"),
            ("bytes", f"{payload['bytes_read_mean']:,.0f}"),
            ("rows that match", f"{payload['matched_fraction']:.3%}"),
            ("unusable statements", f"{found.unusable:,}"),
        ],
    )
    return payload


@_command
@_table
def inspect(table: str) -> Payload:
    """Files, layouts and tags of a table, and how much its files overlap per column."""
    from zorder_pipeline import pipeline

    payload = pipeline.inspect(_spark("inspect"), table)
    _figures(
        f"{payload['table']} at version {payload['version']}",
        [
            ("files", f"{payload['files']:,}"),
            ("rows", f"{payload['rows']:,}"),
            ("bytes", f"{payload['bytes']:,}"),
            ("clustered by us", f"{payload['clustered_fraction']:.1%} of the rows"),
            *((f"layout {name}", f"{count:,} files") for name, count in payload["layouts"].items()),
        ],
    )
    overlap = Table(title="Overlap: files that a look-up of one value would read, on average", title_justify="left")
    for name in ("column", "files", "share"):
        overlap.add_column(name, justify="left" if name == "column" else "right")
    for column, depth in payload["overlap_depth"].items():
        overlap.add_row(column, f"{depth:,.1f}", f"{depth / max(1, payload['files']):.1%}")
    out.print(overlap)
    return payload


@_command
@_table
@click.option(
    "--to-version", type=click.IntRange(0), help="Version to restore; the one before our last relayout by default."
)
def rollback(table: str, to_version: int | None) -> Payload:
    """Put the table back to how it lay before our last relayout."""
    from zorder_pipeline.relayout.rollback import rollback as restore

    done = restore(_spark("rollback"), table, to_version)
    payload = done if isinstance(done, dict) else vars(done)
    out.print(
        f"{table} lies again as at version {payload['restored_version']}; that is now version {payload['version']}"
    )
    return dict(payload)


@_command
@click.option("--scale", type=click.FloatRange(min=0.001), default=0.1, show_default=True, help="TPC-H scale factor.")
@click.option("--queries", type=click.IntRange(20), default=500, show_default=True, help="Statements in each log.")
@click.option("--workdir", default=".demo", show_default=True, type=click.Path(), help="Where everything goes.")
def demo(scale: float, queries: int, workdir: str) -> Payload:
    """The whole chain on TPC-H lineitem through the real Dagster job, measured on queries nobody has seen."""
    from zorder_pipeline.demo import run_demo

    found = run_demo(workdir, scale, queries, _Progress())
    payload = found.to_json()
    table = Table(title=f"What {found.queries:,} unseen queries read on average", title_justify="left")
    for name in ("layout", "files", "rows", "share of the rows", "MB"):
        table.add_column(name, justify="left" if name == "layout" else "right")
    labels = {
        "stored": "as stored",
        "zorder": f"OPTIMIZE ZORDER BY ({', '.join(found.zorder_columns)})",
        "ours": "ours",
    }
    for name, figures in found.contenders.items():
        style = "[bold green]" if name == "ours" else "[default]"
        cells = (
            labels[name],
            f"{figures['files_read_mean']:.1f} of {figures['files']}",
            f"{figures['rows_read_mean']:,.0f}",
            f"{figures['rows_read_fraction']:.1%}",
            f"{figures['bytes_read_mean'] / 1e6:.2f}",
        )
        table.add_row(*(f"{style}{cell}[/]" for cell in cells))
    out.print(table)
    out.print(
        f"Ours reads [bold]{found.ratio:.2f}[/] of the rows that are read after ZORDER; every result is the same."
    )
    out.print("\n[bold]The layout[/]")
    for sentence in found.layout:
        out.print(f"  {sentence}", soft_wrap=True)
    out.print(f"\n[bold]The gate[/]: {found.decision['decision'].replace('_', ' ')}")
    for sentence in found.decision["reasons"]:
        out.print(f"  {sentence}", soft_wrap=True)
    assumed = found.decision.get("gate", {}).get("assumptions", {})
    if assumed:
        rate = f"{assumed['queries_per_day']:,.0f} queries a day ({assumed['rate_source']})"
        out.print(f"  it assumed {rate} and a horizon of {assumed['horizon_days']:g} days", soft_wrap=True)
    costs = {"learn": "learning", "ours": "our rewrite", "zorder": "OPTIMIZE ZORDER on the copy"}
    spent = [f"{costs[name]} {seconds:.1f} s" for name, seconds in found.costs.items() if name in costs]
    out.print(f"\n[bold]What it cost[/]: {', '.join(spent)}")
    out.print("\n[bold]Where things are[/]")
    for name, place in found.places.items():
        out.print(f"  {name}: {place}", soft_wrap=True)
    out.print(f"  UI: make ui, or zorder ui --workdir {workdir} (then open the address it prints)", soft_wrap=True)
    return payload


@_command
@click.option("--config", "config_path", type=click.Path(), help="tables.yaml; by default the one of DAGSTER_HOME.")
@click.option("--table", "tables", multiple=True, help="Only this table of the configuration; may be repeated.")
def run(config_path: str | None, tables: tuple[str, ...]) -> Payload:
    """The configured pipeline for all tables, without the UI; a table that fails does not stop the others."""
    from zorder_pipeline.assets.definitions import config_file
    from zorder_pipeline.assets.run import quiet_dagster, run_tables
    from zorder_pipeline.config import load_config

    config = load_config(config_path or config_file())
    with quiet_dagster():
        outcomes = run_tables(config, tables, progress=_Progress())
    shown = Table(title="Tables", title_justify="left")
    for name in ("table", "decision", "reason"):
        shown.add_column(name)
    for outcome in outcomes:
        shown.add_row(outcome.table, outcome.decision.replace("_", " "), outcome.reasons[0] if outcome.reasons else "")
    out.print(shown)
    if broken := [f"{o.table}: {o.reasons[0]}" for o in outcomes if o.decision == "failed" or o.failed_checks]:
        raise ZorderError("; ".join(broken))
    return {"tables": {o.table: {"decision": o.decision, "reasons": list(o.reasons), **o.figures} for o in outcomes}}


@_command
@click.option("--workload", default="demo", show_default=True, help="What to run.")
@click.option("--quick", is_flag=True, help="The small version.")
@click.option("--scale", type=click.FloatRange(min=0.001), help="Size of the data; the workload's own by default.")
@click.option("--seeds", type=click.IntRange(1), help="Repetitions; 2 when quick, else 5.")
@click.option("--against", default="", help="Peers, comma-separated: stored,sort,zorder,liquid,...")
@click.option("--out", "target", default=".bench", show_default=True, type=click.Path(), help="Folder of the reports.")
def bench(workload: str, quick: bool, scale: float | None, seeds: int | None, against: str, target: str) -> Payload:
    """Measure a workload against its peers in one run; writes JSON and Markdown."""
    from zorder_pipeline.benchmarks import harness

    peers = [name.strip() for name in against.split(",") if name.strip()]
    report = harness.bench(
        workload, out=target, quick=quick, seeds=seeds, scale=scale, against=peers, progress=_Progress()
    )
    out.print(harness.rich_table(report))
    out.print(f"written to {target}/{workload}.json and {target}/{workload}.md")
    return {key: value for key, value in report.items() if key != "outcomes"}


@click.command()
@click.option("--workdir", default=".demo", show_default=True, type=click.Path(), help="Folder of zorder demo.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
def ui(workdir: str, port: int) -> None:
    """Open the Dagster UI on the demo's state (or on DAGSTER_HOME, when that is set)."""
    home = Path(os.environ.get("DAGSTER_HOME") or Path(workdir).absolute() / "dagster_home")
    if not (home / "dagster.yaml").is_file():
        raise ZorderError(
            f"{home} holds no dagster.yaml; run zorder demo --workdir {workdir} first, or set DAGSTER_HOME"
        )
    environment = {**os.environ, "DAGSTER_HOME": str(home)}
    program = Path(sys.executable).with_name("dagster")
    command = [str(program), "dev", "-m", "zorder_pipeline.assets", "-a", "defs", "-p", str(port)]
    err.print(f"the UI will be at [bold]http://127.0.0.1:{port}[/], Ctrl-C ends it")
    os.execve(command[0], command, environment)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def zorder() -> None:
    """Learn from the queries really asked how a Delta table should lie, prove that it pays, rewrite what needs it."""


for _each in (demo, run, ingest, learn, layout, apply, evaluate, inspect, rollback, bench, ui):
    zorder.add_command(_each)


def main() -> None:
    """Entry point: every expected error is one sentence on stderr and a non-zero exit."""
    try:
        zorder.main(standalone_mode=False)
    except ZorderError as error:
        _fail(str(error), 1)
    except click.exceptions.Abort:
        _fail("interrupted; nothing was committed", 130)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except Exception as error:
        if os.environ.get("ZORDER_DEBUG"):
            raise
        first = (str(error).strip().splitlines() or ["no message"])[0][:300]
        _fail(f"unexpected {type(error).__name__}: {first} (set ZORDER_DEBUG=1 for the trace)", 70)


def _fail(sentence: str, code: int) -> None:
    err.print(f"zorder: {' '.join(sentence.split())}", soft_wrap=True, markup=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
