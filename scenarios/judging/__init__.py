"""Judging runs by their logs: measures, reports, figures, exports, and checks of every constraint."""
