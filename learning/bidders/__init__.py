"""Bidders of display advertising, which value one client after another."""
