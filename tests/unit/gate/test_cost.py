"""The cost model: intervals that hold what is measured afterwards, whatever the true costs are."""

import numpy as np
import pytest

from zorder_pipeline.gate.cost import CostModel, RelayoutWork, ScanWork
from zorder_pipeline.gate.regression import Measurement, Prior, Regression
from zorder_pipeline.model.bootstrap import student_quantile


def truth(work: RelayoutWork) -> float:
    """An installation three times as slow as assumed, and dearer in features."""
    return 11 + 0.1 * work.files + work.bytes / 1e9 * (390 + 25 * (work.features - 1) + 2 * work.additional)


def runs(rng: np.random.Generator, works: list[RelayoutWork], noise: float) -> list[tuple[str, RelayoutWork, float]]:
    return [("t", work, truth(work) * float(np.exp(rng.normal(0, noise)))) for work in works]


CALIBRATION = [RelayoutWork(size * 1e9, z, 10, files=8) for size in (0.02, 0.06, 0.2) for z in (1, 2, 4)]


@pytest.mark.parametrize("noise", [0.03, 0.08, 0.15])
def test_nine_of_ten_later_runs_lie_inside_the_interval(noise: float) -> None:
    inside, widths, ratios = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = CostModel().measured(runs(rng, CALIBRATION, noise))
        later = [
            RelayoutWork(float(rng.uniform(1e7, 4e8)), int(rng.integers(1, 7)), 10, files=int(rng.integers(4, 30)))
            for _ in range(20)
        ]
        for _, work, cost in runs(rng, later, noise):
            told = model.relayout(work, "t")
            inside.append(told.low <= cost <= told.high)
            widths.append((told.high - told.low) / 2 / told.expected)
            ratios.append(told.expected / truth(work))
    assert np.mean(inside) >= 0.88
    assert np.median(ratios) == pytest.approx(1, abs=0.1), "the assumptions were wrong by three"
    assert np.median(widths) <= {0.03: 0.25, 0.08: 0.25, 0.15: 0.45}[noise]


def test_without_measurements_the_interval_is_wide_and_holds_the_assumption() -> None:
    told = CostModel().relayout(RelayoutWork(1e9, 3), "t")
    assert told.expected == pytest.approx(6 + 100 + 2 * 6)
    assert told.low < told.expected / 3 < 3 * told.expected < told.high


def test_another_table_than_the_calibrated_one_is_less_certain() -> None:
    model = CostModel().measured(runs(np.random.default_rng(0), CALIBRATION, 0.05))
    own, other = (model.relayout(RelayoutWork(1e8, 2, 10, files=8), name) for name in ("t", "u"))
    assert other.high / other.low > 2 * own.high / own.low


def test_a_busy_hour_does_not_spoil_the_fit() -> None:
    rng = np.random.default_rng(1)
    measured = runs(rng, CALIBRATION, 0.05)
    measured[4] = (*measured[4][:2], measured[4][2] * 8)
    work = RelayoutWork(1e8, 2, 10, files=8)
    assert CostModel().measured(measured).relayout(work, "t").expected == pytest.approx(truth(work), rel=0.2)


def test_a_busy_hour_counts_less_in_the_noise_than_it_would_in_full() -> None:
    measured = [Measurement((1.0,), 10 * factor, "t") for factor in (0.95, 1.0, 1.05) * 6]
    calm = Regression.fit(Prior((10.0,), (0.7,)), measured)
    busy = Regression.fit(Prior((10.0,), (0.7,)), [*measured, Measurement((1.0,), 400.0, "t")])
    in_full = float(np.std(np.log([item.cost for item in measured] + [400.0])))
    assert busy.estimate((1.0,), "t").expected == pytest.approx(10, rel=0.1)
    assert calm.noise < busy.noise < in_full / 2


def test_money_is_core_hours_at_their_price() -> None:
    assert CostModel(price_per_core_hour=0.5).money(7200) == 1.0


def test_terms_nothing_was_measured_of_keep_their_assumption() -> None:
    model = CostModel().measured(runs(np.random.default_rng(0), CALIBRATION, 0.05))
    assert model.to_json()["per_predicate"] == pytest.approx(CostModel().per_predicate)
    assert model.to_json()["relayouts_measured"] == len(CALIBRATION)


def test_scans_are_paid_by_gigabyte_and_by_file() -> None:
    rng = np.random.default_rng(0)
    works = [ScanWork(size * 1e9, files, 1) for size in (0.01, 0.1, 0.5) for files in (1, 10, 100)]
    cost = [0.5 + 40 * work.bytes / 1e9 + 0.05 * work.files for work in works]
    scans = [("t", work, value * float(np.exp(rng.normal(0, 0.05)))) for work, value in zip(works, cost, strict=True)]
    model = CostModel().measured([], scans)
    assert model.scans(ScanWork(1e9), "t").expected == pytest.approx(40, rel=0.15)
    assert model.scans(ScanWork(0, 100), "t").expected == pytest.approx(5, rel=0.25)
    assert model.scans(ScanWork(0, 0), "t").high == 0


def test_costs_never_become_negative() -> None:
    falling = [Measurement((1.0, x), 10 - x, "t") for x in (1.0, 3.0, 6.0, 9.0)]
    fitted = Regression.fit(Prior((5.0, 5.0), (0.7, 0.7)), falling)
    assert min(fitted.units) > 0
    assert fitted.estimate((0.0, 20.0), "t").low > 0


@pytest.mark.parametrize(("freedom", "exact"), [(4, 2.132), (5, 2.015), (8, 1.860), (20, 1.725), (1e9, 1.645)])
def test_quantiles_of_students_t(freedom: float, exact: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(exact, rel=0.01)
