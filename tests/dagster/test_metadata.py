"""What a log holds is shown in Dagster's Markdown as text, whatever it looks like."""

import re

import pytest
from dagster import AssetObservation
from markdown_it import MarkdownIt

from zorder_pipeline.assets.events import reasons_of
from zorder_pipeline.assets.metadata import JOINER, bullets, md_table

pytestmark = pytest.mark.dagster

LITERAL = re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)|([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)", re.IGNORECASE)
"""What remark-gfm, by which Dagster renders, makes links of once the text is parsed, escapes and all."""


@pytest.mark.parametrize(
    "name",
    [
        "https://example.org/x",
        "see HTTP://example.org",
        "www.example.org",
        "someone@example.org",
        "~~struck~~",
        "&lt;b&gt;",
        "# a_b *c* `d` <i> ![e](f) [g]: h",
    ],
)
def test_a_name_of_a_log_is_neither_a_link_nor_markup(name: str) -> None:
    cell = md_table(["table"], [(name,)]).splitlines()[-1].removeprefix("| ").removesuffix(" |")
    (line,) = MarkdownIt("gfm-like", {"linkify": False}).parseInline(cell)
    assert {part.type for part in line.children or ()} <= {"text", "text_special"}
    told = "".join(part.content for part in line.children or ())
    assert not LITERAL.search(told)
    assert told.replace(JOINER, "") == name


def test_a_name_of_a_log_does_nothing_to_the_text_around_it() -> None:
    assert (
        md_table(["table"], [("a\x1b[2Jb\u202ec\u2066d\x7f",)]).splitlines()[-1] == "| a␛\\[2Jb\ufffdc\ufffdd\ufffd |"
    )


def test_sentences_are_no_markup_and_are_read_again_as_they_were() -> None:
    """Names of predicates, which are what a log asks, stand in the words that a layout is described in."""
    sentences = ("note LIKE '%![x](https://evil.example/p.png)%': 2 ranges", r"a_b\*c, `d`", "5 * 3 < 16")
    shown = bullets(sentences)
    assert "![x]" not in str(shown.value)
    assert f"https:{JOINER}//" in str(shown.value)
    assert reasons_of(AssetObservation("t", metadata={"reasons": shown})) == sentences
