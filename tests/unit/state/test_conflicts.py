"""Delta's conflicts are lost races, however a session tells them."""

import pytest

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.state.conflicts import lost_races

TOLD = "(io.delta.exceptions.ConcurrentDeleteReadException) [DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT] Transaction"
OWN = type("MetadataChangedException", (Exception,), {})


@pytest.mark.parametrize(
    ("error", "kind"), [(RuntimeError(TOLD), "ConcurrentDeleteRead"), (OWN("..."), "MetadataChanged")]
)
def test_a_conflict_is_a_lost_race(error: Exception, kind: str) -> None:
    told = rf"of t during the relayout \({kind}\); nothing was committed"
    with pytest.raises(LostRaceError, match=told), lost_races("t"):
        raise error


def test_anything_else_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="ConcurrentDeleteRead"), lost_races("t"):
        raise RuntimeError("no " + TOLD)
