"""The reference parts of docs/logs.md and docs/statistics.md, made from the declared columns, rules and measures.

``python -m flmarket.analysis.logs_reference docs/logs.md`` renews it in the page; a test compares the two.
"""

import sys
from collections.abc import Sequence
from functools import partial
from textwrap import fill

from flmarket.analysis.results.measures import LITERATURE, MEASURES
from flmarket.analysis.results.replayed import REPLAYED
from flmarket.analysis.verification.verify import RULES
from flmarket.core.crash import guarded
from scenarios.file.reference import renew_named
from scenarios.logs.columns import ALL_TABLES, AMOUNTS, EVENTS, FREE, RERUN
from scenarios.logs.table import TYPES, Column

_RERUN = (
    f"`{RERUN}`",
    "Cannot be derived from the logs; `flmarket verify --rerun` plays the run again and compares the bytes.",
)


def reference() -> str:
    """Return the columns, types and rules as Markdown."""
    parts = []
    amounts = [(f"`{kind}`", each.type.name, each.unit, each.meaning, _rule(each)) for kind, each in AMOUNTS.items()]
    for table in ALL_TABLES.values():
        parts += [f"### {table.name}.csv", f"{_sentence(table.row)}.", _columns(table.columns)]
        if table is EVENTS:
            parts += [
                "#### Amounts of events",
                "The `amount` of each event; other events have none.",
                _table(("event", "type", "unit", "amount", "checked by"), amounts),
            ]
    parts += [
        "### Types",
        _table(("type", "in the file", "in data frames and Parquet"), [(t.name, t.form, t.dtype) for t in TYPES]),
        "In data frames, an integer column that may be empty is float64, because NumPy's integers cannot be missing;\n"
        "what is empty is NaN. In Parquet it stays int64, and what is empty is null.",
        "### Rules",
        "The checks of `flmarket verify`, by the name in the last column above.",
        "\n".join(
            fill(f"- **{name}**: {meaning}", 120, subsequent_indent="  ", break_on_hyphens=False)
            for name, meaning in [*((name, _first_line(rule.__doc__)) for name, rule in RULES.items()), _RERUN]
        ),
    ]
    parts += [
        f"### What only `{RERUN}` finds",
        "Changed consistently in all places at once, the following keeps all rules. Playing the run again finds it.",
        "\n".join(
            fill(f"- {what}: {why}.", 120, subsequent_indent="  ", break_on_hyphens=False) for what, why in FREE.items()
        ),
    ]
    return "\n\n".join(parts) + "\n"


def measures() -> str:
    better = {1: "more", -1: "less", 0: ""}
    tables = (
        _table(("measure", "is", "better"), [(it.name, it.meaning, better[it.better]) for it in those])
        for those in (MEASURES, LITERATURE, REPLAYED)
    )
    return "\n\n".join(tables)


def _columns(columns: Sequence[Column]) -> str:
    rows = [
        (f"`{column.name}`", column.type.name, column.unit, column.meaning, column.empty, _rule(column))
        for column in columns
    ]
    return _table(("column", "type", "unit", "meaning", "empty where", "checked by"), rows)


def _rule(column: Column) -> str:
    return f"`{RERUN}` alone" if column.rule == RERUN else column.rule


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(guarded(partial(renew_named, measures if sys.argv[-1].endswith("statistics.md") else reference)))
