"""Scans in a query plan as Spark's event log describes it: which table, and by what it is filtered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate, comparisons
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.catalog import OTHER_FORMATS, Catalog
from zorder_pipeline.query_log.statements.recipe import Recipe, Scan

from .plan_grammar import Filters
from .plan_sources import source_filters
from .plan_text import catalyst_filters

__all__ = ["CHOSEN_FILES", "PlanScan", "TypesOf", "counters_of", "no_types", "scans_of"]

SCAN = re.compile(r"(?:Gpu|Photon|Columnar|Native|Comet|Velox)?\s?(?:File|Batch|Delta)?Scan(?:Exec\w*)?\b", re.I)
OUTPUTS, OUTPUT = re.compile(r"\[([^\[\]]*#\d[^\[\]]*)\]"), re.compile(r"(.+)#\d+L?")
LOCATION = re.compile(r"\[([^\]]*)\]?")
CATALYST = ("DataFilters", "RequiredDataFilters", "OptionalDataFilters", "DictionaryFilters", "PartitionFilters")
KEYS = (*CATALYST, "Location", "ReadSchema", "PushedFilters", "Format")
THROUGH = re.compile(r"WholeStageCodegen|InputAdapter|ColumnarToRow|GpuColumnarToRow|Filter|GpuFilter|PhotonFilter")
FORMATS = frozenset({"parquet", "delta", "orc", "csv", "json", "text", "avro", "ExistingRDD"})
PLAIN_FILES = ("InMemoryFileIndex", "CatalogFileIndex")
"""Indexes of files that are no Delta table."""
CHOSEN_FILES = "TahoeBatchFileIndex"
"""Delta's index of files that a command or a stream has chosen, by whatever it asked before."""
INTERNAL = re.compile(r"_tmp_metadata|__delta_internal|_metadata\b")
MAX_DEPTH = 500
TypesOf = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Spark types of the partition columns of the table that goes by these names: a plan does not tell them."""


def no_types(_: tuple[str, ...]) -> Mapping[str, str]:
    """Nothing is known of any table."""
    return {}


@dataclass(frozen=True)
class PlanScan:
    """A scan of one table in a plan; see `zorder_pipeline.model.workload.LoggedQuery`.

    Attributes:
        names: what the table may be called: catalog name, location.
        is_delta: whether the files may be a Delta table's: of the Parquet format, and found by an index of its own.
        counters: ids of the accumulators of the rows and the bytes that it read, None where it has none. A scan that a
            plan shows twice, because its result is used twice, has the same ones.
    """

    names: tuple[str, ...]
    predicate: Predicate
    columns: tuple[str, ...]
    partial: bool
    template: str
    is_delta: bool = True
    counters: tuple[int | None, int | None] = (None, None)


def counters_of(plan: Mapping[str, Any]) -> set[int]:
    """Ids of the accumulators that the plan's scans count with."""
    return {
        found
        for node, _ in _nodes(plan)
        if SCAN.match(str(node.get("nodeName")))
        for found in _counters(node)
        if found is not None
    }


def _counters(node: Mapping[str, Any]) -> tuple[int | None, int | None]:
    metrics = [metric for metric in node.get("metrics") or [] if isinstance(metric, Mapping)]
    ids = {metric.get("name"): metric.get("accumulatorId") for metric in metrics}
    rows, size = ids.get("number of output rows"), ids.get("size of files read")
    return rows if isinstance(rows, int) else None, size if isinstance(size, int) else None


def scans_of(plan: Mapping[str, Any], timestamp: int | None, zone: str, types_of: TypesOf = no_types) -> list[PlanScan]:
    """The scans of data in a plan. Reads of Delta's own log, and of what is cached in memory, are left out.

    So is what reads all rows of files that were chosen before: OPTIMIZE, the second half of UPDATE and MERGE, a
    stream, or a relayout of ours. No order of the rows makes that read less.

    Args:
        plan: ``sparkPlanInfo`` of an event.
        zone: session time zone; "" where the log tells none.
        types_of: what is known of the partition columns: plans print ``year = 2024`` of numbers and of texts alike.
    """
    nodes = list(_nodes(plan))
    joined = any("Join" in str(node.get("nodeName")) for node, _ in nodes)
    found = (_scan(node, above, joined, timestamp, zone, types_of) for node, above in nodes)
    return [scan for scan in found if scan is not None]


