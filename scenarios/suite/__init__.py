"""The frozen benchmark of markets, ``flmarket suite``; see docs/suite.md."""
