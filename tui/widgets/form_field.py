"""One key of the form: its name, an editor, its unit, its meaning, and its problems."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList, Select

from fl.data.own_files import is_path
from scenarios.file.keys import Key
from scenarios.file.problems import Path
from scenarios.file.toml import value_text
from tui.state.scenario_document import ABSENT
from tui.style.colors import tint
from tui.style.formats import fit
from tui.style.redraw import hand_over
from tui.style.sentences import plugin_words
from tui.textual_internals import is_going

DEFAULT_CHOICE = "(default)"
EMPTY = {"{}", "[]", '""'}  # defaults that say nothing
NUMBER = 16  # cells of a number's editor, which leaves room for its unit
NAME, EDITOR = 22, 44  # cells of a key's name and of its editor, with its unit, where the meaning stands beside them
READABLE = 84  # the most cells of a line of words
INDENT = 2


class ChoiceField(Widget, can_focus=True):
    """A value that is chosen from a list, which is made when it is opened: it takes as long as four text fields."""

    BINDINGS = [Binding("enter,down,space,up", "open", "Choose", tooltip="Open the list of choices", show=False)]

    def __init__(self, text: str) -> None:
        super().__init__(classes="editor")
        self._text = text

    def render(self) -> Text:
        return Text(f"{fit(self._text, self.size.width - 2)} ▼", no_wrap=True, end="")

    async def action_open(self) -> None:
        await self.query_ancestor(FieldRow).open()

    async def on_mouse_down(self) -> None:
        # A click would come too late: with the focus, the row above may lose lines, and the button goes up elsewhere.
        await self.action_open()


class FieldRow(Widget):
    """A key with its editor, meaning and problems. It draws its words itself: a widget for each would take long."""

    DEFAULT_CSS = """
    FieldRow { height: auto; layout: vertical; border-left: blank; padding-right: 1; }
    FieldRow:focus-within { background: $boost; border-left: outer $primary; }
    FieldRow .editor { margin-left: 22; width: 1fr; max-width: 42; height: 1; background: $surface; }
    FieldRow .-number { max-width: 16; }
    FieldRow .editor:focus { background: $primary-muted; }
    FieldRow Select > SelectOverlay {
        width: 118; max-width: 100vw; constrain: inside; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    class Edited(Message):
        """The user has changed the value."""

        def __init__(self, row: "FieldRow", text: str) -> None:
            super().__init__()
            self.row, self.text = row, text

    def __init__(self, key: Key, path: Path, choices: tuple[str, ...], value: Any) -> None:
        """Show a value of a key; without choices, the user types one."""
        super().__init__()
        self.key, self.path, self._choices = key, path, choices
        self._description = f"{key.description} ({key.range})" if key.range else key.description
        self._text = shown(value, key)
        self._notes: tuple[str, tuple[str, ...], str] = ("", (), "")

    def compose(self) -> ComposeResult:
        if self._choices:
            yield ChoiceField(self._label(self._text))
            return
        default = "none" if self.key.default in {None, "", *EMPTY} else self.key.default
        needed = "required" if self.key.default is None else f"default: {default}"
        number = " -number" if self.key.type in {"integer", "number"} else ""
        yield Input(self._text, placeholder=needed, compact=True, classes=f"editor{number}")

    def _label(self, choice: str) -> str:
        if not choice:
            return "" if self.key.default is None else f"{self.key.default} {DEFAULT_CHOICE}"
        known = choice in self._choices or (self.key.label == "dataset" and is_path(choice))
        return choice if known else f"{choice} (unknown)"

    async def open(self) -> Select[str]:
        """Open the list of choices."""
        for choice in self.query(ChoiceField):
            values = [*self._choices, *({self._text} - {"", *self._choices})]
            if self.key.default is not None:
                values.insert(0, "")
            value = self._text if self._text in values else Select.NULL
            options = [(Text(self._label(one)), one) for one in values]  # which Textual searches as one types
            select = Select(options, value=value, allow_blank=value is Select.NULL, compact=True, classes="editor")
            await self.mount(select)
            select.focus()
            await choice.remove()
            if self.key.names is not None:
                self._describe(select.query_one(OptionList), values)
        select = self.query_one(Select)
        select.expanded = True
        return select

    @work(thread=True)
    def _describe(self, listed: OptionList, names: Sequence[str]) -> None:
        """Say in the list what each plug-in is; in a thread, because some take seconds to load."""
        labels = [self._label(name) for name in names]
        room = max(map(len, labels)) + 2
        for place, (name, label) in enumerate(zip(names, labels, strict=True), listed.option_count - len(names)):
            what, options = plugin_words(self.key.names or "", name or self.key.default or "")
            words = f"{what} ({options})" if options else what
            prompt = Text.assemble(fit(label, room), (words, tint(self.app, "foreground", dim=True)))
            hand_over(self.app, self._described, listed, place, prompt)

    def _described(self, listed: OptionList, place: int, prompt: Text) -> None:
        if not is_going(listed):
            listed.replace_option_prompt_at_index(place, prompt)

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

    def mark(self, was: Any, now: Any, problems: tuple[str, ...], meaning: str) -> None:
        """Show whether the value differs from the file, its problems, and what it means in this scenario."""
        notes = "" if was == now else f"✎ was {shown(was, self.key) or 'absent'}", problems, meaning
        if notes != self._notes:
            self._notes = notes
            self.refresh(layout=True)

    @property
    def note(self) -> str:
        return self._note().plain

    def _note(self) -> Text:
        change, problems, meaning = self._notes
        note = Text(f"{change}  " if change else "", tint(self.app, "warning"))
        if problems:
            return note.append("\n".join(f"✘ {problem}" for problem in problems), tint(self.app, "error", bold=True))
        note.append(self._description, tint(self.app, "foreground", dim=True))
        return note.append(f"\n→ {meaning}", tint(self.app, "foreground")) if meaning else note

    def _beside(self, width: int) -> bool:
        return width >= NAME + EDITOR + READABLE // 2

    def _wrapped(self, width: int) -> list[Text]:
        room = width - (NAME + EDITOR if self._beside(width) else INDENT)
        return list(self._note().wrap(self.app.console, max(1, min(room, READABLE))))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        lines = len(self._wrapped(width))
        return max(1, lines) if self._beside(width) else 1 + lines

    def render(self) -> Text:
        width = self.size.width
        number = self.key.type in {"integer", "number"}
        first = Text.assemble((fit(self.key.label, NAME), "bold"), end="")
        if self.key.unit and number:
            first.append(f"{'':{NUMBER + 1}}{self.key.unit}", tint(self.app, "foreground", dim=True))
        lines = self._wrapped(width)
        if not self._beside(width):
            return Text("\n").join([first, *(Text(" " * INDENT) + line for line in lines)])
        first.pad_right(max(0, NAME + EDITOR - first.cell_len))
        rest = [Text(" " * (NAME + EDITOR)) + line for line in lines[1:]]
        return Text("\n").join([first + lines[0], *rest])


def shown(value: Any, key: Key) -> str:
    """Return a value as text for the editor."""
    if value is ABSENT:
        return ""
    return value if isinstance(value, str) and key.is_text else value_text(value)
