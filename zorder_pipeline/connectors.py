"""The packages by which Spark reaches object stores: which one a place needs, and the sentence where it is missing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .java import reason_of

__all__ = ["connector_of", "no_connector"]

MISSING = re.compile(r"Class \S+\.(?P<name>\w+) not found|No FileSystem for scheme \"?(?P<scheme>\w+)")
"""How Hadoop says that a file system's jar is missing."""
SCHEMES = {
    "S3AFileSystem": "s3a",
    "AzureBlobFileSystem": "abfs",
    "SecureAzureBlobFileSystem": "abfss",
    "GoogleHadoopFileSystem": "gs",
}
ARTIFACTS = {"s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure", "gs": "hadoop-gcp"}
"""Hadoop's own connectors, each released with Hadoop and of its version; Google's since Hadoop 3.5."""
FIRST_WITH_GOOGLE = (3, 5)


def connector_of(place: str) -> str | None:
    """Maven coordinates of what Spark needs for a place, of the installed Spark's Hadoop; None of any other place.

    >>> (
    ...     str(connector_of("s3a://lake/orders")).rpartition(":")[0],
    ...     connector_of("/lake/orders"),
    ...     connector_of("oss://a/b"),
    ... )
    ('org.apache.hadoop:hadoop-aws', None, None)
    """
    scheme, separator, _ = place.partition("://")
    artifact, release = ARTIFACTS.get(scheme.lower()), _hadoop()
    if not separator or artifact is None or release is None:
        return None
    if artifact == "hadoop-gcp" and tuple(map(int, release.split(".")[:2])) < FIRST_WITH_GOOGLE:
        return None
    return f"org.apache.hadoop:{artifact}:{release}"


def no_connector(error: BaseException) -> str | None:
    """The way out where Spark has no connector for an object store; None of any other failure.

    >>> print(no_connector(ValueError("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")))
    Spark has no connector for s3a:// here; name org.apache.hadoop:hadoop-aws:... in spark.jars.packages (docs/...)
    >>> no_connector(ValueError('No FileSystem for scheme "oss"'))
    'Spark has no connector for oss:// here; name its package in spark.jars.packages (docs/cluster.md)'
    """
    found = MISSING.search(reason_of(error))
    scheme = found and (found["scheme"] or SCHEMES.get(found["name"]))
    if not scheme:
        return None
    package = connector_of(f"{scheme}://") or "its package"
    return f"Spark has no connector for {scheme}:// here; name {package} in spark.jars.packages (docs/cluster.md)"


@cache
def _hadoop() -> str | None:
    """The version of Hadoop that the installed PySpark comes with; None where Spark comes without it."""
    import pyspark

    for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.removeprefix("hadoop-client-api-")
    return None
