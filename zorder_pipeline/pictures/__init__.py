"""Pictures for the assets, the report and the command line: plain arrays and dicts in, PNG bytes out.

Each title says the message, not the axes. Colours are Okabe and Ito's (readable with every kind of colour blindness)
and nothing is said by colour alone. Drawn without a display and without matplotlib's global state.
"""

from __future__ import annotations

from .blocks import blocks_2d
from .canvas import data_uri, markdown
from .contenders import contender_bars
from .layout import column_importance, layout_bits, layout_cuts, layout_shares, search_history
from .promises import KeptPromise, promises_kept
from .tables import tables_to_gain
from .time import condition_forms, queries_over_time
from .trials import cost_and_benefit, parallel_bits
from .workload import correlation_graph, rows_per_query
from .zones import zone_map

__all__ = ["blocks_2d", "column_importance", "contender_bars", "correlation_graph", "data_uri", "layout_bits"]
__all__ += ["condition_forms", "cost_and_benefit", "layout_cuts", "parallel_bits", "queries_over_time"]
__all__ += ["layout_shares", "markdown", "rows_per_query", "search_history", "tables_to_gain", "zone_map"]
__all__ += ["KeptPromise", "promises_kept"]
