"""From a cell to a committed result: contract, plan, one run, many runs. Knows nothing of Dagster."""
