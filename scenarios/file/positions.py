"""On which line of a TOML text each value stands; ``tomllib`` does not keep that.

The text must be valid TOML: run ``tomllib`` over it first. That makes the scanner short, as it need not see faults.
"""

import re
import tomllib
from bisect import bisect_right

from scenarios.file.problems import Path

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SEPARATOR = re.compile(r"(?:[ \t\n,]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two quotes before the closing three belong to the text
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)


class Positions:
    """Lines by path."""

    def __init__(self, text: str) -> None:
        self.lines = _Scanner(text.replace("\r\n", "\n")).scan()

    def line(self, path: Path) -> int:
        """Return the line (from 1) of a value, or of the nearest table or list around it; of a missing key's table."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Scanner:
    """Walks a TOML text once, keeping the line on which each path is first mentioned."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._newlines = [i for i, c in enumerate(text) if c == "\n"]
        self._lines: dict[Path, int] = {}
        self._array_sizes: dict[Path, int] = {}  # [[arrays]] of tables, by path

    def scan(self) -> dict[Path, int]:
        """Return the line of every table, key and list item."""
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._entry(table)
            self._skip(_BLANK)
        return self._lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind a match at the present place (none is an empty one) and return it."""
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()

    def _line(self) -> int:
        return bisect_right(self._newlines, self._at - 1) + 1

    def _header(self) -> Path:
        """Read ``[table]`` or ``[[array of tables]]`` and return the path of the table that it opens."""
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        keys = self._keys()
        self._at += brackets
        path: Path = ()
        for depth, key in enumerate(keys, start=1):
            path = (*path, key)
            self._lines.setdefault(path, line)
            if brackets == 2 and depth == len(keys):
                self._array_sizes[path] = self._array_sizes.get(path, 0) + 1
            if path in self._array_sizes:
                path = (*path, self._array_sizes[path] - 1)
        self._lines[path] = line  # rather than where [table.below.it] stood
        return path

    def _entry(self, table: Path) -> None:
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_BLANK)
            if self._text[self._at] in "\"'":
                keys.append(next(iter(tomllib.loads(f"{self._skip(_STRING)} = 0"))))
            else:
                keys.append(self._skip(_BARE_KEY))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _value(self, path: Path) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(_STRING)
        elif opening == "[":
            self._at += 1
            self._items(path)
        elif opening == "{":
            self._at += 1
            self._inline_table(path)
        else:
            self._skip(_SCALAR)

    def _items(self, path: Path) -> None:
        index = 0
        while self._more("]"):
            item = (*path, index)
            self._lines[item] = self._line()
            self._value(item)
            index += 1

    def _inline_table(self, path: Path) -> None:
        while self._more("}"):
            self._entry(path)

    def _more(self, closing: str) -> bool:
        """Move to the next item, or past the closing bracket if there is none."""
        self._skip(_SEPARATOR)
        if self._text[self._at] != closing:
            return True
        self._at += 1
        return False
