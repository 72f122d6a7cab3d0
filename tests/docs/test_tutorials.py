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
PAGE = PAGES / "interests.md"


def labels(table: str) -> list[list[str]]:
    """Return the header and the first two cells of each row of a table in Markdown."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return [rows[0], *(row[:2] for row in rows[2:])]


def test_the_program_on_interests_makes_a_table_and_a_figure_like_the_pages(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    done = flmarket("run", "interests", "--seeds", "2", "--rounds", "20", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [program] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", program]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert made.returncode == 0, made.stderr
    answer = text.partition("## The answer")[2].partition("```\n")[2]
    assert labels(made.stdout) == labels(answer)
    assert (tmp_path / "interests.svg").read_text().startswith("<?xml")
    assert (PAGE.parent / "interests.svg").exists()


def test_the_programs_on_changing_make_a_table_and_a_figure_like_the_pages(tmp_path: Path) -> None:
    text = (PAGES / "changing.md").read_text(encoding="utf-8")
    policy, program = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "paced.py").write_text(policy)
    [command] = re.findall(r"^\$ flmarket (run .*?)\n\$", text, re.MULTILINE | re.DOTALL)
    words = [word for word in shlex.split(command) if word.strip()]
    words[words.index("--seeds") + 1] = "3"
    done = flmarket(*words, "--rounds", "24", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert made.returncode == 0, made.stderr
    answer = text.partition("## The answer")[2].partition("```\n")[2]
    assert [row[:1] for row in labels(made.stdout)[1:]] == [row[:1] for row in labels(answer)[1:]]
    assert labels(made.stdout)[0] == labels(answer)[0]
    assert (tmp_path / "changing.svg").read_text().startswith("<?xml")
    assert (PAGES / "changing.svg").exists()


def test_the_program_on_mechanisms_makes_a_table_and_a_figure_like_the_pages(tmp_path: Path) -> None:
    text = (PAGES / "mechanisms.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    [command] = re.findall(r"^\$ flmarket (run .*?)\n\$", text, re.MULTILINE | re.DOTALL)
    words = [word for word in shlex.split(command) if word.strip()]
    words[words.index("--seeds") + 1], words[words.index("--rounds") + 1] = "3", "10"
    done = flmarket(*words, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert made.returncode == 0, made.stderr
    answer = text.partition("## The answer")[2].partition("```\n")[2]
    assert [row[:1] for row in labels(made.stdout)] == [row[:1] for row in labels(answer)]
    assert labels(made.stdout)[0] == labels(answer)[0]
    assert (tmp_path / "mechanisms.svg").read_text().startswith("<?xml")
    assert (PAGES / "mechanisms.svg").exists()
