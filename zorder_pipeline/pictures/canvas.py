"""The canvas of every picture: colours, figures without a display, PNG bytes and what carries them."""

from __future__ import annotations

import base64
import io
import textwrap
import warnings

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

__all__ = ["data_uri", "figure_of", "markdown", "percent", "plain_axes", "short", "to_png"]

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#000000"
COLUMNS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, "#999999")
GREY, LIGHT, INK = "#8A8A8A", "#D9D9D9", "#222222"

Floats = npt.NDArray[np.float64]


def data_uri(png: bytes) -> str:
    """A PNG as ``data:`` URI, which needs no file next to the page.

    >>> data_uri(b"x")
    'data:image/png;base64,eA=='
    """
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def markdown(png: bytes, alt: str) -> str:
    """A PNG as a Markdown image that carries its own data."""
    return f"![{alt.replace(']', ')')}]({data_uri(png)})"


def figure_of(width: float, height: float, title: str, axes: bool = True) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    lines = textwrap.fill(title, int(width * 10.5))
    figure.suptitle(lines, x=0.02, y=0.97, ha="left", va="bottom", fontsize=12.5, weight="bold", color=INK)
    return figure, figure.add_subplot() if axes else None  # type: ignore[return-value]


def to_png(figure: Figure) -> bytes:
    """The figure as a PNG of 256 colours, a third of the size: it travels in metadata.

    Names and conditions stand there as they are: what is between two ``$`` is no formula, and what the font lacks is
    drawn as a box without a warning.
    """
    drawn, buffer = io.BytesIO(), io.BytesIO()
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    # the labels of ticks are made only while it is drawn
    with mpl.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(drawn, format="png", bbox_inches="tight", pad_inches=0.15, metadata={"Software": None})
    Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def plain_axes(axes: Axes, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x" if grid == "x" else "y", color=LIGHT, linewidth=0.6)
    axes.set_axisbelow(True)


def percent(share: float) -> str:
    """Two significant digits below a tenth, else whole or tenths of a percent."""
    value = 100 * share
    if value == 0:
        return "0%"
    return f"{value:.2g}%" if abs(value) < 1 else f"{value:.1f}%" if abs(value) < 10 else f"{value:.0f}%"


def short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
