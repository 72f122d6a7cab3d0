"""Foreign text on terminals: nothing of it acts."""

import io

import pytest
from rich.table import Table

from flmarket.core.rich_console import SafeConsole
from flmarket.core.text import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("alpha", "alpha"),
        ("äöü 数 🙂", "äöü 数 🙂"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31mred", r"\x9b31mred"),
        ("bell\x07, back\x08, nil\x00", r"bell\x07, back\x08, nil\x00"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u2066a\u2069", r"\u2066a\u2069"),
        ("half \ud800", r"half \ud800"),
        ("\u2028", r"\u2028"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    shown.encode()


def test_lines_stay_lines() -> None:
    assert printable_lines("one\n\x1btwo\n") == "one\n\\x1btwo\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_the_console_shows_markup_and_control_characters_as_text(terminal: bool) -> None:
    target = io.StringIO()
    console = SafeConsole(file=target, width=60, force_terminal=terminal, color_system=None, legacy_windows=False)
    table = Table("[bold]head[/bold]")
    table.add_row("\x1b]0;title [/]")
    console.print(table)
    console.print("[red]\x1b[31m")
    console.rule("[x]\x1b")
    shown = target.getvalue()
    for text in ("[bold]head[/bold]", r"\x1b]0;title [/]", r"[red]\x1b[31m", r"[x]\x1b"):
        assert text in shown
    assert "\x1b]" not in shown
    assert "\x1b[31" not in shown
