"""Reading ``tables.yaml``: paths made absolute, ``${NAME}`` filled in, every problem said with file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.model.places import is_uri, known_as, lies_in, local_path, shown_place

from .models import PipelineConfig, TableConfig
from .sentences import Problem, Source, Where, dotted, kind_of, sentence

__all__ = ["config_file", "load_config"]

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)(?!/|:memory:|file:)([^?]+)(.*)", re.DOTALL)
"""A database in a file with a relative path, and its options; else it starts where the process runs."""


def config_file(environment: Mapping[str, str] | None = None, *, example: bool = True) -> Path:
    """The configuration to use: ``ZORDER_CONFIG``, ``$DAGSTER_HOME/tables.yaml``, or without both the example.

    Args:
        environment: variables; those of the process when None.
        example: whether the checkout's will do. Not for who stops or answers: that would be another one's state.

    Raises:
        ConfigError: there is none.
    """
    environment = os.environ if environment is None else environment
    if named := environment.get("ZORDER_CONFIG"):
        return Path(named)
    here = Path(__file__).resolve().parents[2] / "dagster_home" / "tables.yaml"
    home = environment.get("DAGSTER_HOME")
    place = Path(os.path.expanduser(home)) / "tables.yaml" if home else here if example else None
    if place is not None and place.is_file():
        return place
    lacking = f" (DAGSTER_HOME={home} has none)" if home else ""
    raise ConfigError(
        f"no configuration: give --config, set ZORDER_CONFIG to a tables.yaml, or put one into DAGSTER_HOME{lacking}"
    )


def load_config(path: str | Path, *, check_paths: bool = True) -> PipelineConfig:
    """Read a configuration file.

    Args:
        path: ``tables.yaml``.
        check_paths: whether local logs and table folders must exist (Dagster's definitions load before they do).

    Raises:
        ConfigError: the file is missing, no YAML, or says something that is not allowed; the sentence names the first
            problem and how many more there are.
    """
    file = Path(os.path.expanduser(path)).absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"configuration file {path} does not exist; correct --config or ZORDER_CONFIG, or unset that"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {path} cannot be read: {error}") from error
    source = Source(str(path), text)
    if not isinstance(source.data, dict):
        given = kind_of(source.data)
        raise ConfigError(f"{path}: the file must hold keys such as tables: and query_logs:, not {given}")
    problems = [*_resolve(source.data, file.parent)]
    try:
        config = PipelineConfig.model_validate(source.data)
    except ValidationError as error:
        problems += dict.fromkeys(sentence(detail) for detail in error.errors())
    else:
        problems += _duplicates(config)
        if check_paths and not problems:
            problems += _missing_paths(config)
    if problems:
        # of two in a line, a misspelt key before the one that is missing because of it
        problems.sort(key=lambda problem: (source.line(problem[0]), problem[1].startswith("is missing")))
        (where, what), more = problems[0], len(problems) - 1
        rest = f" (and {more} more problem{'s' * (more > 1)})" if more else ""
        raise ConfigError(f"{source.place(where)}: {dotted(where, source.data)} {what}{rest}")
    return config


def _resolve(data: dict[str, Any], folder: Path) -> Iterator[Problem]:
    """Fill in ``${NAME}`` and make paths absolute, in place; what is no string is left for the models to refuse."""
    data.setdefault("state", "state")
    holders: list[tuple[Where, Any, str]] = [((), data, "state")]
    for key, name in (("query_logs", "path"), ("tables", "location")):
        entries = data.get(key)
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            holders.append(((key, i), entry, name))
    holders.append((("monitoring",), data.get("monitoring"), "metrics_file"))
    tables = data.get("tables")
    for i, table in enumerate(tables if isinstance(tables, list) else ()):
        holders.append((("tables", i, "search"), table.get("search") if isinstance(table, dict) else None, "study"))
    for where, holder, name in holders:
        if isinstance(holder, dict) and isinstance(holder.get(name), str):
            if (problem := _expand(holder, name)) is not None:
                yield (*where, name), problem
            elif (path := os.path.expanduser(holder[name])).startswith("~"):
                yield (*where, name), f"begins with {path.partition('/')[0]}, a home that is not known; name the folder"
            else:
                holder[name] = _absolute(path, folder)
    spark = data.get("spark")
    conf = spark.get("conf") if isinstance(spark, dict) else None
    settings: Sequence[tuple[Where, Any]] = ((("spark",), spark), (("spark", "conf"), conf))
    for place, setting in settings:
        for name in list(setting) if isinstance(setting, dict) else ():
            if isinstance(setting[name], str) and (problem := _expand(setting, name)) is not None:
                yield (*place, str(name)), problem


def _expand(holder: dict[str, Any], name: str) -> str | None:
    for variable in VARIABLE.findall(holder[name]):
        if variable not in os.environ:
            return f"uses the environment variable {variable}, which is not set"
    holder[name] = VARIABLE.sub(lambda match: os.environ[match.group(1)], holder[name])
    return None


def _absolute(path: str, folder: Path) -> str:
    if database := SQLITE.fullmatch(path):
        scheme, file, options = database.groups()
        return f"{scheme}{_absolute(os.path.expanduser(file), folder)}{options}"
    if not path.strip() or is_uri(path):
        return path
    return os.path.normpath(folder / path)


def _duplicates(config: PipelineConfig) -> list[Problem]:
    problems: list[Problem] = []
    owner: dict[str, tuple[int, str]] = {}
    for i, table in enumerate(config.tables):
        for key, value in _own(table):
            first, of_whom = owner.setdefault(known_as(value) if key == "location" else value, (i, table.name))
            if first != i:
                what = f"is {value}, as for table {of_whom}; each table needs its own"
                problems.append((("tables", i, key), what))
    seen: set[str] = set()
    for i, log in enumerate(config.query_logs):
        if known_as(log.path) in seen:
            problems.append((("query_logs", i, "path"), f"names {shown_place(log.path)} a second time; keep one"))
        seen.add(known_as(log.path))
    for table in config.tables:
        if table.location and lies_in(config.state, table.location):
            where = f"in the folder of {table.name}, where Delta takes it for a part of the table"
            problems.append((("state",), f"is {config.state}, {where}; choose another"))
    if (file := config.monitoring.metrics_file) and os.path.isdir(file):
        problems.append((("monitoring", "metrics_file"), f"is the folder {file}; name a file in it"))
    if not config.tables:
        problems.append((("tables",), "is empty; name at least one table"))
    return problems


def _own(table: TableConfig) -> Iterator[tuple[str, str]]:
    """What only one table can have, each with its key: its place, and all that statements may call it (in any case)."""
    if table.location:
        yield "location", table.location
    called = [("name", table.name), *([("catalog", table.catalog)] if table.catalog else [])]
    for key, value in dict.fromkeys([*called, *(("aliases", alias) for alias in table.aliases)]):
        yield key, value.lower()


def _missing_paths(config: PipelineConfig) -> Iterator[Problem]:
    for i, log in enumerate(config.query_logs):
        if not _exists(log.path):
            yield ("query_logs", i, "path"), f"names {log.path}, which does not exist"
    for i, table in enumerate(config.tables):
        if table.location and not _exists(table.location):
            yield ("tables", i, "location"), f"names {table.location}, which does not exist"


def _exists(path: str) -> bool:
    """Whether a local path exists; of other filesystems nothing is known here."""
    local = local_path(path)
    return local is None or os.path.exists(local)
