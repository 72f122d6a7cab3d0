"""The program of each tutorial makes its table and its figure from the runs of the page's commands, here fewer."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.shell import flmarket

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[2] / "docs" / "tutorials"


def labels(table: str) -> list[list[str]]:
    """Return the header and the first two cells of each row of a table in Markdown."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return [rows[0], *(row[:2] for row in rows[2:])]


@pytest.mark.parametrize(
    ("name", "shorter", "columns"),
    [
        ("interests", "--seeds 2 --rounds 20", 2),
        ("changing", "--seeds 3 --rounds 24", 1),
        ("mechanisms", "--seeds 3 --rounds 10", 1),
        ("waiting", "--seeds 2 --rounds 12", 2),
    ],
)
def test_the_program_makes_a_table_and_a_figure_like_the_pages(
    name: str, shorter: str, columns: int, tmp_path: Path
) -> None:
    """Of fewer runs, each shorter: the same rows and columns, also in a folder where README's commands have run."""
    assert flmarket("run", "quickstart", "--backend", "surrogate", "--quiet", cwd=tmp_path).returncode == 0
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    *policy, program = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for source in policy:
        (tmp_path / "paced.py").write_text(source)
    command = re.findall(r"^\$ flmarket (run (?:.*\\\n)*.*)$", text, re.MULTILINE)[0].replace("\\\n", "")
    done = flmarket(*shlex.split(command), *shorter.split(), "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert made.returncode == 0, made.stderr
    answer = text.partition("## The answer")[2].partition("```\n")[2]
    found, shown = labels(made.stdout), labels(answer)
    assert found[0] == shown[0]
    assert [row[:columns] for row in found[1:]] == [row[:columns] for row in shown[1:]]
    assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")
    assert (PAGES / f"{name}.svg").exists()
