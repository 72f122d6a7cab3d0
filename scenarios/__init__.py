"""Scenarios: what to run (the scenario file), how it is run, and what comes out (run directories, tables)."""
