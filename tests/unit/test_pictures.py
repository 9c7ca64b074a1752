"""Pictures: PNGs that are not empty, for usual and for odd input."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.image import imread

from zorder_pipeline import pictures
from zorder_pipeline.pictures import blocks, canvas, promises, workload, zones

RNG = np.random.default_rng(0)
SPANS = {"day": RNG.uniform(0, 1, 12), "part": np.full(12, np.nan)}
ROWS = np.arange(800)
PLANE = {"day": ROWS, "part": RNG.integers(0, 9, 800)}
LEVELS = [{"day": 1.0}, {"part": 0.5}]

CASES: dict[str, Callable[[], bytes]] = {
    "bits": lambda: pictures.layout_bits(["day", "part", "day", "a_very_long_column_name_that_goes_on", "part"]),
    "spare bits": lambda: pictures.layout_bits(["day", "part", "day", "part"], spare=2),
    "one bit": lambda: pictures.layout_bits(["day"]),
    "more columns than colours": lambda: pictures.layout_bits([f"c{i}" for i in range(16)]),
    "cuts": lambda: pictures.layout_cuts(LEVELS, {"day": 1.0, "part": 0.5}, 4),
    "no cut": lambda: pictures.layout_cuts([], {}, 1),
    "cuts by many columns": lambda: pictures.layout_cuts(
        [{f"a_rather_long_name_{i}": 1 / 16 for i in range(16)}] * 14,
        {f"a_rather_long_name_{i}": 1.0 for i in range(16)},
        9999,
    ),
    "contenders": lambda: pictures.contender_bars({"rows": {"ours": 1.0, "bound": 0.1}, "s": {"ours": 2}}, "t", "ours"),
    "no contender": lambda: pictures.contender_bars({"rows": {"ours": 0.0}}, "nothing read", "ours"),
    "importance": lambda: pictures.column_importance({"day": 0.7, "part": 0.3}),
    "no importance": lambda: pictures.column_importance({}),
    "blocks": lambda: pictures.blocks_2d(PLANE, {"before": ROWS % 40, "after": ROWS // 20}),
    "one block": lambda: pictures.blocks_2d({"day": ROWS, "part": ROWS * 0}, {"now": ROWS * 0}),
    "many blocks": lambda: pictures.blocks_2d(
        {name: RNG.permutation(50_000) for name in ("day", "part")},
        {"before": RNG.integers(0, 500, 50_000), "after": RNG.integers(0, 500, 50_000)},
    ),
    "promises": lambda: pictures.promises_kept(
        [
            pictures.KeptPromise(
                f"flights v{i}", 0.8, 0.6, None if i == 30 else 0.9 - 0.03 * i, i <= 15, 9.0 + i, (5, 8, 20)
            )
            for i in range(31)
        ]
    ),
    "an unchecked promise": lambda: pictures.promises_kept(
        [pictures.KeptPromise("flights v3", 0.8, 0.6, None, None, 9.0, None)]
    ),
    "shares": lambda: pictures.layout_shares({"stored": 0.6, "zorder-2": 0.3, "learned": 0.1}, "learned"),
    "nothing better": lambda: pictures.layout_shares({"stored": 0.6, "zorder-2": 0.7}, "stored"),
    "all zero": lambda: pictures.layout_shares({"stored": 0.0}, "stored"),
    "rows": lambda: pictures.rows_per_query(RNG.uniform(0, 1, 30), RNG.uniform(0, 0.3, 30)),
    "one query": lambda: pictures.rows_per_query(np.array([0.5]), np.array([0.1])),
    "no query": lambda: pictures.rows_per_query(np.array([]), np.array([])),
    "history": lambda: pictures.search_history([0.5, 0.4, 0.45], ["warm start", "greedy", "local"]),
    "no trial": lambda: pictures.search_history([], []),
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
    "over time": lambda: pictures.queries_over_time(
        {f"c{i}": (1_767_225_600_000_000 + RNG.integers(0, 10**12, 40 + i)).tolist() for i in range(9)}
    ),
    "at one time": lambda: pictures.queries_over_time({"day": [1_767_225_600_000_000], "part": []}),
    "at no time": lambda: pictures.queries_over_time({"day": []}),
    "forms": lambda: pictures.condition_forms({"column = value": 40, "column < value, between": 7}, ["column = value"]),
    "no form": lambda: pictures.condition_forms({}, []),
    "parallel": lambda: pictures.parallel_bits(["day", "part"], RNG.integers(0, 9, (400, 2)), RNG.uniform(0, 1, 400)),
    "one layout": lambda: pictures.parallel_bits(["day"], np.array([[3]]), np.array([0.5])),
    "worth it": lambda: pictures.cost_and_benefit((100, 80, 130), (900, 400, 1500), "core-seconds"),
    "not worth it": lambda: pictures.cost_and_benefit((100, 80, 130), (9, -4, 15), "core-seconds"),
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


@pytest.mark.parametrize("name", ["$\\frac{$", "rlike(c, '^\\d+$|^$')", "日本 größe", "a\tb"])
@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are(name: str) -> None:
    """A condition with two dollar signs is no formula, and of letters that the font lacks nobody is warned."""
    parts = {name: 0.7, "part": 0.3}
    for png in (
        pictures.layout_bits([name, "part", name]),
        pictures.layout_cuts([{name: 1.0}, {"part": 0.5}], parts, 4),
        pictures.blocks_2d({name: ROWS, "part": ROWS}, {"before": ROWS % 40}),
        pictures.correlation_graph({name: 10, "part": 1}, {(name, "part"): 0.9}),
        pictures.zone_map({"before": {name: RNG.uniform(0, 1, 12)}}),
        pictures.parallel_bits([name, "part"], RNG.integers(0, 9, (40, 2)), RNG.uniform(0, 1, 40)),
        pictures.queries_over_time({name: [1_767_225_600_000_000]}),
        pictures.column_importance(parts),
        pictures.condition_forms({name: 3}, [name]),
        pictures.layout_shares({name: 0.3, "stored": 0.6}, name),
    ):
        assert imread(io.BytesIO(png), format="png").shape[0] > 100


def test_the_same_input_gives_the_same_picture() -> None:
    assert CASES["graph"]() == CASES["graph"]()


def test_who_promised_nothing_kept_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout by hand that made queries read more was told as a promise that was kept."""
    titles: list[str] = []
    made = promises.figure_of
    monkeypatch.setattr(
        promises, "figure_of", lambda w, h, title, **options: titles.append(title) or made(w, h, title, **options)
    )
    by_hand = pictures.KeptPromise("by hand", 0.0, 0.0, -0.3, None, 9.0, None)
    pictures.promises_kept([by_hand])
    pictures.promises_kept([pictures.KeptPromise("t", 0.8, 0.6, 0.7, True, 9.0, None), by_hand])
    assert titles[0] == "no promise was checked yet"
    assert titles[1] == "1 of 1 checked promises were kept; the latest saves 70% of the rows, promised 80%"


