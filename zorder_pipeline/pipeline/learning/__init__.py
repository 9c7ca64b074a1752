"""From a table and its queries to a plan: analysis, candidates, search, and the promise."""
