"""The reference part of docs/scenario.md, made from the schema.

``python -m scenarios.file.reference docs/scenario.md`` renews it in the page; a test compares the two.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import fill

from flmarket.core.crash import guarded
from flmarket.core.errors import InputError
from scenarios.file.keys import Key, keys
from scenarios.file.problems import Path as KeyPath
from scenarios.file.regimes import KEYS
from scenarios.file.toml import value_text

BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"

SECTIONS: dict[str, KeyPath] = {
    "At the top": (),
    "`[clients]`": ("clients",),
    "`[[clients.groups]]`": ("clients", "groups", 0),
    "`[data]`": ("data",),
    "`[market]`": ("market",),
    "`[training]`": ("training",),
    "`[timeline]`": ("timeline",),
    "`[[services]]`": ("services", 0),
    "`[[streams]]`": ("streams", 0),
    "`[[interventions]]`": ("interventions", 0),
}

_BY_DATASET = (
    f"A table `[training.by_dataset.NAME]` may have the keys {', '.join(f'`{key}`' for key in KEYS)}; those that it "
    "leaves out are as in `[training]`. What `[training]` leaves out, too, is *as fitted*: as in the regime that the "
    "data set's curve and DQI were measured in, if they come with flmarket."
)


def reference() -> str:
    """Return the keys of each section as Markdown."""
    return "\n\n".join(part for title, table in SECTIONS.items() for part in _section(title, table)) + "\n"


def renewed(page: str, made: str) -> str:
    """Return a page with another reference part."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{made}\n{END}{tail}"


def renew_named(make: Callable[[], str]) -> None:
    """Replace the reference part of the page that the command line names."""
    if len(sys.argv) != 2:
        raise InputError("name one page to renew, such as docs/scenario.md or docs/logs.md")
    page = Path(sys.argv[1])
    page.write_text(renewed(page.read_text(encoding="utf-8"), make()), encoding="utf-8")


def _section(title: str, table: KeyPath) -> Iterator[str]:
    yield f"### {title}"
    rows = ["| key | type | unit | default | range | meaning |", "| --- | --- | --- | --- | --- | --- |"]
    # At the top, what has a section of its own is left out.
    found = [key for key in keys(table) if table or (key.path[0],) not in SECTIONS.values()]
    yield "\n".join(rows + ["| " + " | ".join(_row(key)) + " |" for key in found])
    if table == ("training",):
        yield fill(_BY_DATASET, 120, break_on_hyphens=False)


def _row(key: Key) -> tuple[str, ...]:
    return f"`{key.label}`", key.type, key.unit, _default(key), key.range, key.description


def _default(key: Key) -> str:
    if key.required:
        return "required"
    if "absent" in key.schema:
        return str(key.schema["absent"])
    value = key.schema["default"]
    return "absent" if value is None else f"`{value_text(value)}`"


if __name__ == "__main__":
    sys.exit(guarded(partial(renew_named, reference)))
