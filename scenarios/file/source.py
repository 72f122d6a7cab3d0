"""The file behind a scenario: its text, its data, and on which line to look for a problem."""

import re
import tomllib
from ast import literal_eval
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from flmarket.core.files import read_regular
from flmarket.core.names import did_you_mean, suggest
from flmarket.core.text import printable
from scenarios.file.positions import Positions
from scenarios.file.problems import Mistake, Path, Problem, ScenarioError, key_text

LARGEST_FILE = 1_000_000  # bytes

LARGEST_DEPTH = 64  # parts of a dotted key; what ``tomllib`` takes for one grows with their square
_PART = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_DEEP = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{LARGEST_DEPTH}}}")


@dataclass
class ScenarioSource:
    """The origin of a scenario's data, to show users where to look."""

    file: str  # as the user named it
    text: str  # the file's text
    data: Mapping[str, Any]  # what was read, and changed since
    # where swept keys stand in the file, by where they stand in the data
    moved: dict[Path, Path] = field(default_factory=dict)
    options: Mapping[Path, str] = field(default_factory=dict)  # the option behind what did not come from the file

    @cached_property
    def positions(self) -> Positions:
        """The lines; most files have no problem and never need them."""
        return Positions(self.text)

    def problems(self, found: Sequence[Mistake], problems: Sequence[Problem]) -> list[Problem]:
        """Return problems in the order of the file's lines, those of the command line after them."""
        placed = dict.fromkeys([*map(self._problem, found), *problems])
        return sorted(placed, key=lambda problem: problem.line or float("inf"))

    def _problem(self, finding: Mistake) -> Problem:
        line, option = self._place(finding.path)
        message = finding.message
        if finding.see:
            see_line, see_option = self._place(finding.see)
            message += f" ({see_option or f'line {see_line}'})"
        return Problem(option or self.file, line, key_text(finding.path, self.data), message)

    def _place(self, path: Path) -> tuple[int | None, str | None]:
        for depth in range(len(path), 0, -1):
            if option := self.options.get(path[:depth]):
                return None, option
        for depth in (2, 3):  # ("sweep", key) or ("runs", i, key)
            if path[:depth] in self.moved:
                path = (*self.moved[path[:depth]], *path[depth:])
                break
        return self.positions.line(path), None


def read_file(
    path: FilePath,  # the file's path
    builtin: Collection[str],  # names of built-in scenarios, to suggest one if the file does not exist
) -> str:
    file = printable(str(path))

    def error(message: str, line: int | None = None) -> ScenarioError:
        return ScenarioError([Problem(file, line, "", message)])

    try:
        content = read_regular(path, LARGEST_FILE)
    except FileNotFoundError:
        meant = did_you_mean(str(path), [*builtin, *map(str, sorted(path.parent.glob("*.toml")))])
        if path.name == str(path) and not path.suffix:
            meant = f", and no built-in scenario of that name{meant or suggest(str(path), builtin)}"
        raise error(f"no such file{meant}") from None
    except IsADirectoryError:
        raise error("is a folder, not a scenario file") from None
    except OSError as problem:
        raise error(f"cannot be read: {problem.strerror}") from None
    try:
        return content.decode()
    except UnicodeDecodeError as problem:
        raise error("is not UTF-8 text", content.count(b"\n", 0, problem.start) + 1) from None


def read_toml(text: str, file: str) -> dict[str, Any]:
    if deep := _TOO_DEEP.search(text):
        message = f"has a key of more than {LARGEST_DEPTH} parts"
        raise ScenarioError([Problem(file, text.count("\n", 0, deep.start()) + 1, "", message)])
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of the syntax, of an endless number, of lists in lists
        where = re.search(r"^(.*?) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        message = where[1] if where else str(error)
        line = int(where[2]) if where and where[2] else text.count("\n") + 1 if where else None
        if message.startswith(("Cannot", "Duplicate")):
            message = _given_twice(text, message) or message
        message = f"is not valid TOML: {message[:1].lower()}{message[1:]}"
        raise ScenarioError([Problem(file, line, "", printable(message))]) from None


def _given_twice(text: str, message: str) -> str | None:
    """Return which key or table stands twice in a TOML text, given what ``tomllib`` says of it."""
    if found := re.search(r"(?:declare|namespace) (\(.+\))|table key (.+)$", message):
        return f"the key or table {'.'.join(literal_eval(found[1] or f'[{found[2]}]'))!r} is given twice"
    try:
        tomlkit.parse(text)  # ``tomllib`` does not name it
    except TOMLKitError as error:
        if found := re.match(r'Key "(.*)" already exists', str(error)):
            return f"the key or table {found[1]!r} is given twice"
    return None
