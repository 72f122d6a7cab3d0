"""How the rules of ``flmarket verify`` name the place of a problem."""

from scenarios.judging.evidence import Row


def place(row: Row) -> str:
    """Return the round and the service of a row."""
    return f"round {row['round']}: {row['service']}"


def at_client(row: Row) -> str:
    """Return the round, the service and the client of a row."""
    return f"{place(row)}: client {row['client']}"
