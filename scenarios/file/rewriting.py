"""The text of a TOML file that is given other values: comments, layout and all values that stay are kept."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from flmarket.core.files import BYTE_ORDER_MARK, laid_out_as
from scenarios.file.keys import keys, schema_at
from scenarios.file.problems import BARE_KEY, Path
from scenarios.file.schema import Scenario
from scenarios.file.toml import Positions, comments, value_text

Origins = Mapping[Path, Sequence[int | None]]
"""For lists of tables with entries added or removed: the places that entries have in the file, None for new ones."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def rewritten(
    text: str,  # the file's, which is valid TOML, with its byte-order mark and its line ends
    was: Mapping[str, Any],  # its values
    now: Mapping[str, Any],  # those that it is to have
    origins: Origins,
) -> str:
    """Return a scenario file's text with other values.

    New keys stand below those of their table, new tables where people write them, above the comments of what follows.
    A removed key leaves the comment above it; an entry of an array of tables goes with its comments.
    """
    if same(was, now):
        return text
    plain = text.removeprefix(BYTE_ORDER_MARK)
    if not re.search(r"(?<!\r)\n", plain):
        plain = plain.replace("\r\n", "\n")
    return laid_out_as(text, _Rewriting(plain, origins).text(was, now))


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in TOML, where 1 is not 1.0, but the order of keys says nothing."""
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


class _Rewriting:
    """Changes of a TOML text that give it other values. All else stays as it is."""

    def __init__(self, text: str, origins: Origins) -> None:
        self._text, self._origins = text, origins
        positions = Positions(text)
        self._spans, self._statements = positions.spans, positions.statements
        self._places = {statement: i for i, statement in enumerate(self._statements)}
        self._tables: list[Path] = []  # for each statement, the table whose header it stands below
        for statement in self._statements:
            below = self._tables[-1] if self._tables else ()
            self._tables.append(statement if self._spans[statement].is_header else below)
        # where each begins and ends, whether it is of whole tables, and what stands there from now on
        self._changes: list[tuple[int, int, bool, str]] = []

    def text(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
        self._rewrite((), was, now)
        end = len(self._text)
        text, at, tables, cut = "", 0, False, False
        for begin, to, of_tables, new in [*sorted(self._changes, key=lambda it: (it[0], it[2])), (end, end, False, "")]:
            if kept := self._text[at:begin]:
                if cut and (not text or text.endswith("\n\n")):
                    kept = kept.lstrip("\n")  # one blank line is enough where lines have gone
                text += f"\n{kept}" if tables and not kept.startswith("\n") else kept
                tables = cut = False
            if new.endswith("\n") and text and not text.endswith("\n"):
                text += "\n"
            if of_tables and text and not text.endswith("\n\n"):
                text += "\n"
            text += new
            at, tables, cut = max(at, to), tables or of_tables, cut or (to > begin and not new)
        return text.rstrip("\n") + "\n" if cut and text else text

    def _change(self, begin: int, end: int, new: str, *, of_tables: bool = False) -> None:
        self._changes.append((begin, end, of_tables, new))

    def _rewrite(self, path: Path, was: Any, now: Any) -> None:
        """Give the value at a path of the text another one."""
        if same(was, now):
            return
        span = self._spans.get(path)
        in_one = span is not None and not span.is_header  # as ``{ a = 1 }`` or ``[1, 2]``
        if isinstance(was, dict) and isinstance(now, dict) and (not in_one or self._fits(path, was, now)):
            for key, value in was.items():
                if key in now:
                    self._rewrite((*path, key), value, now[key])
                else:
                    self._cut((*path, key), value)
            self._add(path, {key: value for key, value in now.items() if key not in was})
            return
        if _are_tables(was) and _are_tables(now):
            places = [place if place < len(was) else None for place in range(len(now))]
            origins = self._origins.get(path, places)
            if not in_one or [*origins] == [*range(len(was))]:
                self._rewrite_entries(path, was, now, origins)
                return
        if span is None or span.is_header or self._begins_section(path, was, now):
            self._cut(path, was)
            self._add(path[:-1], {str(path[-1]): now})
        else:
            old = self._text[span.value : span.end]
            above, _ = self._lines_of(self._around(path))
            self._change(above, above, "".join(f"{comment}\n" for comment in comments(old)))
            self._change(span.value, span.end, _toml(now, on_lines="\n" in old))

    def _fits(self, path: Path, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether an inline table can stay, with other values of its keys."""
        return was.keys() == now.keys() and all((*path, key) in self._spans for key in was)

    def _begins_section(self, path: Path, was: Any, now: Any) -> bool:
        return path in self._places and _is_section(path, now) and not _is_section(path, was)

    def _rewrite_entries(
        self, path: Path, was: Sequence[Any], now: Sequence[Any], origins: Sequence[int | None]
    ) -> None:
        for place in range(len(was)):
            if place not in origins:
                self._cut_entry((*path, place))
        new = []
        for origin, entry in zip(origins, now, strict=True):
            if origin is None:
                new.append(entry)
            else:
                self._rewrite((*path, origin), was[origin], entry)
        if new:
            self._add_section(self._after(self._last(path)), path, new)

    def _cut(self, path: Path, was: Any) -> None:
        """Remove the lines of a key, or of all that is in a table; comments on lines of their own stay."""
        if _are_tables(was) and path not in self._spans:
            for place in range(len(was)):
                self._cut_entry((*path, place))
            return
        for i, statement in enumerate(self._statements):
            if statement[: len(path)] == path:
                self._change(*self._lines_of(i), "")

    def _cut_entry(self, path: Path) -> None:
        """Remove an entry of an array of tables, with its comments."""
        for i, statement in enumerate(self._statements):
            if statement[: len(path)] == path and self._spans[statement].is_header:
                after = self._end_of_table(i) + 1
                end, rest = self._lead(after), self._after(after - 1)
                if comments(self._text[rest:end]):  # which stand for themselves, below a blank line
                    end = rest
                self._change(self._lead(i), end, "")

    def _add(self, path: Path, added: Mapping[str, Any]) -> None:
        """Add keys to a table, below those that are there."""
        lines = {key: value for key, value in added.items() if not _is_section((*path, key), value)}
        if lines:
            self._add_lines(path, lines)
        for key in sorted(added.keys() - lines.keys(), key=_rank):
            if path:
                last = self._last(path)
            else:
                before = [i for i, (first, *_) in enumerate(self._statements) if _rank(first) < _rank(key)]
                last = max([self._end_of_table(-1), *before])
            self._add_section(self._after(last), (*path, key), added[key])

    def _add_lines(self, path: Path, lines: Mapping[str, Any]) -> None:
        table, last = path, self._end_of_table(self._places.get(path, -1))
        if path and path not in self._places:
            below = [i for i, statement in enumerate(self._statements) if statement[: len(path)] == path]
            dotted = [i for i in below if len(self._tables[i]) < len(path)]  # ``cost.per_sample = 1``
            if not dotted:  # tables in it have headers, it has none
                self._add_section(self._lead(below[0]), path, lines)
                return
            table, last = self._tables[dotted[-1]], dotted[-1]
        at = self._after(last)
        self._change(at, at, _lines(lines, path[len(table) :]))

    def _add_section(self, at: int, path: Path, value: Any) -> None:
        self._change(at, at, "\n".join(_section(path, value)), of_tables=True)

    # Places of statements, which are counted from 0, and of the comments around them

    def _around(self, path: Path) -> int:
        """Return the statement that has what is at a path in its value."""
        return next(self._places[path[:depth]] for depth in range(len(path), 0, -1) if path[:depth] in self._places)

    def _last(self, path: Path) -> int:
        """Return the last statement of what is at a path."""
        return max(i for i, statement in enumerate(self._statements) if statement[: len(path)] == path)

    def _end_of_table(self, header: int) -> int:
        """Return the last statement before the next header; ``header`` is -1 for what stands above all of them."""
        end = header
        while end + 1 < len(self._statements) and not self._spans[self._statements[end + 1]].is_header:
            end += 1
        return end

    def _lines_of(self, statement: int) -> tuple[int, int]:
        """Return where the lines of a statement begin and end."""
        span = self._spans[self._statements[statement]]
        end = self._text.find("\n", span.end) + 1
        return self._text.rfind("\n", 0, span.start) + 1, end or len(self._text)

    def _between(self, statement: int) -> tuple[int, int]:
        """Return where the comments and blank lines above a statement begin and end."""
        begin = self._lines_of(statement - 1)[1] if statement else 0
        return begin, self._lines_of(statement)[0] if statement < len(self._statements) else len(self._text)

    def _lead(self, statement: int) -> int:
        """Return where a statement begins, with the comment that stands directly above it."""
        begin, end = self._between(statement)
        for line in reversed(_LINE.findall(self._text[begin:end])) if statement < len(self._statements) else ():
            if not line.strip():
                break
            end -= len(line)
        return end

    def _after(self, statement: int) -> int:
        """Return where something new stands below a statement: above the comment of the next one."""
        if statement < 0:
            return self._lead(0)
        begin, end = self._between(statement + 1)
        at = begin
        for line in _LINE.findall(self._text[begin:end]):
            if not line.strip():
                return at
            at += len(line)
        return begin if statement + 1 < len(self._statements) else end


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _is_section(path: Path, value: Any) -> bool:
    """Whether a new value is written with a header: ``[market]``, ``[[clients.groups]]``."""
    return (len(path) == 1 and isinstance(value, Mapping)) or (path in _lists_of_tables() and _are_tables(value))


