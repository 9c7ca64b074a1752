"""tables.yaml: what it may say, and the sentence for everything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.config import PipelineConfig, ScheduleConfig, TableConfig, load_config
from zorder_pipeline.errors import ConfigError

TABLE = "tables:\n  - name: sales\n    location: data\n"
FULL = """
spark:
  master: local[2]
  conf: {spark.driver.memory: 2g, spark.sql.shuffle.partitions: 8, spark.ui.enabled: true}
state: work/state
query_logs:
  - path: log.sql
    format: sql
    dialect: trino
    time_zone: Europe/Berlin
tables:
  - name: sales
    location: data
    aliases: [shop.sales, s]
    owners: [team:shop, ann@example.org]
    search: {trials: 50, seed: 3, sample_rows: 2000, max_features: 4, seconds: 10, sampler: tpe, workers: 3, study: s/a}
    layout: {target_file_rows: 500, row_group_bytes: 1048576, verify: hash, pinned_bits: {ship: 9}}
    gate: {enabled: false, horizon_days: 7, queries_per_day: 1000, price_per_core_hour: 0.05, min_new_data_share: 0.05}
    schedule: {cron: "30 1 * * MON-FRI", time_zone: Europe/Berlin}
  - name: parts
    catalog: shop.parts
schedule: {cron: "0 2 * * *"}
budget_core_hours: 4
blackouts: [{start: "22:00", end: "06:00", days: [fri, sat], time_zone: Europe/Berlin}]
redact_literals: true
retention_days: 30
"""

CASES = Path(__file__).parents[1] / "cases" / "config_errors.txt"
WRONG = re.findall(r"^=== (.*)\n((?:(?!-->|===).*\n)*?)--> (.*)$", CASES.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NO_SUCH", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "log.sql").write_text("SELECT 1;")
    return tmp_path


def read(folder: Path, text: str, **options: bool) -> PipelineConfig:
    file = folder / "tables.yaml"
    file.write_text(text)
    return load_config(file, **options)


def test_everything_that_may_be_said_is_read(folder: Path) -> None:
    config = read(folder, FULL)
    sales, parts = config.tables
    assert config.spark.settings == {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "true",
    }
    assert config.state == str(folder / "work/state")
    assert config.query_logs[0].model_dump() == {
        "path": str(folder / "log.sql"), "format": "sql", "dialect": "trino", "time_zone": "Europe/Berlin"
    }  # fmt: skip
    assert (sales.table, sales.names) == (str(folder / "data"), ("sales", "shop.sales", "s"))
    assert (parts.table, parts.names) == ("shop.parts", ("parts", "shop.parts"))
    assert sales.layout.pinned_bits == {"ship": 9}
    assert (sales.search.sampler, sales.search.workers) == ("tpe", 3)
    assert (sales.search.study, parts.search.study) == (str(folder / "s/a"), None)
    assert (sales.gate.enabled, sales.gate.queries_per_day, parts.gate.queries_per_day) == (False, 1000.0, None)
    assert sales.schedule is not None
    assert sales.schedule.cron == "30 1 * * MON-FRI"
    assert (config.budget_core_hours, config.stop, sales.layout.keep) == (4.0, False, False)
    assert config.blackouts[0].days == ("fri", "sat")
    assert (config.redact_literals, config.retention_days) == (True, 30)


def test_a_table_with_a_name_and_a_place_is_enough(folder: Path) -> None:
    config = read(folder, TABLE)
    assert config.tables[0].search.trials == 600
    assert config.state == str(folder / "state")
    assert config.query_logs == ()


@pytest.mark.parametrize(("text", "sentence"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_every_problem_is_one_sentence(folder: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(folder, text)
    assert str(raised.value) == sentence.format(file=folder / "tables.yaml", folder=folder)


def test_no_case_was_missed() -> None:
    assert len(WRONG) == CASES.read_text(encoding="utf-8").count("===")


def test_variables_and_other_filesystems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", str(folder))
    monkeypatch.setenv("MASTER", "local[1]")
    text = "spark: {master: '${MASTER}'}\nstate: s3a://bucket/state\n"
    text += "tables:\n  - {name: a, location: '${LAKE}/data'}\n  - {name: b, location: 'hdfs://host/nowhere'}\n"
    config = read(folder, text)
    assert config.spark.master == "local[1]"
    assert config.state == "s3a://bucket/state"
    assert [table.location for table in config.tables] == [str(folder / "data"), "hdfs://host/nowhere"]


def test_a_study_may_lie_in_a_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIES", "postgresql://me:secret@host/studies")
    text = "tables:\n  - {name: a, location: data, search: {study: '${STUDIES}'}}\n"
    search = read(folder, text).tables[0].search
    assert search.study == "postgresql://me:secret@host/studies"
    assert not {"workers", "study"} & search.model_dump().keys(), "what decides nothing makes no asset stale"


@pytest.mark.parametrize(
    ("study", "kept"),
    [
        ("sqlite:///studies.db", "sqlite:///{folder}/studies.db"),
        ("sqlite+pysqlite:///../s/t.db?timeout=30&x=/y", "sqlite+pysqlite:///{folder.parent}/s/t.db?timeout=30&x=/y"),
        ("sqlite:///~/studies.db", "sqlite:////home/me/studies.db"),
        ("sqlite:////data/studies.db", "sqlite:////data/studies.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite:///file:studies.db?uri=true", "sqlite:///file:studies.db?uri=true"),
        ("sqlite://", "sqlite://"),
    ],
)
def test_a_study_in_a_file_starts_at_the_folder_of_the_configuration(
    study: str, kept: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database did at that of the process, so that each place of a call had a study of its own."""
    monkeypatch.setenv("HOME", "/home/me")
    search = read(folder, f"tables:\n  - {{name: a, location: data, search: {{study: '{study}'}}}}\n").tables[0].search
    assert search.study == kept.format(folder=folder)


