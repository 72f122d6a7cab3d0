"""On which line of a TOML text each value stands; ``tomllib`` does not keep that.

The text must be valid TOML: run ``tomllib`` over it first. That makes the scanner short, as it need not see faults.
"""

import re
import tomllib
from collections.abc import Iterator

from scenarios.file.problems import Path

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


class Positions:
    """Lines by path: of every table, key and list item, where it is first mentioned."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}  # of [[arrays]] of tables
        self._tokens = [*_tokens(text.replace("\r\n", "\n")), ("\n", 0)]
        self._at = 0
        table: Path = ()
        while self._at < len(self._tokens):
            if self._part == "[":
                table = self._header()
            elif self._part == "\n":
                self._at += 1
            else:
                self._entry(table)

    def line(self, path: Path) -> int:
        """Return the line (from 1) of a value, or of the nearest table or list around it; of a missing key's table."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    @property
    def _part(self) -> str:
        return self._tokens[self._at][0]

    def _header(self) -> Path:
        """Read ``[table]`` or ``[[array of tables]]`` and return the path of the table that it opens."""
        line = self._tokens[self._at][1]
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
        return path

    def _entry(self, path: Path) -> None:
        line = self._tokens[self._at][1]
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            keys.append(next(iter(tomllib.loads(f"{self._part} = 0"))))
            self._at += 2
            if self._tokens[self._at - 1][0] != ".":
                self._at -= 1
                return keys

    def _value(self, path: Path) -> None:
        if self._part == "[":
            for index in self._places("]"):
                self.lines[*path, index] = self._tokens[self._at][1]
                self._value((*path, index))
        elif self._part == "{":
            for _ in self._places("}"):
                self._entry(path)
        else:
            while self._part not in ("\n", ",", "]", "}"):
                self._at += 1

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


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the parts of a text, but for blanks and comments, each with its line."""
    line = 1
    for found in _TOKEN.finditer(text):
        if not found[0].startswith("#"):
            yield found[0], line
        line += found[0].count("\n")
