"""A run's directory and its tables: what they hold, how they are written and read."""
