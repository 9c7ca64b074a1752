"""What a statement asks of each table: dialects, scopes, joins, views and constants, down to a predicate."""
