"""The configuration reference, written from the models: ``python -m zorder_pipeline.config.reference > FILE``."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .models import PipelineConfig
from .sentences import LIMITS, bounded, model_in

__all__ = ["reference"]

TITLE = """# Configuration

Everything is said in one file, `tables.yaml`: the one that `--config` or `ZORDER_CONFIG` names, else `tables.yaml` in
`DAGSTER_HOME`. Relative paths start at its folder, `${NAME}` in a path and under `spark` is taken from the environment,
and a key that is not listed here is refused with file, line and the keys that are allowed. `dagster_home/tables.yaml`
is a commented example. Tables with the same settings share them by YAML's anchors: `gate: &usual {horizon_days: 60}`
in the first, `gate: *usual`, or `gate: {<<: *usual, approval: changes}`, in the others.

Written by `python -m zorder_pipeline.config.reference > docs/configuration.md`; do not edit it by hand.
"""
NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def reference() -> str:
    """All keys as Markdown: a section per part of the file, a row per key."""
    return "\n".join([TITLE, *_section("The file", PipelineConfig, set())]) + "\n"


def _section(title: str, model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    seen.add(model)
    yield f"## {title}\n"
    yield f"{(model.__doc__ or '').strip()}\n"
    yield "| key | kind | default | meaning |\n| --- | --- | --- | --- |"
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        found = model_in(field.annotation)
        kind = f"see [{name}](#{name})" if found else _kind(field.annotation, field.metadata)
        if found:
            inner.append((name, found))
        meaning = field.description or (found.__doc__ if found else "") or ""
        yield f"| `{name}` | {_cell(kind)} | {_cell(_default(field))} | {_cell(' '.join(meaning.split()))} |"
    yield ""
    for name, found in inner:
        if found not in seen:
            yield from _section(f"`{name}`", found, seen)


def _kind(kind: Any, limits: Any = ()) -> str:
    bounds = list(_bounds(limits))
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        text = " or ".join(_kind(part) for part in parts if part is not type(None))
        text += ", or null" if type(None) in parts else ""
    elif origin is Literal:
        text = ", ".join(str(part) for part in parts)
    elif origin is tuple:
        text = f"list of {_kind(parts[0])}s"
    elif origin is dict:
        text = f"{_kind(parts[1])} by {_kind(parts[0])}"
    elif hasattr(kind, "__metadata__"):
        return _kind(kind.__origin__, kind.__metadata__)
    else:
        text = NAMES.get(kind, str(kind))
    return f"{text} ({', '.join(bounds)})" if bounds else text


def _bounds(limits: Any) -> Iterator[str]:
    for item in limits:
        for part in [item, *getattr(item, "metadata", ())]:
            yield from (bounded(name, getattr(part, name)) for name in LIMITS if hasattr(part, name))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or value in ((), {}):
        return ""
    if isinstance(value, bool) or value is None:
        return f"`{str(value).lower() if value is not None else 'null'}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
