"""``zorder report``: one self-contained page about a table. `collect` finds the facts, `page` writes them."""

from .collect import collect
from .page import Card, Picture, Report, Section, Table, page

__all__ = ["Card", "Picture", "Report", "Section", "Table", "collect", "page"]
