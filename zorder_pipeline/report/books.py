"""The sections of a report about costs, savings and promises."""

from __future__ import annotations

from typing import Any

from zorder_pipeline import pictures
from zorder_pipeline.model.decision import assumptions_told

from .facts import Facts
from .page import Picture, Section, Table

__all__ = ["money", "nights"]

FEW_CORE_SECONDS = 360
"""Costs and savings of less are told in core-seconds: in core-hours they are thousandths."""


def money(facts: Facts) -> list[Section]:
    """What the gate expected of the last relayout, and what it cost."""
    if not facts.entries:
        return []
    entry, gate = facts.entries[-1], facts.entries[-1].gate
    parts: list[Picture | Table] = []
    if gate.get("cost_core_seconds") and gate.get("saving_high"):
        cost = _interval(gate, "cost_core_seconds", "cost_low", "cost_high")
        saving = _interval(gate, "saving_core_seconds", "saving_low", "saving_high")
        drawn = pictures.cost_and_benefit(cost, saving, "core-seconds")
        parts.append(Picture(drawn, "What the gate expected of the last relayout, with the interval of each figure."))
    assumed = assumptions_told(dict(gate.get("assumptions", {})))
    if assumed:
        parts.append(Table(("it assumed", ""), [(name, _plain(value)) for name, value in assumed]))
    sentences = [str(reason) for reason in gate.get("reasons", ())]
    sentences.append(f"It took {entry.cost_measured:,.0f} core-seconds.")
    return [Section("Cost and benefit", sentences, parts)]


def nights(facts: Facts) -> list[Section]:
    """Every relayout by what it promised and did, and what they cost and saved month by month."""
    books = facts.books
    if books is None or not books.checks:
        return []
    sentences = ["Savings are shares of the rows that a query no longer reads; measured ones come from later queries."]
    sentences += [check.warning for check in books.checks if check.warning is not None]
    drawn = pictures.promises_kept([check.drawn for check in books.checks])
    kept = Picture(drawn, "Every relayout by what it promised and what was measured, and by what it cost.")
    promises = Section("Promised and measured, night by night", sentences, [kept])
    rate = books.price_per_core_hour / 3600
    few = all(max(m.cost, m.saved) < FEW_CORE_SECONDS for m in books.months)
    unit, each = ("core-seconds", 1) if few else ("core-hours", 3600)
    header = ["month", "relayouts", f"{unit} spent", f"{unit} saved", "net", "of it measured"]
    rows = [
        (m.month, m.relayouts, m.cost / each, m.saved / each, m.net / each, f"{m.checked:.0%}", round(m.net * rate, 2))
        for m in books.months
    ]
    told: list[tuple[object, ...]] = list(rows) if rate else [row[:-1] for row in rows]
    months = Table([*header, "money"] if rate else header, told)
    return [promises, Section("Savings per month", ["Net is what was saved beyond what the relayouts cost."], [months])]


def _interval(gate: Any, middle: str, low: str, high: str) -> tuple[float, float, float]:
    expected = float(gate.get(middle) or 0.0)
    return expected, *(expected if gate.get(name) is None else float(gate[name]) for name in (low, high))  # type: ignore[return-value]


def _plain(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