@cache
def _lists_of_tables() -> Collection[Path]:
    return {key.path for key in keys() if key.type == "tables" and key.schema["type"] == "array"}


def _rank(key: str | int) -> int:
    order = list(Scenario.model_fields)
    return order.index(str(key)) if key in order else len(order)


def _section(path: Path, value: Any) -> Iterator[str]:
    """Yield tables as text, each with its header, and its keys in the schema's order: one, or those of a list."""
    header = ".".join(_key(part) for part in path if isinstance(part, str))
    order = list((schema_at((*path, 0) if isinstance(value, list) else path) or {}).get("properties", ()))
    for unordered in value if isinstance(value, list) else [value]:
        table = {key: unordered[key] for key in [*filter(unordered.__contains__, order), *unordered]}
        lines = {key: below for key, below in table.items() if not _is_section((*path, key), below)}
        yield (f"[[{header}]]\n" if isinstance(value, list) else f"[{header}]\n") + _lines(lines)
        for key, below in table.items():
            if key not in lines:
                yield from _section((*path, key), below)


def _lines(table: Mapping[str, Any], above: Path = ()) -> str:
    dotted = "".join(f"{_key(str(part))}." for part in above)
    return "".join(f"{dotted}{_key(key)} = {_toml(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else value_text(key)


def _toml(value: Any, *, on_lines: bool = False) -> str:
    """Return a value as TOML; ``on_lines`` has each item of a list on a line of its own."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if not isinstance(value, list):
        return value_text(value)
    if on_lines:
        return "[\n" + "".join(f"    {_toml(item)},\n" for item in value) + "]"
    return f"[{', '.join(map(_toml, value))}]"
