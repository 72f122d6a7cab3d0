"""Runs as the screens look at them: where they come from and what they show. Hardly any Textual."""
