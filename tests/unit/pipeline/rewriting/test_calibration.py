"""The folder of a calibration's copies, as it is left to another one that runs at the same time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from zorder_pipeline.pipeline.rewriting import calibration

ROOT = "/state/calibration-copies"


class Disk:
    """Hadoop's view of a disk on which another run makes its folder once this one has seen that there is none."""

    def __init__(self, late: bool) -> None:
        self.places, self.late = {ROOT}, late

    def makeQualified(self, path: str) -> str:  # noqa: N802
        return path

    def exists(self, path: str) -> bool:
        return str(path) in self.places

    def listStatus(self, path: str) -> list[str]:  # noqa: N802
        found = [place for place in self.places if place.startswith(f"{path}/")]
        if self.late and not found:
            self.places.add(f"{ROOT}/other")
        return found

    def delete(self, path: str, recursive: bool) -> None:
        below = {place for place in self.places if place.startswith(f"{path}/")}
        if below and not recursive:
            raise Py4JError("Directory is not empty")
        self.places -= {str(path), *below}


class Path(str):
    """Hadoop's path, of the disk under test."""

    disk: Disk

    def __new__(cls, root: str, *child: str) -> Path:
        return super().__new__(cls, "/".join((root, *child)))

    def getFileSystem(self, _: object) -> Disk:  # noqa: N802
        return self.disk

    def toString(self) -> str:  # noqa: N802
        return str(self)


@pytest.mark.parametrize(("late", "left"), [(True, {ROOT, f"{ROOT}/other"}), (False, set())])
def test_what_another_calibration_makes_meanwhile_stays(
    late: bool, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path.disk = Disk(late=False)
    monkeypatch.setattr(calibration, "java_class", lambda *_: Path)
    session = SimpleNamespace(sessionState=lambda: SimpleNamespace(newHadoopConf=lambda: None))
    spark: Any = SimpleNamespace(_jsparkSession=session)
    with calibration._scratch(spark, "/state/") as folder:
        Path.disk.places.add(folder)
        Path.disk.late = late
    assert Path.disk.places == left
