"""``zorder study``: the searches of a table's nights, which the state keeps."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import click

from .common import Payload, command, committer_option, out, print_columns, print_figures, start_spark, table_option
from .configured import state_or_at_hand
from .costs import state_option
from .states import existing
from .targets import study_storage

if TYPE_CHECKING:
    import optuna

    from zorder_pipeline.state.studies import KeptStudy

__all__ = ["study"]

MOST_NIGHTS, MOST_LAYOUTS = 14, 5
"""Searches, and layouts of one, that are printed."""
COSTS = {"rows": "rows", "filtered": "rows x filtered columns", "bytes": "bytes and opened files"}


@command
@table_option
@state_option
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The last search of this day (UTC); by default the newest one that is kept.",
)
@click.option("--literals", is_flag=True, help="Show the constants of expressions and predicates among the columns.")
@click.option(
    "--out",
    "target",
    metavar="PATH_OR_URL",
    callback=study_storage,
    help="Write it as an Optuna study to a journal file or a database (sqlite:///…, postgresql://…).",
)
@committer_option
def study(
    table: str, state: str | None, day: datetime | None, literals: bool, target: str | None, committer: str
) -> Payload:
    """What a night's search tried, as the state keeps it; --out writes it for optuna-dashboard.

    The table is only opened, and nothing is searched again.
    """
    from zorder_pipeline import pipeline
    from zorder_pipeline.layout.importance import column_importance
    from zorder_pipeline.layout.study import export_study
    from zorder_pipeline.relayout.snapshot import open_table

    folder = existing(state_or_at_hand(state), named=state is not None)
    spark = start_spark("study", brief=True)
    snapshot = open_table(spark, table, committer=committer)
    kept = pipeline.kept_studies(spark, folder, snapshot.table_id, None if day is None else day.date())
    key = None if literals else pipeline.redact_key(spark, folder)
    found = pipeline.kept_study(spark, folder, snapshot.table_id, kept[0], key)
    payload = _searched(kept[0]) | _tried(found) | {"importance": column_importance(found), "out": None}
    payload["kept"] = [_searched(each) for each in kept]
    if target is not None:  # before anything is printed, which nobody may read to its end
        name = export_study(found, target)
        payload |= {"out": target if "://" not in target else "URL", "study": name}
    _print(table, payload)
    return payload


def _searched(found: KeptStudy) -> dict[str, Any]:
    moment = datetime.fromtimestamp(found.searched_at / 1e6, UTC).isoformat(timespec="seconds")
    return {**vars(found), "searched_at": moment, "seconds": round(found.seconds, 1)}


def _tried(found: optuna.Study) -> dict[str, Any]:
    """How many layouts each phase tried, and which were best: the column of each bit, most significant first.

    Of those that cost the same the one of fewest bits: further ones told no files apart.
    """
    from zorder_pipeline.layout.study import ORDER
    from zorder_pipeline.layout.trials import features_of

    trials = found.get_trials(deepcopy=False)
    names = features_of(trials[0])
    phases = Counter(str(trial.user_attrs["phase"]) for trial in trials)
    ranked = sorted(trials, key=lambda trial: (trial.value or 0.0, len(trial.user_attrs[ORDER]), trial.number))
    first: dict[float | None, optuna.trial.FrozenTrial] = {}
    for trial in ranked:
        first.setdefault(trial.value, trial)
    layouts = [
        {"share": t.value, "phase": t.user_attrs["phase"], "order": [names[i] for i in t.user_attrs[ORDER]]}
        for t in islice(first.values(), MOST_LAYOUTS)
    ]
    return {"phases": dict(phases), "layouts": layouts}


def _print(table: str, payload: Payload) -> None:
    rows = [
        (
            *(each["searched_at"][:16].replace("T", " "), f"{each['trials']:,}", f"{each['best']:.1%}"),
            COSTS.get(each["cost"], each["cost"]),
        )
        for each in payload["kept"][:MOST_NIGHTS]
    ]
    header = ("searched (UTC)", "trials", "training queries read", "of")
    print_columns(f"Searches for {table}", header, rows)
    if (others := len(payload["kept"]) - MOST_NIGHTS) > 0:
        out.print(f"{others:,} earlier ones not printed: --json tells of all, --day of one", soft_wrap=True)
    print_columns(
        "The best bit orders of the newest" if len(rows) > 1 else "The best bit orders",
        ("bits, the most significant first", "found by", "training queries read"),
        [(_runs(each["order"]), each["phase"], f"{each['share']:.2%}") for each in payload["layouts"]],
        left=2,
    )
    if payload["importance"]:
        shares = [(name, f"{share:.0%}") for name, share in payload["importance"].items()]
        print_figures("What the cost depended on: the bits of", shares)
    if payload["out"]:
        out.print(f"written to {payload['out']}; look at it with: optuna-dashboard {payload['out']}", soft_wrap=True)


def _runs(order: list[str]) -> str:
    """Bits in a row of one column as one word.

    >>> _runs(["ship", "ship", "part", "ship"])
    'ship:2, part:1, ship:1'
    """
    return ", ".join(f"{name}:{len(list(run))}" for name, run in groupby(order))
