"""The configuration reference in docs/ is the one that the models make."""

from pathlib import Path

from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.config.reference import reference

WRITTEN = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_written_reference_is_up_to_date() -> None:
    assert WRITTEN.read_text(encoding="utf-8") == reference(), (
        "write it anew: python -m zorder_pipeline.config.reference > docs/configuration.md"
    )


def test_every_key_is_explained() -> None:
    rows = [line.split(" | ") for line in reference().splitlines() if line.startswith("| `")]
    assert {f"| `{name}`" for name in [*PipelineConfig.model_fields, *TableConfig.model_fields]} <= {r[0] for r in rows}
    assert all(len(row[-1].removesuffix(" |").strip()) > 10 for row in rows)
