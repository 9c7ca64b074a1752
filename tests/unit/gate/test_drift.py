"""Regret: a change follows a workload that moved for good, and none follows one that comes and goes."""

import json
from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.gate.drift import Course, Drift, remembered, schema_changes

PRICE = {"a": 10.0, "b": 10.0}


def follow(costs: list[dict[str, float]], price: float) -> tuple[float, int]:
    """What is paid in all by a table that starts with layout a, and its changes."""
    drift, paid = Drift.begin("a"), 0.0
    for read in costs:
        paid += read[drift.real.present]
        prices = dict.fromkeys(read, price)
        drift = drift.after(read, prices)
        if (to := drift.due(prices)) is not None:
            drift, paid = drift.changed(to, price), paid + price
    return paid, drift.real.changes


def test_a_workload_that_moved_is_followed_once() -> None:
    costs = [{"a": 1.0, "b": 5.0}] * 10 + [{"a": 5.0, "b": 1.0}] * 40
    paid, changes = follow(costs, 10.0)
    assert changes == 1
    assert paid == 10 + 3 * 5 + 10 + 37, "ten is lost after three windows, ten is paid, then it is cheap"


def test_a_small_gain_is_taken_when_it_has_been_missed_long_enough() -> None:
    assert follow([{"a": 1.1, "b": 1.0}] * 50, 10.0)[1] == 0
    assert follow([{"a": 1.1, "b": 1.0}] * 150, 10.0)[1] == 1


def test_an_alternating_workload_does_not_thrash() -> None:
    """Each turn is just long enough to be followed in vain: regret alone would change at every turn."""
    turn_a, turn_b = [{"a": 0.0, "b": 4.0}] * 3, [{"a": 4.0, "b": 0.0}] * 3
    costs = (turn_b + turn_a) * 40
    paid, changes = follow(costs, 10.0)
    stay = sum(read["a"] for read in costs)
    impatient = Course(1.0, "a")
    for read in costs:
        impatient = impatient.after(read)
        if (to := impatient.due(PRICE)) is not None:
            impatient = impatient.changed(to, 10.0)
    assert impatient.changes >= 70
    assert changes <= 6
    assert paid <= 1.25 * stay < impatient.spent / 2


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(1, 30))
@example(9999, 1.75)  # every course on paper was back at a; the table stayed at b for a hundred costs
def test_never_much_worse_than_the_better_of_two_layouts_in_hindsight(seed: int, price: float) -> None:
    """Random walks between two layouts; of each patience at most a few changes are paid in vain."""
    rng = np.random.default_rng(seed)
    a = np.clip(np.cumsum(rng.normal(0, 0.3, 200)) + 2, 0, 4)
    costs = [{"a": float(x), "b": 4.0 - float(x)} for x in a]
    paid, _ = follow(costs, price)
    best = min(sum(read["a"] for read in costs), price + sum(read["b"] for read in costs))
    assert paid <= best + 25 * price


def test_without_new_queries_nothing_is_ever_due() -> None:
    drift = Drift(Course(1.0, "a", {"b": 9.0}), (Course(1.0, "a", {"b": 9.0}),))
    for _ in range(10):
        drift = drift.after({"a": 0.0, "b": 0.0}, PRICE)
    assert drift.real.due(PRICE) is None
    assert drift.real.regret == {"b": 9.0}


def test_a_fresh_layout_counts_by_what_it_has_not_seen() -> None:
    drift = Drift.begin("a").after({"a": 40.0}, {"n": 10.0}, {"n": {"a": 40.0, "n": 25.0}})
    assert drift.real.regret == {"n": 15.0}
    assert drift.real.due({"n": 10.0}) == "n"


def test_regret_begins_with_nothing_never_falls_below_it_and_decays() -> None:
    course = Course(1.0, "a").after({"a": 5.0, "b": 4.0, "c": 9.0})
    assert (course.regret, course.spent) == ({"b": 1.0, "c": 0.0}, 5.0)
    course = course.after({"a": 2.0, "b": 1.0, "c": 1.5}, decay=0.5)
    assert (course.regret, course.spent) == ({"b": 1.5, "c": 0.5}, 7.0)


