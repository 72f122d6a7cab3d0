"""A run's directory and its three tables: what they hold, how they are written and read."""
