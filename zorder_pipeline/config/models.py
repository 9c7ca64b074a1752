"""What ``tables.yaml`` may say: frozen models whose field docstrings are the configuration reference."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.model.choices import (
    APPROVAL_DAYS,
    HORIZON_DAYS,
    SAMPLE_ROWS,
    TRIALS,
    CommitterName,
    Cost,
    Dialect,
    LogFormat,
    Sampler,
    Verify,
)

from . import fields
from .fields import Amount, Clock, Cron, Given, Model, Positive, Share, TableName, Tags, TimeZone, Weekday
from .suggest import did_you_mean

__all__ = ["BlackoutConfig", "GateConfig", "LayoutConfig", "LogConfig", "MonitoringConfig", "PipelineConfig"]
__all__ += ["ScheduleConfig", "SearchConfig", "SparkConfig", "TableConfig", "TriggerConfig"]


OWNER = re.compile(r"team:[A-Za-z0-9_.-]+|\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z|]{2,7}\b")
"""Of the mail addresses those that Dagster takes, which else does not load a single table."""


class SparkConfig(Model):
    """The Spark session that every stage shares."""

    master: str = "local[*]"
    """Where Spark runs: local[*], spark://host:7077, yarn, k8s://..."""
    conf: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further Spark settings, by their full names."""

    @property
    def settings(self) -> dict[str, str]:
        """All of it as Spark wants it: strings by full name."""
        return {"spark.master": self.master} | {key: _plain(value) for key, value in self.conf.items()}


class LogConfig(Model):
    """A query log: a file or a folder."""

    path: Given
    """File or folder; a relative one starts at the folder of tables.yaml."""
    format: LogFormat = "auto"
    """auto goes by names and first bytes; query-history takes no file for an event log; sql neither, and files without
    a telling name, `.log` and `.txt` for scripts unless they are JSON; spark-events takes every file for an event log.
    """
    dialect: Dialect = "spark"
    """SQL dialect of the statements."""
    time_zone: TimeZone = "UTC"
    """Session time zone of the statements."""


class SearchConfig(Model):
    """How long and on what to search for a layout; `workers` does not change what is found."""

    trials: Positive = TRIALS
    """Layouts evaluated at most."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Everything random follows from it."""
    sample_rows: Annotated[int, Field(ge=1000)] = SAMPLE_ROWS
    """Rows sampled from the table (raised where a file would be represented by too few)."""
    max_features: Positive = 16
    """Columns the search may use, the most useful ones."""
    seconds: Annotated[float, Field(gt=0)] | None = None
    """Time budget in seconds of the search, its trees and its baselines, which is exceeded by a second or two or, with
    large samples, more; null means none."""
    sampler: Sampler = "moves"
    """What proposes layouts: moves on the bits alone, or for half of the trials an Optuna sampler."""
    cost: Cost = "rows"
    """A layout is judged by rows read, rows times filtered columns, or bytes of the read columns and files opened."""
    half_life_days: Annotated[float, Field(gt=0)] | None = None
    """Age at which a query counts half; null counts old and new queries alike."""
    confirm: bool = True
    """Prove the promise of a new layout on all rows, by one scan of the filtered columns, where the gate may accept it;
    false trusts the sample."""
    always: bool = False
    """true searches every night; otherwise only where a layout may pay, and at the first look at a table."""
    workers: Annotated[int, Field(ge=1, exclude=True)] = 1
    """Threads that evaluate layouts."""
    study: Annotated[Given | None, Field(exclude=True)] = None
    """Where the Optuna study is kept, a local path or a database URL; null keeps it in memory only. A new one, or one
    of the same search, changes nothing of what is found; a search with other settings begins with its best layouts.
    `sqlite:///studies.db` is relative to the folder of tables.yaml, too."""

    @model_validator(mode="after")
    def _study(self) -> SearchConfig:  # not on the field: its sentence would show a password
        if self.study is not None and (problem := fields.study_problem(self.study)):
            raise ValueError(f"a study that is {problem}")
        return self


