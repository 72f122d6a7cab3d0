"""Where mutants are made: the modules that decide what a run yields, without what no test should have to notice."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

MODULES = (
    "des/*.py",
    "des/clients/*.py",
    "des/costs/*.py",
    "des/responses/*.py",
    "des/behaviour.py",
    "des/mechanism.py",
    "fl/**/*.py",
    "flmarket/core/*.py",
    "learning/statistics/__init__.py",
    "learning/mahdrl/**/*.py",
    "flmarket/analysis/results/measures.py",
    "flmarket/analysis/verification/verify.py",
    "flmarket/analysis/verification/evidence.py",
    "flmarket/analysis/verification/*rules.py",
)

LEFT_OUT = ("fl/calibration/*.py",)

Span = tuple[tuple[int, int], tuple[int, int]]
"""From (line, column) to (line, column), the end not included; lines count from 1, columns from 0."""


def modules(root: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the modules that are mutated, in a fixed order: all, or of these those that fit a pattern."""
    left_out = {path for pattern in LEFT_OUT for path in root.glob(pattern)}
    chosen = {path for pattern in MODULES for path in root.glob(pattern)} - left_out
    return sorted(chosen & {path for pattern in only for path in root.glob(pattern)} if only else chosen)


def excluded(source: str) -> list[Span]:
    """Return the parts of a module that are not mutated.

    These are annotations, decorators, ``raise`` statements and f-strings (messages), ``__repr__``, and ``strict=`` of
    ``zip``, which checks the code itself.
    """
    lines = source.splitlines()

    def place(line: int, byte: int) -> tuple[int, int]:
        return line, len(lines[line - 1].encode()[:byte].decode())

    return [
        (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset))
        for node in _excluded(ast.parse(source))
    ]


def _excluded(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.JoinedStr() | ast.FunctionDef(name="__repr__"):
                yield node
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.arg(annotation=annotation) if annotation:
                yield annotation
            case ast.Call(func=ast.Name(id="zip"), keywords=keywords):
                yield from keywords
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from node.decorator_list
        if isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns


def nearest(root: Path, module: Path) -> list[Path]:
    """Return the tests that are run for a module: in its folder those that are named after it or import it.

    Where there are none, or the fixtures of all import it, the whole folder; where nobody there knows it, those tests
    of other folders that do. The tests mirror the packages. Paths are relative to ``root``, as ``module`` is.
    """
    folder = Path("tests") / module.parent
    *package, name = module.with_suffix("").parts
    imports = re.compile(
        rf"^(from|import) {'[.]'.join([*package, name])}\b|^from {'[.]'.join(package)} import .*\b{name}\b", re.M
    )

    def know_it(within: Path, pattern: str) -> list[Path]:
        tests = sorted((root / within).glob(pattern), key=lambda path: (path.stem != f"test_{name}", path))
        found = (path for path in tests if path.stem == f"test_{name}" or imports.search(path.read_text("utf-8")))
        return [path.relative_to(root) for path in found]

    if know_it(folder, "conftest.py"):
        return [folder]
    return know_it(folder, "test_*.py") or know_it(Path("tests"), "**/test_*.py") or [folder]
