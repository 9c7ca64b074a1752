"""A layout that also serves scans through ``reading/``: by predicates, expressions and SOP partitions (seed 004, 4.1).

Three forms are tried, and held-out queries decide between them and the layout by columns alone: every predicate as a
column of one bit, whose place in the key the search finds; the seed's, an SOP partition index as one column beside at
most four others; and that with the expressions that queries compare as further columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.benefit import ReadVolumes, promise
from zorder_pipeline.layout.choosing import MIN_GAIN, surely
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.layout.promise import in_proportion
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.ranges import Boxes

from .candidates import Unseen
from .confirming import confirmed
from .reading_contest import BITS, COLUMNS, INDEX, MIXED, MOST_LOST, Contest, Measured, Ordinary, forms_of, sought
from .reading_sample import ReadingSample, reading_sample
from .situation import Situation
from .sizes import query_bytes
from .useful_statistics import reading_boxes, reading_schema, sampled_features, useful_statistics

__all__ = ["contest_of", "for_reading"]

Floats = npt.NDArray[np.float64]


def contest_of(situation: Situation, plan: Plan, weights: Floats, say: Progress = silent) -> Contest | None:
    """What layouts for the mix of readers are compared by.

    Args:
        plan: by columns alone.
        weights: of all queries, as it was learned with, shape (queries,).
        say: told which candidate is sought.

    Returns:
        None where none can be better than by columns alone: there are too few queries, or scans through ``reading/``
        skip by nothing that others do not.
    """
    if not situation.blocks.apart:
        return None
    analysis = situation.analysis
    sampled = reading_sample(analysis, plan.target_file_rows, situation.partition, analysis.train_weights)
    if not analysis.columns and sampled.reading == sampled.plain:
        return None
    return Contest(situation, sampled, weights, say)


def for_reading(contest: Contest, plan: Plan, proof: Unseen, learned: Learned) -> tuple[Plan, Learned] | None:
    """The plan by the layout that is best for the expected mix of readers, with what was measured of all of them.

    With it comes what was learned of that layout, and those columns of its key that the analysed sample lacks: an SOP
    partition index. Candidates are made of what the training queries ask for, and the one that is chosen is made again
    of what all ask for that do not promise (`TableAnalysis.train_weights`, ``known_weights``).

    Args:
        contest: from `contest_of`.
        plan: by columns alone; without a layout, when none surely beat what the table lies by.
        proof: what it promises by.
        learned: what was learned of it.

    Returns:
        None when the table lies by a layout of ours, and none is surely better on the select queries than that it
        stays so, and what is new is laid out by it.
    """
    situation, analysis, weights = contest.situation, contest.situation.analysis, contest.weights
    columns, ordinary = contest.measured(plan.spec), Ordinary(situation, plan, weights)
    allowed = columns.plain * (1 + MOST_LOST)
    found, left = _by_predicates(contest, ordinary, allowed)
    measured = {COLUMNS: columns, **found}
    winner = min(measured, key=lambda name: contest.mixed(*measured[name].means))
    if (situation.laid_out or plan.spec is None) and not _beats_what_stays(contest, measured[winner].spec):
        if situation.laid_out is not None:
            return None
        winner = COLUMNS
    if winner != COLUMNS:
        contest, measured[winner] = _again(contest, winner, measured[winner], ordinary, allowed, left)
    spec, sampled = measured[winner].spec, contest.sampled
    if contest.short:
        budget = f"within the time budget of {situation.settings.seconds or 0:g} s of the layouts for such scans"
        plan = replace(plan, notes=(*plan.notes, f"{budget}: {'; '.join(dict.fromkeys(contest.short))}"))
    useful = useful_statistics(analysis, sampled.blocks(spec)[0], weights, situation.blocks, spec)
    if idle := len(plan.statistics) - len(useful):
        note = f"{idle} of {len(plan.statistics)} statistics that queries ask for would skip next to nothing"
        plan = replace(plan, notes=(*plan.notes, f"{note} by this layout, so they are not gathered"), statistics=useful)
    own = {name: sampled.columns[name] for name in (spec.columns if spec is not None else ()) if name == sampled.index}
    learned = replace(learned, computed=own)
    if winner != COLUMNS:
        learned = _as_measured(contest, learned, winner, measured)
    return _promised(contest, replace(plan, spec=spec), winner, measured, proof, learned)


def _beats_what_stays(contest: Contest, spec: KeySpec | None) -> bool:
    """Whether a layout is surely better for the mix of readers on the select queries than what the table stays as."""
    if spec is None:
        return False
    select, settings = contest.situation.blocks.select, contest.situation.settings
    stays, goes = (contest.mixed(*contest.read(each)) for each in (None, spec))
    gain = select.observed(stays * (1 - MIN_GAIN) - goes, contest.weights[select.queries])
    return surely(gain, np.random.default_rng(settings.seed))


def _as_measured(contest: Contest, learned: Learned, winner: str, measured: Mapping[str, Measured]) -> Learned:
    """What was learned, of another layout than the one by columns: in proportion to what ordinary readers read of that.

    That was told by another sample of files where the table has a layout, or many small files.
    """
    ours, columns = measured[winner], measured[COLUMNS]
    train = contest.situation.blocks.train
    asked, weights = train.each(contest.sampled.plain), train.sums(contest.weights)

    def of_train(spec: KeySpec | None) -> float:
        return float(np.average(contest.sampled.read(spec, asked), weights=weights))

    before = np.array([learned.train, learned.select])
    theirs, now = np.array([of_train(columns.spec), columns.plain]), np.array([of_train(ours.spec), ours.plain])
    of_block, select = np.minimum(1.0, in_proportion(before, theirs, now)).tolist()
    return replace(learned, name=winner, spec=ours.spec, train=of_block, select=select)


def _by_predicates(contest: Contest, ordinary: Ordinary, allowed: float) -> tuple[dict[str, Measured], float | None]:
    """The layout of each form that has one by which ordinary readers lose little, and the seconds that are left.

    A time budget is shared out evenly: among the forms, and the one that is made again once it is chosen.
    """
    found: dict[str, Measured] = {}
    left, forms = contest.situation.settings.seconds, forms_of(contest.situation, contest.sampled)
    for place, (name, features) in enumerate(forms.items()):
        own = None if left is None else left / (len(forms) + 1 - place)
        measured, spent = sought(contest, name, features, ordinary, allowed, own)
        left = None if left is None else max(0.0, left - spent)
        if measured is not None:
            found[name] = measured
    return found, left


def _again(
    contest: Contest, name: str, chosen: Measured, ordinary: Ordinary, allowed: float, seconds: float | None
) -> tuple[Contest, Measured]:
    """The form that was chosen, of what all queries ask for that do not promise; as it was where that serves no better.

    Columns that the search may use are most often others then: predicates that were first asked in the select block.
    """
    situation, analysis = contest.situation, contest.situation.analysis
    rows = ordinary.plan.target_file_rows
    sampled = reading_sample(analysis, rows, situation.partition, analysis.known_weights)
    features = forms_of(situation, sampled).get(name)
    if not features or features == forms_of(situation, contest.sampled)[name]:
        return contest, chosen
    again = replace(contest, sampled=sampled)
    measured, _ = sought(again, f"{name} once more", features, ordinary, allowed, seconds)
    if measured is None or again.mixed(*measured.means) > contest.mixed(*chosen.means):
        return contest, chosen
    return again, measured


def _promised(
    contest: Contest, plan: Plan, winner: str, measured: Mapping[str, Measured], proof: Unseen, learned: Learned
) -> tuple[Plan, Learned]:
    """The plan and what was learned with what queries that chose nothing read of its layout, through either reader."""
    analysis, settings, sampled = contest.situation.analysis, contest.situation.settings, contest.sampled
    spec, unseen = plan.spec, contest.situation.unseen
    held_out = unseen.each(sampled.plain)
    exact = confirmed(analysis.snapshot, spec, plan.target_file_rows, held_out) if settings.confirm else None
    before, after = exact or (sampled.read(None, held_out), sampled.read(spec, held_out))
    there = {feature: name for feature, name in sampled_features(analysis).items() if feature in plan.statistics}
    schema = reading_schema(analysis)
    asked, solved = (unseen.each(reading_boxes(analysis, schema, names)) for names in (there, {}))
    reads, left = _of_others(sampled, spec, held_out, asked, solved)
    size = query_bytes(analysis.snapshot, unseen.each(analysis.queries))
    nothing = np.zeros(len(after))
    volumes = ReadVolumes(before * size, after * size, nothing, nothing, before, after, after * left * size, nothing)
    rate = (plan.promise.queries_per_day, plan.promise.rate_source)
    told_now = promise(before, after, size, rate, settings.seed, volumes, unseen)
    if winner == COLUMNS and spec is not None:  # what is known of its own promise may be exact
        told_now = proof.promise(plan, learned.after, before=learned.before, left=left)
    elif spec is not None:
        learned = replace(learned, before=before, after=after)
    mean = [float(np.average(each, weights=unseen.times)) for each in (after, after * reads)]
    figures = {"plain_after": mean[0], "reading_after": mean[1]}
    for name, one in measured.items():
        figures |= {f"select {name}: plain": one.plain, f"select {name}: reading": one.reading}
    told = {
        COLUMNS: "columns alone are best for the expected mix of readers; statistics of predicates still help them",
        BITS: "predicates as bits of the key won on the select queries",
        INDEX: "a partition index by predicates (SOP) beside columns won on the select queries",
        MIXED: "a partition index by predicates (SOP) beside columns and expressions won on the select queries",
    }[winner]
    if winner == BITS and not (spec is not None and spec.computed):
        told = "columns that queries filter by through functions won on the select queries"
    note = f"{told}: scans through zorder_pipeline.scan read {mean[1]:.1%} of the rows, others {mean[0]:.1%}"
    predicted = {"train_fraction": learned.train, "validation_fraction": learned.select}
    return replace(plan, promise=told_now, reading=figures, notes=(*plan.notes, note), predicted=predicted), learned


def _of_others(
    sampled: ReadingSample,
    spec: KeySpec | None,
    plain: Sequence[Boxes],
    asked: Sequence[Boxes],
    solved: Sequence[Boxes],
) -> tuple[Floats, Floats]:
    """What scans through ``reading/`` read of what others read by a layout, and what is no saving of it, 0 to 1.

    The latter, of which only the rest may be credited to the layout, is what they read and what they skip already as
    the table lies, by columns that were solved for. The sample alone tells what is divided by what, both under one
    layout: so what it errs by is no saving. Both of shape (queries,).

    Args:
        plain: the queries as ordinary readers ask them.
        asked, solved: as these scans do, with the statistics that will be kept, and without any.
    """

    def read(key: KeySpec | None, boxes: Sequence[Boxes]) -> tuple[Floats, Floats]:
        """By either reader, told together so that equal boxes read equal shares."""
        ours, theirs = np.split(sampled.read(key, [*plain, *boxes]), 2)
        return ours, theirs

    whole, part = read(spec, asked)
    here, skipping = read(None, solved)
    every = np.ones(len(whole))
    besides = part + np.maximum(0.0, here - skipping)
    reads, left = (in_proportion(every, whole, np.minimum(whole, each)) for each in (part, besides))
    return reads, left
