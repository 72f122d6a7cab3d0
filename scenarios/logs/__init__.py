"""A run's directory and its tables (four, with clients.csv): what they hold, how they are written and read."""
