from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from zorder_pipeline.benchmarks import harness, reports
from zorder_pipeline.benchmarks.harness import OURS, Outcome


def _outcomes(seeds: Sequence[int], factor: float = 2.0) -> list[Outcome]:
    result = []
    for seed in seeds:
        rows = np.random.default_rng(seed).lognormal(8, 1, 200)
        figures = {"rows": rows, "files": np.ceil(rows / 1000)}
        result.append(Outcome(OURS, "ours", seed, figures, {"rewrite": 2.0, "learn": 5.0}))
        result.append(Outcome("zorder", "Delta ZORDER", seed, {"rows": rows * factor}, {"rewrite": 3.0}))
    return result


def test_the_ratio_is_the_geometric_mean_of_ratios_of_means() -> None:
    ours = [np.array([1.0, 3.0]), np.array([10.0, 10.0])]
    peer = [np.array([2.0, 6.0]), np.array([80.0, 80.0])]
    assert harness.ratio(ours, peer).mean == pytest.approx((0.5 * 0.125) ** 0.5)


def test_pairing_makes_a_constant_factor_certain() -> None:
    rows = np.random.default_rng(0).lognormal(5, 2, 300)
    found = harness.ratio([rows], [rows * 4])
    assert (found.mean, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        peer = rng.gamma(4, 25, 120)
        ours = peer * rng.gamma(8, 0.5 / 8, 120)  # true ratio 0.5
        found = harness.ratio([ours], [peer], seed)
        hits += found.low <= 0.5 <= found.high
    assert 85 <= hits <= 99


def test_sides_that_do_not_pair_up_are_refused() -> None:
    for ours, peer in (([], []), ([np.ones(2)], [np.ones(3)]), ([np.ones(0)], [np.ones(0)])):
        with pytest.raises(ValueError, match="same queries"):
            harness.ratio(ours, peer)


def test_a_summary_needs_ours_and_every_seed() -> None:
    found = harness.summarise(_outcomes([0, 1]))
    assert found["contenders"]["zorder"]["ours_to_it"]["rows"]["mean"] == pytest.approx(0.5)
    assert list(found["contenders"]["zorder"]["mean"]) == ["rows"]
    with pytest.raises(ValueError, match="no outcome of ours"):
        harness.summarise([o for o in _outcomes([0]) if o.contender != OURS])
    with pytest.raises(ValueError, match="contender zorder has other seeds"):
        harness.summarise(_outcomes([0, 1])[:-1])


def test_many_measures_become_several_tables_that_a_terminal_shows_whole() -> None:
    outcomes = _outcomes([0])
    measures = dict.fromkeys(name for name, _ in reports.FIGURES)
    for outcome in outcomes:
        outcome.per_query.update(dict.fromkeys(measures, outcome.per_query["rows"]))  # type: ignore[attr-defined]
    report = harness.summarise(outcomes)
    header, rows = reports.table_rows(report)
    console = Console(record=True, width=120)
    console.print(reports.rich_table({**report, "workload": "fake", "summary": "made up"}))
    text = console.export_text()
    assert text.count("layout") == text.count("Delta ZORDER") == -(-(len(header) - 1) // reports.ACROSS) > 2
    assert "…" not in text
    assert all(cell in text for row in rows for cell in row[1:] if cell and " " not in cell)


def test_cases_are_told_apart_and_count_alike() -> None:
    outcomes = []
    for case, factor in (("small", 2.0), ("large", 8.0)):
        for outcome in _outcomes([0, 1], factor):
            share = {"share": outcome.per_query["rows"] / 1e6}
            outcomes.append(Outcome(outcome.contender, outcome.label, outcome.seed, share, case=case))
    report = harness.summarise(outcomes)
    assert report["contenders"]["zorder"]["ours_to_it"]["share"]["mean"] == pytest.approx(0.25)
    assert report["cases"]["large"]["zorder"]["ours_to_it"]["share"]["mean"] == pytest.approx(0.125)
    text = reports.markdown(report)
    assert "| rows read, multiple of ours (95% over queries of these logs) | small | large |" in text
    assert "| Delta ZORDER | 2.00 (2.00–2.00) | 8.00 (8.00–8.00) |" in text


def test_times_and_the_bound_have_columns_of_their_own() -> None:
    outcomes = [harness.bound(np.array([0.0, 1.0, 250.0]), 1000, 10, 0)]
    for name, factor in ((OURS, 1.0), ("zorder", 3.0)):
        measures = {"rows": np.array([100.0, 100.0, 400.0]) * factor, "spark_s": np.full(3, 0.2) * factor}
        outcomes.append(Outcome(name, name, 0, measures))
    assert outcomes[0].per_query["rows"].tolist() == [0.0, 100.0, 300.0]  # whole files
    header, rows = reports.table_rows(harness.summarise(outcomes))
    told = "as a multiple of ours (95% over queries of these logs)"
    assert header[-2:] == [f"rows read, {told}", f"Spark, {told}"]
    assert {row[0]: row[-1] for row in rows} == {
        "bound of files of equal size": "",
        OURS: "",
        "zorder": "3.00 (3.00–3.00)",
    }
    assert rows[0][-2].startswith("0.67")


def test_one_figure_a_seed_has_no_interval_but_a_range() -> None:
    outcomes = []
    for seed, factor in ((0, 2.0), (1, 8.0)):
        for name, total in ((OURS, 1.0), ("none", factor)):
            measures = {"rows": np.array([1.0, 2.0]) * total, "total_s": np.array([total])}
            outcomes.append(Outcome(name, name, seed, measures))
    report = harness.summarise(outcomes)
    found = report["contenders"]["none"]["ours_to_it"]["total_s"]
    assert found == pytest.approx({"mean": 0.25, "low": None, "high": None, "smallest": 0.125, "largest": 0.5})
    header, rows = reports.table_rows(report)
    assert header[-2:] == ["total time, as a multiple of ours", "total time, least and most by seed"]
    assert rows[1][-2:] == ["4.00", "2.00–8.00"]
    assert "smallest" not in harness.summarise(outcomes[:2])["contenders"]["none"]["ours_to_it"]["rows"]


def test_the_range_is_over_seeds_whose_cases_count_alike() -> None:
    outcomes = []
    for case, factor in (("a", 2.0), ("b", 8.0)):
        for seed in (0, 1):
            for name, read in ((OURS, 1.0), ("zorder", factor * (seed + 1))):
                outcomes.append(Outcome(name, name, seed, {"rows": np.full(2, read)}, case=case))
    report = harness.summarise(outcomes)
    found = report["contenders"]["zorder"]["ours_to_it"]["rows"]
    assert (found["smallest"], found["largest"]) == pytest.approx((0.125, 0.25))
    mine = report["cases"]["a"]["zorder"]["ours_to_it"]["rows"]
    assert (mine["smallest"], mine["largest"]) == pytest.approx((0.25, 0.5))


def test_tables_of_one_case_pair_by_table_and_are_no_seeds() -> None:
    outcomes = []
    for table, factor in (("flights", 2.0), ("taxi", 8.0)):
        for name, paid in ((OURS, 1.0), ("static", factor)):
            outcomes.append(Outcome(name, name, 0, {"scans": np.full(3, paid)}, case="segments", table=table))
    outcomes += [replace(outcome, case="alternating") for outcome in outcomes]
    report = harness.summarise(outcomes)
    assert report["seeds"] == [0]
    assert {outcome["table"] for outcome in report["outcomes"]} == {"flights", "taxi"}
    found = report["cases"]["segments"]["static"]["ours_to_it"]["scans"]
    assert found == pytest.approx({"mean": 0.25, "low": 0.25, "high": 0.25})
    text = reports.markdown(report)
    told = "multiple of ours (95% over windows of these logs)"
    assert reports.table_rows(report)[0][-1] == f"cost, as a {told}"
    assert f"| cost, {told} | segments | alternating |" in text
    assert "Means over the windows of 1 seed; " in text
    assert "bootstrap over the windows of these logs" in text
    assert "rows read" not in text


def test_other_numbers_of_files_than_ours_are_told() -> None:
    made = ((OURS, 100), ("zorder", 99), ("iceberg", 97))
    outcomes = [Outcome(name, name, 0, {"rows": np.ones(2)}, figures={"files": files}) for name, files in made]
    outcomes.append(harness.bound(np.ones(2), 1000, 100, 0))
    report = harness.summarise(outcomes)
    header, rows = reports.table_rows(report)
    assert header[1] == "files"
    assert [row[1] for row in rows] == ["100", "99", "97", ""]
    sentence = "Not of about as many files as ours (100): iceberg (97)."
    assert sentence in reports.markdown(report)
    console = Console(record=True, width=120)
    console.print(reports.rich_table(report))
    assert sentence in console.export_text()
    assert not reports.other_counts(harness.summarise(outcomes[:2]))


def test_row_groups_are_told_with_their_size_by_case() -> None:
    outcomes = []
    for case, size in (("flights", 5e4), ("wide", 5.8e5)):
        figures = {"files": 32, "row_groups": 512, "row_group_bytes": size}
        outcomes.append(Outcome(OURS, "ours", 0, {"rows": np.ones(2)}, figures=figures, case=case))
    report = harness.summarise(outcomes)
    assert reports.beside(report) == [("MB of a row group, flights", "0.05"), ("MB of a row group, wide", "0.58")]
    assert reports.table_rows(report)[0][1:3] == ["files", "row groups"]


def test_pages_and_what_was_not_run_are_in_the_report() -> None:
    outcomes = []
    for case, mine in (("t.a", 0.9), ("t.b", 0.7)):
        outcomes.append(Outcome("lexical", "lexical order", 0, {"pages": np.array([0.25, 0.75])}, case=case))
        left_out = {"not_run": {"Iceberg sort": "no Java"}}
        outcomes.append(Outcome(OURS, "ours", 0, {"pages": np.full(2, mine)}, figures=left_out, case=case))
    report = harness.summarise(outcomes)
    text = reports.markdown(report)
    assert "| ours | 80.0% |" in text
    assert "| pages filtered | lexical order | ours |" in text
    assert "| t.b | 50.0% | 70.0% |" in text
    assert "Not run: Iceberg sort (no Java)." in text
    assert (reports.plot(report) or b"").startswith(b"\x89PNG")


def test_figures_of_ours_are_told_below_the_table() -> None:
    outcomes = []
    for seed, share in ((0, 0.05), (1, 0.07)):
        figures = {"bytes_rewritten_share": share, "pruning": {"select": 2.25}, "files": 64}
        outcomes.append(Outcome(OURS, "ours", seed, {"copies": np.array([1.5])}, figures=figures))
        outcomes.append(Outcome("stored", "plain copy", seed, {"copies": np.ones(1)}, figures={"larger_scale": 10.0}))
    report = harness.summarise(outcomes)
    told = reports.beside(report)
    assert [figure for _, figure in told] == ["0.06", "2.25"]  # of ours alone, the mean over seeds
    console = Console(record=True, width=120)
    console.print(reports.rich_table(report))
    shown, text = console.export_text(), reports.markdown(report)
    for title, figure in told:
        assert f"| {title} | {figure} |" in text
        assert title in shown
    assert not reports.beside(harness.summarise(_outcomes([0])))


@pytest.mark.parametrize(("path", "title"), reports.BESIDE)
def test_every_figure_told_is_one_that_a_workload_measures(path: tuple[str, ...], title: str) -> None:
    sources = "".join(file.read_text() for file in Path(reports.__file__).parent.glob("*.py") if file.stem != "reports")
    assert all(f'"{name}"' in sources for name in path), title
