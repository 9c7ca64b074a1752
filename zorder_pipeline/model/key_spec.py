"""The sort key as data: what `layout` learns, what numpy evaluates on a sample and Spark on the whole table.

A row's *code* in a feature says between which breakpoints its value lies; the *key* interleaves the bits of the codes
in a given order. Both `zorder_pipeline.layout.interleave` (numpy) and `zorder_pipeline.relayout.key_column` (a Spark
Column) are compiled from one `KeySpec`, and a property test proves that they agree.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zorder_pipeline.errors import PlanError

from .cut_tree import LEAF, CutTree
from .feature_codes import MAX_KEY_BITS, FeatureCodes
from .plain import MALFORMED, checked, what_is_wrong
from .predicate import VARIABLE
from .schema import TableSchema

__all__ = ["CURVES", "PARTITION_INDEX", "FeatureCodes", "KeySpec", "ends_of_turns", "most_bits"]

CURVES = ("interleave", "gray", "hilbert", "tree")
PARTITION_INDEX = "partition index"
"""What the name of a feature that is an SOP partition index begins with; what tells it from others follows."""
MAX_HILBERT_BITS = 16
"""A Hilbert key is looked up in a table of all cells."""


WHOLE = ("tinyint", "smallint", "int", "bigint")
"""Types of whole numbers, each wider than the one before: Delta widens them without touching a file."""


def _widened(before: str, now: str) -> bool:
    return before in WHOLE and now in WHOLE and WHOLE.index(before) < WHOLE.index(now)


def most_bits(curve: str) -> int:
    """Bits that a key without a tree can have at most."""
    return MAX_HILBERT_BITS if curve == "hilbert" else MAX_KEY_BITS - 1


def ends_of_turns(order: Sequence[int]) -> int:
    """The bits of a key after which another column takes its turn, as a mask.

    >>> f"{ends_of_turns([0, 0, 1, 0]):04b}"
    '0110'
    """
    last = len(order) - 1
    return sum(1 << (last - i) for i in range(last) if order[i] != order[i + 1])


@dataclass(frozen=True)
class KeySpec:
    """A layout's sort key.

    Attributes:
        features: the columns that take part.
        order: index into ``features`` per bit of the key, most significant bit first; the n-th time a feature occurs it
            contributes its n-th most significant bit, and it occurs ``bits`` times in all. With a tree each feature
            occurs once, the most useful first.
        curve: ``interleave`` (the key is the interleaved bits; plain sorting is the special case of all bits of one
            feature before the next), ``gray`` (the same cells in the order of a reflected Gray code, whose digits are
            the consecutive bits of one feature: what coincides in its first bits is as with ``interleave``, but a digit
            runs backwards after each odd place, so that from cell to cell one digit changes, by one; Faloutsos 1988,
            "Gray codes for partial match and range queries"), ``hilbert`` (the position on the Hilbert curve of the
            cell so addressed) or ``tree`` (the key is the leaf's of ``tree``).
        tie_break: columns by which rows of equal key are sorted inside a file.
        tree: cuts over the features' codes; None unless ``curve`` is ``tree``.
        rows: rows of the table that it was learned from, by which an epoch is measured; None when they are not known.
        spare: how many of the last bits do not tell files apart yet, see `zorder_pipeline.layout.deepen`.
        clock: column whose values beyond the learned range may make up several epochs, see
            `zorder_pipeline.layout.clock`; "" for none.
        learned_as: name and type that columns had when the layout was learned, by the name of today, of those that
            have another name or type since (`as_called`).
    """

    features: tuple[FeatureCodes, ...]
    order: tuple[int, ...]
    curve: str = "interleave"
    tie_break: tuple[str, ...] = ()
    tree: CutTree | None = None
    rows: int | None = None
    spare: int = 0
    clock: str = ""
    learned_as: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.spare <= len(self.order) or self.clock not in ("", *(f.column for f in self.features)):
            raise PlanError("a key has more spare bits than bits, or a clock that is none of its columns")
        if (self.tree is not None) != (self.curve == "tree"):
            raise PlanError("a key has a tree of cuts if and only if its curve is tree")
        if any(feature.epochs > self.most_epochs for feature in self.features):
            raise PlanError(f"a key of {self.bits} bits has no room for so many epochs")
        if self.tree is not None:
            self._check_tree(self.tree)
            return
        counts = Counter(self.order)
        if self.curve not in CURVES:
            raise PlanError(f"unknown curve {self.curve!r}; one of {', '.join(CURVES)}")
        if counts != {i: feature.bits for i, feature in enumerate(self.features)}:
            raise PlanError("the key's bit order does not use each feature as often as it has bits")
        limit = most_bits(self.curve)
        if not 1 <= self.bits <= limit:
            raise PlanError(f"a key of {self.bits} bits; 1 to {limit} are possible with curve {self.curve}")

    def _check_tree(self, tree: CutTree) -> None:
        if sorted(self.order) != list(range(len(self.features))):
            raise PlanError("a key with a tree of cuts names each feature once in its order")
        highest = [max(feature.base.codes[-1], feature.nan_code or 0) for feature in self.features]
        for feature, cut in zip(tree.feature, tree.cut, strict=True):
            if feature != LEAF and not (0 <= feature < len(highest) and 0 < cut <= highest[feature]):
                raise PlanError("the plan's tree of cuts asks for a cut that its features do not have")

    @property
    def bits(self) -> int:
        """Bits of the whole key, without those that number epochs."""
        return len(self.order) if self.tree is None else self.tree.leaf_keys[-1].bit_length()

    @property
    def most_epochs(self) -> int:
        """Epochs that there are numbers for beside the key's own bits."""
        return (1 << max(0, MAX_KEY_BITS - self.bits)) - 1

    @property
    def telling(self) -> tuple[int, ...]:
        """`order` without its spare bits: those that tell files apart."""
        return self.order[: len(self.order) - self.spare]

    @property
    def dividing(self) -> tuple[int, ...]:
        """`order` without the bit of a clock that divides nothing until the table has grown."""
        last = self.features[self.order[-1]]
        waits = self.spare > 0 and last.column == self.clock and not last.divides
        return self.order[:-1] if waits else self.order

    @property
    def smallest_file(self) -> float:
        """Rows of the smallest files that it makes, in units of the target: 1 where files are of about equal size."""
        return min(self.tree.leaf_sizes, default=1.0) if self.tree is not None else 1.0

    @property
    def highest(self) -> int:
        """The largest key there can be."""
        return ((1 + max(feature.epochs for feature in self.features)) << self.bits) - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the features, in order of their first bit."""
        return tuple(self.features[i].column for i in dict.fromkeys(self.order))

    @property
    def base(self) -> KeySpec:
        """The key as it was learned, no feature extended."""
        return replace(self, features=tuple(feature.base for feature in self.features))

    @property
    def layout_id(self) -> str:
        """Hash of everything that decides where a row goes; the files a relayout writes are tagged with it.

        Extended, a layout is still the same one, and so it is by other names of its columns.
        """
        learned = self.base._named({now: (name, kind) for now, name, kind in self.learned_as})
        text = json.dumps(replace(learned, rows=None, spare=0, clock="", learned_as=()).to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def as_called(self, schema: TableSchema) -> KeySpec:
        """The same layout for a table of which columns were renamed, or whole numbers widened, since it was learned.

        Columns that are gone, or of another type now, are left as they are (`refuse_unless_fits`); so are
        expressions.
        """
        learned = {now: (name, kind) for now, name, kind in self.learned_as}
        types = {feature.column: feature.type for feature in self.features if not feature.expression}
        called: dict[str, tuple[str, str]] = {}
        taken = {name.lower() for name in (*types, *self.tie_break)}
        for name in dict.fromkeys((*types, *self.tie_break)):
            column, kind = schema.called(name), types.get(name, "")
            if column is None or (kind and kind != column.type and not _widened(kind, column.type)):
                continue
            now = column.name, kind and column.type
            if now[0].lower() != name.lower() and now[0].lower() in taken:
                continue  # it swapped places with another of them, which is gone
            taken.add(now[0].lower())
            if now != (name, kind):
                called[name] = now
        if not called:
            return self
        before = {now: learned.pop(name, (name, types.get(name, ""))) for name, (now, _) in called.items()}
        told = tuple((now, *was) for now, was in sorted((learned | before).items()))
        return replace(self._named(called), learned_as=told)

    def _named(self, called: Mapping[str, tuple[str, str]]) -> KeySpec:
        """With other names and types of columns; a type of "" leaves it."""
        names = {old: name for old, (name, _) in called.items()}

        def named(feature: FeatureCodes) -> FeatureCodes:
            if feature.expression or feature.column not in called:
                return feature
            name, kind = called[feature.column]
            return replace(feature, column=name, type=kind or feature.type)

        return replace(
            self,
            features=tuple(map(named, self.features)),
            tie_break=tuple(names.get(name, name) for name in self.tie_break),
            clock=names.get(self.clock, self.clock),
            learned_as=(),
        )

    @property
    def table_columns(self) -> tuple[str, ...]:
        """`columns` without those that are expressions."""
        return tuple(dict.fromkeys(self.features[i].column for i in self.order if not self.features[i].expression))

    def refuse_unless_fits(self, schema: TableSchema, *, changed: bool) -> None:
        """Check that a table has the columns that rows are ordered by.

        Args:
            changed: its schema is not the one that the key was made, or last checked, for.

        Raises:
            PlanError: it has not; the sentence says why.
        """
        for feature in self.features:
            if feature.expression:
                continue
            column = schema.find(feature.column)
            if column is None or (changed and (column.type != feature.type or column.partition)):
                now = "is gone" if column is None else f"is now {column.type}"
                raise PlanError(f"column {feature.column} of the plan's layout {now}; learn a new plan")
        if gone := [name for name in self.tie_break if schema.find(name) is None]:
            raise PlanError(f"column {gone[0]}, by which the plan's layout breaks ties, is gone; learn a new plan")

    @property
    def computed(self) -> tuple[FeatureCodes, ...]:
        """Its features that are no columns of the table but expressions."""
        return tuple(feature for feature in self.features if feature.expression)

    def allocation(self) -> dict[str, int]:
        """Bits by column, most significant column first (seed 000's Z-order configuration); a tree's by its ranges."""
        return {self.features[i].column: self.features[i].bits for i in dict.fromkeys(self.order)}

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form; `from_json` is its inverse. The plan that carries it has the version."""
        return {
            "features": [feature.to_json() for feature in self.features],
            "order": list(self.order),
            "curve": self.curve,
            "tie_break": list(self.tie_break),
            **({"tree": self.tree.to_json()} if self.tree else {}),
            **({"rows": self.rows} if self.rows is not None else {}),
            **({"spare": self.spare} if self.spare else {}),
            **({"clock": self.clock} if self.clock else {}),
            **({"learned_as": [list(each) for each in self.learned_as]} if self.learned_as else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> KeySpec:
        """The key that `to_json` wrote.

        Raises:
            PlanError: the data is malformed.
        """
        try:
            features = tuple(map(FeatureCodes.from_json, data["features"]))
            if any(VARIABLE in feature.expression for feature in features):
                raise PlanError(
                    f"an expression of the plan's layout holds {VARIABLE}, which Spark replaces; learn it again"
                )
            tree = CutTree.from_json(data["tree"]) if data.get("tree") else None
            return checked(
                KeySpec(
                    features,
                    tuple(data["order"]),
                    data["curve"],
                    tuple(data["tie_break"]),
                    tree,
                    data.get("rows"),
                    data.get("spare", 0),
                    data.get("clock", ""),
                    tuple((now, name, kind) for now, name, kind in data.get("learned_as", ())),
                )
            )
        except MALFORMED as error:
            raise PlanError(f"the plan's layout is malformed: {what_is_wrong(error)}; learn it again") from error
