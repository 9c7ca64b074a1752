"""Folders and files by name: a path on this machine, or a URI."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

__all__ = [
    "ROOT",
    "filesystem_of",
    "is_same_place",
    "is_uri",
    "known_as",
    "lies_in",
    "local_path",
    "named_below",
    "real_path",
    "uri_of",
]
__all__ += [
    "said_of",
    "shown_place",
    "store_named",
    "without_password",
    "without_query",
    "without_root",
]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
ROOT = rf"^{_SCHEME.pattern}(//[^/]*)?"
"""Scheme and host of a URI, as Java's patterns have it, too."""
HADOOP_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names of object stores that pyarrow calls otherwise."""
SAME_STORE = {**HADOOP_SCHEMES, "abfss": "abfs", "wasbs": "wasb"}
_LOCAL = re.compile(r"file:(?:/|/{3,})(?!/)", re.IGNORECASE)
"""What stands before a path of this machine: no host."""
_PASSWORD = re.compile(r"((?:s3[an]?)://)([^/@:]*):[^@]*@|(\w+://)([^/@:]*):(?:[^/]*|(?!\d+/)[^@]*)@", re.IGNORECASE)
"""Scheme, user and password before a host; also a password with a slash, which should have been written as ``%2F``: but
for S3, which has no port, digits and a slash are a port."""


def is_uri(place: str) -> bool:
    """Whether a place is named by a URI, ``file:`` ones included; anything else is a path on this machine.

    >>> is_uri("s3a://bucket/t"), is_uri("dbfs:/t"), is_uri("/data/t"), is_uri("data/a:b")
    (True, True, False, False)
    """
    return _SCHEME.match(place) is not None


def local_path(place: str) -> str | None:
    """The path of a place on this machine; None of one elsewhere, of which nothing is known without Spark.

    As Hadoop has it, ``%20`` in a URI is no blank but these three letters.

    >>> local_path("file:///data/t"), local_path("file:/data/t"), local_path("t"), local_path("s3a://bucket/t")
    ('/data/t', '/data/t', 't', None)
    >>> local_path("FILE:///t"), local_path("file://host/t"), local_path("file:/my%20t")
    ('/t', None, '/my%20t')
    """
    path = _LOCAL.sub("/", place, count=1) if _LOCAL.match(place) else place
    return None if is_uri(path) else path


def is_same_place(one: str, other: str) -> bool:
    """Whether two names are those of one folder: through links, and by any of the names that Hadoop has for a store.

    >>> is_same_place("s3a://lake/t", "s3://lake/t/"), is_same_place("file:/t", "/t"), is_same_place("/t", "/u/t")
    (True, True, False)
    """
    return known_as(one) == known_as(other)


def known_as(place: str) -> str:
    """One name for all those of a folder, see `is_same_place`; no URI to open it by."""
    path = local_path(place)
    return store_named(without_query(place)) if path is None else os.path.realpath(path)


def lies_in(place: str, table: str) -> bool:
    """Whether a place is the folder of a table, or one below, hidden or not: Delta takes all of it for that table.

    >>> lies_in("/t/state", "/t"), lies_in("/t/_zorder/state", "/t"), lies_in("/t2", "/t")
    (True, True, False)
    >>> lies_in("s3a://lake/t/state", "s3://lake/t/")
    True
    """
    inner, outer = known_as(place).rstrip("/"), known_as(table).rstrip("/")
    return inner == outer or inner.startswith(f"{outer}/")


def store_named(uri: str) -> str:
    """A URI by the one of its store's names that stands for all; a ``?`` in it is one of a file's name.

    >>> store_named("S3A://lake/what?1.sql"), store_named("abfss://c@a/t/")
    ('s3://lake/what?1.sql', 'abfs://c@a/t')
    """
    scheme, rest = uri.split(":", 1)
    return f"{SAME_STORE.get(scheme.lower(), scheme.lower())}:{rest.rstrip('/')}"


def without_query(place: str) -> str:
    """A URI without the options behind its path, as object stores are given them; anything else as it is.

    >>> without_query("s3a://lake/t?region=eu-west-1"), without_query("/data/what?"), without_query("file:/what?")
    ('s3a://lake/t', '/data/what?', 'file:/what?')
    """
    return place.partition("?")[0] if local_path(place) is None else place


def without_password(place: str) -> str:
    """A URI without the password before its host, with the user, which in Azure is the container.

    >>> without_password("s3://user:se/cret@lake/t"), without_password("abfss://c:key@account/t")
    ('s3://user@lake/t', 'abfss://c@account/t')
    >>> without_password("s3a://AKIA:7/a?b@lake/t"), without_password("s3://AKIA:/ab@lake/t")
    ('s3a://AKIA@lake/t', 's3://AKIA@lake/t')
    >>> without_password("hdfs://host:8020/t@u"), without_password("abfss://:key@account/t"), without_password("/a:b@c")
    ('hdfs://host:8020/t@u', 'abfss://account/t', '/a:b@c')
    """
    found = _PASSWORD.match(place)
    if found is None:
        return place
    scheme, user = found[1] or found[3], found[2] or found[4]
    return f"{scheme}{user}@{place[found.end() :]}" if user else f"{scheme}{place[found.end() :]}"


def shown_place(place: str) -> str:
    """A place as it may be told and stored: without its password, and without options, which may be secrets, too.

    >>> shown_place("s3://user:secret@lake/t?session=x"), shown_place("/data/what?")
    ('s3://user@lake/t', '/data/what?')
    """
    return without_query(without_password(place))


def said_of(place: str, error: Exception) -> str:
    """The first line of an error that may repeat a place, which is shown in it as `shown_place` does.

    >>> said_of("s3://user:secret@lake/t?session=x", OSError("Cannot parse 's3://user:secret@lake/t?session=x'"))
    "Cannot parse 's3://user@lake/t'"
    """
    said, shown = (str(error).splitlines() or [type(error).__name__])[0], shown_place(place)
    if shown == place:
        return said
    return said.replace(place, shown).replace(without_query(place).rstrip("/"), shown.rstrip("/"))


def named_below(place: str, path: str, inside: str) -> str:
    """What a file or folder that lies in a place is called from outside.

    Args:
        place: path or URI.
        path: of the place in its filesystem (`filesystem_of`), which need not be the end of the URI.
        inside: path of what lies in it, or elsewhere in the filesystem.

    >>> named_below("s3a://lake/t", "lake/t", "lake/t/a.sql"), named_below("/t/", "/t", "/t/a.sql")
    ('s3a://lake/t/a.sql', '/t/a.sql')
    >>> named_below("abfss://c@account.dfs.core.windows.net/t", "c/t", "c/t/a.sql")
    'abfss://c@account.dfs.core.windows.net/t/a.sql'
    """
    if "://" not in place:
        return inside
    called, path = shown_place(place).rstrip("/"), path.rstrip("/")
    if inside == path or inside.startswith(f"{path}/"):
        return called + inside[len(path) :]
    return called.removesuffix(path) + inside


def uri_of(place: str) -> str:
    """The URI of a place, with the empty host of one on this machine.

    >>> uri_of("/data/t"), uri_of("file:/data/t"), uri_of("s3a://bucket/t")
    ('file:///data/t', 'file:///data/t', 's3a://bucket/t')
    """
    path = local_path(place)
    return place if path is None else f"file://{path}"


def without_root(place: str) -> str:
    """The path of a place, without scheme and host.

    >>> without_root("s3a://bucket/t"), without_root("file:/data/t"), without_root("/data/t")
    ('/t', '/data/t', '/data/t')
    """
    return re.sub(ROOT, "", place)


def real_path(path: str, location: str) -> str:
    """A file's path as the file system has it, without scheme and host, from an AddFile's URI or a scan's.

    Args:
        path: URL-encoded, relative to ``location`` or a URI.
        location: the table's folder, which Hadoop writes as it is.

    >>> real_path("p=a%20b/c.parquet", "file:/tables/t"), real_path("file:///tables/t/p=a%20b/c.parquet", "")
    ('/tables/t/p=a b/c.parquet', '/tables/t/p=a b/c.parquet')
    """
    if is_uri(path):
        return unquote(without_root(path))
    return f"{without_root(location).rstrip('/')}/{unquote(path)}"


def filesystem_of(place: str) -> tuple[fs.FileSystem, str]:
    """pyarrow's filesystem of a place, and its path there.

    Raises:
        OSError: pyarrow knows no such filesystem, or cannot reach it.

    >>> filesystem_of("file:/data/t")[1], filesystem_of("/data/t")[0].type_name
    ('/data/t', 'local')
    """
    if (local := local_path(place)) is not None:
        return fs.LocalFileSystem(), local
    scheme, colon, rest = place.partition(":")
    uri = f"{HADOOP_SCHEMES.get(scheme, scheme)}{colon}{rest}"
    try:
        found, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError) as error:  # whose words may repeat the URI
        raise OSError(said_of(uri, error)) from None
    return found, path
