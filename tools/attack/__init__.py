"""The campaign of attacks behind ``make attack``: what is tried, and what must hold whatever is tried.

Not part of the tests that run on every change: a campaign takes an hour. docs/reliability.md has its last figures.
"""
