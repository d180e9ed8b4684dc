"""One module per group of commands. Each is a few lines over the launcher and the database; ``cli.py`` has the options."""
