"""Two conditions over the same tasks: reading them, comparing them, and saying no more than the figures allow."""
