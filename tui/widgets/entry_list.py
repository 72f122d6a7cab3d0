"""The list of the home screen: entries in sections, under titles that cannot be chosen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.style.columns import Column, fit, laid_out, wrapped
from tui.style.selection import barred

SECTIONS = {
    "open": "Open now",
    "built-in": "Built-in scenarios",
    "file": "Your scenarios",
    "training": "Trainings",
    "run": "Recent runs",
}
"""The titles of the home screen's sections, by the kinds of their entries, in order."""

LEAST = 24  # cells for a run's name, if it has as many, before other columns are left out
COLUMNS = (
    Column("name", ""),
    Column("policy", ""),
    Column("seed", ""),
    Column("sign", ""),
    Column("state", "", leaves=3),
    Column("age", "", leaves=2),
    Column("result", "", leaves=1),
)
INDENT = "    "  # stands before what does not fit into the columns

Entry = TypeVar("Entry")
Cells = dict[str, str]

Section = tuple[str, Sequence[tuple[str, Cells, Entry]]]
"""A title, and of each entry its key, its cells and what it stands for."""


def cells(label: str, state: str = "", age: str = "", result: str = "", *, marked: bool = False) -> Cells:
    """Return what the columns say of an entry; a run's label is ``SCENARIO · POLICY · SEED``."""
    name, policy, seed = [*label.split(" · ", 2), "", ""][:3]
    sign, _, word = state.partition(" ")
    name = ("✓ " if marked else "  ") + name
    return dict(zip((c.key for c in COLUMNS), (name, policy, seed, sign, word, age, result), strict=True))


def lines(found: Cells, widths: Mapping[str, int], room: int) -> Iterator[str]:
    """Yield an entry's line, then what tells its scenario from others of the name, if that does not fit."""
    name, below = found["name"], ""
    if not found["policy"]:
        widths = {key: cell_len(words) for key, words in found.items() if words}
    elif cell_len(name) > widths["name"]:
        head = name.partition(" (")[0]
        name, below = head, name[len(head) :] if cell_len(head) <= widths["name"] else name
    yield " ".join(fit({**found, "name": name}[key], width) for key, width in widths.items()).rstrip()
    if below:
        yield from (INDENT + line for line in wrapped(below.strip(), room - len(INDENT)))


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
        option = self.highlighted_option
        return self._shown.get(option.id or "") if option else None

    @property
    def shown(self) -> Mapping[str, Entry]:
        return self._shown

    def fill(self, sections: Sequence[Section[Entry]], first: str) -> None:
        """List sections; what is highlighted stays so, or else it is the first entry outside of ``first``."""
        kept = self.chosen
        self.filled, self._sections = True, sections
        self._shown = {key: entry for _, entries in sections for key, _, entry in entries}
        start = next((key for title, entries in sections if title != first for key, _, _ in entries), None)
        self._list()
        old = next((key for key, entry in self._shown.items() if entry == kept), None)
        if old is not None or start is not None:
            self.highlighted = self.get_option_index(old or start or "")

    def render_line(self, y: int) -> Strip:
        return barred(self, y, super().render_line(y))

    def on_resize(self) -> None:
        if self.filled:
            at = self.highlighted
            self._list()
            self.highlighted = at

    def _list(self) -> None:
        room = self.scrollable_content_region.width - 2  # without the cells next to a line
        runs = [found for _, entries in self._sections for _, found, _ in entries if found["policy"]]
        wanted = {column.key: max((cell_len(found[column.key]) for found in runs), default=0) for column in COLUMNS}
        heads = max((cell_len(found["name"].partition(" (")[0]) for found in runs), default=0)
        widths = laid_out((replace(COLUMNS[0], least=min(LEAST, heads)), *COLUMNS[1:]), wanted, room, 1)
        self.clear_options()
        for title, entries in self._sections:
            if entries:
                self.add_option(Option(f"[b]{title}[/b]", disabled=True))
            self.add_options(
                Option(Content("\n".join(lines(found, widths, room))), id=key) for key, found, _ in entries
            )
        if not self._shown:
            self.add_option(Option("nothing matches", disabled=True))


def matches(title: str, words: Sequence[str]) -> bool:
    """Whether an entry has all words that are searched for, which are in lower case."""
    return all(word in title.lower() for word in words)
