"""The whole chain as plain functions: ingest -> analyse -> learn -> judge -> apply, and evaluate afterwards.

The command line and the Dagster assets are shells over these; used as a library they need neither. In the order of
the chain: `records` (what is given and handed on), `logs`, `sizes`, `learning`, `by_hand`, `rewriting`, `measure`,
`first_look`, `words`.
"""

from zorder_pipeline.gate.decision import judge

from .by_hand import layout_by_hand
from .first_look import triage
from .keeping import present_plan
from .learning import analyse, learn, learn_layout_for, sample_files
from .logs import ingest, ingest_into, names_of, purge, stored_log
from .measure import evaluate, inspect, overlap_depth
from .records import LearnSettings, LogSource, TableAnalysis
from .rewriting import apply
from .sizes import target_rows
from .words import describe, in_words

__all__ = [
    "LearnSettings",
    "LogSource",
    "TableAnalysis",
    "analyse",
    "apply",
    "describe",
    "evaluate",
    "in_words",
    "ingest",
    "ingest_into",
    "inspect",
    "judge",
    "layout_by_hand",
    "learn",
    "learn_layout_for",
    "names_of",
    "overlap_depth",
    "present_plan",
    "purge",
    "sample_files",
    "stored_log",
    "target_rows",
    "triage",
]
