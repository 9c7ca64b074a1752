"""What a benchmark found, as a table for the terminal, as Markdown and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .harness import COUNTS, OURS, Workload

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["beside", "index", "markdown", "other_counts", "plot", "rich_table", "table_rows"]

ACROSS = 6
"""Columns beside the first of a table on the terminal."""
READ: tuple[tuple[str, str], ...] = (("rows", "rows read"), ("share", "rows read"), ("scans", "cost"))
"""What the multiples of ours are told of, the first that was measured; and, in columns of their own, `TIMES`."""
TIMES: tuple[tuple[str, str], ...] = (("spark_s", "Spark"), ("spark_net_s", "Spark without an empty scan"))
TIMES += (("duckdb_s", "DuckDB"), ("total_s", "total time"))
FIGURES: tuple[tuple[str, str], ...] = (("files", "files/query"), ("row_groups", "row groups/query"))
FIGURES += (("pages", "pages filtered"), ("rows", "rows/query"), ("scanned", "rows scanned/timed query"))
FIGURES += (("bytes", "MB/query"), ("share", "share of rows"), ("copies", "plain copies"), ("loads", "loads by Delta"))
FIGURES += (("scans", "full scans/window"),)
FIGURES += (("spark_s", "Spark s"), ("spark_net_s", "Spark s without an empty scan"), ("duckdb_s", "DuckDB s"))
FIGURES += (("total_s", "total s"),)
FIGURES += (("error_bytes", "bytes, off by"), ("error_rows", "rows, off by"))
FIGURES += (("inside", "inside the 90% interval"), ("half_width", "half the interval"), ("off", "off by"))
FIGURES += (("lines_per_second", "lines/s"), ("mb_per_second", "MB/s"))
BESIDE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("bytes_rewritten_share",), "bytes rewritten after 5% of new rows, by the table's"),
    (("rows_read_to_full",), "rows read after that, by a full relayout's"),
    (("appends",), "appends of new days, each relaid"),
    (("rows_read_to_full_after_appends",), "rows read after them, by a full relayout's with the same layout"),
    (("rows_read_to_new_layout_after_appends",), "rows read after them, by a newly learned layout's"),
    (("bytes_rewritten_per_byte_after_appends",), "bytes rewritten in all the nights, by the table's"),
    (("larger_scale",), "a larger table: its scale"),
    (("growth_of_plain_copy_seconds",), "seconds of its plain copy, by the smaller one's"),
    (("growth_of_rewrite_seconds",), "seconds of its rewrite by ours, by the smaller one's"),
    (("copies_at_larger_scale",), "its rewrite by ours, in plain copies of it"),
    (("scan rows to best min/max",), "rows that scans read, by the best layout's with min/max"),
    (("ordinary rows to best min/max",), "rows that ordinary readers read, by the same"),
    (("statistics share of relayout",), "seconds of gathering statistics, by the relayout's"),
    (("pruning", "select"), "milliseconds to select among 10,000 files"),
    (("pruning", "understand"), "milliseconds to understand the plan before"),
    (("pruning", "scan"), "milliseconds of a whole scan call for them"),
    (("pruning", "plain plan"), "milliseconds of planning an ordinary read of them"),
    (("recorder", "ratio"), "seconds of a query with a recording, by those without"),
    (("recorder", "ratio low"), "the same, the least of its 95% interval over blocks of queries"),
    (("recorder", "ratio high"), "the same, the most of it"),
    (("recorder", "append executions"), "executions that a recording appends to the state at once"),
    (("recorder", "append seconds"), "seconds of that append"),
    (("recorder", "append share"), "the same, by the five minutes between two appends"),
)
"""Figures of ours that are told below the table: where they stand among an outcome's figures, and in which words."""


UNLIKE = 0.02
"""Share by which a contender's number of files may differ from ours without a word."""


