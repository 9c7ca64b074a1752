"""docs/json.md, the page of what ``--json`` prints, and how an object that was printed differs from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs/json.md"
ROW = re.compile(r"^\| `(?P<key>[^`]+)` \| (?P<kind>.+?) \| (?P<meaning>.+) \|$")
INCLUDED = re.compile(r"(?P<only>Only [^.]*)?[Tt]he keys of \[[^]]+\]\(#(?P<section>[\w-]+)\)")
LINK = re.compile(r"\]\(#([\w-]+)\)")
TYPES: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "true or false": bool,
    "whole number": int,
    "number": (int, float),
    "list": list,
    "object": dict,
    "see": dict,
}


@dataclass
class Key:
    """A key of the page.

    Attributes:
        kind: as on the page.
        meaning: as on the page; one that begins with "Only" says that the key may be missing.
        below: keys of its object, ``[]`` for the entries of its list, a name in capitals for any key.
    """

    kind: str = "object"
    meaning: str = ""
    below: dict[str, Key] = field(default_factory=dict)

    @property
    def may_be_missing(self) -> bool:
        return self.meaning.startswith("Only ")


@cache
def sections() -> Mapping[str, str]:
    """The text of each section by the anchor of its heading, such as ``zorder-apply``."""
    parts = re.split(r"^#{2,3} (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name.lower().replace(" ", "-"): text for name, text in zip(parts[::2], parts[1::2], strict=True)}


@cache
def keys_of(section: str) -> dict[str, Key]:
    """The keys that a section lists."""
    top, only = Key(), ""
    for line in sections()[section].splitlines():
        if (row := ROW.match(line)) is not None:
            *path, name = row["key"].replace("[]", ".[]").split(".")
            place = top
            for step in path:  # a list's entries and any name's object have no row of their own
                place = place.below.setdefault(step, Key()) if step == "[]" or step.isupper() else place.below[step]
            assert name not in place.below, f"{section}: {row['key']} is listed twice"
            place.below[name] = Key(row["kind"], row["meaning"] if path else only + row["meaning"])
            if (link := LINK.search(row["kind"])) is not None:
                entries = keys_of(link[1])
                place.below[name].below = {"[]": Key(below=entries)} if row["kind"].startswith("list") else entries
        elif line and not line.startswith("|"):
            only = "Only so: " if line.startswith("Only ") and line.endswith(":") else ""
            for found in INCLUDED.finditer(line):
                for name, key in keys_of(found["section"]).items():
                    meaning = f"Only so: {key.meaning}" if found["only"] else key.meaning
                    top.below[name] = Key(key.kind, meaning, key.below)
                only = ""
    return top.below


def differences(command: str, printed: Mapping[str, Any]) -> list[str]:
    """What a command printed otherwise than the page says; nested objects are looked into where the page does."""
    return list(_differences(command, keys_of(f"zorder-{command}"), printed))


def _differences(path: str, keys: Mapping[str, Key], printed: Mapping[str, Any]) -> Iterator[str]:
    any_name = next((key for name, key in keys.items() if name.isupper()), None)
    for name, key in keys.items():
        if name not in printed and key is not any_name and not key.may_be_missing:
            yield f"{path}.{name} is missing"
    for name, value in printed.items():
        listed = keys.get(name) or any_name
        if listed is None:
            yield f"{path}.{name} is not on the page"
        elif value is None:
            if "or null" not in listed.kind:
                yield f"{path}.{name} is null"
        else:
            yield from _value(f"{path}.{name}", listed, value)


def _value(path: str, key: Key, value: Any) -> Iterator[str]:
    kind = next(types for words, types in TYPES.items() if key.kind.startswith(words))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        yield f"{path} is no {key.kind}: {value!r}"
    elif isinstance(value, list) and "[]" in key.below:
        for i, entry in enumerate(value):
            yield from _differences(f"{path}[{i}]", key.below["[]"].below, entry)
    elif isinstance(value, dict) and key.below and (value or "`{}`" not in key.meaning):
        yield from _differences(path, key.below, value)


def json_printed(command: str, stdout: str) -> dict[str, Any]:
    """The JSON object that a command with ``--json`` printed, held to the page."""
    printed: dict[str, Any] = json.loads(stdout.strip().splitlines()[-1])
    wrong = differences(command, printed)
    assert not wrong, f"docs/json.md says otherwise: {'; '.join(wrong)}"
    return printed
