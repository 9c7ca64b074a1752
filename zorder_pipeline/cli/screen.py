"""Where the commands print: text is shown as what it is, and a stream that is gone stops no work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from zorder_pipeline.model.wording import SHOWN

__all__ = ["Notices", "Screen"]


class Screen(Console):
    """A console on which text is what it is, as names and statements come from logs; when quiet, it renders nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        if not self.quiet:
            super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            # Rich drops carriage returns
            yield Segment(text if control else text.translate(SHOWN), style, control)


class Notices(Screen):
    """stderr: when nobody reads it any more, work goes on without it, as it may be about to write down what it did."""

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


for _name in ("stdout", "stderr"):
    if getattr(sys, _name) is None:  # the caller has closed it
        setattr(sys, _name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