def test_paths_may_be_left_for_later(folder: Path) -> None:
    text = "query_logs: [{path: later.sql}]\ntables:\n  - {name: a, location: later}\n"
    assert read(folder, text, check_paths=False).tables[0].location == str(folder / "later")


def test_a_missing_file_and_a_missing_table(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"configuration file .*nofile\.yaml does not exist"):
        load_config(folder / "nofile.yaml")
    with pytest.raises(ConfigError, match=r"no table sale is configured \(did you mean sales\?\); there is sales"):
        read(folder, TABLE).table("sale")


def test_nothing_can_be_changed_afterwards(folder: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(folder, TABLE).tables[0].name = "other"  # type: ignore[misc]


def test_the_example_is_valid() -> None:
    example = Path(__file__).parents[2] / "dagster_home" / "tables.yaml"
    config = load_config(example, check_paths=False)
    assert [table.name for table in config.tables] == ["lineitem"]


def test_values_nested_too_deeply_are_one_sentence(folder: Path) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        read(folder, "tables: " + "[" * 5_000 + "]" * 5_000)


CRON_PARTS = [
    "*",
    "0",
    "2",
    "7",
    "12",
    "23",
    "29",
    "30",
    "31",
    "60",
    "feb",
    "DEC",
    "sun",
    "Sat",
    "*/2",
    "3-9",
    "9-3/2",
    "x",
]


@given(st.tuples(*[st.lists(st.sampled_from(CRON_PARTS), min_size=1, max_size=2).map(",".join)] * 5))
@settings(max_examples=400, deadline=None)
def test_dagster_takes_every_schedule_that_is_taken(fields: tuple[str, ...]) -> None:
    """One that it refuses kept the code location of all tables from loading."""
    from dagster._utils.schedules import is_valid_cron_string

    try:
        taken = ScheduleConfig(cron=" ".join(fields)).cron
    except ValueError:
        return
    assert is_valid_cron_string(taken)


@given(st.text(max_size=70), st.text(alphabet="aZ9_.-/ é\n", max_size=70))
@settings(max_examples=300, deadline=None)
def test_dagster_takes_every_tag_that_is_taken(value: str, key: str) -> None:
    from dagster._utils.tags import is_valid_strict_tag_value, is_valid_tag_key

    try:
        tags = TableConfig(name="t", location="t", tags={key: value}).tags
    except ValueError:
        return
    assert all(is_valid_tag_key(name) and is_valid_strict_tag_value(text) for name, text in tags.items())


@given(st.from_regex(r"[a-zü'|._+-]{1,4}@[a-z0-9._-]{1,6}\.[a-zA-Z0-9|]{1,9}", fullmatch=True))
@example("data@acme.technology")
@example("ann@example.org")
@settings(max_examples=300, deadline=None)
def test_dagster_takes_every_owner_that_is_taken_and_no_other(owner: str) -> None:
    from dagster._core.definitions.utils import is_valid_email

    try:
        taken = TableConfig(name="t", location="t", owners=(owner,)).owners == (owner,)
    except ValueError:
        taken = False
    assert taken == is_valid_email(owner)
