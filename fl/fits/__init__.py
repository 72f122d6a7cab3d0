"""Fits that come with flmarket, as package data: ``dqi.json`` and ``surrogate.json`` (read by ``fl.fitted``)."""
