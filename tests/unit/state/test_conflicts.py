"""Delta's conflicts are lost races, however a session tells them."""

import contextlib

import pytest

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.state.conflicts import TRIES, insist, lost_races

TOLD = "(io.delta.exceptions.ConcurrentDeleteReadException) [DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT] Transaction"
OWN = type("MetadataChangedException", (Exception,), {})


@pytest.mark.parametrize(
    ("error", "kind"), [(RuntimeError(TOLD), "ConcurrentDeleteRead"), (OWN("..."), "MetadataChanged")]
)
def test_a_conflict_is_a_lost_race(error: Exception, kind: str) -> None:
    told = rf"of t meanwhile \({kind}\); nothing was committed"
    with pytest.raises(LostRaceError, match=told), lost_races("t"):
        raise error


@pytest.mark.parametrize(("faster", "raised"), [(TRIES - 1, False), (TRIES, True)])
def test_a_change_is_tried_again_while_others_are_faster(faster: int, raised: bool) -> None:
    tries: list[int] = []

    def change() -> None:
        tries.append(1)
        if len(tries) <= faster:
            raise OWN("...")

    with pytest.raises(LostRaceError) if raised else contextlib.nullcontext():
        insist("t", change)
    assert len(tries) == TRIES


def test_anything_else_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="ConcurrentDeleteRead"), lost_races("t"):
        raise RuntimeError("no " + TOLD)
