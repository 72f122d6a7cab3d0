"""A scenario file that is being edited: its text with comments and layout, and what has changed."""

from collections.abc import Mapping, MutableMapping, MutableSequence
from itertools import pairwise
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable

from flmarket.core.files import BYTE_ORDER_MARK, laid_out_as
from scenarios.file.problems import Path, Problem, ScenarioError
from scenarios.file.toml import read_toml

ABSENT = object()  # the value of a key that is absent, so that its default applies


class ScenarioDocument:
    """A TOML document that keeps its comments and layout while values change."""

    def __init__(
        self,
        text: str,  # the scenario file's text. It need not be a valid scenario.
        file: str = "scenario",  # its name in problems
    ) -> None:
        self.file_text = text  # as the file has it
        text = text.removeprefix(BYTE_ORDER_MARK)
        read_toml(text, file)
        try:
            self._document = tomlkit.parse(text)
        except (TOMLKitError, RecursionError) as error:
            raise ScenarioError([Problem(file, None, "", f"cannot be edited: {error}")]) from None
        self._original = self.data
        # for each service, its place in the original file; None for a new service
        self.origins: list[int | None] = list(range(self.services))

    @property
    def text(self) -> str:
        return laid_out_as(self.file_text, tomlkit.dumps(self._document))

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self._document.unwrap()
        return data

    @property
    def changed(self) -> bool:
        return self.data != self._original

    def saved(self) -> None:
        """Make the present text the file that changes are relative to."""
        self.file_text, self._original = self.text, self.data
        self.origins = list(range(self.services))

    def get(self, path: Path) -> Any:
        """Return a value, or ABSENT."""
        return _walk(self.data, path)

    def was(self, path: Path) -> Any:
        """Return a value of the original file, or ABSENT; a service is found by its original place."""
        if path[:1] == ("services",) and len(path) > 1 and isinstance(path[1], int):
            origin = self.origins[path[1]]
            if origin is None:
                return ABSENT
            path = ("services", origin, *path[2:])
        return _walk(self._original, path)

    def put(
        self,
        path: Path,  # of the key; tables on the way to it are created, and replace anything else that stands there
        # TOML such as ``20`` or ``[100, 200]``. If it is not TOML, it is taken as a string, which the checks then
        # refuse
        text: str,
        *,
        is_text: bool = False,  # whether the key holds a string, so that quotes are not needed
    ) -> None:
        """Set a value from what the user typed; an empty text removes the key."""
        last = path[-1]
        if not text.strip():
            self._remove(path)
            return
        table: Any = self._document
        for part, below in pairwise(path):
            table = self._enter(table, part, MutableSequence if isinstance(below, int) else MutableMapping)
        if is_text:
            table[last] = text
            return
        try:
            table[last] = tomlkit.value(text.strip())
        except (TOMLKitError, ValueError):
            table[last] = text

    @staticmethod
    def _enter(table: Any, part: str | int, kind: type) -> Any:
        """Return what stands in a table; a new table if nothing does, or something else than is needed."""
        value = table.get(part) if isinstance(part, str) else table[part]
        if not isinstance(value, kind):
            inside = isinstance(table, InlineTable | Array)
            table[part] = tomlkit.inline_table() if inside else tomlkit.table()
        return table[part]

    def _remove(self, path: Path) -> None:
        *way, last = path
        table = _walk(self._document, tuple(way))
        if isinstance(table, MutableMapping) and last in table:
            del table[last]

    # Services

    @property
    def services(self) -> int:
        services = self._document.get("services")
        return len(services) if isinstance(services, MutableSequence) else 0

    def service_name(self, place: int) -> str:
        """Return a service's name, or its place if it has no name."""
        name = self.get(("services", place, "name"))
        return name if isinstance(name, str) and name else f"#{place + 1}"

    def add_service(self, like: int | None) -> int:
        """Add a service, a copy of the one at place ``like`` if given; return its place."""
        model = None if like is None else self.data["services"][like]
        copied = model if isinstance(model, Mapping) else {}
        names = {self.service_name(place) for place in range(self.services)}
        base = str(copied.get("name", "service")).rstrip("0123456789").rstrip("-")
        number = 2 if copied else 1
        while f"{base}-{number}" in names:
            number += 1
        content = {**copied, "name": f"{base}-{number}"}
        services = self._document.get("services")
        if not isinstance(services, MutableSequence):
            services = tomlkit.aot()
            self._document["services"] = services
        if isinstance(services, AoT):
            table = tomlkit.table()
            table.update(content)
            table.add(tomlkit.nl())
            services.append(table)
        else:
            inline = tomlkit.inline_table()
            inline.update(content)
            services.append(inline)
        self.origins.append(None)
        return self.services - 1

    def remove_service(self, place: int) -> None:
        del self._document["services"][place]
        del self.origins[place]


def _walk(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value
