"""``zorder init``: a Dagster home for one's own table and log."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from zorder_pipeline.errors import ConfigError, ZorderError
from zorder_pipeline.model.places import is_uri, lies_in, local_path
from zorder_pipeline.model.wording import counted

from .common import DIALECTS, Payload, command, out

__all__ = ["init"]

CONFIG = """\
# Every key is explained in docs/configuration.md; relative paths start at this folder.
{spark}state: state
query_logs:
  - path: {log}
    dialect: {dialect}
tables:
  - name: {name}
    location: {location}
"""
OURS = ("state", "zorder_at_work")
DAGSTERS = ("defs_state", "history", "logs", "schedules", "storage")
"""Folders of a home that are no table's: what we keep there, and what Dagster keeps in its DAGSTER_HOME."""
CONNECTOR = """\
spark:
  conf:   # credentials: docs/cluster.md; where Spark reaches {scheme}:// without it (EMR, Dataproc, ...), remove this
    spark.jars.packages: {package}
"""


def _there(context: click.Context, option: click.Parameter, log: str) -> str:
    """A log on this machine must be there; one elsewhere is looked at by the first run."""
    if (local := local_path(log)) is not None:
        click.Path(exists=True).convert(local, option, context)
    return log


def _connecting(place: str) -> str:
    """Spark's settings for a table in an object store, as far as they can be known; none for other tables."""
    from zorder_pipeline.connectors import connector_of

    package = connector_of(place)
    return "" if package is None else CONNECTOR.format(scheme=place.partition(":")[0], package=json.dumps(package))


def _absolute(place: str) -> str:
    """A place on this machine from the root on, without ``..``; of links only those that ``..`` leads through go."""
    parts = Path(place).absolute().parts
    through = len(parts) - parts[::-1].index("..") if ".." in parts else 0
    return str(Path(*parts[:through]).resolve().joinpath(*parts[through:]) if through else Path(*parts))


def _quoted(text: str) -> str:
    r"""A text as YAML reads it back, and a person reads it: only what cannot be printed is escaped.

    >>> print(_quoted("Übersicht"), _quoted("ü\x7f"), _quoted('a "b"'))
    "Übersicht" "ü\U0000007f" "a \"b\""
    """
    shown = (each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
    escaped = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(escaped.get(each, each) for each in shown) + '"'


@command
@click.argument("home", type=click.Path(file_okay=False))
@click.option("--parquet", "sources", multiple=True, type=click.Path(exists=True), help="Parquet to make a table of.")
@click.option(
    "--partition-by",
    multiple=True,
    help="Column to partition the new table by, instead of those in the paths of the Parquet; may be repeated.",
)
@click.option("--table", help="Folder (or s3a://, abfss://, …) of a Delta table that there is, instead of --parquet.")
@click.option("--log", required=True, callback=_there, help="Query log: a file or a folder (or s3://, gs://, …).")
@click.option("--dialect", type=DIALECTS, default="spark", show_default=True, help="SQL dialect of the log.")
@click.option("--name", help="What statements call the table; by default the name of its folder or Parquet file.")
def init(
    home: str,
    sources: tuple[str, ...],
    partition_by: tuple[str, ...],
    table: str | None,
    log: str,
    dialect: str,
    name: str | None,
) -> Payload:
    """Make a Dagster home with tables.yaml for your own table and log; Parquet is copied into a new Delta table."""
    from zorder_pipeline.config import load_config
    from zorder_pipeline.config.fields import TABLE_NAME, TAKEN
    from zorder_pipeline.demo import example_home
    from zorder_pipeline.pipeline.rewriting.importing import refuse_target, table_from_parquet

    if bool(sources) == bool(table):
        raise ZorderError("give either --parquet, to make a Delta table of, or --table, one that there is already")
    if partition_by and not sources:
        raise ZorderError("--partition-by means nothing with --table, which stays as it is; leave it out")
    folder = Path(_absolute(home))
    if (folder / "tables.yaml").exists():
        raise ZorderError(f"{folder}/tables.yaml is there already; add the table to it, or name another folder")
    # a folder may have any dot in its name, as a database's tables do
    stem = Path(table).name if table else Path(sources[0]).name.removesuffix(".parquet")
    called = name or re.sub(r"[^A-Za-z0-9_]", "_", stem)[:100]
    if not TABLE_NAME.fullmatch(called):
        raise ZorderError(f"--name {called!r} must be of letters, digits and underscores, at most 100")
    if called.lower() in (TAKEN, *((*OURS, *DAGSTERS) if sources else ())):
        whose = "Dagster's" if called.lower() in DAGSTERS else "our"
        raise ZorderError(
            f"{called} is {whose} name of something beside the table; give another one with --name, and add {called} "
            f"to the table's aliases in tables.yaml if statements call it so"
        )
    place = table if table and is_uri(table) else _absolute(table) if table else str(folder / called)
    local = local_path(place)  # elsewhere it takes Spark to look
    if table and local is not None and not Path(local, "_delta_log").is_dir():
        raise ZorderError(
            f"{place} is no folder of a Delta table; make one of Parquet with --parquet, or write a table of a catalog "
            f"into tables.yaml by hand, as `catalog: sales.orders` instead of location"
        )
    if lies_in(str(folder / "state"), place):
        raise ZorderError(
            f"HOME {folder} lies in the folder of the table {place}, whose VACUUM deletes it; name another"
        )
    with _writing(folder):
        if sources:
            refuse_target(sources, place)
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    made = table_from_parquet(sources, Path(place), partition_by) if sources else None
    if (folder / "dagster.yaml").exists():
        out.print(f"{folder}/dagster.yaml is there already and stays as it is", soft_wrap=True)
    else:
        with _writing(folder):
            shutil.copy(example_home() / "dagster.yaml", folder / "dagster.yaml")
    written = folder / "tables.yaml"
    paths = {
        "log": _quoted(log if is_uri(log) else _absolute(log)),
        "location": _quoted(place),
        "name": _quoted(called),
    }  # quoted as YAML wants it
    other = f"    aliases: [{_quoted(stem)}]   # what the log may call it\n" if not name and stem != called else ""
    with _writing(folder):
        written.write_text(CONFIG.format(dialect=dialect, spark=_connecting(place), **paths) + other, encoding="utf-8")
    try:
        load_config(written)
    except ConfigError:
        written.unlink()
        raise
    if made is not None:
        parted = f", partitioned by {', '.join(made.partition_by)}" if made.partition_by else ""
        why = "" if partition_by or not parted else " as the Parquet is (--partition-by names other columns)"
        out.print(f"wrote {counted(made.rows, 'row')} to the new Delta table {place}{parted}{why}", soft_wrap=True)
    out.print(f"{written} is ready; go on with: DAGSTER_HOME={shlex.quote(str(folder))} zorder run", soft_wrap=True)
    told = {"rows": made.rows, "partition_by": list(made.partition_by)} if made else {"rows": None}
    return {"home": str(folder), "config": str(written), "table": place, **told}


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Tell in a sentence that nothing can be written there."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ZorderError(f"HOME {folder} cannot be written: {why}; name another folder") from error
