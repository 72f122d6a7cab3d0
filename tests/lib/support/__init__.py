"""What tests of several packages use; fixtures are in the conftest files."""
