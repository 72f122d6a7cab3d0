"""Runs as the screens see them: where they come from and what they show. Hardly any Textual."""
