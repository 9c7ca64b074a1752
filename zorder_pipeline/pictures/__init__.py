"""Pictures for the assets, the report and the command line: plain arrays and dicts in, PNG bytes out.

Each title says the message, not the axes. Colours are Okabe and Ito's (readable with every kind of colour blindness)
and nothing is said by colour alone. Drawn without a display and without matplotlib's global state.
"""

from __future__ import annotations

from .canvas import data_uri, markdown
from .layout import layout_bits, layout_shares, search_history
from .tables import tables_to_gain
from .workload import correlation_graph, rows_per_query
from .zones import zone_map

__all__ = ["correlation_graph", "data_uri", "layout_bits", "layout_shares", "markdown", "rows_per_query"]
__all__ += ["search_history", "tables_to_gain", "zone_map"]
