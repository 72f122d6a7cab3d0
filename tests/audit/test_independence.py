"""The audit shares no code with what it audits."""

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "lib" / "audit"
ALLOWED = {"audit", "numpy", "torch", *sys.stdlib_module_names}
OURS = ("fl", "des", "learning", "scenarios", "tui", "flmarket")


def test_it_imports_the_standard_library_numpy_and_torch_alone() -> None:
    modules = list(FOLDER.glob("*.py"))
    assert len(modules) > 5
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level
                names = [node.module or ""]
            else:
                continue
            assert {name.partition(".")[0] for name in names} <= ALLOWED, module


def test_nothing_that_it_imports_imports_the_packages() -> None:
    modules = ", ".join(f"audit.{path.stem}" for path in FOLDER.glob("*.py") if path.stem != "__init__")
    script = f"import sys, {modules}; print([name for name in sys.modules if name.partition('.')[0] in {OURS}])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=FOLDER.parent, env={"PATH": ""}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
