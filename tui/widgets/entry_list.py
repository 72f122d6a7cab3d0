"""The list of the home screen: entries in sections, under titles that cannot be chosen."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from scenarios.logs.run_state import RunState
from tui.style.colors import barred, state_style, tint
from tui.style.formats import TableColumn, fit, laid_out, wrapped

SECTIONS = {
    "open": "Open now",
    "beginning": "Begin here",
    "built-in": "Built-in scenarios",
    "file": "Your scenarios",
    "training": "Trainings",
    "run": "Recent runs",
}
"""The titles of the home screen's sections, by the kinds of their entries, in order."""

LEAST = 16  # cells for a name, if it has as many, before other columns are left out
RUN = (
    TableColumn("name", ""),
    TableColumn("policy", ""),
    TableColumn("seed", ""),
    TableColumn("sign", ""),
    TableColumn("state", "", leaves=2),
    TableColumn("age", ""),
    TableColumn("result", "", leaves=1),
)
OTHER = (
    TableColumn("name", ""),
    TableColumn("sign", ""),
    TableColumn("state", ""),
    TableColumn("age", ""),
    TableColumn("about", "", least=1),
)
"""The columns of what is no run."""
FAINT = {"age", "result", "about"}
INDENT = "    "  # stands before what does not fit into the columns

Entry = TypeVar("Entry")
Cells = Mapping[str, str]

Section = tuple[str, Sequence[tuple[str, Cells, Entry]]]
"""A title, and of each entry its key, its cells and what it stands for."""


def cells(label: str, state: str = "", *, marked: bool = False, **more: str) -> Cells:
    """Return what the columns say of an entry; a run's label is ``SCENARIO · POLICY · SEED``."""
    name, policy, seed = [*label.split(" · ", 2), "", ""][:3]
    sign, _, word = state.partition(" ")
    name = ("✓ " if marked else "  ") + name
    return {"name": name, "policy": policy, "seed": seed, "sign": sign, "state": word, **more}


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
        if sections == self._sections:  # else the list would scroll to what is highlighted
            return
        kept = self.chosen
        self.filled, self._sections = True, sections
        self._shown = {key: entry for _, entries in sections for key, _, entry in entries}
        start = next(
            (key for title, entries in sections if title != first for key, _, _ in entries),
            next(iter(self._shown), None),
        )
        self._list()
        old = next((key for key, entry in self._shown.items() if entry == kept), None)
        if old is not None or start is not None:
            self.highlighted = self.get_option_index(old or start or "")

    def render_line(self, y: int) -> Strip:
        return barred(self, super().render_line(y))

    async def on_click(self, event: events.Click) -> None:
        """Choose the entry under the mouse, and open it only if it is clicked twice: one may want its preview."""
        event.prevent_default()
        place = event.style.meta.get("option", self.option_count)
        if place < self.option_count and not self.get_option_at_index(place).disabled:  # else it has gone since
            self.highlighted = place
            if event.chain == 2:
                self.action_select()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._list_again())

    def on_resize(self) -> None:
        self._list_again()

    def _list_again(self) -> None:
        if self.filled:
            at = self.highlighted
            self._list()
            self.highlighted = at

    def _list(self) -> None:
        room = self.scrollable_content_region.width - 2  # without the cells next to a line
        alike: dict[tuple[bool, bool], list[Cells]] = defaultdict(list)
        for entry in (entry for _, entries in self._sections for _, entry, _ in entries if "below" not in entry):
            alike[_kind(entry)].append(entry)
        widths = {kind: _widths(some, RUN if kind[0] else OTHER, room) for kind, some in alike.items()}
        options = []
        for title, entries in self._sections:
            if entries:
                options.append(Option(f"[b]{title}[/b] · {len(entries)}", disabled=True))
            before = ""
            for key, entry, _ in entries:
                lines = self._written(entry, widths.get(_kind(entry), {}), before)
                options.append(Option(Content("\n").join(lines), id=key))
                before = _unmarked(entry)
        self.set_options(options or [Option("nothing matches", disabled=True)])

    def _written(self, entry: Cells, widths: Mapping[str, int], before: str) -> Iterator[Content]:
        """Yield an entry's line, then what stands below it: what tells its scenario from others of the name, mostly.

        A run's scenario is faint where the line above names it.
        """
        faint = str(tint(self.app, "foreground", dim=True))
        room = self.scrollable_content_region.width - 2 - len(INDENT)
        if "below" in entry:
            yield Content.styled(entry["name"], "bold")
            yield from (Content.styled(INDENT + line, faint) for line in wrapped(entry["below"], room))
            return
        word = entry["state"]
        of_state = state_style(self.app, RunState(word)) if word in set(RunState) else tint(self.app, "error")
        state = str(Style(color=of_state.color))  # not as loud as on its own
        styles = dict.fromkeys(FAINT, faint) | {"sign": state, "state": state}
        name, below = entry["name"], ""
        head = name.partition(" (")[0]
        if entry["policy"] and cell_len(name) > widths["name"] >= cell_len(head):
            name, below = head, name[len(head) :]
        if entry["policy"] and _unmarked(entry) == before:
            styles["name"], below = faint, ""
        words = {**entry, "name": name}
        yield Content.assemble(
            *((f"{fit(words.get(key, ''), width)} ", styles.get(key, "")) for key, width in widths.items())
        )
        if below:
            yield from (Content.styled(INDENT + line, faint) for line in wrapped(below.strip(), room))


def _unmarked(entry: Cells) -> str:
    return entry["name"].removeprefix("✓").lstrip()


def _kind(entry: Cells) -> tuple[bool, bool]:
    """Return whether an entry is a run, and else whether it has an age; columns of entries of a kind are aligned."""
    run = bool(entry["policy"])
    return run, not run and bool(entry.get("age"))


def _widths(listed: Sequence[Cells], columns: Sequence[TableColumn], room: int) -> dict[str, int]:
    wanted = {
        column.key: max((cell_len(entry.get(column.key, "")) for entry in listed), default=0) for column in columns
    }
    heads = max((cell_len(entry["name"].partition(" (")[0]) for entry in listed), default=0)
    named = [replace(column, least=min(LEAST, heads)) if column.key == "name" else column for column in columns]
    return laid_out([column for column in named if wanted[column.key]], wanted, room, 1)
