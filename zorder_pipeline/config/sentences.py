"""What is wrong in a configuration file, as sentences for a person; and on which line it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, get_args

import yaml
from pydantic import BaseModel
from pydantic_core import ErrorDetails

from zorder_pipeline.errors import ConfigError

from . import models
from .suggest import did_you_mean

__all__ = ["LIMITS", "Problem", "Source", "Where", "bounded", "dotted", "kind_of", "model_in", "sentence"]

Where: TypeAlias = tuple[int | str, ...]
Problem: TypeAlias = tuple[Where, str]


LIMITS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
"""Bounds of numbers by pydantic's names, in fields as in errors."""
TOO_DEEP = "an anchor (&name) holds itself, or values are nested too deeply to be read"


class Source:
    """The parsed YAML with the line of every key."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        try:
            self._read(text)
        except RecursionError as error:
            raise ConfigError(f"{name}: {TOO_DEEP}") from error

    def _read(self, text: str) -> None:
        self.root = None
        try:
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
            self.data = yaml.safe_load(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f", line {mark.line + 1}" if mark else ""
            raise ConfigError(f"{self.name}{line}: this is no YAML: {error.problem or error.context}") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{self.name}: this is no YAML: {str(error).splitlines()[0]}") from error
        except ValueError as error:  # of a value that looks like a date, say, and is none
            wrong = _unreadable(self.root)
            where = f", line {wrong.start_mark.line + 1}: {wrong.value}" if wrong else ": a value"
            what = f"cannot be read ({error}); put it in quotes if it is a text"
            raise ConfigError(f"{self.name}{where} {what}") from error
        for node, key in _repeated_keys(self.root):
            line = f"line {node.start_mark.line + 1}"
            raise ConfigError(f"{self.name}, {line}: the key {key} stands here twice; keep one")

    def line(self, where: Where) -> int:
        """Line of a key, or of the nearest enclosing one that is written down; 0 for the file itself."""
        node, line = self.root, 0
        for step in where:
            found = _child(node, step)
            if found is None:
                break
            line, node = found[0] + 1, found[1]
        return line

    def place(self, where: Where) -> str:
        """``file, line n`` of a key."""
        line = self.line(where)
        return f"{self.name}, line {line}" if line else self.name


def _child(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line, node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line, value
    return None


def _repeated_keys(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, str]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield key, key.value
            seen.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(value)


def _unreadable(node: yaml.Node | None) -> yaml.ScalarNode | None:
    """The first value that YAML takes for one of its types and cannot make one of."""
    if isinstance(node, yaml.ScalarNode):
        try:
            yaml.SafeLoader("").construct_object(node)
        except ValueError:
            return node
        return None
    inside = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else None
    children = inside if inside is not None else node.value if node is not None else ()
    return next((found for child in children if (found := _unreadable(child)) is not None), None)


def sentence(detail: ErrorDetails) -> Problem:
    where: Where = detail["loc"]
    if where[-1:] == ("[key]",):  # what is wrong is a name that a value is given
        where = where[:-1]
    context, given = detail.get("ctx", {}), detail["input"]
    model = _model_at(where[:-1])
    match detail["type"]:
        case "extra_forbidden":
            known = list(model.model_fields) if model else []
            return where, f"is not a known key{did_you_mean(str(where[-1]), known)}; allowed are {', '.join(known)}"
        case "missing":
            return where, f"is missing; it is {_description(model, where)}"
        case "value_error":
            return where, f"must {'be' if _scalar(given) else 'have'} {context['error']}" + (
                f", not {given!r}" if _scalar(given) else ""
            )
        case "invalid_key":
            return where, "is no text; put it in quotes, or take it out"
        case "literal_error":
            options = [str(option) for option in get_args(_literal_at(model, where))]
            return where, f"must be one of {', '.join(options)}, not {given!r}{did_you_mean(str(given), options)}"
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            return where, f"must be {bounded(*next(iter(context.items())))}, not {given!r}"
        case kind:
            if where[:2] == ("spark", "conf") and len(where) == 4:  # one error per type that a setting may have
                where, kind = where[:3], "choice"
            return where, f"must be {_expected(kind)}, not {kind_of(given)}"


def _expected(kind: str) -> str:
    names: Mapping[str, str] = {
        "int": "a whole number",
        "float": "a number",
        "finite": "a finite number",
        "string": "a text",
        "choice": "a text, a number, true or false",
        "bool": "true or false",
        "tuple": "a list",
        "dict": "keys with values",
        "model": "keys with values",
    }
    return names.get(kind.split("_")[0], kind.replace("_", " "))


def kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if _scalar(value):
        return repr(value)
    if isinstance(value, dict):
        return "keys with values"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def bounded(limit: str, value: float) -> str:
    """One of `LIMITS` in words.

    >>> bounded("lt", 2**32), bounded("ge", 0.5)
    ('less than 4,294,967,296', 'at least 0.5')
    """
    return f"{LIMITS[limit]} {value:,.10g}"


def model_in(kind: Any) -> type[BaseModel] | None:
    """The model that a key of this type holds, alone or in a list; None of one that holds none."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for part in get_args(kind) if (found := model_in(part)) is not None), None)


def _model_at(where: Where) -> type[BaseModel] | None:
    model: type[BaseModel] | None = models.PipelineConfig
    for step in where:
        if isinstance(step, str):
            field = model.model_fields.get(step) if model is not None else None
            model = model_in(field.annotation) if field is not None else None
    return model


def _description(model: type[BaseModel] | None, where: Where) -> str:
    field = model.model_fields.get(str(where[-1])) if model else None
    text = (field.description if field else None) or "required"
    return text[:1].lower() + text[1:].rstrip(".")


def _literal_at(model: type[BaseModel] | None, where: Where) -> Any:
    field = model.model_fields.get(str(where[-1])) if model else None
    return field.annotation if field else None


def dotted(where: Where, data: Any) -> str:
    """``tables[0] (lineitem).search.trials``."""
    parts: list[str] = []
    node = data
    for step in where:
        node = _item(node, step)
        if isinstance(step, str):
            parts.append(f".{step}" if parts else step)
            continue
        label = node.get("name") if isinstance(node, dict) and where[-1] != "name" else None
        parts.append(f"[{step}]" + (f" ({label})" if isinstance(label, str) else ""))
    return "".join(parts) or "the file"


def _item(node: Any, step: int | str) -> Any:
    try:
        return node[step]
    except (KeyError, IndexError, TypeError):
        return None
