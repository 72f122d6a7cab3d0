"""The list of the home screen: entries in sections, under titles that cannot be chosen."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

SECTIONS = {
    "open": "Open now",
    "built-in": "Built-in scenarios",
    "file": "Your scenarios",
    "training": "Trainings",
    "run": "Recent runs",
}
"""The titles of the home screen's sections, by the kinds of their entries, in order."""

Entry = TypeVar("Entry")

Section = tuple[str, Sequence[tuple[str, str, Entry]]]
"""A title, and of each entry its key, its line and what it stands for."""


class EntryList(OptionList, Generic[Entry]):
    """Entries by key."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._shown: dict[str, Entry] = {}
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
        self.filled = True
        self.clear_options()
        self._shown = {}
        start: str | None = None
        for title, entries in sections:
            if entries:
                self.add_option(Option(f"[b]{title}[/b]", disabled=True))
            for key, line, entry in entries:
                self._shown[key] = entry
                self.add_option(Option(Content(line), id=key))
                start = start or (key if title != first else None)
        if not self._shown:
            self.add_option(Option("nothing matches", disabled=True))
        old = next((key for key, entry in self._shown.items() if entry == kept), None)
        if old is not None or start is not None:
            self.highlighted = self.get_option_index(old or start or "")


def matches(title: str, words: Sequence[str]) -> bool:
    """Whether an entry has all words that are searched for, which are in lower case."""
    return all(word in title.lower() for word in words)
