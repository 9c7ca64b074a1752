"""Where values wait between two assets: files, and one sentence where there is none that can be read."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from dagster import (
    ConfigurableIOManager,
    Failure,
    FilesystemIOManager,
    InitResourceContext,
    InputContext,
    IOManager,
    OutputContext,
)
from pydantic import PrivateAttr

from .budget import BUDGET
from .common import QUERY_LOG

__all__ = ["StoredValues"]


class StoredValues(ConfigurableIOManager):
    """Dagster's own files, by asset.

    Those of a remote state lie where Dagster keeps such things, in a folder of that state's: two configurations that
    share a DAGSTER_HOME both have an asset `query_log`, and would read each other's.

    A state that was lost or moved, or written by another version, has no value that can be read: then the asset has to
    be made again, and that is what the failure says.
    """

    base_dir: str | None = None
    state: str = ""
    _files: IOManager = PrivateAttr()

    def setup_for_execution(self, context: InitResourceContext) -> None:
        """Open the folder; Dagster calls this."""
        place = self.base_dir
        if place is None and context.instance is not None:
            digest = hashlib.blake2b(self.state.encode(), digest_size=8).hexdigest()
            place = os.path.join(context.instance.storage_directory(), "zorder", digest)
        self._files = FilesystemIOManager(base_dir=place).create_io_manager(context)

    def handle_output(self, context: OutputContext, obj: object) -> None:
        """Keep the value of an asset."""
        self._files.handle_output(context, obj)

    def load_input(self, context: InputContext) -> object:
        """The value of an asset.

        Raises:
            Failure: there is none, or none that can be read.
        """
        try:
            value = self._files.load_input(context)
            if lacking := _lacking(value):
                raise AttributeError(f"another version wrote it, without {lacking}")
            return value
        except Exception as error:  # unpickling may raise anything
            table, asset = context.asset_key.path[0], "/".join(context.asset_key.path)
            gone = isinstance(error, OSError)
            cause = "is not there" if gone else f"cannot be read ({type(error).__name__})"
            alone = "" if context.asset_key in (QUERY_LOG, BUDGET) else f" --table {table}"
            step = f"materialize {asset} again, in the UI or with zorder run{alone}"
            raise Failure(
                f"{table}: what {asset} made last {cause} in {self.base_dir or 'the storage of Dagster'}: {step}",
                metadata={"table": table, "cause": str(error), "next step": step},
                allow_retries=False,
            ) from error


def _lacking(value: object) -> str:
    """A field that a stored value has not, as its class had none when it was written, "" without; of many one is asked.

    Unpickling sets the attributes that were stored, and misses none.
    """
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if not hasattr(value, field.name):
                return f"{type(value).__name__}.{field.name}"
            if lacking := _lacking(getattr(value, field.name)):
                return lacking
        return ""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return _lacking(value[0]) if isinstance(value, tuple | list) and value else ""
