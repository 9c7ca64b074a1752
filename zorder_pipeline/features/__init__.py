"""Which columns and predicates the workload filters by, and which of them follow each other (seed 004, chapter 4)."""