class LayoutConfig(Model):
    """What the rewritten files look like."""

    target_file_rows: Positive | None = None
    """Rows per file to aim for; without it and target_file_bytes the gate weighs the present size and others."""
    target_file_bytes: Annotated[int, Field(ge=1024)] | None = None
    """Bytes per file to aim for; not beside target_file_rows."""
    smaller_files: bool = True
    """Whether files may become smaller than they are where that pays, down to 8 MiB; a size given overrides it."""
    pinned_bits: dict[str, Annotated[int, Field(ge=1, le=16)]] = Field(default_factory=dict)
    """A layout given by hand, bits per column, e.g. {ship: 9, part: 4}; it is applied without asking the gate, once the
    log has a usable query of the table."""
    keep: bool = False
    """true stays with the layout that the table has: new data is laid out by it, another layout is never taken, with
    or without the gate, learned, pinned or approved before."""
    row_group_bytes: Annotated[int, Field(ge=4096)] | None = None
    """Size of Parquet row groups; null leaves it to Spark and the table's properties."""
    bloom_filters: Annotated[tuple[Given, ...], Field(strict=False)] | None = None
    """Columns that new files get Parquet's Bloom filters of, which Spark and others ask without being told; null takes
    those by which queries look up single values that no order of the rows leads to, [] none."""
    verify: Verify = "counts"
    """Check before a commit: row counts, or a hash of every row's content."""
    committer: CommitterName = "auto"
    """Rewrite by Delta's transaction, or whole partitions by public API; auto: the latter under Spark Connect."""

    @model_validator(mode="after")
    def _one_target(self) -> LayoutConfig:
        if self.target_file_rows and self.target_file_bytes:
            raise ValueError("either target_file_rows or target_file_bytes, not both")
        return self


class BlackoutConfig(Model):
    """A window of the day in which nothing is rewritten; learning goes on."""

    start: Clock
    """Time on the wall when it begins, HH:MM."""
    end: Clock
    """Time when it ends; one that is not after the start is on the next day."""
    days: tuple[Weekday, ...] = Field(default=(), strict=False)
    """Weekdays on which it begins, mon to sun; empty means every day."""
    time_zone: TimeZone = "UTC"
    """Time zone of start and end."""


class GateConfig(Model):
    """What a rewrite has to prove before it is done."""

    enabled: bool = True
    """false applies every learned layout without weighing cost against benefit."""
    horizon_days: Annotated[float, Field(gt=0)] = HORIZON_DAYS
    """Days within which the rewrite must pay for itself."""
    queries_per_day: Amount | None = None
    """Expected queries per day; null takes the rate observed in the log, and a log without times counts as one day."""
    scan_core_seconds_per_gb: Annotated[float, Field(gt=0)] = 14.0
    """Core-seconds a query needs to read one GB, until it is measured here (zorder calibrate, earlier relayouts)."""
    rewrite_core_seconds_per_gb: Annotated[float, Field(gt=0)] = 100.0
    """Core-seconds to read, sort and write one GB by a one-column key, until it is measured here."""
    rewrite_core_seconds_per_gb_and_column: Amount = 6.0
    """Further core-seconds per GB for each further column of the key."""
    price_per_core_hour: Amount = 0.0
    """To state results in money; 0 leaves it out."""
    enriched_reader_share: Share = 0.0
    """Share of the queries asked through zorder_pipeline.scan or sql: only they skip by enriched statistics."""
    page_skipping: bool = True
    """Whether the queries' engine skips Parquet's pages by their index: Spark and Trino do, DuckDB does not."""
    broken_promise_factor: Annotated[float, Field(gt=1)] = 1.5
    """A relayout that saves less than promised by more than this factor warns, and the next promises count less."""
    preset: Literal["standard", "seed"] = "standard"
    """New data that a table with a layout waits for: max(5% of it, 256 MB), or 10 GB, as in Tufă's thesis."""
    min_new_data_share: Share | None = None
    """Share of the table's bytes that must be new, 0 to 1; null takes the preset's."""
    min_new_data_bytes: Amount | None = None
    """Bytes that must be new (the larger of the two counts); null takes the preset's."""
    payback_days: Amount | None = None
    """New data is laid out without waiting if that surely pays within the horizon and is expected to have paid for
    itself after so many days; 0 always waits. null: 1, or 0 with preset seed or one of the two above."""
    approval: Literal["never", "changes", "always"] = "never"
    """What a person has to approve first: nothing, changes of the layout, or every rewrite; see zorder approve."""
    approval_days: Annotated[float, Field(gt=0)] = APPROVAL_DAYS
    """Days that a request for approval, an approval not yet carried out, or a rejection holds."""
    blackouts: tuple[BlackoutConfig, ...] = Field(default=(), strict=False)
    """Windows in which this table is not rewritten, besides those for all tables."""


class ScheduleConfig(Model):
    """When to run."""

    cron: Cron
    """Five cron fields: minute, hour, day, month, weekday."""
    time_zone: TimeZone = "UTC"
    """Time zone of the cron fields."""


