"""One module per group of commands, a few lines each over the launcher and the database; options are in ``cli.py``."""
