"""The night's budget against every possible selection."""

from itertools import pairwise, product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.gate.budget import Choice, allot, worthwhile

AMOUNT = st.floats(0.1, 100).map(lambda x: round(x, 1))
GAIN = st.floats(-50, 100).map(lambda x: round(x, 1))
CHOICES = st.lists(st.tuples(AMOUNT, GAIN), min_size=1, max_size=3).map(
    lambda pairs: [Choice(str(i), cost, gain) for i, (cost, gain) in enumerate(pairs)]
)
UNITS = st.lists(CHOICES, max_size=5).map(lambda listed: {f"t{i}": choices for i, choices in enumerate(listed)})


def best_possible(units: dict[str, list[Choice]], budget: float) -> float:
    """The most that any selection gains, by trying them all."""
    options = [[Choice("nothing", 0.0, 0.0), *choices] for choices in units.values()]
    gains = [
        sum(choice.gain for choice in picked)
        for picked in product(*options)
        if sum(choice.cost for choice in picked) <= budget + 1e-9
    ]
    return max(gains, default=0.0)


@settings(max_examples=300, deadline=None)
@given(UNITS, st.floats(0, 250))
@example({"t0": [Choice("0", 2.0, 1.0)]}, 2.0 - 1.4e-14)
def test_never_over_budget_never_a_loss_and_at_least_half_of_the_best(
    units: dict[str, list[Choice]], budget: float
) -> None:
    taken = allot(units, budget)
    assert sum(choice.cost for choice in taken.values()) <= budget + 1e-9
    assert all(choice.gain > 0 and choice in units[unit] for unit, choice in taken.items())
    gained = sum(choice.gain for choice in taken.values())
    surely = best_possible(units, budget - 2e-9)  # what costs a rounding error more than the budget need not be taken
    assert surely / 2 - 1e-9 <= gained <= best_possible(units, budget) + 1e-9


@settings(max_examples=300, deadline=None)
@given(UNITS, st.floats(0, 250))
def test_a_dominated_choice_is_never_taken(units: dict[str, list[Choice]], budget: float) -> None:
    for unit, choice in allot(units, budget).items():
        better = [
            other
            for other in units[unit]
            if other.cost <= choice.cost
            and other.gain >= choice.gain
            and (other.cost, other.gain) != (choice.cost, choice.gain)
        ]
        assert not better


@settings(max_examples=100, deadline=None)
@given(UNITS)
def test_without_a_limit_every_unit_gets_what_gains_most(units: dict[str, list[Choice]]) -> None:
    taken = allot(units, None)
    for unit, choices in units.items():
        best = max(choice.gain for choice in choices)
        assert (taken[unit].gain == best) if best > 0 else unit not in taken


@given(CHOICES)
def test_worthwhile_choices_gain_ever_more_at_a_falling_rate(choices: list[Choice]) -> None:
    kept = [Choice("", 0.0, 0.0), *worthwhile(choices)]
    rates = [(b.gain - a.gain) / (b.cost - a.cost) for a, b in pairwise(kept)]
    assert all(rate > 0 for rate in rates)
    assert all(later <= sooner + 1e-9 for sooner, later in pairwise(rates))


def test_with_room_for_three_of_ten_the_three_best_are_done() -> None:
    units = {f"t{i}": [Choice("all", 10.0, 10.0 * (i + 1))] for i in range(10)}
    assert sorted(allot(units, 35.0)) == ["t7", "t8", "t9"]


def test_what_gains_most_alone_is_taken_before_what_is_cheapest_per_second() -> None:
    """The cheap one leaves no room for the large one, and what else fits beside it gains less."""
    units = {"small": [Choice("all", 1, 2)], "large": [Choice("all", 100, 100)], "middle": [Choice("all", 90, 50)]}
    assert sorted(allot(units, 100)) == ["large"]
    assert sorted(allot(units, 101)) == ["large", "small"]


def test_a_choice_below_the_line_between_two_others_is_left_out() -> None:
    few, more, most = Choice("few", 10, 1), Choice("more", 11, 3), Choice("most", 30, 9)
    assert [choice.name for choice in worthwhile([few, more, most])] == ["most"]
    assert [choice.name for choice in worthwhile([few, more, Choice("most", 30, 8)])] == ["more", "most"]
