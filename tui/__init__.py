"""The terminal front ends: the ``flmarket`` command line and the Textual screens."""
