"""What `make setup` makes beside Python's packages, by a Java of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from zorder_pipeline import installing

START = """
import sys
from pathlib import Path
from zorder_pipeline import spark
spark.class_archive = lambda home: Path(sys.argv[1])
options = "-Xlog:class+load:file=" + sys.argv[2]
print(spark.session({"spark.master": "local[1]", "spark.driver.extraJavaOptions": options}).range(3).count())
"""


@pytest.mark.slow
def test_java_reads_spark_s_classes_from_the_archive_or_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the folder's name has a blank, and where the archive is none that it can use."""
    archive = tmp_path / "an environment" / "classes.jsa"
    monkeypatch.setattr(installing, "class_archive", lambda _: archive)
    assert installing.archive_classes() == archive
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]

    def classes(archive: Path) -> set[str]:
        loaded = tmp_path / "loaded.txt"
        done = subprocess.run(
            [sys.executable, "-c", START, str(archive), str(loaded)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "3\n"
        return set(re.findall(r"(org\.apache\.spark\.\S+) source: shared objects file \(top\)", loaded.read_text()))

    assert len(classes(archive)) > 2_000
    other = tmp_path / "other.jsa"
    other.write_bytes(b"no archive")
    assert not classes(other)
