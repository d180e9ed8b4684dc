"""Which runs touched what no run should see: an answer key, another task's file, a public copy of the benchmark."""
