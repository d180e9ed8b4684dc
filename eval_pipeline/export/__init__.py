"""A batch's rows as files for other programs, as they are stored: masked, and nothing computed anew."""
