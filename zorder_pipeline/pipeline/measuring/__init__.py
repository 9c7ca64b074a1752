"""What a table's queries read, and what became of promises."""
