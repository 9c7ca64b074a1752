"""Pictures: PNGs that are not empty, for usual and for odd input."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.image import imread

from zorder_pipeline import pictures
from zorder_pipeline.pictures import canvas

RNG = np.random.default_rng(0)
SPANS = {"day": RNG.uniform(0, 1, 12), "part": np.full(12, np.nan)}

CASES: dict[str, Callable[[], bytes]] = {
    "bits": lambda: pictures.layout_bits(["day", "part", "day", "a_very_long_column_name_that_goes_on", "part"]),
    "one bit": lambda: pictures.layout_bits(["day"]),
    "more columns than colours": lambda: pictures.layout_bits([f"c{i}" for i in range(16)]),
    "shares": lambda: pictures.layout_shares({"stored": 0.6, "zorder-2": 0.3, "learned": 0.1}, "learned"),
    "nothing better": lambda: pictures.layout_shares({"stored": 0.6, "zorder-2": 0.7}, "stored"),
    "all zero": lambda: pictures.layout_shares({"stored": 0.0}, "stored"),
    "rows": lambda: pictures.rows_per_query(RNG.uniform(0, 1, 30), RNG.uniform(0, 0.3, 30)),
    "one query": lambda: pictures.rows_per_query(np.array([0.5]), np.array([0.1])),
    "no query": lambda: pictures.rows_per_query(np.array([]), np.array([])),
    "history": lambda: pictures.search_history([0.5, 0.4, 0.45], ["warm start", "greedy", "local"], {"stored": 0.6}),
    "no trial": lambda: pictures.search_history([]),
    "graph": lambda: pictures.correlation_graph(
        {"day": 10, "sent": 4, "part": 1},
        {("day", "sent"): 0.9, ("part", "day"): 0.8},
        {("part", "day"): "descending"},
        ["day"],
    ),
    "no edge": lambda: pictures.correlation_graph({"day": 10}, {}),
    "no column": lambda: pictures.correlation_graph({}, {}),
    "zones": lambda: pictures.zone_map({"before": SPANS, "after": {"day": SPANS["day"] / 3}}),
    "one file": lambda: pictures.zone_map({"now": {"day": np.array([0.5])}}),
    "tables": lambda: pictures.tables_to_gain([("sales", 0.98, 0.2, 0.02), ("orders", 0.5, 0.45, 0.1)]),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_picture_is_drawn(case: str) -> None:
    png = CASES[case]()
    pixels = imread(io.BytesIO(png), format="png")
    assert pixels.shape[0] > 100
    assert pixels.shape[1] > 200
    assert pixels[..., :3].std() > 0.01, "an empty picture"
    assert len(png) < 120_000, "too large to lie in Dagster's metadata"


def test_the_same_input_gives_the_same_picture() -> None:
    assert CASES["graph"]() == CASES["graph"]()


def test_the_bar_is_as_long_as_the_share() -> None:
    """The green bar of the learned layout is a sixth of the grey one of the table as stored."""
    pixels = imread(io.BytesIO(CASES["shares"]()), format="png")[..., :3]

    def widest(colour: str) -> int:
        wanted = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return int((np.abs(pixels - wanted).max(axis=2) < 0.01).sum(axis=1).max())

    assert widest(canvas.GREEN) * 6 == pytest.approx(widest(canvas.GREY), rel=0.03)


def test_markdown_carries_the_picture() -> None:
    text = pictures.markdown(b"png", "alt]")
    assert text == "![alt)](data:image/png;base64,cG5n)"
