"""The report of one ``batch@team``: one HTML page with everything in it, and the same in short. No Dagster here."""
