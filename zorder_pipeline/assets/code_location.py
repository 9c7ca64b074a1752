"""The configured definitions as a module, for tools that look for them without naming an attribute (``dg``)."""

from .definitions import load_definitions

__all__ = ["defs"]

defs = load_definitions()
