"""Fits that come with flmarket, package data that ``fl.surrogate.fitted`` reads: ``dqi.json``, ``surrogate.json``."""
