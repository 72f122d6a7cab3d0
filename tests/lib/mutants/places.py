"""Where mutants are made: the modules that decide what a run yields, without what no test should have to notice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MODULES = (
    "des/*.py",
    "des/clients/*.py",
    "des/behaviours/behaviour.py",
    "des/mechanisms/mechanism.py",
    "fl/**/*.py",
    "flmarket/core/*.py",
    "learning/statistics/area_under_curve.py",
    "learning/statistics/time_to_target.py",
    "learning/mahdrl/**/*.py",
    "flmarket/analysis/results/measures.py",
    "flmarket/analysis/verification/verify.py",
    "flmarket/analysis/verification/evidence.py",
    "flmarket/analysis/verification/*rules.py",
)

LEFT_OUT = ("fl/calibration/*.py",)

RULES = ("flmarket/analysis/verification/test_verify.py", "flmarket/analysis/verification/test_mutations.py")
TRAINING = (
    "learning/mahdrl/test_training.py",
    "learning/mahdrl/test_learner.py",
    "learning/mahdrl/test_agent_files.py",
    "scenarios/test_train.py",
)
ELSEWHERE = {
    "des/market.py": ("des",),  # what the whole folder is about
    "fl/backends.py": ("scenarios/test_backends.py",),
    "flmarket/core/plugin_errors.py": (
        "flmarket/core/test_plugins.py",
        "fl/training/test_networks.py",
        "des/test_bad_offers.py",
    ),
    "fl/data/dataset.py": (
        "fl/data/test_registry.py",
        "fl/data/test_own_dataset.py",
        "fl/training/test_federation.py",
    ),
    "fl/data/digits.py": ("fl/data/test_registry.py", "fl/data/test_strokes.py"),
    "flmarket/core/extras.py": ("learning/mahdrl/test_agent_files.py", "flmarket/analysis/results/test_parquet.py"),
    "flmarket/core/names.py": (
        "flmarket/core/test_names.py",
        "flmarket/core/test_plugins.py",
        "scenarios/file/test_problems.py",
    ),
    "learning/mahdrl/training.py": TRAINING,
    "learning/mahdrl/agent_files.py": TRAINING,
    "flmarket/analysis/verification/evidence.py": RULES,
    "flmarket/analysis/verification/offer_rules.py": RULES,
    "flmarket/analysis/verification/row_rules.py": RULES,
    "flmarket/analysis/verification/findings.py": RULES,
    "flmarket/analysis/verification/time_rules.py": RULES,
    "flmarket/analysis/verification/verify.py": RULES,
}
"""Modules whose nearest tests have other names, or are in the folder of a package above."""

Span = tuple[tuple[int, int], tuple[int, int]]
"""From (line, column) to (line, column), the end not included; lines count from 1, columns from 0."""


def modules(root: Path) -> list[Path]:
    """Return the modules that are mutated, in a fixed order."""
    left_out = {path for pattern in LEFT_OUT for path in root.glob(pattern)}
    return sorted({path for pattern in MODULES for path in root.glob(pattern)} - left_out)


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
    """Return the tests that are run for a module: those that are named after it or import it, else the whole folder.

    The tests mirror the packages. Paths are relative to ``root``, as ``module`` is.
    """
    if module.as_posix() in ELSEWHERE:
        return [Path("tests", name) for name in ELSEWHERE[module.as_posix()]]
    folder = Path("tests") / module.parent
    *package, name = module.with_suffix("").parts
    imports = re.compile(
        rf"^(from|import) {'[.]'.join([*package, name])}\b|^from {'[.]'.join(package)} import .*\b{name}\b", re.M
    )
    found = [
        path.relative_to(root)
        for path in sorted((root / folder).glob("test_*.py"), key=lambda path: (path.stem != f"test_{name}", path))
        if path.stem == f"test_{name}" or imports.search(path.read_text(encoding="utf-8"))
    ]
    return found or [folder]
