"""Studies on disk or in a database: a search works in memory, and its finished trials follow in batches.

Writing each trial as it ends would cost many times the trial itself (design section 5). A study so kept is an ordinary
Optuna study: ``optuna-dashboard`` opens it, and the same search given it again goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
import sqlalchemy as sa
from optuna.distributions import distribution_to_json
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from zorder_pipeline.errors import ConfigError

from .draft import Draft, SampledTable
from .skipping import Estimator
from .study_place import database_url, refuse_place, shown

__all__ = ["FORM", "OBJECTIVE", "ORDER", "RUN", "StudyStore", "export_study", "objective_hash"]

BATCH_TRIALS = 100
BATCH_SECONDS = 5.0
"""Trials are written when so many wait, or when the first has waited so long."""
WARM_STARTS = 5
"""Best earlier layouts that a search with other settings begins with."""
ORDER, FORM, OBJECTIVE, RUN = "order", "form", "objective", "run"
"""Attributes: of a trial its bits, by the place of each feature among the parameters, and what else there is to its
layout, if anything; of a study `objective_hash`, and the search that it is of."""

Order = tuple[int, ...]


def objective_hash(
    table: SampledTable, estimator: Estimator, weights: npt.NDArray[np.float64], probe: Draft, bits: int
) -> str:
    """Equal for searches in which a layout has the same cost: same sample, queries, weights and bits.

    What the queries read under ``probe`` goes into it too, so that costs of an older estimator are not taken for ours.
    """
    digest = hashlib.blake2b(f"{[e.column for e in table.encodings]} {table.rows_per_file} {bits}".encode())
    parts: list[npt.NDArray[Any] | None] = [table.fine, table.partition, estimator.low, estimator.high]
    parts += [estimator.owner, estimator.column, estimator.first, estimator.last, estimator.box_query]
    parts += [weights, table.rows_read(probe, estimator)]
    for part in parts:
        if part is not None:
            digest.update(f"{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()[:32]


class StudyStore:
    """A stored study, to which finished trials are added in batches; a crash loses the last batch at most.

    Attributes:
        earlier: cost of each bit order evaluated for this objective before.
        warm: orders to begin with: the best of ``earlier`` when it was another run (seed, trials, sampler, warm starts)
            that found them. The same run goes its own way again instead, at the known costs.
        study_name: the name given, or with a suffix where that one has another objective's trials.
        seconds: time spent on the storage.
    """

    def __init__(self, storage: str, name: str, objective: str, run: str) -> None:
        """Open the study, or create it.

        Args:
            storage: path of a journal file, or an RDB URL (``sqlite:///studies.db``, ``postgresql://…``).
            objective: what `objective_hash` gives.
            run: equal for searches that would try the same layouts.

        Raises:
            ConfigError: the storage cannot be written, or is something else than a study's.
        """
        refuse_place(storage)
        self.seconds = 0.0
        self._storage, self._pending = storage, list[FrozenTrial]()
        with self._guarded():
            self._backend, self._study = _opened(storage, name, objective)
            trials = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            orders = [t for t in trials if ORDER in t.user_attrs and FORM not in t.user_attrs]
            costs = {tuple(t.user_attrs[ORDER]): float(t.value or 0.0) for t in orders}
            self.earlier: dict[Order, float] = costs
            known = self._study.user_attrs.get(RUN)
            if not known or known["id"] != run:
                best = sorted(costs, key=lambda order: (costs[order], order))[:WARM_STARTS]
                known = {"id": run, "warm": [list(order) for order in best]}
                self._study.set_user_attr(RUN, known)
            self.warm: list[Order] = [tuple(order) for order in known["warm"]]
        self.study_name = self._study.study_name
        self._stored = set(self.earlier)
        self._since = time.monotonic()

    def add(self, trial: FrozenTrial) -> None:
        """Take a finished trial; written now when the batch is full or old. An order already stored is left out.

        So is a layout of which the order does not say all: a search that goes on knows layouts by their orders.

        Raises:
            ConfigError: the storage cannot be written.
        """
        if FORM in trial.user_attrs:
            return
        order = tuple(trial.user_attrs[ORDER])
        if order in self._stored:
            return
        self._stored.add(order)
        if not self._pending:
            self._since = time.monotonic()
        self._pending.append(trial)
        if len(self._pending) >= BATCH_TRIALS or time.monotonic() - self._since >= BATCH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            ConfigError: the storage cannot be written.
        """
        if not self._pending:
            return
        with self._guarded():
            if isinstance(self._backend, RDBStorage):
                _insert(self._backend, self._study, self._pending)
            else:
                with self._backend.batch():
                    self._study.add_trials(self._pending)
        self._pending = []

    def close(self) -> None:
        """Write what waits, and let go of the storage.

        Raises:
            ConfigError: the storage cannot be written.
        """
        try:
            self.flush()
        finally:
            if isinstance(self._backend, RDBStorage):
                self._backend.engine.dispose()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except (
            OSError,
            ImportError,
            ValueError,
            RuntimeError,
            sa.exc.SQLAlchemyError,
            optuna.exceptions.OptunaError,
        ) as e:
            cause = e.__cause__ or e
            reason = str(cause).strip().partition("\n")[0].rstrip(".") or type(cause).__name__
            raise ConfigError(
                f"the study storage {shown(self._storage)} cannot be written ({reason}); "
                "give a local path or a URL such as sqlite:///studies.db"
            ) from e
        finally:
            self.seconds += time.perf_counter() - started


def export_study(study: optuna.Study, storage: str) -> str:
    """Write a search's study to a file or a database, which ``optuna-dashboard`` opens; its name there.

    The same search that is given that storage goes on with it. Done twice it adds nothing. What `StudyStore.add` leaves
    out is left out.

    Args:
        study: of `zorder_pipeline.layout.search.Found`.
        storage: as in `StudyStore`.

    Raises:
        ConfigError: the storage cannot be written, or is something else than a study's.
    """
    known = study.user_attrs
    store = StudyStore(storage, study.study_name, known[OBJECTIVE], known[RUN]["id"])
    try:
        for trial in study.get_trials(deepcopy=False):
            store.add(trial)
    finally:
        store.close()
    return store.study_name


class _Journal(JournalFileBackend):
    """A journal file that takes the lines of a batch in one write: a sync per trial is what made journals slow."""

    def __init__(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        lock = JournalFileSymlinkLock(path)
        super().__init__(path, lock)
        self._batch: list[dict[str, Any]] | None = None
        self._first: int | None = None
        lock.acquire()
        try:
            _drop_unfinished_line(Path(path))
        finally:
            lock.release()

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        if self._batch is None:
            yield from super().read_logs(log_number_from)
            return
        if self._first is None:
            self._first = log_number_from
        yield from self._batch[log_number_from - self._first :]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        if self._batch is None:
            super().append_logs(logs)
        else:
            self._batch.extend(logs)

    @contextmanager
    def batch(self) -> Iterator[None]:
        self._batch, self._first = [], None
        try:
            yield
        finally:
            lines, self._batch = self._batch, None
            if lines:
                super().append_logs(lines)


def _drop_unfinished_line(path: Path) -> None:
    """A writer killed in mid-write leaves half a line, and Optuna reads nothing that is written behind it."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        with path.open("rb+") as stream:
            stream.truncate(content.rfind(b"\n") + 1)


def _opened(storage: str, name: str, objective: str) -> tuple[RDBStorage | _Journal, optuna.Study]:
    """The study ``name``, or ``name`` with a suffix if that one was made for another objective."""
    if "://" in storage:
        backend: RDBStorage | _Journal = RDBStorage(database_url(storage).render_as_string(hide_password=False))
    else:
        backend = _Journal(storage)
    opened = backend if isinstance(backend, RDBStorage) else JournalStorage(backend)
    for length in (0, 8, len(objective)):
        wanted = f"{name}-{objective[:length]}" if length else name
        study = optuna.create_study(storage=opened, study_name=wanted, load_if_exists=True)
        found = study.user_attrs.get(OBJECTIVE)
        if found is None and not study.get_trials(deepcopy=False):
            study.set_user_attr(OBJECTIVE, objective)
            return backend, study
        if found == objective:
            return backend, study
    raise ValueError(f"study {name} belongs to something else")


def _insert(storage: RDBStorage, study: optuna.Study, trials: Sequence[FrozenTrial]) -> None:
    """Finished trials in one transaction, one statement per table: Optuna's own way takes 65 ms for each.

    A database with other tables than expected, or that cannot return new ids, gets them in Optuna's own way.
    """
    names = ("studies", "trials", "trial_params", "trial_values", "trial_user_attributes")
    data = sa.MetaData()
    data.reflect(storage.engine, only=lambda name, _: name in names)
    if set(names) - set(data.tables) or not storage.engine.dialect.insert_executemany_returning_sort_by_parameter_order:
        study.add_trials(trials)
        return
    studies, rows = data.tables["studies"], data.tables["trials"]
    with storage.engine.begin() as db:
        own = studies.c.study_name == study.study_name
        number = db.execute(sa.select(studies.c.study_id).where(own).with_for_update()).scalar_one()
        count = db.execute(sa.select(sa.func.count()).where(rows.c.study_id == number)).scalar_one()
        new = [
            {"number": count + i, "study_id": number, "state": t.state.name}
            | {"datetime_start": t.datetime_start, "datetime_complete": t.datetime_complete}
            for i, t in enumerate(trials)
        ]
        insert = sa.insert(rows).returning(rows.c.trial_id, sort_by_parameter_order=True)
        ids = [int(row[0]) for row in db.execute(insert, new)]
        for name, values in _details(zip(ids, trials, strict=True)):
            if values:
                db.execute(sa.insert(data.tables[name]), values)


def _details(trials: Iterable[tuple[int, FrozenTrial]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    params, values, attributes = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    shapes: dict[str, str] = {}
    for i, trial in trials:
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            if name not in shapes:
                shapes[name] = distribution_to_json(distribution)
            internal = distribution.to_internal_repr(value)
            params.append(
                {"trial_id": i, "param_name": name, "param_value": internal, "distribution_json": shapes[name]}
            )
        values.append({"trial_id": i, "objective": 0, "value": trial.value, "value_type": "FINITE"})
        attributes += [{"trial_id": i, "key": k, "value_json": json.dumps(v)} for k, v in trial.user_attrs.items()]
    yield "trial_params", params
    yield "trial_values", values
    yield "trial_user_attributes", attributes
