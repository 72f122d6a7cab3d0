"""A scenario file that is being edited."""
