"""Tonight's plan as a search leaves it, and what a person has to know about it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from zorder_pipeline import __version__
from zorder_pipeline.features.statistics import worth_keeping
from zorder_pipeline.gate.decision import UNSOUGHT
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.plan import KEPT, Plan
from zorder_pipeline.model.wording import counted
from zorder_pipeline.pipeline.partition_conditions import partitions_untold
from zorder_pipeline.pipeline.reading.statistics import without_statistics

from .seeking import Sought
from .situation import Situation

__all__ = ["STAYS", "UNWEIGHED", "drafted"]

FEW_ROWS_PER_FILE = 50
STAYS = "no other layout is surely better than the present one: only what is new is laid out, by it"
UNWEIGHED = "pyarrow could read no Parquet footer of the table's files: bytes are told by shares of rows"


def drafted(situation: Situation, found: Sought) -> Plan:
    """The plan that a search comes to, without what it promises and without its candidates.

    Args:
        found: its layout, or that the present one is kept.
    """
    analysis, learned = situation.analysis, found.learned
    snapshot = analysis.snapshot
    times = [query.timestamp for query in analysis.queries if query.timestamp is not None]
    stays = situation.present if learned.name == KEPT else None
    return Plan(
        table=snapshot.location,
        table_id=snapshot.table_id,
        schema_hash=snapshot.schema.fingerprint,
        delta_version=snapshot.version,
        spec=stays.spec if stays is not None else learned.spec,
        origin=KEPT if stays is not None else "learned",
        target_file_rows=stays.target_file_rows if stays is not None else found.target,
        predicted={"train_fraction": learned.train, "validation_fraction": learned.select},
        baselines=learned.baselines,
        trials=len(learned.history),
        seconds=learned.seconds,
        log_watermark=max(times, default=None),
        learned_at=int(time.time() * 1e6),
        code_version=__version__,
        notes=_notes(situation, found),
        statistics=worth_keeping(tuple(analysis.columns)),
        unsought=situation.unsought,
    )


def _late(learned: Learned) -> Iterator[str]:
    """Baselines that there was no time for."""
    if learned.late:
        yield f"not compared with {', '.join(learned.late)}"


def _notes(situation: Situation, found: Sought) -> tuple[str, ...]:
    learned, unsought = found.learned, situation.unsought
    analysis = situation.analysis
    notes = [*situation.changes, *without_statistics(analysis)]
    notes += partitions_untold(analysis.snapshot, analysis.queries, analysis.told)
    if not situation.blocks.apart:
        notes.append("too few distinct queries to prove a layout on unseen ones: the gate will decline it")
    if situation.now is not None and not situation.now.weighed:
        notes.append(UNWEIGHED)
    if unsought:
        notes.append(f"{UNSOUGHT}: {unsought}")
    if found.rows_per_file < FEW_ROWS_PER_FILE and analysis.sample.rows < analysis.sample.total_rows:
        few = f"a file is represented by only {found.rows_per_file:.0f} sample rows"
        notes.append(f"{few}: raise --sample-rows, or search.sample_rows of the table's configuration")
    if learned.left_out:
        notes.append(f"not compared with {', '.join(learned.left_out)}, which take as long as a search")
    if short := [*_late(learned), *learned.shortened]:
        notes.append(f"within the time budget of {situation.settings.seconds or 0:g} s: {'; '.join(short)}")
    if not len(learned.history) and not unsought:
        notes.append(f"no order of rows was sought: {_nothing_to_seek(situation, found)}")
    elif learned.name == KEPT and not unsought:
        notes.append(STAYS)
    return tuple(notes)


def _nothing_to_seek(situation: Situation, found: Sought) -> str:
    """Why there is no order to try, where a search had nothing to search."""
    rows = situation.analysis.sample.total_rows
    if round(rows / found.target) <= 1:
        return f"the table's {counted(rows, 'row')} make one file of {found.target:,}"
    return "queries filter by no column that can order rows: by partition columns, constants, or without statistics"
