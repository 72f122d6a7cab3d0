"""The list of the home screen: entries in sections, under titles that cannot be chosen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from textual.binding import Binding
from textual.content import Content
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.widgets.columns import Column, fit, laid_out, wrapped
from tui.widgets.selection import barred

SECTIONS = {
    "open": "Open now",
    "built-in": "Built-in scenarios",
    "file": "Your scenarios",
    "training": "Trainings",
    "run": "Recent runs",
}
"""The titles of the home screen's sections, by the kinds of their entries, in order."""

LEAST = 24
"""Cells for a run's name, if it has as many, before other columns are left out."""
COLUMNS = (
    Column("name", "", least=LEAST),
    Column("policy", ""),
    Column("seed", ""),
    Column("sign", ""),
    Column("state", "", leaves=3),
    Column("age", "", leaves=2),
    Column("result", "", leaves=1),
)
ROOMY = 70
"""Cells of a line from which on the columns of runs are further apart."""
INDENT = "    "
"""Stands before what does not fit into the columns."""

Entry = TypeVar("Entry")


class Row(NamedTuple):
    """What is said of an entry: ``SCENARIO · POLICY · SEED`` of a run, ``✔ complete`` of its state."""

    name: str
    state: str = ""
    age: str = ""
    result: str = ""
    marked: bool = False

    @property
    def cells(self) -> dict[str, str]:
        """What stands in each column; a run has a policy."""
        name, policy, seed = [*self.name.split(" · ", 2), "", ""][:3]
        sign, _, state = self.state.partition(" ")
        name = ("✓ " if self.marked else "  ") + name
        return {**self._asdict(), "name": name, "policy": policy, "seed": seed, "sign": sign, "state": state}

    def lines(self, widths: Mapping[str, int], room: int) -> Iterator[str]:
        """Yield its line, then what tells runs apart and does not fit into the columns of that."""
        cells = self.cells
        if not cells["policy"]:
            yield "  ".join(filter(None, (cells["name"], self.state, self.age)))
            return
        below = []
        for key in ("name", "policy", "seed"):
            whole, width = cells[key], widths[key]
            head = whole.partition(" (")[0]  # a scenario's name, without what it has that others of the name have not
            if len(whole) > width:
                cells[key] = head
                below.append((whole[len(head) :] if len(head) <= width else whole).strip())
        yield " ".join(fit(cells[key], width) for key, width in widths.items()).rstrip()
        if below:
            yield from (INDENT + line for line in wrapped("  ".join(below), max(1, room - len(INDENT))))


Section = tuple[str, Sequence[tuple[str, Row, Entry]]]
"""A title, and of each entry its key, what is said of it and what it stands for."""


class EntryList(OptionList, Generic[Entry]):
    """Entries by key."""

    BINDINGS = [
        Binding("enter", "select", "Run/open", key_display="enter", tooltip="Run the scenario, or open the run")
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._shown: dict[str, Entry] = {}
        self._sections: Sequence[Section[Entry]] = ()
        self.filled = False

    @property
    def chosen(self) -> Entry | None:
        """What is highlighted."""
        option = self.highlighted_option
        return self._shown.get(option.id or "") if option else None

    @property
    def shown(self) -> Mapping[str, Entry]:
        """What is listed."""
        return self._shown

    def fill(self, sections: Sequence[Section[Entry]], first: str) -> None:
        """List sections; what is highlighted stays so, or else it is the first entry of another section than ``first``.

        Args:
            sections: those without entries are left out.
            first: the title of a section that comes first and whose entries the user has to go to.
        """
        kept = self.chosen
        self.filled, self._sections = True, sections
        self._shown = {key: entry for _, entries in sections for key, _, entry in entries}
        start = next((key for title, entries in sections if title != first for key, _, _ in entries), None)
        self._list()
        old = next((key for key, entry in self._shown.items() if entry == kept), None)
        if old is not None or start is not None:
            self.highlighted = self.get_option_index(old or start or "")

    def render_line(self, y: int) -> Strip:
        """Draw a line; its first cell is blank."""
        return barred(self, y, super().render_line(y))

    def on_resize(self) -> None:
        """Lay out the columns anew."""
        if self.filled:
            at = self.highlighted
            self._list()
            self.highlighted = at

    def _list(self) -> None:
        cells = [row.cells for _, entries in self._sections for _, row, _ in entries]
        room = self.scrollable_content_region.width - 2  # without the cells beside a line
        runs = [found for found in cells if found["policy"]]
        apart = int(room >= ROOMY)
        widest = {column.key: max((len(found[column.key]) for found in runs), default=0) for column in COLUMNS}
        wanted = {key: width + (apart if key != "sign" else 0) for key, width in widest.items()}
        heads = max((len(found["name"].partition(" (")[0]) for found in runs), default=0)
        name = replace(COLUMNS[0], least=min(LEAST, heads + apart))
        widths = laid_out((name, *COLUMNS[1:]), wanted, room, 1)
        self.clear_options()
        for title, entries in self._sections:
            if entries:
                self.add_option(Option(f"[b]{title}[/b]", disabled=True))
            self.add_options(Option(Content("\n".join(row.lines(widths, room))), id=key) for key, row, _ in entries)
        if not self._shown:
            self.add_option(Option("nothing matches", disabled=True))


def matches(title: str, words: Sequence[str]) -> bool:
    """Whether an entry has all words that are searched for, which are in lower case."""
    return all(word in title.lower() for word in words)
