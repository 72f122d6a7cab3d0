"""The names of the models that services can train. Light: checking a scenario needs the names, not torch."""

from importlib.metadata import entry_points

GROUP = "flmarket.models"
BUILTIN_NAMES = ("cnn", "mlp")


def names() -> list[str]:
    """Return the names of all models: the built-in ones, then those that installed packages register."""
    return [*BUILTIN_NAMES, *sorted({entry.name for entry in entry_points(group=GROUP)} - set(BUILTIN_NAMES))]
