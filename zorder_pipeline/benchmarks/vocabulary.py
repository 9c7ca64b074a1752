"""The names that ``--against`` takes: one vocabulary, of which each workload has some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from zorder_pipeline.errors import ZorderError

__all__ = ["NAMES", "Name", "canonical", "contenders_named"]


@dataclass(frozen=True)
class Name:
    """What a name stands for, and its other spellings."""

    meaning: str
    aliases: tuple[str, ...] = ()


NAMES: Mapping[str, Name] = MappingProxyType(
    {
        "default": Name("the table as stored, never optimised", ("none", "stored")),
        "sort": Name("sorted by one column", ("range",)),
        "lexicographic": Name("sorted by several columns in turn", ("lexical",)),
        "equal": Name("Z-order with as many bits of each column", ("equal-weight",)),
        "zorder": Name("`OPTIMIZE ZORDER`, by as many columns as the workload says"),
        **{f"zorder{k}": Name(f"`OPTIMIZE ZORDER` by {k} columns", (f"zorder-{k}",)) for k in (2, 3, 4)},
        "liquid": Name("liquid clustering, by as many columns as the workload says"),
        **{f"liquid{k}": Name(f"liquid clustering by {k} columns", (f"liquid-{k}",)) for k in (2, 3, 4)},
        **{
            f"{kind}-chosen": Name(f"{words} by the 2 to 4 columns that read fewest rows for the training queries")
            for kind, words in (("zorder", "`OPTIMIZE ZORDER`"), ("liquid", "liquid clustering"))
        },
        "seed": Name("learned bit allocation (Gao et al.)"),
        "qd-tree": Name("a greedy tree of the workload's cuts", ("qdtree",)),
        "sop": Name("skipping-oriented partitioning, read by its bits"),
        "piecewise": Name("a BMTree-style piecewise curve", ("bmtree",)),
        "iceberg": Name("every form of Iceberg's `rewrite_data_files`"),
        "iceberg-sort": Name("Iceberg sorted by 2 columns"),
        "iceberg-zorder2": Name("Iceberg's zorder by 2 columns"),
        "iceberg-zorder3": Name("Iceberg's zorder by 3 columns", ("iceberg-zorder",)),
        "iceberg-zorder4": Name("Iceberg's zorder by 4 columns"),
        "hudi": Name("every form of Hudi's clustering"),
        "hudi-zorder2": Name("Hudi's z-order by 2 columns"),
        "hudi-zorder3": Name("Hudi's z-order by 3 columns", ("hudi-zorder",)),
        "hudi-hilbert2": Name("Hudi's Hilbert curve by 2 columns"),
        "hudi-hilbert3": Name("Hudi's Hilbert curve by 3 columns", ("hudi-hilbert",)),
        "manual": Name("one manual `OPTIMIZE ZORDER` halfway"),
        "nightly": Name("`OPTIMIZE ZORDER` every night"),
        "static": Name("the best layout in hindsight, never changed"),
        "first": Name("the first layout learned, never changed"),
        "greedy": Name("each segment's own layout, changed at once"),
        "optimum": Name("the offline optimum in hindsight"),
        "ours-hash": Name("ours with `verify: hash`"),
        "appends": Name("ours after many nights of new days"),
        "larger": Name("ours on a table ten times as large"),
    }
)


def canonical(given: Sequence[str]) -> tuple[str, ...]:
    """Names of the vocabulary for names in any of their spellings.

    Raises:
        ZorderError: a name is unknown.

    >>> canonical(["none", "zorder-2", "sort"])
    ('default', 'zorder2', 'sort')
    """
    spelled = {alias: name for name, known in NAMES.items() for alias in (name, *known.aliases)}
    if unknown := [name for name in given if name.lower() not in spelled]:
        raise ZorderError(f"--against knows no {unknown[0]!r}; it may be any of {', '.join(NAMES)}")
    return tuple(dict.fromkeys(spelled[name.lower()] for name in given))


def contenders_named(
    names: Sequence[str], peers: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A workload's own contenders that are named, and the names that it has none for.

    Args:
        names: in any of their spellings.
        peers: see `harness.Workload`.

    Raises:
        ZorderError: a name is unknown.

    >>> contenders_named(["none", "zorder", "seed"], {"default": ("stored",), "zorder": ("zorder-2", "zorder-3")})
    (('stored', 'zorder-2', 'zorder-3'), ('seed',))
    """
    known = canonical(names)
    found = dict.fromkeys(own for name in known for own in peers.get(name, ()))
    return tuple(found), tuple(name for name in known if name not in peers)
