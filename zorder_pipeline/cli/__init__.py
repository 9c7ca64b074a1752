"""``zorder``, the command line: thin commands over `zorder_pipeline.pipeline` (the contract is design section 4).

`common` is what the commands share, `entry` gathers them; the others hold the commands. They load Spark, Dagster and
the pipeline only when they run, so that ``--help`` is quick.
"""

import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Entry point: every expected error is one sentence on stderr and a non-zero exit."""
    try:
        from .entry import main as run
    except KeyboardInterrupt:  # while it loads, which takes half a second
        sys.stderr.write("zorder: interrupted; nothing was begun\n")
        sys.exit(INTERRUPTED)
    run()
