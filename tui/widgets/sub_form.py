"""A list of tables in the form, ``[[services]]``: the names of its entries, and the fields of the chosen one."""

from collections.abc import Callable, Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, OptionList, Static

from scenarios.file.keys import Key
from scenarios.file.problems import Path
from tui.state.scenario_document import ScenarioDocument
from tui.style.key_names import SearchedByTyping
from tui.widgets.form_field import FieldRow

BUTTONS = {"Add F2": "screen.add", "Duplicate F3": "screen.duplicate", "Remove F4": "screen.remove"}


class Fields(VerticalScroll, can_focus=False):
    """Fields, one below the other; the tab key goes from field to field."""


class Entries(SearchedByTyping, OptionList):
    """The names of the entries."""


class KeyButton(Button, can_focus=False):
    """A button that has a key: the tab key skips it."""


class SubForm(Horizontal):
    """The entries of a list of tables."""

    DEFAULT_CSS = """
    SubForm > Vertical { width: 22; border-right: solid $panel; }
    SubForm OptionList { height: 1fr; border: none; background: transparent; }
    SubForm Button { width: 100%; }
    SubForm Static { padding: 0 1; }
    """

    class Shown(Message):
        """The fields of an entry have been made; its problems and changes are not marked yet."""

    def __init__(
        self,
        key: Key,  # whose value the list is
        document: ScenarioDocument,
        rows: Callable[[Path], Iterable[FieldRow]],  # the fields of an entry
        is_wrong: Callable[[Path], bool],  # whether an entry has a problem
    ) -> None:
        super().__init__()
        self.key, self.path, self.place = key, key.path, 0
        self.kind = key.path[-1].removesuffix("s")
        self._document, self._rows, self._is_wrong = document, rows, is_wrong

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Entries(id=f"{self.kind}-list")
            for label, action in BUTTONS.items():
                yield KeyButton(label, action=action, compact=True)
        yield Fields(*self._fields(), id=f"{self.kind}-form")

    def _fields(self) -> Iterable[Widget]:
        if self._document.entries(self.path):
            return self._rows((*self.path, self.place))
        return [Static(f"{self.key.description}\n\nThere is none; F2 adds one.", markup=False)]

    def on_mount(self) -> None:
        self.list_entries()

    async def show(self, place: int) -> None:
        """Show the fields of an entry, or of the last one."""
        self.place = max(0, min(len(self._document.entries(self.path)) - 1, place))
        self.list_entries()
        fields = self.query_one(Fields)
        await fields.remove_children()
        await fields.mount_all(self._fields())
        self.post_message(self.Shown())

    def list_entries(self) -> None:
        names = []
        for place, origin in enumerate(self._document.origins(self.path)):
            sign = "✘" if self._is_wrong((*self.path, place)) else " "
            name = f"{sign} {self._document.entry_name(self.path, place)}{' (new)' if origin is None else ''}"
            names.append(name.replace("[", r"\["))
        listed = self.query_one(OptionList)
        if names != [str(option.prompt) for option in listed.options]:
            with self.prevent(OptionList.OptionHighlighted):
                listed.clear_options()
                listed.add_options(map(Content, names))
                listed.highlighted = self.place if names else None

    @on(OptionList.OptionHighlighted)
    async def _choose(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index != self.place and event.option_list.id == f"{self.kind}-list":
            await self.show(event.option_index)
