"""The tables as a Dagster component, for projects built with ``dg``: its whole work is a ``tables.yaml``.

``dg scaffold defs zorder_pipeline.assets.component.ZorderTables orders`` makes a folder with both files.
"""

from pathlib import Path

from dagster import Component, ComponentLoadContext, Definitions, Model, Resolvable
from dagster.components import Scaffolder, ScaffoldRequest, scaffold_component, scaffold_with

from zorder_pipeline.config import load_config

from .definitions import build_definitions

__all__ = ["ZorderTables", "ZorderTablesScaffolder"]

EXAMPLE = """\
# Every key is explained in zorder_pipeline's docs/configuration.md; relative paths start at this folder.
state: state
query_logs:
  - path: queries.jsonl     # what was asked: JSON Lines, CSV, Parquet, .sql, Spark event logs
tables:
  - name: my_table
    location: my_table      # folder of the Delta table, or `catalog: sales.orders`
"""


class ZorderTablesScaffolder(Scaffolder):
    """Writes defs.yaml and a tables.yaml to fill in."""

    def scaffold(self, request: ScaffoldRequest) -> None:
        """Make both files in the component's folder."""
        scaffold_component(request, {"config": "tables.yaml"})
        target = Path(request.target_path) / "tables.yaml"
        if not target.exists():
            target.write_text(EXAMPLE, encoding="utf-8")


@scaffold_with(ZorderTablesScaffolder)
class ZorderTables(Component, Model, Resolvable):
    """Delta tables that are kept in the order in which they are asked.

    Attributes:
        config: the ``tables.yaml``, relative to the component's folder.
    """

    config: str = "tables.yaml"

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """All assets, checks, jobs, schedules and sensors of the configured tables.

        Raises:
            ConfigError: the configuration is wrong; the sentence says where.
        """
        return build_definitions(load_config(context.path / self.config, check_paths=False), executor=None)
