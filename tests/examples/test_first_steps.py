"""The notebook runs from top to bottom, as a reader would run it, with fewer rounds."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flmarket

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first-steps.ipynb"

# A notebook's cells are one program, and the last expression of each cell is shown.
SHOW = """
def show(value):
    for kind in ("_repr_html_", "_repr_png_"):
        shown = getattr(value, kind, lambda: None)()
        if shown is not None:
            print(f"[{kind}: {len(shown)}]")
            return
    print(repr(value))
"""


def program(cells: list[str]) -> str:
    lines = [SHOW]
    for cell in cells:
        tree = ast.parse(cell)
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            *before, last = tree.body
            lines += [ast.unparse(ast.Module(before, [])), f"show({ast.unparse(last)})"]
        else:
            lines.append(cell)
    return "\n".join(lines)


def test_the_two_values_that_the_notebook_changes_differ_from_the_scenario() -> None:
    [cell] = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if "flmarket.load" in "".join(cell["source"])]
    source = "".join(cell["source"])
    assert "with two values changed" in source
    found = re.search(r'flmarket\.load\("quickstart", (\{.*\})\)', source)
    assert found is not None
    changes = ast.literal_eval(found[1])
    assert len(changes) == 2
    for key, value in changes.items():
        assert flmarket.load("quickstart", {key: value}) != flmarket.load("quickstart")


def test_the_notebooks_policy_copes_with_clients_that_are_offline(tmp_path: Path) -> None:
    cells = ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"]]
    [cell] = [cell for cell in cells if cell.startswith("class BigSpender")]
    names = {"flmarket": flmarket, "__name__": __name__}
    exec(cell, names)  # noqa: S102 - our own notebook
    shock = {"round": 1, "key": "clients.offline", "value": list(range(6))}
    scenario = flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 2, "interventions": [shock]})
    played = flmarket.run(scenario, names["BigSpender"], out=tmp_path, progress=False)  # type: ignore[arg-type]
    assert played.offers["client"].min() >= 6


def test_from_import_to_a_plot_in_ten_cells(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert len(cells) == 10
    assert all(cell["cell_type"] != "code" or not cell["outputs"] for cell in cells)  # figures depend on the machine
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert (code[0], code[-1]) == ("import flmarket", 'results.plot("accuracy")')
    short = [cell.replace('"rounds": 15', '"rounds": 3') for cell in code]
    assert short != code
    done = subprocess.run([sys.executable, "-"], input=program(short), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("[_repr_png_: ")
    assert len(list(tmp_path.glob("runs/quickstart-*/*/seed-*"))) == 9
