"""Query logs drawn from templates: seeded, in the order of their times, train and unseen apart."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from zorder_pipeline.errors import ZorderError

from .templates import LINEITEM_TEMPLATES, Draw, Template

__all__ = ["LITERAL", "Record", "fingerprint", "read_log", "tpch_logs", "tpch_statements", "two_logs", "write_log"]
__all__ += ["write_logs"]

Record: TypeAlias = dict[str, Any]
FIRST_TIME = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)
PER_DAY = 2000.0
USERS = ("dashboard", "warehouse_app", "asha", "bruno", "chen", "dora", "emeka")
USER_SHARE = (0.35, 0.25, 0.12, 0.1, 0.08, 0.06, 0.04)
LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?")
MAX_TRIES = 200


def tpch_statements(
    n: int,
    seed: int,
    first_time: datetime = FIRST_TIME,
    *,
    scale: float = 0.1,
    per_day: float = PER_DAY,
    avoid: Collection[str] = (),
    templates: Sequence[Template] = LINEITEM_TEMPLATES,
    once: bool = False,
) -> list[Record]:
    """``n`` statements, on lineitem unless other templates are given, in the order of their times, drawn by weight.

    Args:
        n: number of statements.
        seed: equal arguments give equal logs.
        first_time: time before the first statement.
        scale: scale factor of the table, from which the key domains follow.
        per_day: statements per day; gaps are exponential.
        avoid: `fingerprint` of statements that must not be drawn (those of the other log).
        templates: what to draw from.
        once: draw each template once at most.

    Returns:
        Records with ``statement``, ``timestamp`` (ISO, UTC), ``duration_ms`` and ``user``.

    Raises:
        ZorderError: a template has no statement left that ``avoid`` does not hold.

    >>> tpch_statements(1, seed=7)[0]["timestamp"]
    '2026-01-05T06:00:...Z'
    """

    rng = np.random.default_rng(seed)
    weights = np.array([template.weight for template in templates])
    times = np.cumsum(rng.exponential(86400 / per_day, n))
    picks = rng.choice(len(templates), n, replace=not once, p=weights / weights.sum())
    records = []
    for pick, seconds in zip(picks, times, strict=True):
        template = templates[pick]
        moment = (first_time + timedelta(seconds=float(seconds))).astimezone(UTC)
        records.append(
            {
                "statement": _unseen(template, Draw(rng, scale), avoid),
                "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "duration_ms": round(float(template.duration_ms * rng.lognormal(0.0, 0.4)), 1),
                "user": str(rng.choice(USERS, p=USER_SHARE)),
            }
        )
    return records


def tpch_logs(train: int, unseen: int, seed: int, *, scale: float = 0.1) -> tuple[list[Record], list[Record]]:
    """A training log and a later log without any of its statements, from different seeds.

    >>> train, unseen = tpch_logs(50, 50, seed=1)
    >>> {fingerprint(r["statement"]) for r in train} & {fingerprint(r["statement"]) for r in unseen}
    set()
    """
    return two_logs(train, unseen, seed, LINEITEM_TEMPLATES, scale=scale)


def two_logs(
    train: int, unseen: int, seed: int, templates: Sequence[Template], *, scale: float = 1.0, once: bool = False
) -> tuple[list[Record], list[Record]]:
    """What `tpch_logs` does, for any templates; with ``once`` each is drawn once at most, in either of the logs."""
    before, after = templates, templates
    if once:
        shuffled = [templates[i] for i in np.random.default_rng(seed).permutation(len(templates))]
        before, after = shuffled[:train], shuffled[train:]
    first = tpch_statements(train, 2 * seed, scale=scale, templates=before, once=once)
    later = datetime.fromisoformat(first[-1]["timestamp"]) + timedelta(hours=1) if first else FIRST_TIME
    seen = {fingerprint(record["statement"]) for record in first}
    return first, tpch_statements(unseen, 2 * seed + 1, later, scale=scale, avoid=seen, templates=after, once=once)


def fingerprint(statement: str) -> str:
    """The statement's form and literals, spelling of blanks and case aside: equal means asked before.

    >>> fingerprint("SELECT 1  FROM t WHERE a = 'X'") == fingerprint("select 1 from t where a = 'X'")
    True
    >>> fingerprint("SELECT 1 FROM t WHERE a = 'X'") == fingerprint("SELECT 1 FROM t WHERE a = 'x'")
    False
    """
    form = " ".join(LITERAL.sub("?", statement).lower().split())
    return json.dumps([form, *LITERAL.findall(statement)])


def write_log(records: Sequence[Mapping[str, Any]], path: str | Path) -> Path:
    """Write a log as JSON Lines; returns its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return target


def write_logs(train: Sequence[Record], unseen: Sequence[Record], folder: Path) -> tuple[str, str]:
    """Write what is learned from and what is measured with; returns both paths."""
    return str(write_log(train, folder / "train.jsonl")), str(write_log(unseen, folder / "unseen.jsonl"))


def read_log(path: str | Path) -> list[Record]:
    """The records that `write_log` wrote."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def _unseen(template: Template, draw: Draw, avoid: Collection[str]) -> str:
    for _ in range(MAX_TRIES):
        if fingerprint(statement := template.make(draw)) not in avoid:
            return statement
    raise ZorderError(f"template {template.name} has no statement left that the other log does not hold; ask for fewer")
