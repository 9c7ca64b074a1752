"""Finding out which of many features fail on some row of a table, where Spark only says that one of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from zorder_pipeline.model.file_stats import Feature

__all__ = ["failures", "halved"]


def failures() -> tuple[type[Exception], ...]:
    """What statistics of features end in where one of them fails on a row."""
    from py4j.protocol import Py4JJavaError

    return (*_told(), Py4JJavaError)


def _told() -> tuple[type[Exception], ...]:
    """Those that do so again whenever the same rows are read; of any other exception of Java's nobody knows."""
    from pyspark.errors import PySparkException

    return (PySparkException, pa.ArrowException, UnicodeError)  # a text may be none in UTF-8


def halved(
    features: Sequence[Feature], gathered: Callable[[Sequence[Feature]], pa.Table]
) -> Iterator[pa.Table | Feature]:
    """Statistics of those features that do not fail, and those that do; neither where it may be for another reason.

    Args:
        features: of which ``gathered`` has failed together.
        gathered: their statistics.

    >>> def gathered(some):
    ...     if any(each.name == "bad" for each in some):
    ...         raise UnicodeError
    ...     return pa.table({"feature": [each.name for each in some]})
    >>> features = [Feature(name, "column", "int", name, (name,)) for name in ("a", "b", "bad", "c")]
    >>> [each.name if isinstance(each, Feature) else each["feature"].to_pylist() for each in halved(features, gathered)]
    [['a', 'b'], 'bad', ['c']]
    """
    half = len(features) // 2
    for some in filter(None, (features[:half], features[half:])):
        try:
            yield gathered(some)
        except failures() as error:
            if len(some) > 1:
                yield from halved(some, gathered)
            elif isinstance(error, _told()):
                yield some[0]
