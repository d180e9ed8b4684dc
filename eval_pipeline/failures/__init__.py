"""Why runs fail: rules over a stored trace, keyed by the mode names of MAST (arXiv 2503.13657)."""
