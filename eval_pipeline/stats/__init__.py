"""Statistics of evaluations: pure functions over numbers. No database, no Dagster, no wording for people."""
