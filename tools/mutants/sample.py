"""Draw mutants: a random token of all that can be mutated, then one of the mutations of that token."""

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations, product
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from mutants.places import excluded, modules

# Replacements that yield other values of the same type. A number shifted by bits is found by any test.
ARITHMETIC, BITS, ORDER = ("Add", "Sub", "Mul", "Div"), ("BitOr", "BitAnd"), ("Lt", "LtE", "Gt", "GtE", "Eq", "NotEq")
OPERATORS = tuple(
    f"core/{name}"
    for name in (
        *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in permutations(ARITHMETIC, 2)),
        *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in product(("FloorDiv", "Mod", "Pow"), ARITHMETIC)),
        *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in permutations(BITS, 2)),
        *(f"ReplaceComparisonOperator_{a}_{b}" for a, b in permutations(ORDER, 2)),
        *(f"ReplaceComparisonOperator_{a}_{b}" for a, b in permutations(("Is", "IsNot"), 2)),
        *(f"ReplaceUnaryOperator_Delete_{a}" for a in ("USub", "Invert", "Not")),
        *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
        *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    )
)


@dataclass(frozen=True, order=True, slots=True)
class Mutant:
    """One mutation of one token.

    Attributes:
        module: the file, relative to the repository.
        line, column: where, from 1 and from 0.
        operator: cosmic-ray's name of the operator.
        occurrence: which of the places at which the operator could mutate the module.
    """

    module: Path
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        """The mutant's name in reports."""
        return f"{self.module}:{self.line}:{self.column} {self.operator.removeprefix('core/')} {self.occurrence}"

    def source(self, root: Path) -> str:
        """Return the mutated module."""
        return str(mutate_code((root / self.module).read_text(encoding="utf-8"), _operator(self), self.occurrence))

    def diff(self, root: Path) -> str:
        """Return the lines that differ, as of a unified diff without context."""
        before = (root / self.module).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.source(root).splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))

    def compiles(self, root: Path) -> bool:
        """Return whether the mutant is Python, which cosmic-ray can make: of ``except a.b`` it cannot."""
        try:
            ast.parse(self.source(root))
        except (SyntaxError, AttributeError):
            return False
        return True


def _operator(mutant: Mutant) -> object:
    return get_operator(mutant.operator)()


def mutants_of(root: Path, module: Path) -> Iterator[Mutant]:
    """Return all mutants of a module (relative to ``root``) that are outside of what is excluded."""
    source = (root / module).read_text(encoding="utf-8")
    spans = excluded(source)
    nodes = [node for node in ast_nodes(get_ast(source)) if node.type not in ("name", "newline", "string")]
    for name in OPERATORS:
        operator = get_operator(name)()
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            if not any(begin <= start < end for begin, end in spans):
                yield Mutant(module, *start, name, occurrence)


def sample(root: Path, number: int, seed: int, only: Sequence[str] = ()) -> list[Mutant]:
    """Return ``number`` mutants at different tokens, in random order; all tokens are equally likely.

    A larger number begins with the same ones. ``only`` as in ``modules``.
    """
    everything = sorted(mutant for path in modules(root, only) for mutant in mutants_of(root, path.relative_to(root)))
    tokens = [list(group) for _, group in groupby(everything, key=lambda m: (m.module, m.line, m.column))]
    draw = random.Random(seed)  # noqa: S311
    draw.shuffle(tokens)
    drawn: list[Mutant] = []
    for token in tokens:
        if len(drawn) == number:
            break
        mutant = draw.choice(token)
        if mutant.compiles(root):
            drawn.append(mutant)
    return drawn