def _nodes(plan: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Every node with the texts of the ``Filter`` nodes right above it."""
    stack: list[tuple[Mapping[str, Any], tuple[str, ...], int]] = [(plan, (), 0)]
    while stack:
        node, above, depth = stack.pop()
        if depth > MAX_DEPTH:
            continue
        name = str(node.get("nodeName") or "")
        yield node, above
        if name.startswith("InMemoryTableScan"):
            continue
        text = str(node.get("simpleString") or "")
        if "Filter" in name and (at := text.find(" ")) > 0:
            above = (*above, text[at + 1 :])
        elif not THROUGH.search(name):
            above = ()
        children = [child for child in node.get("children") or [] if isinstance(child, Mapping)]
        stack += [(child, above, depth + 1) for child in reversed(children)]


def _scan(
    node: Mapping[str, Any], above: tuple[str, ...], joined: bool, timestamp: int | None, zone: str, types_of: TypesOf
) -> PlanScan | None:
    name, text = str(node.get("nodeName") or ""), str(node.get("simpleString") or "")
    if not SCAN.match(name):
        return None
    metadata = node.get("metadata")
    facts = {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, Mapping) else {}
    for key in KEYS:  # GPU and V2 scans say it in their text only
        if key not in facts and (found := _in_text(text, key)) is not None:
            facts[key] = found
    location = facts.get("Location", "")
    if "_delta_log" in location or "DeltaLogFileIndex" in location or not (location or "ReadSchema" in facts):
        return None
    names = tuple(dict.fromkeys([*_catalog_name(name), *_paths(location)]))
    if not names:
        return None
    read = _leaves_of(facts.get("ReadSchema", ""))
    columns = {column.name: column for column in (Column.at((name,), kind) for name, kind in types_of(names).items())}
    columns |= {column.name: column for column in read}
    types = {name: column.type for name, column in columns.items()}
    outputs = _outputs(text)
    told = partial(catalyst_filters, types=types, names=outputs or (), whole=outputs is not None, zone=zone)
    filters = _filters(facts, above, types, told)
    catalog = Catalog(schemas={"": TableSchema(tuple(columns.values()))} if columns else {})
    known = {column.lower(): column for column in types}

    def resolve(column: exp.Column) -> str | None:
        path = ".".join(part.name for part in column.parts)
        if INTERNAL.match(path):
            return None
        return known.get(path.lower(), path)

    def asked(by: Filters) -> Scan:
        return Recipe("", tuple(by.conditions), resolve, catalog).scan(timestamp, zone or "UTC")

    scan = asked(filters)
    predicate = _without_inferred(scan.predicate, joined)
    predicate, guessed = _without_guesses(predicate)
    if location.startswith(CHOSEN_FILES) and not any(comparisons(predicate)):
        # our own scans choose files, too, most of all by conditions that are no comparisons; what a DELETE leaves of a
        # file it has chosen is told by a filter above, never by the scan itself
        own = asked(_filters(facts, (), types, told))
        if not any(_columns(own.predicate)):
            return None
    top = dict.fromkeys(column.parts[0] for column in read if not INTERNAL.match(column.name))
    unsure = filters.partial or scan.partial or guessed
    other = facts.get("Format", "").lower() in OTHER_FORMATS - {"parquet"} or location.startswith(PLAIN_FILES)
    return PlanScan(names, predicate, tuple(top), unsure, _template(names, filters), not other, _counters(node))


def _outputs(text: str) -> list[str] | None:
    """The columns that a scan's text lists; None where it lists none, or was cut off.

    >>> _outputs("FileScan parquet shop.t[id#1L,odd name#2] Batched: true"), _outputs("Scan t[id#1,... 3 more fields]")
    (['id', 'odd name'], None)
    """
    listed = OUTPUTS.search(text)
    found = [OUTPUT.fullmatch(item.strip()) for item in listed[1].split(",")] if listed else []
    names = [each[1] for each in found if each is not None]
    return names if names and len(names) == len(found) else None


def _in_text(text: str, key: str) -> str | None:
    at = text.find(f"{key}: ")
    if at < 0:
        return None
    start = at + len(key) + 2
    following = [text.find(f", {other}: ", start) for other in KEYS]
    end = min((place for place in following if place > 0), default=len(text))
    return text[start:end].rstrip()


def _catalog_name(node_name: str) -> Iterator[str]:
    rest = SCAN.sub("", node_name, count=1).strip()
    first, _, following = rest.partition(" ")
    if first.lower() in FORMATS:
        rest = following
    rest = rest.split("[", 1)[0].strip()
    if rest and "/" not in rest and "." in rest:
        yield rest.replace("`", "")


def _paths(location: str) -> Iterator[str]:
    found = LOCATION.search(location)
    for path in (found.group(1) if found else "").split(", "):
        if path and not path.endswith("..."):
            yield path.rstrip("/")


def _filters(
    facts: Mapping[str, str], above: tuple[str, ...], types: Mapping[str, str], told: Callable[[str], Filters]
) -> Filters:
    """All filters that are known of a scan.

    ``DataFilters``, ``PartitionFilters`` and the filter nodes right above hold everything; where a reader does not
    print them, the pushed filters have to do.

    Args:
        told: reads Catalyst's expressions.
    """
    found = Filters()
    complete = any(key in facts for key in ("DataFilters", "RequiredDataFilters"))
    texts = [told(facts[key]) for key in CATALYST if key in facts]
    cut = not complete or any(item.partial for item in texts)
    for text in above:  # what mixes partition columns with others stands there only
        item = told(text)
        texts.append(item if cut else Filters(item.conditions))
    if cut and "PushedFilters" in facts:
        texts.append(source_filters(facts["PushedFilters"], types))
    for item in texts:
        found.partial = found.partial or item.partial
        found.conditions += [node for node in item.conditions if node not in found.conditions]
    return found


def _without_inferred(predicate: Predicate, joined: bool) -> Predicate:
    """Without the ``isnotnull(c)`` that Spark adds for every comparison of c, and for the keys of a join."""
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    compared = {column for part in parts for column in _columns(part)}

    def inferred(part: Predicate) -> bool:
        null = isinstance(part, Comparison) and part.op == "is_not_null"
        return null and (joined or (isinstance(part, Comparison) and part.column in compared))

    kept = tuple(part for part in dict.fromkeys(parts) if not inferred(part))
    return kept[0] if len(kept) == 1 else And(kept)


def _without_guesses(predicate: Predicate) -> tuple[Predicate, bool]:
    """Without columns that equal two things at once: a string with brackets in it that could be read in two ways."""
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    equal = [part for part in parts if isinstance(part, Comparison) and part.op == "="]
    columns = [part.column for part in equal]
    twice = {name for name in columns if columns.count(name) > 1}
    kept = tuple(part for part in parts if not twice.intersection(_columns(part)))
    return (kept[0] if len(kept) == 1 else And(kept)), bool(twice)


def _columns(predicate: Predicate) -> Iterator[str]:
    """Columns that more is asked of than whether they are null."""
    match predicate:
        case Comparison(column=column, op=op) if op != "is_not_null":
            yield column
        case Opaque(columns=columns):
            yield from columns
        case And(children) | Or(children):
            for child in children:
                yield from _columns(child)


def _template(names: tuple[str, ...], filters: Filters) -> str:
    shapes = []
    for condition in filters.conditions:
        copy = condition.copy()
        for literal in list(copy.find_all(exp.Literal)):
            literal.set("this", "?")
        shapes.append(copy.sql(dialect="spark"))
    text = "\x1f".join([*names[:1], *sorted(shapes)])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _leaves_of(read_schema: str) -> list[Column]:
    """The leaf columns of ``struct<a:int,s:struct<x:int>>`` with their types; a cut-off end is not.

    >>> [
    ...     (column.name, column.type)
    ...     for column in _leaves_of("struct<a:int,s:struct<x:int,y:decimal(9,2)>,... 3 more fields>")
    ... ]
    [('a', 'int'), ('s.x', 'int'), ('s.y', 'decimal(9,2)')]
    """
    found: list[Column] = []
    _read_struct(read_schema, (), found, 0)
    return found


def _read_struct(text: str, path: tuple[str, ...], found: list[Column], depth: int) -> None:
    if not text.startswith("struct<") or depth > 20:
        return
    for item in _split(text[len("struct<") :].removesuffix(">")):
        name, _, kind = item.partition(":")
        if not kind or name.startswith("..."):
            continue
        if kind.startswith("struct<"):
            _read_struct(kind, (*path, name), found, depth + 1)
        elif not kind.endswith("..."):
            found.append(Column.at((*path, name), kind))


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for i, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]
