"""The house in numbers that may fall, and rise only with a line in CHANGELOG.md: part of `make lint`.

    python tools/house.py            # compares with tools/house.json; exit status 1 where a number has risen
    python tools/house.py --renew    # writes today's numbers
    python tools/house.py --list     # names what is counted

Counted are the packages alone, not tests, tools, benchmarks and research.
"""

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("flmarket", "fl", "des", "learning", "scenarios", "tui")
RECORD = Path(__file__).with_suffix(".json")
SMALL = 80  # lines of a module that its one importer could hold


def modules() -> dict[str, tuple[ast.Module, int]]:
    """Return the tree and the number of lines of each module, by its dotted name."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    texts = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8") for path in paths}
    return {name: (ast.parse(text), text.count("\n")) for name, text in texts.items()}


def imports(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Yield the modules of our own that a piece of code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in inside)


def is_own(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def counted(trees: dict[str, tuple[ast.Module, int]]) -> dict[str, list[str]]:
    """Return the things that are counted, by the name of their number."""
    importers: dict[str, set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = defaultdict(set)
    found: dict[str, list[str]] = defaultdict(list)
    for module, (tree, _) in trees.items():
        for name in imports(tree, set(trees)):
            importers[name].add(module)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found["classes"].append(f"{module}.{node.name}")
                if not node.name.startswith("_"):
                    classes[node.name].add(module)
            elif isinstance(node, ast.Raise):
                found["raises"].append(f"{module}:{node.lineno}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = (each for part in node.body for each in ast.walk(part))
                found["own imports inside functions"] += [
                    f"{module}:{each.lineno}"
                    for each in inner
                    if isinstance(each, ast.ImportFrom) and each.module and is_own(each.module)
                ]
    files = defaultdict(set)
    for module in trees:
        files[module.rpartition(".")[2]].add(module)
    found["modules"] = list(trees)
    found["small modules with one importer"] = [
        module
        for module, (_, lines) in trees.items()
        if len(importers[module]) == 1 and lines <= SMALL and not module.endswith("__init__")
    ]
    found["class names that stand for several things"] = [
        f"{name}: {', '.join(sorted(where))}" for name, where in classes.items() if len(where) > 1
    ]
    found["file names that stand for several files"] = [
        f"{name}: {', '.join(sorted(where))}"
        for name, where in files.items()
        if len(where) > 1 and name not in ("__init__", "__main__")
    ]
    return {name: sorted(set(found[name])) for name in sorted(found)}


def main(arguments: list[str]) -> int:
    """Compare, renew or list."""
    things = counted(modules())
    numbers = {name: len(listed) for name, listed in things.items()}
    if "--list" in arguments:
        print("\n".join(f"{name}:\n    " + "\n    ".join(listed) for name, listed in things.items()))
    if "--renew" in arguments:
        RECORD.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
        return 0
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    risen = [name for name, number in numbers.items() if number > before.get(name, 0)]
    for name, number in numbers.items():
        print(f"{name}: {number}, {before.get(name, 0)} on record" + "; it has risen" * (name in risen))
    if risen:
        print("Make it fall again, or say in CHANGELOG.md why it rises and run `python tools/house.py --renew`.")
    return bool(risen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
