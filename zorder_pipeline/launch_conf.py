"""Which settings Spark's Java is launched with: those on its command line, which every user of the machine can read."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["on_command_line"]

SECRET = re.compile(
    r"secret|password|token|access[._-]?key|account[._-]?key|private[._-]?key|encryption.*key|credential|\bsas\b"
    r"|^spark\.hadoop\.fs\.",
    re.IGNORECASE,
)
"""Names of settings that may be secrets: those that Spark redacts, and all of a store, whatever its connector calls
them. Hadoop's others stay: by ``hadoop.security.authentication``, say, Java logs in before there is a session."""
FETCHED = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles", "spark.jars.ivySettings")
"""Settings that name what Java fetches while it starts."""
ELSEWHERE = re.compile(r"(?!(?:file|local|https?):)[A-Za-z][A-Za-z0-9+.-]+:", re.IGNORECASE)
"""How names of files begin that take the settings of their store to be fetched."""


def on_command_line(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings to launch Java with, without those that may be secrets; the session is given all of them later.

    Args:
        conf: all settings. Where jars or files lie in a store, Java needs its settings to fetch them, and all are kept.

    >>> on_command_line({"spark.master": "local", "spark.hadoop.fs.s3a.secret.key": "x"})
    {'spark.master': 'local'}
    >>> len(on_command_line({"spark.jars": "/a.jar,s3a://lake/b.jar", "spark.hadoop.fs.s3a.secret.key": "x"}))
    2
    """
    fetched = (name.strip() for setting in FETCHED for name in conf.get(setting, "").split(","))
    if any(map(ELSEWHERE.match, fetched)):
        return dict(conf)
    return {name: value for name, value in conf.items() if not SECRET.search(name)}
