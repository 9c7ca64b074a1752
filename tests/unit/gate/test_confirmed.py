"""Shares that partitions are chosen by: what is credited of the chosen is what later queries save in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.gate.benefit import promise
from zorder_pipeline.gate.confirmed import confirmed, hands_of
from zorder_pipeline.gate.cost import RelayoutWork
from zorder_pipeline.gate.decision import decide
from zorder_pipeline.gate.proposal import PartitionWork, Proposal
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan

Floats = npt.NDArray[np.float64]
PARTS, QUERIES = 1000, 100
ALIKE = np.full(PARTS, 1 / PARTS)
HOT = np.where(np.arange(PARTS) < 3, 0.3, 0.1 / (PARTS - 3))
MIXED = np.where(np.arange(PARTS) < 1, 0.5, 0.5 / (PARTS - 1))
SKEWED = 1 / np.arange(1, PARTS + 1) / (1 / np.arange(1, PARTS + 1)).sum()


def asked(asks: Floats, seed: int, queries: int = QUERIES) -> Floats:
    """What each hand of queries saves in each part, of which a query asks for one by these chances."""
    hits = np.random.default_rng(seed).choice(len(asks), queries, p=asks)
    dealt = hands_of(queries)
    hands = np.zeros((dealt.max() + 1, len(asks)))
    np.add.at(hands, (dealt, hits), 1.0)
    return hands


def chosen(shares: Floats, number: int) -> npt.NDArray[np.int64]:
    return np.argsort(-shares, kind="stable")[:number]


@pytest.mark.parametrize(
    ("asks", "number", "flattered", "within"),
    [(ALIKE, 6, 10, 0.01), (MIXED, 20, 1.3, 0.03), (HOT, 3, 0.99, 0.01), (HOT, 20, 1.05, 0.01), (SKEWED, 20, 1, 0.08)],
)
def test_the_chosen_are_credited_with_what_later_queries_save(
    asks: Floats, number: int, flattered: float, within: float
) -> None:
    """As measured a choice among parts that are asked for alike was credited with many times that."""
    credited, measured, saved = [], [], []
    for seed in range(60):
        hands = asked(asks, seed)
        shares, raw = confirmed(hands, np.ones(PARTS)) / QUERIES, hands.sum(axis=0) / QUERIES
        these = chosen(shares, number)
        credited.append(shares[these].sum())
        saved.append(asks[these].sum())
        measured.append(raw[chosen(raw, number)].sum() / asks[chosen(raw, number)].sum())
    assert np.mean(measured) > flattered
    assert np.mean(credited) == pytest.approx(np.mean(saved), abs=within)


@given(
    st.integers(1, 6).flatmap(
        lambda hands: st.lists(st.lists(st.floats(0, 1e6), min_size=hands, max_size=hands), min_size=1, max_size=12)
    ),
    st.integers(0, 100),
)
def test_in_all_it_is_what_the_hands_have(saved: list[list[float]], seed: int) -> None:
    hands = np.array(saved).T
    sizes = np.random.default_rng(seed).uniform(0.5, 2.0, hands.shape[1])
    found = confirmed(hands, sizes)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(hands.sum())
    order = np.argsort(hands.sum(axis=0) / sizes)
    assert (np.diff((found / sizes)[order]) >= -1e-9 * max(1.0, found.max())).all(), "as they are measured"


def test_one_query_alone_and_none_are_told_as_measured() -> None:
    assert hands_of(0).tolist() == []
    assert hands_of(1).tolist() == [0]
    assert confirmed(np.array([[2.0, 0.0]]), np.ones(2)).tolist() == [2.0, 0.0]
    assert confirmed(np.zeros((4, 3)), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_partitions_that_are_asked_for_by_chance_do_not_pay_for_their_own_rewrite() -> None:
    """Of 1,000 partitions asked for alike those that were hit twice were rewritten, credited with 20 times too much."""
    before = np.full(QUERIES, 1 / PARTS)
    told = promise(before, before / 10, np.full(QUERIES, 1e9 * PARTS), (120.0, "observed"))
    spec = KeySpec((FeatureCodes("a", "int", (5,), (0, 1), 1),), (0,))
    plan = Plan("t", "id", "", 0, spec, "learned", 1, promise=told)
    approved = []
    for shares in (hands := asked(ALIKE, 0)).sum(axis=0) / QUERIES, confirmed(hands, np.ones(PARTS)) / QUERIES:
        parts = tuple(PartitionWork(f"p={i}", share, 1e9, 8, 1e9, 4) for i, share in enumerate(shares.tolist()))
        work = RelayoutWork(1e9 * PARTS, 1, files=8 * PARTS)
        proposal = Proposal(plan, work, 1e9 * PARTS, 1e9 * PARTS, partitions=parts)
        approved.append(decide([proposal], GateSettings())[0].approved)
    assert approved == [True, False], "as measured, and as confirmed"
