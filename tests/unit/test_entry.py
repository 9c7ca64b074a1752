"""What the program says when it is interrupted."""

import io

import click
import pytest
from rich.console import Console

from zorder_pipeline.cli import entry


@pytest.mark.parametrize(
    ("notes", "told"),
    [((), "what was not committed by then is undone"), (("version 1 of t was committed",), "version 1 of t was")],
)
def test_an_interruption_is_told_with_what_the_step_says_of_itself(
    monkeypatch: pytest.MonkeyPatch, notes: tuple[str, ...], told: str
) -> None:
    def interrupted(**_: object) -> None:
        error = KeyboardInterrupt()
        for note in notes:
            error.add_note(note)
        raise click.exceptions.Abort from error

    page = io.StringIO()
    monkeypatch.setattr(entry.zorder, "main", interrupted)
    monkeypatch.setattr(entry, "err", Console(file=page))
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == entry.INTERRUPTED
    said = " ".join(page.getvalue().split())
    assert told in said
    assert ("is undone" in said) == (not notes)
