"""``python -m zorder_pipeline`` is ``zorder``."""

from zorder_pipeline.cli import main

main()
