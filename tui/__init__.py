"""The Textual screens, for a terminal or a browser. The command line that opens them is in ``flmarket.cli``."""
