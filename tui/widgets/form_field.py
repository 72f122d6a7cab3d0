"""One key of the form: its name, an editor, its meaning, and its problems."""

from typing import Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, Select, Static

from fl.data.own_files import is_path
from scenarios.file.keys import Key
from scenarios.file.problems import Path
from scenarios.file.toml_text import value_text
from tui.editing.document import ABSENT
from tui.style.colors import tint

DEFAULT_CHOICE = "(default)"


class FieldRow(Vertical):
    """A key with its editor, meaning and problems."""

    class Edited(Message):
        """The user has changed the value."""

        def __init__(self, row: "FieldRow", text: str) -> None:
            super().__init__()
            self.row, self.text = row, text

    def __init__(self, key: Key, path: Path, choices: tuple[str, ...], value: Any) -> None:
        """Show a value of a key; without choices, the user types one."""
        super().__init__(classes="field")
        self.key, self.path, self._choices = key, path, choices
        self._description = f"{key.description} ({key.range})" if key.range else key.description
        self._text = shown(value, key)
        self._notes: tuple[str, tuple[str, ...]] = ("", ())

    def compose(self) -> ComposeResult:
        with Horizontal(classes="field-line"):
            yield Label(self.key.label, classes="field-name")
            if self._choices:
                yield self._select()
            else:
                needed = "required" if self.key.default is None else f"default: {self.key.default or 'none'}"
                yield Input(self._text, placeholder=needed, compact=True, classes="editor")
            yield Label("", classes="field-change")
        yield Static(self._description, classes="field-note", markup=False)

    def _select(self) -> Select[str]:
        options = [(Content(choice), choice) for choice in self._choices]
        if self._text and self._text not in self._choices:
            known = self.key.label == "dataset" and is_path(self._text)
            options.append((Content(self._text if known else f"{self._text} (unknown)"), self._text))
        if self.key.default is not None:
            options.insert(0, (Content(f"{self.key.default} {DEFAULT_CHOICE}"), ""))
        value = self._text if self._text or self.key.default is not None else Select.NULL
        return Select(options, value=value, allow_blank=value is Select.NULL, compact=True, classes="editor")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._edit(event.value)

    @on(Select.Changed)
    def _chosen(self, event: Select.Changed) -> None:
        event.stop()
        self._edit(str(event.value) if event.value is not Select.NULL else "")

    def _edit(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.post_message(self.Edited(self, text))

    def mark(self, was: Any, now: Any, problems: tuple[str, ...]) -> None:
        """Show whether the value differs from the file, and its problems."""
        change = "" if was == now else f"✎ was {shown(was, self.key) or 'absent'}"
        if (change, problems) == self._notes:
            return
        self._notes = change, problems
        self.query_one(".field-change", Label).update(Text(change, tint(self.app, "warning"), no_wrap=True))
        note = self.query_one(".field-note", Static)
        if problems:
            note.update(Text("\n".join(f"✘ {problem}" for problem in problems)))
        else:
            note.update(Text(self._description))
        self.set_class(bool(problems), "-wrong")


def shown(value: Any, key: Key) -> str:
    """Return a value as text for the editor."""
    if value is ABSENT:
        return ""
    return value if isinstance(value, str) and key.is_text else value_text(value)
