"""What is released: wheel and sdist, installed into an empty environment, run the demo and ship their types."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import zorder_pipeline
from tests.json_page import json_printed

ROOT = Path(__file__).parents[2]
STEM = f"zorder_pipeline-{zorder_pipeline.__version__}"
CONSUMER = """
from zorder_pipeline.layout.interleave import round_robin
from zorder_pipeline.model.key_spec import KeySpec

def columns(spec: KeySpec) -> tuple[str, ...]:
    return spec.columns

wrong: int = KeySpec((), ()).layout_id
"""


def run(*words: str | Path, cwd: Path = ROOT, seconds: int = 600) -> subprocess.CompletedProcess[str]:
    """A program outside of this checkout and of its environment."""
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=clean, capture_output=True, text=True, timeout=seconds, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    names = set(zipfile.ZipFile(built / f"{STEM}-py3-none-any.whl").namelist())
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "zorder_pipeline").rglob("*.py")}
    assert ours <= names
    assert {"zorder_pipeline/py.typed", "zorder_pipeline/log4j2.properties"} <= names
    assert {f"zorder_pipeline/dagster_home/{name}.yaml" for name in ("dagster", "tables")} <= names
    assert {name.split("/")[0] for name in names} == {"zorder_pipeline", f"{STEM}.dist-info"}


def test_the_sdist_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"{STEM}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=tmp_path / STEM)
    assert done.returncode == 0, done.stderr
    first, second = (zipfile.ZipFile(folder / f"{STEM}-py3-none-any.whl") for folder in (built, tmp_path))
    assert {n: first.read(n) for n in first.namelist()} == {n: second.read(n) for n in second.namelist()}


def test_the_sdist_holds_what_its_tests_read(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"{STEM}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / STEM
    assert not [name for name in (".ci/run", "requirements.lock", "Makefile") if not (root / name).is_file()]
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_documents.py", cwd=root)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_the_wheel_runs_the_demo_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    """Dependencies as locked; fetched from the registry where pip's cache has none."""
    locked = re.sub(r"\s*\\\n\s*--hash=\S+", "", (ROOT / "requirements.lock").read_text())
    (tmp_path / "constraints.txt").write_text(re.sub(r"\[[^\]]*\](?===)", "", locked))  # pip's take no extras
    python, bin_folder = tmp_path / "env/bin/python", tmp_path / "env/bin"
    assert run(sys.executable, "-m", "venv", tmp_path / "env").returncode == 0
    wheel = built / f"{STEM}-py3-none-any.whl"
    done = run(python, "-m", "pip", "install", "-q", "-c", tmp_path / "constraints.txt", wheel, seconds=900)
    assert done.returncode == 0, done.stderr

    assert run(bin_folder / "zorder", "--version", cwd=tmp_path).stdout.strip().endswith(zorder_pipeline.__version__)
    words = ("demo", "--scale", "0.01", "--queries", "60", "--workdir", tmp_path / "demo", "--json")
    demo = run(bin_folder / "zorder", *words, cwd=tmp_path, seconds=900)
    assert demo.returncode == 0, demo.stderr
    read = json_printed("demo", demo.stdout)["contenders"]
    assert read["ours"]["rows_read_mean"] < 0.9 * read["stored"]["rows_read_mean"]

    (tmp_path / "consumer.py").write_text(CONSUMER)
    typed = run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "consumer.py", cwd=tmp_path)
    assert re.findall(r"error: (.+?)  \[", typed.stdout) == [
        'Incompatible types in assignment (expression has type "str", variable has type "int")'
    ], typed.stdout
