"""``zorder``, the command line: thin commands over `zorder_pipeline.pipeline` (the contract is design section 4).

`common` is what the commands share, `entry` gathers them; the others hold the commands. They load Spark, Dagster and
the pipeline only when they run, so that ``--help`` is quick.
"""

from .entry import main

__all__ = ["main"]
