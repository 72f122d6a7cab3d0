"""Helpers of tests of several packages; fixtures are in the conftest files."""
