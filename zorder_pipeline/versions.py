"""Which versions of Spark and Delta Lake work together here, and which of them are installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from .errors import UnsupportedTableError, ZorderError

__all__ = ["SUPPORTED", "check_pair", "delta_package", "minor", "supported_text"]

SUPPORTED: Mapping[str, tuple[str, ...]] = MappingProxyType({"4.0": ("4.4",), "4.1": ("4.4",), "4.2": ("4.4",)})
"""Spark's minor version -> the minor versions of Delta that keys, commits and relayouts were tested with;
docs/versions.md says how far."""

SCALA = "2.13"


def minor(full: str) -> str:
    """The first two numbers of a version.

    >>> minor("4.2.1"), minor("4.2.0-SNAPSHOT")
    ('4.2', '4.2')
    """
    return ".".join(full.split("-")[0].split(".")[:2])


def supported_text() -> str:
    """The supported pairs, in words."""
    return ", ".join(f"Spark {spark} with Delta {_either(deltas)}" for spark, deltas in SUPPORTED.items())


def check_pair(spark: str, delta: str) -> None:
    """Refuse versions that nobody tested: a relayout works with Delta's inner parts, which change without notice.

    Raises:
        UnsupportedTableError: the pair is none of `SUPPORTED`.

    >>> check_pair("4.2.0", "4.4.0")
    >>> check_pair("4.2.0", "3.2.0")
    Traceback (most recent call last):
    zorder_pipeline.errors.UnsupportedTableError: this session has Spark 4.2.0 with Delta 3.2.0; supported are ...
    """
    if minor(delta) not in SUPPORTED.get(minor(spark), ()):
        raise UnsupportedTableError(
            f"this session has Spark {spark} with Delta {delta}; supported are {supported_text()}: install such "
            "versions of pyspark and delta-spark, name such a Delta in spark.jars.packages, or choose committer: "
            "public, which needs no inner parts, where a command has it (apply, learn, layout, inspect, rollback)"
        )


def delta_package() -> str:
    """Maven coordinates of the Delta build for the installed Spark.

    Raises:
        ZorderError: PySpark or delta-spark is not installed.
    """
    try:
        spark, delta = version("pyspark"), version("delta-spark")
    except PackageNotFoundError as error:
        raise ZorderError(f"{error.name} is not installed; pip install zorder-pipeline brings it") from error
    return f"io.delta:delta-spark_{minor(spark)}_{SCALA}:{delta}"


def _either(items: tuple[str, ...]) -> str:
    return f"{items[0]} to {items[-1]}" if len(items) > 1 else items[0]
