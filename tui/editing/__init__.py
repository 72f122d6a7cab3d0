"""A scenario file being edited."""
