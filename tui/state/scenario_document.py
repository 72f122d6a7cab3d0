"""A scenario file that is being edited: its values, and its text, which changes only where a value does."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flmarket.core.files import BYTE_ORDER_MARK
from scenarios.file.keys import value_at
from scenarios.file.problems import NAMED, Path, ScenarioError
from scenarios.file.rewriting import Origins, rewritten, same
from scenarios.file.toml import read_toml

ABSENT = object()  # the value of a key that is absent, so that its default applies


class Version(NamedTuple):
    """The values of a document at one time."""

    data: dict[str, Any]
    origins: Origins


class ScenarioDocument:
    """The values of a scenario file, and a text that has them, with the file's comments and layout.

    A version is replaced by another one, never changed: an earlier one can be taken back, and threads may read it.
    """

    def __init__(
        self,
        text: str,  # the scenario file's text. It need not be a valid scenario.
        file: str = "scenario",  # its name in problems
    ) -> None:
        self.file_text = text  # as the file has it
        self._original = read_toml(text.removeprefix(BYTE_ORDER_MARK), file)
        self.version = Version(self._original, {})

    @property
    def text(self) -> str:
        """The text to save; that of the file where no value has changed."""
        return rewritten(self.file_text, self._original, *self.version)

    @property
    def data(self) -> dict[str, Any]:
        return self.version.data

    @property
    def changed(self) -> bool:
        return not same(self._original, self.data)

    def saved(self) -> None:
        """Make the present text the file that changes are relative to."""
        self.file_text = self.text
        self._original = read_toml(self.file_text.removeprefix(BYTE_ORDER_MARK), "")
        self.version = Version(self._original, {})

    def get(self, path: Path) -> Any:
        """Return a value, or ABSENT."""
        return value_at(self.data, path, ABSENT)

    def was(self, path: Path) -> Any:
        """Return a value of the original file, or ABSENT; an entry of a list is found by its original place."""
        for depth, place in enumerate(path):
            if isinstance(place, int):
                origin = self.origins(path[:depth])[place]
                if origin is None:
                    return ABSENT
                path = (*path[:depth], origin, *path[depth + 1 :])
        return value_at(self._original, path, ABSENT)

    def put(
        self,
        path: Path,  # of the key; tables on the way to it are created, and replace anything else that stands there
        # TOML such as ``20`` or ``[100, 200]``. If it is not TOML, it is taken as a string, which the checks then
        # refuse
        text: str,
        *,
        is_text: bool = False,  # whether the key holds a string, so that quotes are not needed
    ) -> None:
        """Set a value from what the user typed; an empty text removes the key, and a table that it leaves empty."""
        value: Any = text
        if not text.strip():
            value = ABSENT
        elif not is_text:
            try:
                typed = read_toml(f"value = {text.strip()}", "")
                value = typed["value"] if len(typed) == 1 else text
            except ScenarioError:
                pass
        if value is not ABSENT or self.get(path) is not ABSENT:
            origins = {known: places for known, places in self.version.origins.items() if known != path}
            self._replace(path, value, origins)

    def _replace(self, path: Path, value: Any, origins: Origins) -> None:
        self.version = Version(_replaced(self.data, path, value), origins)

    # Entries of lists of tables

    def entries(self, path: Path) -> Sequence[Any]:
        """Return the entries of a list, none if something else stands there."""
        entries = self.get(path)
        return entries if isinstance(entries, list) else ()

    def origins(self, path: Path) -> Sequence[int | None]:
        """Return for each entry of a list its place in the original file; None for a new one."""
        return self.version.origins.get(path, range(len(self.entries(path))))

    def entry_name(self, path: Path, place: int) -> str:
        """Return an entry's name, or its place and its values if it has no name."""
        entry = self.entries(path)[place]
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if path in NAMED and isinstance(name, str) and name:
            return name
        values = entry.values() if path not in NAMED and isinstance(entry, Mapping) else ()
        return " ".join([f"#{place + 1}", *(str(value) for value in values if isinstance(value, str | int))])

    def add_entry(self, path: Path, like: int | None) -> int:
        """Add an entry, a copy of the one at place ``like`` if given, with a name of its own; return its place."""
        entries = self.entries(path)
        model = None if like is None else entries[like]
        content = dict(model) if isinstance(model, Mapping) else {}
        if path in NAMED:
            names = {self.entry_name(path, place) for place in range(len(entries))}
            base = str(content.get("name", str(path[-1]).removesuffix("s"))).rstrip("0123456789").rstrip("-")
            number = 2 if content else 1
            while f"{base}-{number}" in names:
                number += 1
            content["name"] = f"{base}-{number}"
        origins = {**self.version.origins, path: (*self.origins(path), None)}
        self._replace(path, [*entries, content], origins)
        return len(entries)

    def remove_entry(self, path: Path, place: int) -> None:
        entries, origins = [*self.entries(path)], [*self.origins(path)]
        del entries[place], origins[place]
        self._replace(path, entries or ABSENT, {**self.version.origins, path: origins})


def _replaced(tree: Any, path: Path, value: Any) -> Any:
    """Return a copy of a tree in which another value stands at a path; tables that lose their last key are left out."""
    first, *rest = path
    if isinstance(first, int):
        entries = list(tree)
        entries[first] = _replaced(entries[first], tuple(rest), value)
        return entries
    table = dict(tree) if isinstance(tree, Mapping) else {}
    if rest:
        value = _replaced(table.get(first), tuple(rest), value) or ABSENT
    if value is ABSENT:
        table.pop(first, None)
    else:
        table[first] = value
    return table
