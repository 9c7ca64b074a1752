"""One column's part of the sort key as data: between which breakpoints a value lies, and which code that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from zorder_pipeline.errors import PlanError

from .plain import checked
from .values import Value, ValueType, order_key, value_from_json, value_to_json

__all__ = ["MAX_KEY_BITS", "FeatureCodes"]

MAX_KEY_BITS = 62
"""A key is a non-negative 64-bit integer, with room for an exclusive upper bound; one bit at least is for epochs."""


@dataclass(frozen=True)
class FeatureCodes:
    """How one column's values become codes.

    Value v has code ``codes[number of breakpoints <= v]``: below the first breakpoint ``codes[0]``, from the last one
    on ``codes[-1]``. Comparison is the total order of `zorder_pipeline.model.values`.

    Breakpoints age: of every new day's values all would fall into the last code. So a rewrite may extend the feature
    for the values that it meets beyond the sampled range (`zorder_pipeline.layout.extend`): they make up an epoch, or
    several, in each of which the old codes come again, with the number of the epoch in front.

    Attributes:
        column: column name.
        type: Spark type name.
        breakpoints: canonical values, strictly ascending.
        codes: one more than breakpoints, strictly ascending, each below ``2 ** bits``; when extended, those in epoch e
            lie between ``e * 2 ** bits`` and ``(e + 1) * 2 ** bits``.
        bits: bits the key takes from this feature; 0 is not allowed.
        null_code: code of a null.
        nan_code: code of a NaN, where it has one of its own; None where it is coded as a value above all others.
        high: largest value that the breakpoints were learned from; None when it is not known, or does not matter.
        expression: how Spark computes the value, where it is no column of the table but an expression, a predicate or
            an SOP partition index; rebuilt from parsed trees. ``column`` then only names it.
    """

    column: str
    type: str
    breakpoints: tuple[Value, ...]
    codes: tuple[int, ...]
    bits: int
    null_code: int = 0
    high: Value | None = None
    expression: str = ""
    nan_code: int | None = None

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.codes))
        if len(self.codes) != len(self.breakpoints) + 1 or not ascending:
            raise PlanError(f"feature {self.column}: codes must be ascending and one more than the breakpoints")
        if not all(order_key(a) < order_key(b) for a, b in pairwise(self.breakpoints)):
            raise PlanError(f"feature {self.column}: its breakpoints must be ascending")
        others = [self.null_code] if self.nan_code is None else [self.null_code, self.nan_code]
        fit = 1 <= self.bits <= MAX_KEY_BITS and all(0 <= code < 1 << self.bits for code in (self.codes[0], *others))
        if not fit:
            raise PlanError(f"feature {self.column}: its codes do not fit {self.bits} bits")
        if self.nan_code is not None and self.value_type.family != "float":
            raise PlanError(f"feature {self.column}: a code of NaN, which type {self.type} does not have")

    @property
    def value_type(self) -> ValueType:
        """The parsed type."""
        return ValueType.parse(self.type)

    @property
    def divides(self) -> bool:
        """Whether it has more than one code: a clock has one until the table has grown."""
        return bool(self.breakpoints) or len({self.codes[0], self.null_code, self.nan_code} - {None}) > 1

    @property
    def epochs(self) -> int:
        """Epochs into which it divides values beyond the range that it was learned from; 0 unless it is extended."""
        return self.codes[-1] >> self.bits

    @property
    def base(self) -> FeatureCodes:
        """The feature as it was learned, without its extension."""
        count = sum(code < 1 << self.bits for code in self.codes)
        return replace(self, breakpoints=self.breakpoints[: count - 1], codes=self.codes[:count])

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form; `from_json` is its inverse."""
        return {
            "column": self.column,
            "type": self.type,
            "breakpoints": [value_to_json(value) for value in self.breakpoints],
            "codes": list(self.codes),
            "bits": self.bits,
            "null_code": self.null_code,
            **({} if self.high is None else {"high": value_to_json(self.high)}),
            **({"expression": self.expression} if self.expression else {}),
            **({} if self.nan_code is None else {"nan_code": self.nan_code}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> FeatureCodes:
        """The feature that `to_json` wrote.

        Raises:
            PlanError: it contradicts itself.
            MALFORMED: the data is no feature, see `zorder_pipeline.model.plain`.
        """
        feature = FeatureCodes(
            column=data["column"],
            type=data["type"],
            breakpoints=tuple(value_from_json(value) for value in data["breakpoints"]),
            codes=tuple(data["codes"]),
            bits=data["bits"],
            null_code=data["null_code"],
            high=value_from_json(data["high"]) if "high" in data else None,
            expression=data.get("expression", ""),
            nan_code=data.get("nan_code"),
        )
        for value in feature.breakpoints if feature.high is None else (*feature.breakpoints, feature.high):
            if not feature.value_type.holds(value):
                raise TypeError(f"{value!r} is no {feature.type}")
        return checked(feature)
