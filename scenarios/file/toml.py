"""Scenarios as TOML: the file behind one, the line on which to look for a problem, and what is written."""

import json
import re
import tomllib
from ast import literal_eval
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from flmarket.core.files import read_regular
from flmarket.core.names import did_you_mean, suggest
from flmarket.core.text import printable
from scenarios.file.problems import Mistake, Path, Problem, ScenarioError, key_text
from scenarios.file.schema import Scenario

LARGEST_FILE = 1_000_000  # bytes

LARGEST_DEPTH = 64  # parts of a dotted key; what ``tomllib`` takes for one grows with their square
_PART = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_DEEP = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{LARGEST_DEPTH}}}")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two quotes before the closing three belong to the text
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'"
    r"|#[^\n]*"
    r"|[\[\]{},=.\n]"
    r"""|[^\s\[\]{},=.#"']+""",
    re.DOTALL,
)


class Span(NamedTuple):
    """The place of a key with its value in a text, of an item of a list, or of the header of a table."""

    start: int  # of the key
    value: int  # where the value begins; the end, for a header
    end: int

    @property
    def is_header(self) -> bool:
        return self.value == self.end


class Positions:
    """Lines by path: of every table, key and list item, where it is first mentioned; ``tomllib`` does not keep them.

    The text must be valid TOML. That makes the scanner short, as it need not see faults.
    """

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self.spans: dict[Path, Span] = {}  # of all that has a place of its own
        self.statements: list[Path] = []  # the headers, and the keys that stand on lines of their own, in their order
        self._sizes: dict[Path, int] = {}  # of [[arrays]] of tables
        self._tokens = [*_tokens(text), ("\n", 0, len(text))]
        self._at = 0
        table: Path = ()
        while self._at < len(self._tokens):
            if self._part == "[":
                table = self._header()
            elif self._part == "\n":
                self._at += 1
            else:
                self.statements.append(self._entry(table))

    def line(self, path: Path) -> int:
        """Return the line (from 1) of a value, or of the nearest table or list around it; of a missing key's table."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    @property
    def _part(self) -> str:
        return self._tokens[self._at][0]

    @property
    def _end(self) -> int:
        """Where the last part that was read ends."""
        part, _, start = self._tokens[self._at - 1]
        return start + len(part)

    def _header(self) -> Path:
        """Read ``[table]`` or ``[[array of tables]]`` and return the path of the table that it opens."""
        _, line, start = self._tokens[self._at]
        brackets = 2 if self._tokens[self._at + 1][0] == "[" else 1
        self._at += brackets
        *above, last = self._keys()
        self._at += brackets
        path: Path = ()
        for key in above:
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self._sizes:
                path = (*path, self._sizes[path] - 1)
        path = (*path, last)
        self.lines.setdefault(path, line)
        if brackets == 2:
            self._sizes[path] = self._sizes.get(path, 0) + 1
            path = (*path, self._sizes[path] - 1)
        self.lines[path] = line  # rather than where [table.below.it] stood
        self.spans[path] = Span(start, self._end, self._end)
        self.statements.append(path)
        return path

    def _entry(self, path: Path) -> Path:
        """Read a key with its value and return its path."""
        _, line, start = self._tokens[self._at]
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._value(path, start)
        return path

    def _keys(self) -> list[str]:
        keys = []
        while True:
            keys.append(next(iter(tomllib.loads(f"{self._part} = 0"))))
            self._at += 2
            if self._tokens[self._at - 1][0] != ".":
                self._at -= 1
                return keys

    def _value(self, path: Path, start: int) -> None:
        value = self._tokens[self._at][2]
        if self._part == "[":
            for index in self._places("]"):
                _, line, item = self._tokens[self._at]
                self.lines[*path, index] = line
                self._value((*path, index), item)
        elif self._part == "{":
            for _ in self._places("}"):
                self._entry(path)
        else:
            while self._part not in ("\n", ",", "]", "}"):
                self._at += 1
        self.spans[path] = Span(start, value, self._end)

    def _places(self, closing: str) -> Iterator[int]:
        """Move to each item of a list or of an inline table, and behind its closing bracket in the end."""
        index = 0
        self._at += 1
        while True:
            while self._part in ("\n", ","):
                self._at += 1
            if self._part == closing:
                self._at += 1
                return
            yield index
            index += 1


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the parts of a text, but for blanks and comments, each with its line and where it starts."""
    line = 1
    for found in _TOKEN.finditer(text):
        if not found[0].startswith("#"):
            yield found[0], line, found.start()
        line += found[0].count("\n")


def comments(text: str) -> list[str]:
    """Return the comments of a part of a TOML text."""
    return [found[0].rstrip() for found in _TOKEN.finditer(text) if found[0].startswith("#")]


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


def dumps(scenario: Scenario) -> str:
    """Return a scenario as TOML with every default written out; it loads back to an equal scenario.

    What has no value (a deadline, say) is left out, as TOML has no word for it; of the keys of a regime see ``settled``
    in ``scenarios.loader``.
    """
    return _written(scenario.model_dump_json(exclude_none=True))


@lru_cache(maxsize=64)  # the runs of a batch differ in their seeds alone, and tomlkit takes 8 ms
def _written(scenario: str) -> str:
    return tomlkit.dumps(json.loads(scenario))


def value_text(value: Any) -> str:
    """Return a value as TOML, on one line."""
    array = tomlkit.array()
    array.append(value)
    return array.as_string()[1:-1]
