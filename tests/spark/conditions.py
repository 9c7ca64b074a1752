"""Random conditions over the table of `test_reading`, with nulls, NaN, collations and functions."""

from __future__ import annotations

import random

__all__ = ["Conditions"]


class Conditions:
    """Conditions from a seed; half of their literals repeat, so that whole predicates do."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self) -> str:
        """A condition of one to three parts."""
        parts = [self._atom() for _ in range(self.random.choice([1, 1, 2, 3]))]
        parts = [f"NOT ({part})" if self.random.random() < 0.15 else part for part in parts]
        return f" {self.random.choice(['AND', 'OR', 'AND'])} ".join(f"({part})" for part in parts)

    def _atom(self) -> str:
        pick, number = self.random.choice, self.random.randrange
        op = pick(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        day = f"DATE '2024-{number(1, 13):02d}-{number(1, 29):02d}'"
        tail = pick([number(90), 7, 55, 8])
        few = ", ".join(str(number(60)) for _ in range(3))
        return pick(
            [
                f"`odd i` {op} {pick([number(60), 7, 'NULL', '5.5', -3])}",
                f"`odd i` IN ({few})",
                f"`odd i` NOT IN ({few})",
                f"`odd i` % 10 = {number(10)}",
                f"id {op} {number(1300)}",
                f"id BETWEEN {(low := number(1200))} AND {low + 40}",
                f"f {op} {pick([number(-60, 110), '0.5', repr(number(100) / 3)])}D",
                f"f = double('{pick(['NaN', 'Infinity', '12'])}')",
                "isnan(f)",
                f"round(f) = {number(-50, 100)}",
                f"f + `odd i` {op} {number(120)}",
                f"`odd i` < f AND id > {number(1200)}",
                f"s LIKE '%characters {tail}'",
                f"s LIKE '%ter_ {tail}%'",
                f"s NOT LIKE '%{tail}'",
                f"s = 'a common beginning longer than thirty-two characters {tail}'",
                f"s > 'a common beginning longer than thirty-two characters {tail}'",
                f"length(s) {op} {pick([54, 55])}",
                f"upper(s) = 'A COMMON BEGINNING LONGER THAN THIRTY-TWO CHARACTERS {tail}'",
                f"right(s, 2) = '{tail:02d}'",
                f"u = '{pick('Aa')}{number(13)}'",
                f"u LIKE '%{number(13)}'",
                f"lower(u) = 'a{number(13)}'",
                f"u IN ('A1', 'a{number(13)}')",
                f"u COLLATE UTF8_LCASE = 'a{number(13)}'",
                f"u COLLATE UTF8_LCASE LIKE '%A{number(13)}' AND u >= 'a'",
                f"d {op} {day}",
                f"d IN ({day}, DATE '2024-03-03')",
                f"month(d) {op} {number(1, 13)}",
                f"month(d) IN ({number(1, 13)}, 5)",
                f"year(ts) {op} {pick([2023, 2024, 2025])}",
                f"hour(ts) = {number(24)}",
                f"date_trunc('month', ts) = TIMESTAMP '2024-{number(1, 4):02d}-01 00:00:00'",
                f"CAST(ts AS DATE) = {day}",
                f"ts {op} TIMESTAMP '2024-{number(1, 4):02d}-{number(1, 29):02d} 03:00:00.000003'",
                f"d > CAST(ts AS DATE) AND d < {day}",
                pick(["b", "NOT b", "b IS NULL", "b IS NOT TRUE", "b <=> NULL"]),
                f"p = '{number(5)}'",
                f"n.x {op} {number(22)}",
                f"n.x IN ({few})",
                f"n.y {op} {number(300)}.25",
                f"n.x + n.y > {number(320)}",
                # a wide decimal, compared more exactly than doubles tell values apart
                f"n.y * n.y * n.y * n.y * 1000000000 {op} {number(300) ** 4 * 10**9 + pick([-1, 0, 1])}",
                f"coalesce(`odd i`, {number(9)}) = {number(9)}",
                f"`odd i` IS {pick(['', 'NOT '])}NULL AND id < {number(1300)}",
                f"CASE WHEN id < {number(1200)} THEN s ELSE NULL END IS NOT NULL",
            ]
        )
