"""Numbers and names in sentences, said alike by the command line, errors, progress lines and assets."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["SHOWN", "counted", "queries_a_day"]

_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in b"\t\n\r"}
SHOWN = _CONTROLS | dict.fromkeys([*range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
"""For `str.translate`: characters that show those which do things instead, to a terminal or to the order of letters."""


def counted(count: int, thing: str) -> str:
    """A count and what is counted, in the plural unless it is one.

    >>> counted(1, "file"), counted(12_000, "file"), counted(0, "query")
    ('1 file', '12,000 files', '0 queries')
    """
    many = thing[:-1] + "ies" if thing.endswith("ry") else thing + "s"
    return f"{count:,} {thing if count == 1 else many}"


def queries_a_day(rate: float) -> str:
    """A rate in words; a small one by two digits that say something, as none at all is something else.

    >>> queries_a_day(1200.4), queries_a_day(2.46), queries_a_day(0.0000333), queries_a_day(1.0), queries_a_day(0.0)
    ('1,200 queries a day', '2.5 queries a day', '0.000033 queries a day', '1 query a day', '0 queries a day')
    """
    number = f"{rate:,.0f}" if rate >= 10 else f"{Decimal(f'{rate:.2g}'):f}"
    return f"{number} {'query' if number == '1' else 'queries'} a day"