def test_a_layout_that_was_known_before_is_not_counted_as_a_fresh_one_too() -> None:
    fresh = {"b": {"a": 100.0, "b": 1.0}, "worse": {"a": 1.0, "worse": 3.0}}
    assert Course(1.0, "a").after({"a": 5.0, "b": 4.0}, fresh).regret == {"b": 1.0, "worse": 0.0}


def test_of_several_rivals_that_are_due_the_one_that_was_missed_most_beyond_its_cost_is_taken() -> None:
    course = Course(1.0, "a", {"d": 10.5, "c": 30.0, "b": 31.0})
    assert course.due({"b": 15.0, "c": 10.0, "d": 10.0}) == "c"
    assert course.due({"b": 31.0}) == "b", "just its cost is enough, as the gate has it"
    assert course.due({"b": 31.5}) is None
    assert course.due({"b": 15.0, "d": 10.0}) == "b", "one that nobody could lay out any more has no cost"


def test_a_change_costs_and_all_regret_begins_anew() -> None:
    drift = Drift(Course(1.0, "a", {"b": 9.0}, 5.0, 1), (Course(10.0, "a", {"b": 9.0}),), "a")
    changed = drift.changed("b", 7.0)
    assert changed.real == Course(1.0, "b", {}, 12.0, 2)
    assert (changed.paper, changed.leader) == (drift.paper, "a"), "what is on paper goes its own way"


def test_a_table_as_it_was_written_is_left_as_soon_as_one_cost_is_lost() -> None:
    patient = Course(10.0, "").after({"": 12.0, "n": 1.0})
    assert patient.due({"n": 10.0}) == "n"
    assert Course(10.0, "a").after({"a": 12.0, "n": 1.0}).due({"n": 10.0}) is None


def test_a_layout_in_force_on_paper_is_not_forgotten() -> None:
    drift = Drift(Course(1.0, "a", {"b": 1.0, "c": 5.0}), (Course(3.0, "p"),))
    assert remembered(drift, ["a", "b", "c", "p"], ["new"], 2) == ["a", "p", "new", "c"]


def test_a_forgotten_layout_on_paper_gives_way_to_the_tables_own() -> None:
    lost = Course(3.0, "gone", {"b": 9.0}, spent=4.0)
    (paper,) = Drift(Course(1.0, "a"), (lost,)).after({"a": 2.0, "b": 1.0}, {}).paper
    assert paper == Course(3.0, "a", {"b": 1.0}, 6.0), "what was lost against b was lost by another"


def test_without_courses_on_paper_none_leads() -> None:
    drift = Drift(Course(1.0, "a"), ()).after({"a": 2.0, "b": 1.0}, {"b": 1.0})
    assert (drift.leader, drift.paper, drift.due({"b": 1.0})) == ("", (), "b")


def test_a_table_follows_to_where_its_deciding_patience_lies_after_one_cost() -> None:
    course = Course(100.0, "b", {"a": 11.0, "c": 30.0})
    led = Drift(course, (Course(100.0, "a"),), "a")
    assert (led.due(PRICE), Drift(course, led.paper, "b").due({**PRICE, "c": 10.0})) == ("a", None)
    assert (led.patience_for("a"), led.patience_for("c")) == (1.0, 100.0)
    assert led.after({"a": 1.0, "b": 1.0}, PRICE).leader == "a"


def test_drift_survives_a_night() -> None:
    drift = Drift.begin("a").after({"a": 4.0, "b": 1.0}, PRICE)
    told = json.loads(json.dumps(drift.to_json()))
    assert Drift.from_json(told) == drift
    del told["leader"]  # as an earlier version wrote it
    assert Drift.from_json(told) == replace(drift, leader="")


def test_schema_changes_are_named() -> None:
    assert schema_changes({}, {"a": "int"}) == ()
    assert schema_changes({"a": "int"}, {"a": "int"}) == ()
    changed = schema_changes({"a": "int", "b": "int"}, {"a": "string", "c": "int"})
    assert changed == ("column b was dropped", "column a is now string, it was int", "column c is new (int)")
