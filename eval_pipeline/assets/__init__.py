"""The Dagster assets: thin wiring over execution, teams, suites and the database. No rule of evaluation lives here."""
