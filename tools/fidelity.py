"""The reference part of docs/fidelity.md: how far each built-in rule that names a source follows it.

``PYTHONPATH=tools python -m fidelity docs/fidelity.md`` renews it in the page; a test compares the two. A rule says it
in its docstring, in a paragraph for each source: ``Fidelity to SOURCE: checked: FILE::TEST`` or ``Fidelity to SOURCE:
interpretation: what is assumed``.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from flmarket.core.crash import guarded
from flmarket.core.plugins import summary
from scenarios.file.reference import renew_named
from scenarios.file.schema import REGISTRIES

KINDS = ("policy", "mechanism", "behaviour", "cost", "response", "aggregator", "trigger")

_STATEMENT = re.compile(r"Fidelity to (.+?): (checked|off by [^:]+|interpretation): (.+)")
_CITES = re.compile(r"\b(?:19|20)\d\d\b|\bet al\b|\bSources?: ")
_OF_THE_PAPER = re.compile(r"\b[Tt]he paper's\b")


class Statement(NamedTuple):
    """One paragraph of a rule's docstring."""

    source: str
    how: str  # checked, off by how much, or interpretation
    text: str  # the tests, or what is assumed

    @property
    def tests(self) -> list[str]:
        """The tests by which it is checked, or by which the difference is held."""
        return [test.strip() for test in self.text.rstrip(".").split(",")] if self.how != "interpretation" else []


def rules() -> Iterator[tuple[str, str, Any]]:
    """Yield the kind, the name and the class of every built-in rule that may follow a source."""
    for registry in REGISTRIES:
        if registry.kind in KINDS:
            yield from ((registry.kind, name, registry.load(name)) for name in sorted(registry.builtin))


def names_a_source(rule: Any) -> bool:
    """Return whether a rule's docstring cites something, or its line in lists says that it is the paper's."""
    return bool(_CITES.search(rule.__doc__ or "") or _OF_THE_PAPER.search(summary(rule)))


def statements(rule: Any) -> list[Statement]:
    """Return what a rule's docstring says about its fidelity."""
    paragraphs = (" ".join(it.split()) for it in inspect.cleandoc(rule.__doc__ or "").split("\n\n"))
    return [Statement(*found.groups()) for it in paragraphs if (found := _STATEMENT.fullmatch(it))]


def table() -> str:
    """Return the table of the page as Markdown."""
    rows = [
        f"| `{name}` | {kind} | {it.source} | {_cell(it)} |" for kind, name, rule in rules() for it in statements(rule)
    ]
    return "\n".join(["| name | kind | source | fidelity |", "| --- | --- | --- | --- |", *rows]) + "\n"


def _cell(statement: Statement) -> str:
    text = ", ".join(f"`{test}`" for test in statement.tests) or statement.text.rstrip(".")
    return f"{statement.how}: {text}"


if __name__ == "__main__":
    sys.exit(guarded(partial(renew_named, table)))
