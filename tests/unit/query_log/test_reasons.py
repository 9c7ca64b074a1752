"""Every reason for which a line is not used is said in words."""

import re
from pathlib import Path

import zorder_pipeline.query_log as package
from zorder_pipeline.query_log.insight import REASONS


def test_each_reason_has_words_and_no_other_does() -> None:
    sources = [path.read_text() for path in Path(package.__file__).parent.glob("*.py") if path.stem != "insight"]
    given = {name for text in sources for name in re.findall(r'(?:Unusable\(|reason=|damage=)"([a-z_0-9]+)"', text)}
    assert given <= set(REASONS)
    assert {name for name in REASONS if not any(f'"{name}"' in text for text in sources)} == set()
