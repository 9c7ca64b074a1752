"""``python -m zorder_pipeline.cli``."""

from .entry import main

main()
