"""The examples of docs/extending.md, in order: its files are written, and its commands run."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Page:
    """The page's examples in a folder.

    Attributes:
        folder: where its files are, and where its commands are run.
        files: the texts of its files, by name.
        by_file: its commands that load plug-ins from files, or need none.
        by_package: those that need the package installed.
    """

    folder: Path
    files: dict[str, str]
    by_file: list[str]
    by_package: list[str]

    def run(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the page; it must succeed."""
        program, *words = shlex.split(command)
        assert program == "flmarket"
        arguments = [found for word in words for found in self._found(word)]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tui.cli", *arguments],
            cwd=self.folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stderr}"
        return done

    def _found(self, word: str) -> list[str]:
        """Expand a word as a shell does."""
        if "*" not in word:
            return [word]
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob(word)) or [word]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("extending")
    before, after = PAGE.read_text(encoding="utf-8").split("## As a package")
    files, commands = {}, ([], [])
    for text, found in zip((before, after), commands, strict=True):
        for language, content in BLOCK.findall(text):
            if language == "console":
                found += [line.removeprefix("$ ") for line in content.splitlines()]
            else:
                name = content.splitlines()[0].removeprefix("# ")
                files[name] = content
    for name, content in files.items():
        (folder / name).write_text(content)
    return Page(folder, files, *commands)


def test_every_command_runs_with_plugins_from_files(page: Page) -> None:
    assert set(page.files) == {"markup.py", "tiny.py", "bars.py", "next_price.py", "bars.toml", "pyproject.toml"}
    assert len(page.by_file) == 6
    for command in page.by_file:
        done = page.run(command)
        if command.startswith("flmarket datasets"):
            assert "Noisy bars: horizontal, vertical or diagonal, in colour." in done.stdout

    [surrogate] = (page.folder / "runs").glob("quickstart-*/markup")
    offers = pd.read_csv(surrogate / "seed-0000" / "offers.csv")
    assert (offers["payment"] > offers["bid"]).all()
    [bars] = (page.folder / "runs").glob("bars-*/as-configured")
    offers = pd.concat(pd.read_csv(path) for path in bars.rglob("offers.csv"))
    served = offers[offers["outcome"] == "served"]
    assert (served["price"] < served["payment"]).any()  # next-price
    assert len(served) > 0


def test_the_same_files_work_as_an_installed_package(page: Page, tmp_path: Path) -> None:
    project = tomllib.loads(page.files["pyproject.toml"])["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in entries.items()) for group, entries in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, content in page.files.items():
        if name.endswith(".py"):
            (tmp_path / name).write_text(content)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    listing, run = (page.run(command, PYTHONPATH=path) for command in page.by_package)
    (line,) = (line for line in listing.stdout.splitlines() if "markup" in line)
    assert "my-plugins 1.0" in line
    assert "generous" in run.stdout
    [installed] = (page.folder / "installed").rglob("rounds.csv")
    [file] = (page.folder / "runs").glob("bars-*/as-configured/seed-0000/rounds.csv")
    assert installed.read_bytes() == file.read_bytes()