def test_forms_that_skip_no_file_are_grey_wherever_they_stand() -> None:
    picture = pictures.condition_forms({"patterns": 200, "column = value": 5}, ["column = value"])
    assert drawn(picture, canvas.GREY).sum() > 10 * drawn(picture, canvas.COLUMNS[0]).sum() > 0


def test_the_bar_is_as_long_as_the_share() -> None:
    """The green bar of the learned layout is a sixth of the grey one of the table as stored."""
    picture = CASES["shares"]()
    widths = [drawn(picture, colour).sum(axis=1).max() for colour in (canvas.GREEN, canvas.GREY)]
    assert widths[0] * 6 == pytest.approx(widths[1], rel=0.03)


def test_a_column_is_as_high_as_the_cells_that_it_cuts() -> None:
    """All cells of the first level, half of those of the second; each a column of its own."""
    picture = CASES["cuts"]()
    heights = [np.median([n for n in drawn(picture, c).sum(axis=0) if n > 20]) for c in canvas.COLUMNS[:2]]
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.03)


def drawn(picture: bytes, colour: str) -> npt.NDArray[np.bool_]:
    """Where a picture has a colour."""
    pixels = imread(io.BytesIO(picture), format="png")[..., :3]
    wanted = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.asarray(np.abs(pixels - wanted).max(axis=2) < 0.01)


def test_files_are_drawn_by_rank_alone() -> None:
    """Whatever the values are, the same order makes the same picture: nothing of them can be read off."""
    stretched = {name: 7 * codes.astype(np.int64) ** 2 + 1_000_003 for name, codes in PLANE.items()}
    panels = {"before": ROWS % 40, "after": ROWS // 20}
    assert pictures.blocks_2d(stretched, panels) == pictures.blocks_2d(PLANE, panels)


def test_a_file_spans_its_share_of_the_plane() -> None:
    """Sixteen files in a grid of four by four; a value that half of the rows share is half as wide as the plane."""
    x, y = np.arange(6400) % 80, np.arange(6400) // 80
    extents = [blocks._extent(values) for values in (x, y)]
    grid = blocks._boxes(x // 20 + 4 * (y // 20), extents)
    assert blocks._area(grid) == pytest.approx(1 / 16)
    assert blocks._area(blocks._boxes(x % 16, extents)) > 0.8
    half = blocks._extent(np.minimum(np.arange(100), 50))
    assert (half[0][99], half[1][99]) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("after", "area", "span"), [(0.4, "4.0 times larger", "more of"), (0.1, "as before", "before")]
)
def test_what_became_worse_is_said_to_be(after: float, area: str, span: str) -> None:
    assert area in blocks._message({"before": 0.1, "after": after}, ["day", "part"])
    spans = {panel: {"day": np.array([share, share])} for panel, share in (("before", 0.1), ("after", after))}
    assert span in zones._zone_message(spans)


@pytest.mark.parametrize(("after", "span"), [(0.95, "Files now span less of day"), (0.5, "Files now span far less")])
def test_little_is_not_called_far(after: float, span: str) -> None:
    spans = {panel: {"day": np.array([share, share])} for panel, share in (("before", 1.0), ("after", after))}
    assert zones._zone_message(spans).startswith(span)


@pytest.mark.parametrize(
    ("edges", "chosen", "told"),
    [
        ({("day", "sent"): "ascending"}, ["day"], "hollow: another column stands for it"),
        ({("day", "sent"): "contingency"}, ["day"], "hollow: it comes after the others"),
        ({}, ["day"], "hollow: it comes after the others"),
        ({}, ["day", "sent"], None),
    ],
)
def test_hollow_columns_are_explained_by_what_is_drawn(
    edges: dict[tuple[str, str], str], chosen: list[str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        workload, "to_png", lambda figure: drawn.extend(text.get_text() for text in figure.axes[0].texts) or b""
    )
    pictures.correlation_graph({"day": 10, "sent": 4}, dict.fromkeys(edges, 0.9), edges, chosen)
    hollow = [part for text in drawn for part in text.replace("\n", ", ").split(", ") if part.startswith("hollow")]
    assert hollow == [told] * (told is not None)


def test_markdown_carries_the_picture() -> None:
    text = pictures.markdown(b"png", "alt]")
    assert text == "![alt)](data:image/png;base64,cG5n)"
