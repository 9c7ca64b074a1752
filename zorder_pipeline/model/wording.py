"""Numbers in sentences, said alike by the command line, errors, progress lines and assets."""


def counted(count: int, thing: str) -> str:
    """A count and what is counted, in the plural unless it is one.

    >>> counted(1, "file"), counted(12_000, "file"), counted(0, "query")
    ('1 file', '12,000 files', '0 queries')
    """
    many = thing[:-1] + "ies" if thing.endswith("ry") else thing + "s"
    return f"{count:,} {thing if count == 1 else many}"