def beside(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The figures of ours that have no column, as means over seeds and cases: their words, and the figure."""
    of_ours = [outcome["figures"] for outcome in report.get("outcomes", ()) if outcome["contender"] == OURS]
    found = []
    for path, title in BESIDE:
        values = [value for figures in of_ours if (value := _at(figures, path)) is not None]
        if values:
            found.append((title, f"{sum(values) / len(values):.3g}"))
    return found + _row_groups(report)


def _row_groups(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How large the row groups of each case are: what a layout can skip follows from their number."""
    sizes: dict[str, list[float]] = {}
    for outcome in report.get("outcomes", ()):
        if outcome["contender"] == OURS and "row_group_bytes" in outcome["figures"]:
            sizes.setdefault(outcome["case"], []).append(outcome["figures"]["row_group_bytes"])
    return [(f"MB of a row group, {case}", f"{sum(s) / len(s) / 1e6:.2f}") for case, s in sizes.items()]


def other_counts(report: Mapping[str, Any]) -> str:
    """A sentence about contenders whose tables have not about as many files (or row groups) as ours; mostly empty."""
    contenders, told = report["contenders"], []
    for count in COUNTS:
        if mine := contenders[OURS].get(count):
            others = ((c["label"], c[count]) for c in contenders.values() if count in c)
            words = count.replace("_", " ")
            far = [f"{label} ({n:,.0f})" for label, n in others if abs(n - mine) > UNLIKE * mine]
            told += [f"Not of about as many {words} as ours ({mine:,.0f}): {', '.join(far)}."] if far else []
    return " ".join(told)


def _at(figures: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = figures
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return None if value is None else float(value)


def plot(report: Mapping[str, Any]) -> bytes | None:
    """The contenders' means as bars, as PNG; None when nothing in it is drawn."""
    from zorder_pipeline.pictures import contender_bars

    contenders = report["contenders"]
    shown = (*(m for m, _ in READ), "pages", *(m for m, _ in TIMES), "copies")
    drawn = [m for m in shown if m in contenders[OURS]["mean"]]
    if not drawn:
        return None
    panels = {
        dict(FIGURES)[m]: {c["label"]: c["mean"][m] for c in contenders.values() if m in c["mean"]} for m in drawn
    }
    return contender_bars(panels, str(report.get("summary", "")), contenders[OURS]["label"])


def table_rows(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the table that sums a report up."""
    contenders = report["contenders"].values()
    measures = [pair for pair in FIGURES if any(pair[0] in c["mean"] for c in contenders)]
    steps = list(dict.fromkeys(step for c in contenders for step in c["seconds"]))
    counts = [count for count in COUNTS if any(count in c for c in contenders)]
    header = ["layout", *(count.replace("_", " ") for count in counts), *(title for _, title in measures)]
    header += [f"{step} s" for step in steps]
    told = _multiples(contenders)
    several = len(report["seeds"]) > 1
    for measure, title in told:
        header.append(f"{title}, as a multiple of ours{_interval_of(measure, contenders)}")
        header += [f"{title}, least and most by seed"] if several else []
    rows = []
    for name, contender in report["contenders"].items():
        figures = [f"{contender[count]:,.0f}" if count in contender else "" for count in counts]
        figures += [_figure(measure, contender["mean"].get(measure)) for measure, _ in measures]
        times = [f"{contender['seconds'][step]:.1f}" if step in contender["seconds"] else "" for step in steps]
        compared = contender["ours_to_it"]
        times_more = []
        for measure, _ in told:
            known = compared[measure] if name != OURS and measure in compared else None
            times_more.append(_inverse(known) if known else "")
            times_more += [_by_seed(known) if known else ""] if several else []
        rows.append([contender["label"], *figures, *times, *times_more])
    return header, rows


def markdown(report: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    header, rows = table_rows(report)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    seeds = len(report["seeds"])
    text = f"# {report.get('workload', '')}\n\n{report.get('summary', '')}\n\n{table}\n\n"
    if report.get("not_run"):
        text += "Not run: " + "; ".join(f"{peer} ({why})" for peer, why in report["not_run"].items()) + ".\n\n"
    if "pages" in report["contenders"][OURS]["mean"]:
        text += _page_table(report.get("cases", {}))
    if told := beside(report):
        text += "\n".join(["| beside, of ours | |", "| --- | ---: |", *(f"| {a} | {b} |" for a, b in told)]) + "\n\n"
    if odd := other_counts(report):
        text += f"{odd}\n\n"
    if not any("multiple" in title for title in header):
        return text + f"Means over {seeds} seed{'s' if seeds > 1 else ''}.\n"
    if "cases" in report:
        text += _case_table(report["cases"])
    unit = _unit(_multiples(report["contenders"].values())[0][0])
    return text + (
        f"Means over the {'unseen ' if unit == 'queries' else ''}{unit} of {seeds} seed{'s' if seeds > 1 else ''}; "
        f"ratios are geometric means over seeds. Intervals are of a paired bootstrap over the {unit} of these logs: "
        "those of another log may lie outside. What one time of each seed tells has none.\n"
    )


def index(runs: Sequence[Mapping[str, Any]], workloads: Sequence[Workload]) -> str:
    """A list of workloads as Markdown: links to the reports of those that ran, the time each took, why one failed."""
    done = {run["workload"]: run for run in runs}
    lines = ["| workload | what it measures | minutes | |", "| --- | --- | ---: | --- |"]
    for workload in workloads:
        run = done.get(workload.name)
        name, time, what = workload.name, "", "not run yet"
        if run is not None:
            time, what = f"{run['seconds'] / 60:.1f}", f"failed: {run['error']}".replace("|", "\\|")
            if not run["error"]:
                name, what = f"[{name}]({name}.md)", f"[every figure]({name}.json)"
        lines.append(f"| {name} | {workload.summary} | {time} | {what} |")
    minutes = sum(run["seconds"] for run in runs) / 60
    return "# Benchmarks\n\n" + "\n".join(lines) + f"\n\n{minutes:.1f} minutes in all.\n"


def _case_table(cases: Mapping[str, Mapping[str, Any]]) -> str:
    """For rows, and each time that was measured: a line per contender and a column per case, as multiples of ours."""
    first = next(iter(cases.values()))
    text = ""
    for measure, title in _multiples([first[OURS]]):
        interval = _interval_of(measure, first.values())
        lines = [[f"{title}, multiple of ours{interval}", *cases], ["---", *["---:"] * len(cases)]]
        for name in first:
            if name != OURS and measure in first[name]["ours_to_it"]:
                cells = [_inverse(found[name]["ours_to_it"][measure]) for found in cases.values()]
                lines.append([first[name]["label"], *cells])
        ours = (_figure(measure, found[OURS]["mean"][measure]) for found in cases.values())
        lines.append([f"ours, {dict(FIGURES)[measure]}", *ours])
        text += "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"
    return text


def _multiples(contenders: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The measures that multiples of ours are told of, with their titles."""
    measured = {measure for contender in contenders for measure in contender["mean"]}
    return [pair for pair in READ if pair[0] in measured][:1] + [pair for pair in TIMES if pair[0] in measured]


def _unit(measure: str) -> str:
    """What there is a figure of."""
    return "windows" if measure == "scans" else "queries"


def _page_table(cases: Mapping[str, Mapping[str, Any]]) -> str:
    """A line per case and a column per contender: the share of the pages that is not read."""
    first = next(iter(cases.values()), {})
    lines = [["pages filtered", *(c["label"] for c in first.values())], ["---", *["---:"] * len(first)]]
    for case, found in cases.items():
        lines.append([case, *(_figure("pages", c["mean"]["pages"]) for c in found.values())])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def rich_table(report: Mapping[str, Any]) -> Group:
    """The report for the terminal: tables of the same lines, no more columns in each than can be read there."""
    from rich.console import Group
    from rich.table import Column, Table

    header, rows = table_rows(report)
    parts: list[Table | str] = []
    for start in range(1, len(header), ACROSS):
        title = f"{report.get('workload', '')}: {report.get('summary', '')}" if start == 1 else None
        shown = [0, *range(start, min(start + ACROSS, len(header)))]
        table = Table(title=title)
        for number in shown:
            table.add_column(header[number], justify="right" if number else "left")
        for row in rows:
            table.add_row(*(row[number] for number in shown))
        parts.append(table)
    if told := beside(report):
        table = Table("beside, of ours", Column(justify="right"))
        for line in told:
            table.add_row(*line)
        parts.append(table)
    if odd := other_counts(report):
        parts.append(odd)
    return Group(*parts)


def _figure(measure: str, value: float | None) -> str:
    if value is None:
        return ""
    if measure == "bytes":
        return f"{value / 1e6:,.2f}"
    if measure == "pages":
        return f"{value:.1%}"
    if measure in ("copies", "loads"):
        return f"{value:.2f}"
    if measure == "share" or measure.endswith("_s"):
        return f"{value:.4f}"
    if measure in ("inside", "half_width"):
        return f"{value:.0%}" if measure == "inside" else f"±{value:.0%}"
    if measure.startswith(("error", "off")):
        return f"{value:.3f}"
    return f"{value:,.1f}" if measure in ("files", "row_groups", "mb_per_second", "scans") else f"{value:,.0f}"


def _inverse(r: Mapping[str, float | None]) -> str:
    low, mean, high = (r[key] for key in ("low", "mean", "high"))
    assert mean is not None
    return f"{1 / mean:.2f}" + ("" if low is None or high is None else f" ({1 / high:.2f}–{1 / low:.2f})")


def _by_seed(r: Mapping[str, float]) -> str:
    return f"{1 / r['largest']:.2f}–{1 / r['smallest']:.2f}"


def _interval_of(measure: str, contenders: Iterable[Mapping[str, Any]]) -> str:
    """What the brackets behind a measure's ratios are, if there are any."""
    ratios = [c["ours_to_it"][measure] for c in contenders if measure in c["ours_to_it"]]
    return f" (95% over {_unit(measure)} of these logs)" if any(ratio["low"] is not None for ratio in ratios) else ""
