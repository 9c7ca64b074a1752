"""A promise's worth: files and bytes at what scans cost here, with the doubt about both."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from zorder_pipeline.gate.benefit import ReadVolumes, promise, saving
from zorder_pipeline.gate.cost import DOUBT, CostModel, ScanWork
from zorder_pipeline.gate.regression import Estimate
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.plan import Promise

RNG = np.random.default_rng(0)
ONES = np.ones(80)
VOLUMES = ReadVolumes(
    ONES * 1e9, RNG.uniform(1e8, 3e8, 80), ONES * 100, RNG.integers(5, 15, 80).astype(float), ONES, ONES * 0.1
)
PROMISE = promise(ONES, ONES * 0.2, ONES * 1e9, (100.0, "observed"), volumes=VOLUMES)
COSTS = CostModel(scan=10.0, per_opened_file=0.1)


def test_bytes_and_files_are_paid_for_as_scans_cost_here() -> None:
    told = saving(PROMISE, COSTS, 1000)
    assert PROMISE.bytes_saved_per_query == pytest.approx(8e8, rel=0.05)
    assert PROMISE.files_saved_per_query == pytest.approx(90, rel=0.05)
    assert told.expected == pytest.approx(1000 * (0.8 * 10 + 90 * 0.1), rel=0.05)
    assert told.expected / 6 < told.low < told.expected / 2, "scan costs were only assumed"
    scans = [("t", ScanWork(size * 1e9, files, 1), 0.3 + size * 10 + files * 0.1) for size in (0.1, 0.5, 2.0)
             for files in (1, 10, 100)]  # fmt: skip
    measured = saving(PROMISE, COSTS.measured([], scans), 1000, "t")
    assert measured.low > 0.85 * measured.expected


def test_an_interval_reaches_zero_only_where_the_queries_say_so() -> None:
    assert saving(replace(PROMISE, bytes_low=1e6, files_low=0.1), COSTS, 10).low > 0
    assert saving(replace(PROMISE, bytes_low=-1e6, files_low=-1.0), COSTS, 10).low < 0


def told_of(size: float, low: float, high: float) -> Promise:
    """A promise about bytes alone."""
    own = {"bytes_saved_per_query": size, "bytes_low": low, "bytes_high": high}
    return replace(PROMISE, **own, files_saved_per_query=0.0, files_low=0.0, files_high=0.0)


def test_both_ends_are_as_far_off_as_the_doubts_about_queries_and_scans_together() -> None:
    scans = COSTS.scans(ScanWork(1e9))
    sure = saving(told_of(1e9, 1e9, 1e9), COSTS, 1)
    assert (sure.low, sure.expected, sure.high) == pytest.approx((scans.low, scans.expected, scans.high))
    wide = saving(told_of(1e9, 1e9 / 3, 3e9), COSTS, 1)
    reach = np.exp(np.hypot(np.log(3), np.log(scans.high / scans.expected)))
    assert (wide.expected / wide.low, wide.high / wide.expected) == pytest.approx((reach, reach))


def test_a_loss_is_a_loss_at_what_scans_may_cost_at_most() -> None:
    scans = COSTS.scans(ScanWork(1e9))
    dearest = scans.high / scans.expected
    lost = saving(told_of(-1e9, -2e9, -0.5e9), COSTS, 1, widening=2.0)
    assert (lost.low, lost.expected) == pytest.approx((-2 * scans.high, -scans.expected))
    assert lost.high == 0.0
    unsure = saving(told_of(1e9, -1e9, 3e9), COSTS, 1)
    assert (unsure.low, unsure.high) == pytest.approx((-scans.high, 3 * scans.expected * dearest))
    none = saving(told_of(1e9, 0.0, 1e9), COSTS, 1)
    assert none.low == 0.0, "what may be nothing is not proved"


@pytest.mark.parametrize("files", [50.0, 0.0, -5.0, -20.0, -40.0])
def test_fewer_bytes_for_more_files_are_less_sure_the_more_files(files: float) -> None:
    """Against draws of what a GB and a file may cost."""
    size = 1e9
    same = {"bytes_saved_per_query": size, "bytes_low": size, "bytes_high": size}
    told = saving(replace(PROMISE, **same, files_saved_per_query=files, files_low=files, files_high=files), COSTS, 1)
    per_gb, per_file = (unit * np.exp(RNG.normal(0, DOUBT, 200_000)) for unit in (COSTS.scan, COSTS.per_opened_file))
    saved = per_gb * size / 1e9 + per_file * files
    assert told.expected == pytest.approx(COSTS.scan * size / 1e9 + COSTS.per_opened_file * files)
    reach = told.expected / told.low
    assert reach > 0.8 * told.expected / np.quantile(saved, 0.05) or np.quantile(saved, 0.05) < 0
    assert np.mean(saved < told.low) < 0.2


def test_readers_with_enriched_statistics_count_by_their_share() -> None:
    enriched = replace(PROMISE, enriched_bytes_per_query=1e8, enriched_files_per_query=5.0)
    none, half, all_ = (saving(enriched, COSTS, 1, enriched_share=share).expected for share in (0.0, 0.5, 1.0))
    assert none == saving(PROMISE, COSTS, 1).expected
    assert all_ - none == pytest.approx(0.1 * 10 + 5 * 0.1)
    assert half == pytest.approx((none + all_) / 2)


def test_what_enriched_statistics_save_is_as_doubtful_as_what_all_save() -> None:
    """The same gain, by those readers alone and by all: the same queries tell it, and scans cost the same."""
    after = VOLUMES.bytes_after, VOLUMES.files_after
    alone = ReadVolumes(ONES * 1e9, ONES * 1e9, ONES * 100, ONES * 100, ONES, ONES, *after)
    told = promise(ONES, ONES, ONES * 1e9, (100.0, "observed"), volumes=alone)
    every, some = saving(PROMISE, COSTS, 10), saving(told, COSTS, 10, enriched_share=1.0)
    assert (some.low, some.expected, some.high) == pytest.approx((every.low, every.expected, every.high))
    half = saving(told, COSTS, 10, enriched_share=0.5)
    assert (half.low, half.high) == pytest.approx((every.low / 2, every.high / 2))
    assert saving(told, COSTS, 10) == Estimate(0.0, 0.0, 0.0)


def test_a_burst_of_one_condition_is_no_sure_gain_of_enriched_statistics() -> None:
    """Six conditions: one is asked a thousand times in an afternoon and gains, five gain nothing."""
    full, times = np.full(6, 1e10), np.append(1000, np.ones(5, dtype=int))
    spared = ReadVolumes(full, full, full * 0, full * 0, full, full, np.append(1e9, full[1:]), full * 0)
    told = promise(np.ones(6), np.ones(6), full, (1000.0, "observed"), volumes=spared, asked=asked(times))
    assert told.enriched_bytes_per_query == pytest.approx(9e9, rel=0.01)
    assert told.enriched_bytes_low == 0.0, "not below what all readers save"
    assert not saving(told, COSTS, 1000, enriched_share=0.8).low > 0


def test_what_both_kinds_of_readers_save_is_drawn_together() -> None:
    """Half of the statements gain for all readers, the other half for some: of these everything is sure."""
    half = np.repeat([0.0, 1.0], 40)
    both = ReadVolumes(ONES, half, ONES * 0, ONES * 0, ONES, half, ONES * 0, ONES * 0)
    told = promise(ONES, half, ONES, (1.0, "observed"), volumes=both)
    assert told.bytes_low < 0.41
    assert (told.enriched_bytes_per_query, told.enriched_bytes_low, told.enriched_bytes_high) == (0.5, 1.0, 1.0)


def test_nothing_that_enriched_statistics_save_is_sure_in_plans_of_older_versions() -> None:
    size, files = PROMISE.bytes_saved_per_query / 10, PROMISE.files_saved_per_query / 10
    old = replace(PROMISE, enriched_bytes_per_query=size, enriched_files_per_query=files)
    told, plain = saving(old, COSTS, 1, enriched_share=1.0), saving(PROMISE, COSTS, 1)
    assert told.expected == pytest.approx(1.1 * plain.expected)
    assert told.low < 1.1 * plain.low
    only = replace(Promise(80, 1.0, 1.0), enriched_bytes_per_query=1e9)
    assert saving(only, COSTS, 1, enriched_share=1.0).low == 0.0


def test_of_pages_enriched_statistics_spare_what_is_read_of_them() -> None:
    """Half of the bytes that others read is half of the pages that others read, at every end."""
    pages, half = VOLUMES.bytes_after / 5, VOLUMES.bytes_after / 2
    spared = replace(VOLUMES, pages_before=ONES * 5e8, pages_after=pages, enriched_bytes=half)
    less = replace(VOLUMES, bytes_before=ONES * 5e8, bytes_after=pages / 2)
    told, alike = (promise(ONES, ONES * 0.2, ONES, (1.0, "observed"), volumes=each) for each in (spared, less))
    assert told.enriched_page_bytes_per_query == pytest.approx(float(pages.mean() / 2))
    one, other = saving(told, COSTS, 1, enriched_share=1.0, pages=True), saving(alike, COSTS, 1)
    assert (one.low, one.expected, one.high) == pytest.approx((other.low, other.expected, other.high))


def test_readers_that_skip_pages_are_credited_with_the_bytes_of_pages() -> None:
    """As with a promise whose bytes are those of the pages, at every end of the interval."""
    pages = RNG.uniform(2e8, 6e8, 80), RNG.uniform(1e8, 2e8, 80)
    both = replace(VOLUMES, pages_before=pages[0], pages_after=pages[1])
    alone = replace(VOLUMES, bytes_before=pages[0], bytes_after=pages[1])
    told, expected = (promise(ONES, ONES * 0.2, ONES * 1e9, (100.0, "observed"), volumes=v) for v in (both, alone))
    assert told.page_bytes_before == expected.bytes_before
    assert told.page_bytes_saved_per_query == expected.bytes_saved_per_query
    assert (told.page_bytes_low, told.page_bytes_high) == (expected.bytes_low, expected.bytes_high)
    assert saving(told, COSTS, 10, pages=True) == saving(expected, COSTS, 10)
    assert saving(told, COSTS, 10) == saving(PROMISE, COSTS, 10) == saving(PROMISE, COSTS, 10, pages=True)
    assert saving(told, COSTS, 10, pages=True).expected < saving(told, COSTS, 10).expected


def test_half_of_what_pages_need_is_not_told() -> None:
    for one in ({"pages_before": ONES}, {"pages_after": ONES}):
        volumes = replace(VOLUMES, **one, enriched_files=ONES)
        told = promise(ONES, ONES * 0.2, ONES, (1.0, "observed"), volumes=volumes)
        assert told.enriched_page_bytes_per_query is None
        assert (told.page_bytes_before, told.page_bytes_saved_per_query, told.page_bytes_low) == (None, None, None)


def test_without_a_statement_nothing_is_promised_and_the_rate_is_told() -> None:
    nothing = np.empty(0)
    assert promise(nothing, nothing, nothing, (7.0, "observed")) == Promise(queries_per_day=7.0, rate_source="observed")


def test_without_volumes_bytes_follow_the_rows_of_each_statement() -> None:
    told = promise(np.array([1.0, 0.5]), np.array([0.5, 0.25]), np.array([8.0, 4.0]), (1.0, "observed"))
    assert (told.bytes_before, told.bytes_saved_per_query) == (5.0, 2.5)
    assert (told.files_before, told.files_saved_per_query, told.page_bytes_before) == (0.0, 0.0, None)
    assert (told.groups_before, told.groups_after) == (told.before, told.after) == (0.75, 0.375)


def test_what_enriched_statistics_save_on_top_is_told_of_statements_that_gain_by_them() -> None:
    """One reads half of the bytes and one more than without; a reader without them would take the better way."""
    two = np.ones(2)
    plain = ReadVolumes(two * 80.0, np.array([40.0, 20.0]), two * 9.0, np.array([4.0, 2.0]), two, two)
    enriched = replace(plain, enriched_bytes=np.array([20.0, 30.0]), enriched_files=np.array([1.0, 3.0]))
    for volumes, more in ((plain, (0.0, 0.0)), (enriched, (10.0, 1.5))):
        told = promise(two, two * 0.5, two, (1.0, "observed"), volumes=volumes)
        assert (told.enriched_bytes_per_query, told.enriched_files_per_query) == more
        assert (told.bytes_saved_per_query, told.files_saved_per_query) == (50.0, 6.0), "for all readers"


def test_no_more_is_saved_than_was_read_of_any_measure() -> None:
    """Of five observations the interval is wide; its upper ends are cut at what there was."""
    few, after = np.ones(5), np.array([0.01, 0.01, 0.01, 0.01, 0.9])
    volumes = ReadVolumes(few * 1e9, after * 1e9, few * 70, after * 70, few, after, None, None, few * 5e8, after * 5e8)
    told = promise(few, after, few * 1e9, (1.0, "observed"), volumes=volumes)
    assert (told.high, told.bytes_high, told.files_high, told.page_bytes_high) == (1.0, 1e9, 70.0, 5e8)


@pytest.mark.parametrize("widening", [1.6, 8.0])
def test_a_broken_promise_widens_the_interval_downwards_only(widening: float) -> None:
    """However wide the interval is: by costs that nobody measured it is wider than most misses."""
    plain, trusted_less = saving(PROMISE, COSTS, 1), saving(PROMISE, COSTS, 1, widening=widening)
    assert trusted_less.low == pytest.approx(plain.low / widening)
    assert (trusted_less.expected, trusted_less.high) == (plain.expected, plain.high)
    assert plain.expected / plain.low > 1.6


def test_a_promise_of_an_older_version_is_told_by_its_shares() -> None:
    old = Promise(40, 1.0, 0.2, 0.7, 0.9, 8e8, 100.0, "observed")
    told = saving(old, COSTS, 1)
    assert told.expected == pytest.approx(8.0)
    assert 0 < told.low < 7.0
    now = saving(replace(old, bytes_low=7e8, bytes_high=9e8), COSTS, 1)
    assert (told.low, told.high) == pytest.approx((now.low, now.high))
    nothing = saving(Promise(40, 1.0, 1.0, 0.0, 0.0, 0.0, 100.0, "observed"), COSTS, 1)
    assert nothing == Estimate(0.0, 0.0, 0.0)


def asked(times: npt.NDArray[np.int64]) -> Asked:
    """Statements that were asked so many times, each time of one of them belonging to one observation."""
    statement = np.repeat(np.arange(len(times)), times)
    return Asked.of(np.arange(len(statement)), statement)


def test_a_statement_counts_as_often_as_it_was_asked() -> None:
    times = RNG.integers(1, 9, 80)
    again = ReadVolumes(*(np.repeat(getattr(VOLUMES, name), times) for name in list(vars(VOLUMES))[:6]))
    whole = np.repeat(ONES, times)
    one_by_one = promise(whole, whole * 0.2, whole * 1e9, (100.0, "observed"), volumes=again)
    told = promise(ONES, ONES * 0.2, ONES * 1e9, (100.0, "observed"), volumes=VOLUMES, asked=asked(times))
    assert (told.queries, told.statements) == (times.sum(), 80)
    for name in ("before", "after", "bytes_saved_per_query", "bytes_before", "files_before", "files_saved_per_query"):
        assert getattr(told, name) == pytest.approx(getattr(one_by_one, name))


def test_tiles_of_one_condition_count_once_among_those_that_prove() -> None:
    statement = np.arange(12)
    tiles = Asked.of(statement, statement, statement // 4)
    told = promise(np.ones(12), np.zeros(12), np.ones(12), (1.0, "observed"), asked=tiles)
    assert (told.queries, told.statements, told.proven_on) == (12, 3, 3)


def test_the_lower_end_is_that_of_a_later_time_where_it_is_less() -> None:
    """Half of the queries save all; later it will be a fifth, or four fifths."""
    every, after = np.arange(400), np.repeat([0.0, 1.0], 200)
    ends = {}
    for share in (0.2, 0.5, 0.8):
        later = np.repeat([2 * share, 2 * (1 - share)], 200)
        told = promise(np.ones(400), after, np.ones(400), (1.0, "observed"), asked=Asked.of(every, every, later=later))
        assert told.after == pytest.approx(0.5)
        ends[share] = told.low, told.bytes_low, told.high
    assert ends[0.2][0] == ends[0.2][1] == pytest.approx(0.17, abs=0.02)
    assert ends[0.5] == ends[0.8] == pytest.approx((0.45, 0.45, 0.55), abs=0.02)


def test_of_few_observations_the_lower_end_is_lower_and_the_upper_one_no_more_than_was_read() -> None:
    after = np.array([0.01, 0.01, 0.01, 0.01, 0.9])
    few, many = (promise(np.ones(n), np.resize(after, n), np.full(n, 1e9), (1.0, "observed")) for n in (5, 500))
    assert few.before - few.after == pytest.approx(many.before - many.after)
    assert few.low < many.low - 0.3
    assert (few.high, few.bytes_high) == (1.0, few.bytes_before)
    assert many.high < 0.9


def test_each_time_has_an_interval_about_its_own_mean() -> None:
    """Were what a later time loses taken for spread, five queries that all gain would prove nothing."""
    every, saved = np.arange(5), np.array([0.9, 0.9, 0.9, 0.1, 0.1])
    later = Asked.of(every, every, later=np.array([0.3, 0.3, 0.3, 1.0, 1.0]))
    told = promise(np.ones(5), 1 - saved, np.ones(5), (1.0, "observed"), asked=later)
    assert 0.0 < told.low < 0.1


def test_what_no_later_query_is_like_leaves_no_interval_unknown() -> None:
    """Some resamples of twelve observations hold none of those that a later time may ask."""
    every, saved = np.arange(12), np.repeat([0.2, 0.8], [10, 2])
    weights = np.repeat([0.0, 6.0], [10, 2])
    told = promise(np.ones(12), 1 - saved, np.ones(12), (1.0, "observed"), asked=Asked.of(every, every, later=weights))
    assert 0.0 < told.low == told.bytes_low < 0.3
    alike = promise(
        np.ones(12), np.full(12, 0.2), np.ones(12), (1.0, "observed"), asked=Asked.of(every, every, later=weights)
    )
    assert alike.low == alike.high == pytest.approx(0.8)


def test_a_burst_of_one_statement_proves_no_more_than_one_statement() -> None:
    """A hundred queries save little, one of three thousand repeats everything: who knows what is asked tomorrow?"""
    before, after = np.ones(101), np.append(np.full(100, 0.9), 0.0)
    told = promise(before, after, before, (1.0, "observed"), asked=asked(np.append(np.ones(100, dtype=int), 3000)))
    assert told.after < 0.05
    assert 0.08 < told.low <= 0.1
    assert told.high > 0.95
