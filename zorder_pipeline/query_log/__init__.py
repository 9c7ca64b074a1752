"""Stage 1: from logged statements to predicates per table. Logs are untrusted: nothing in them is ever executed."""