class TriggerConfig(Model):
    """What starts a table's chain between its scheduled runs; sensors watch for it without Spark."""

    new_data_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Run when so much of its bytes came in since the last relayout, decision or request, 0 to 1; null: never."""
    drift: Annotated[float, Field(gt=0, le=1)] | None = None
    """Run when the columns that queries filter by differ so much from those the layout was learned for, 0 to 1."""


class MonitoringConfig(Model):
    """What people are told, and when."""

    max_age_hours: Annotated[float, Field(ge=1)] | None = None
    """Dagster shows a table's assets as overdue when its last analysis is older; null means never."""
    max_runtime_hours: Annotated[float, Field(gt=0)] = 12.0
    """Dagster ends a run that takes longer."""
    min_parsed_share: Share = 0.9
    """The check of the query log warns when a smaller share of its statements, or of 20 new ones, can be used."""
    keep_runs_days: Annotated[int, Field(ge=1)] | None = None
    """Dagster's records of our runs are deleted after so many days, but for the newest of each asset; null: never."""
    metrics_file: Given | None = None
    """Where to keep a file of OpenMetrics for alerting, e.g. in the folder of node_exporter's textfile collector."""


class TableConfig(Model):
    """A Delta table to keep in a good order."""

    name: TableName
    """The table's name in Dagster and in the state."""
    location: Given | None = None
    """Folder of the Delta table, unless `catalog` is given; a relative one starts at the folder of tables.yaml."""
    catalog: Given | None = None
    """Name of the table in Spark's catalog, e.g. sales.orders; instead of location."""
    aliases: tuple[Given, ...] = Field(default=(), strict=False)
    """Further names that statements call the table by."""
    owners: tuple[str, ...] = Field(default=(), strict=False)
    """Shown in Dagster: mail addresses, or team:name."""
    tags: Tags = Field(default_factory=dict)
    """Dagster tags of the table's assets, e.g. {domain: sales}."""
    partitions: bool | None = None
    """Whether Dagster shows the table's partitions one by one, for backfills; null: if a local table has any."""
    search: SearchConfig = SearchConfig()
    layout: LayoutConfig = LayoutConfig()
    gate: GateConfig = GateConfig()
    trigger: TriggerConfig = TriggerConfig()
    schedule: ScheduleConfig | None = None
    """When to run this table on its own; without it, it runs with the nightly schedule."""

    @model_validator(mode="after")
    def _one_place(self) -> TableConfig:
        if (self.location is None) == (self.catalog is None):
            raise ValueError("exactly one of location (a folder) and catalog (a catalog name)")
        for owner in self.owners:
            if not OWNER.fullmatch(owner):
                raise ValueError(
                    "owners as team:name or as mail addresses that Dagster takes (of letters, digits and ._%+-, the "
                    f"last part 2 to 7 letters long), not {owner!r}"
                )
        return self

    @property
    def table(self) -> str:
        """What `zorder_pipeline.relayout.snapshot.open_table` opens: the location, or the catalog name."""
        return self.location or self.catalog or ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that statements may use, as far as the configuration knows them."""
        return tuple(dict.fromkeys([self.name, *self.aliases, *([self.catalog] if self.catalog else [])]))


class PipelineConfig(Model):
    """All of tables.yaml."""

    spark: SparkConfig = SparkConfig()
    state: Given = "state"
    """Folder of the pipeline's own state, on any Hadoop filesystem; in no table's folder, hidden or not: Delta takes
    it for a part of the table."""
    query_logs: tuple[LogConfig, ...] = Field(default=(), strict=False)
    """Where the asked queries are logged."""
    views: dict[str, str] = Field(default_factory=dict)
    """Views that statements read: SELECT text by the view's name, so that its tables' filters are seen."""
    tables: Annotated[tuple[TableConfig, ...], Field(strict=False)]
    """The tables to look after."""
    schedule: ScheduleConfig | None = None
    """When the nightly run starts, for all tables without a schedule of their own; null means by hand only."""
    budget_core_hours: Amount | None = None
    """Core-hours that one nightly run may spend on rewriting, all tables together; null is no limit."""
    blackouts: tuple[BlackoutConfig, ...] = Field(default=(), strict=False)
    """Windows in which no table is rewritten."""
    stop: bool = False
    """true stops all relayouts; ZORDER_STOP=1 in the environment and zorder stop do it without a change here."""
    monitoring: MonitoringConfig = MonitoringConfig()
    redact_literals: bool = False
    """Hide the literals of queries wherever they are shown: they can be personal data."""
    retention_days: Positive = 90
    """Days before the newest logged query from which queries are used. Nights delete from the state what is older, for
    good: queries, quarantined lines, what sessions recorded. Queries without a time always count, and stay."""

    def table(self, name: str) -> TableConfig:
        """The table called ``name``.

        Raises:
            ConfigError: there is none.
        """
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise ConfigError(f"no table {name} is configured{did_you_mean(name, names)}; there is {', '.join(names)}")


def _plain(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
