"""A run's directory and its three tables, written and read back."""
