"""The whole chain as plain functions: ingest -> analyse -> learn -> judge -> apply, and evaluate afterwards.

The command line and the Dagster assets are shells over these; used as a library they need neither. `records` holds
what is given and handed on, `logs` reads the queries; then, in the order of the chain, `learning`, `judging` and
`rewriting`; `measuring` tells what came of it, `reading` makes use of the statistics.
"""

from zorder_pipeline.model.progress import Progress, silent

from .costs import cost_model
from .judging.approving import answer_request, lift_stop, stop_all, waiting_requests
from .judging.judge import hold_now, judge_table
from .judging.judgements import Judgement, Rules
from .judging.nightly import share_budget
from .learning.analysing import analyse
from .learning.by_hand import layout_by_hand
from .learning.keeping import present_plan
from .learning.learn import learn, learn_layout_for
from .learning.looked_up import with_bloom_filters
from .learning.studies import kept_studies, kept_study
from .learning.tonight import layouts_in_use, learn_tonight
from .learning.words import describe, in_words
from .logs import (
    configured_sources,
    configured_tables,
    ingest,
    ingest_into,
    names_in_state,
    names_of,
    redact_key,
    stored_log,
)
from .measuring.accounting import Savings, check_promises, check_promises_by_log, note_undone, savings
from .measuring.first_look import advise, triage
from .measuring.measure import evaluate, inspect
from .measuring.promises import PromiseCheck
from .purging import expire, purge
from .reading.kept_statistics import complete_statistics
from .reading.recording import record
from .reading.scanning import explain, explain_scan, explain_sql, scan, sql
from .reading.statistics import gather_statistics, statistics_features, update_statistics
from .records import LearnSettings, LogSource, TableAnalysis
from .rewriting.apply import apply, carry_out, dry_result
from .rewriting.calibration import calibrate
from .rewriting.compacting import compact
from .rewriting.partitions import PartitionOutcome, apply_partitions, carry_out_partitions, rows_by_partition
from .rewriting.relayout_settings import RelayoutSettings
from .rewriting.tidying import tidy_state

__all__ = [
    "Judgement",
    "LearnSettings",
    "LogSource",
    "PartitionOutcome",
    "Progress",
    "PromiseCheck",
    "RelayoutSettings",
    "Rules",
    "Savings",
    "TableAnalysis",
    "advise",
    "analyse",
    "answer_request",
    "apply",
    "apply_partitions",
    "calibrate",
    "carry_out",
    "carry_out_partitions",
    "check_promises",
    "check_promises_by_log",
    "compact",
    "complete_statistics",
    "configured_sources",
    "configured_tables",
    "cost_model",
    "describe",
    "dry_result",
    "evaluate",
    "expire",
    "explain",
    "explain_scan",
    "explain_sql",
    "gather_statistics",
    "hold_now",
    "in_words",
    "ingest",
    "ingest_into",
    "inspect",
    "judge_table",
    "kept_studies",
    "kept_study",
    "layout_by_hand",
    "layouts_in_use",
    "learn",
    "learn_layout_for",
    "learn_tonight",
    "lift_stop",
    "names_in_state",
    "names_of",
    "note_undone",
    "present_plan",
    "purge",
    "record",
    "redact_key",
    "rows_by_partition",
    "savings",
    "scan",
    "share_budget",
    "silent",
    "sql",
    "statistics_features",
    "stop_all",
    "stored_log",
    "tidy_state",
    "triage",
    "update_statistics",
    "waiting_requests",
    "with_bloom_filters",
]
