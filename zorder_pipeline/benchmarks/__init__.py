"""``zorder bench``: one harness, one file per workload, peers as plug-ins.

A workload is a module with a ``WORKLOAD``; naming the module in `WORKLOADS` registers it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError

if TYPE_CHECKING:
    from .harness import Workload

__all__ = ["WORKLOADS", "find_workload"]

WORKLOADS: tuple[tuple[str, str], ...] = (
    ("demo", "demo_workload"),
    ("ingest", "ingest"),
    ("features", "features"),
    ("layout", "layout"),
    ("real", "real"),
    ("sop", "sop"),
    ("onward", "onward"),
    ("guard", "guard"),
    ("drift", "drift"),
    ("relayout", "relayout"),
    ("planning", "planning"),
    ("volumes", "volumes"),
    ("costs", "costs"),
    ("lasting", "lasting"),
    ("kernel", "kernel"),
    ("predicates", "predicates"),
    ("protocol", "protocol"),
    ("seconds", "seconds"),
    ("tuning", "tuning"),
    ("filters", "filters"),
    ("pages", "pages"),
    ("replay", "replay"),
)
"""Names as in ``--workload`` with their modules, in the order in which they are listed."""


def find_workload(name: str) -> Workload:
    """The workload called ``name``.

    Raises:
        ZorderError: there is none.

    >>> find_workload("demo").name
    'demo'
    """
    module = dict(WORKLOADS).get(name)
    if module is None:
        raise ZorderError(
            f"--workload knows no {name!r}; it may be any of {', '.join(known for known, _ in WORKLOADS)}, all"
        )
    found: Workload = import_module(f"{__name__}.{module}").WORKLOAD
    return found
