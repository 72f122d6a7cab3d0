"""papers/: each paper's checks hold, its scenario plays and verifies, and its page's links and commands are good.

Checks are functions ``check_*`` of ``check.py``, loaded by its path: folders there are named by papers, not for Python.
"""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from certificates import checks, papers
from des.mechanism import MECHANISMS
from des.response import RESPONSES
from flmarket.testing import check_mechanism, check_response
from scenarios.file.schema import REGISTRIES
from scenarios.plugin_files import load_plugin
from support import shell
from support.pages import ROOT, commands, leads_somewhere, links, of, parse

FOLDER = ROOT / "papers"
PACKAGES = {"des", "fl", "flmarket", "learning", "scenarios", "tui"}
PAPERS = papers()
PAGES = sorted(FOLDER.rglob("*.md"))
CHECKS = [
    (paper, name)
    for paper in PAPERS
    for name in re.findall(r"^def (check_\w+)\(", (paper / "check.py").read_text(encoding="utf-8"), re.M)
]


@pytest.mark.parametrize(("paper", "check"), CHECKS, ids=lambda it: it.name if isinstance(it, Path) else it)
def test_a_check_holds(paper: Path, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in REGISTRIES:  # checks may load the paper's plug-ins
        monkeypatch.setattr(registry, "_registered", {})
    getattr(checks(paper), check)()


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_its_scenario_plays_and_verifies(paper: Path, tmp_path: Path) -> None:
    short = [word for key, value in checks(paper).SHORT.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    plugin = ["--plugin", str(paper / "plugins.py")]
    for words in (
        ["validate", str(paper / "scenario.toml"), *plugin],
        ["papers", "play", paper.name, *short, "--rounds", "2", "--quiet"],
    ):
        done = shell.flmarket(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    verified, _, report = done.stdout.partition("# Report")
    assert "valid" in verified
    assert "whole market**" in report.lower()
    reports = [line for line in done.stderr.splitlines() if line.startswith("  flmarket report ")]
    for command in (line for line in reports if "--baseline" not in line):  # a short run may lack its baseline
        again = shell.flmarket(*shlex.split(command)[1:], cwd=tmp_path)
        assert again.returncode == 0, again.stderr
    for measure in re.findall(r'^@measure\("([^"]+)"', (paper / "plugins.py").read_text(encoding="utf-8"), re.M):
        assert measure in report


def test_all_are_listed_with_what_came_out() -> None:
    listed = shell.flmarket("papers").stdout
    assert [paper.name for paper in PAPERS if f" {paper.name} " not in listed] == []


def test_a_paper_that_is_not_there_is_an_error_that_names_the_nearest() -> None:
    done = shell.flmarket("papers", "play", "vern")
    assert done.returncode == 2
    assert "'vern' is not a paper; did you mean 'venn'?" in done.stderr


@pytest.mark.slow
def test_it_says_how_to_see_what_its_page_shows(tmp_path: Path) -> None:
    """The report of the whole market has the same images for every bidder; the page compares what the buyer gets."""
    done = shell.flmarket("papers", "play", "rtb-bidders", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [command] = [line for line in done.stderr.splitlines() if line.startswith("  flmarket report ")]
    report = shell.flmarket(*shlex.split(command)[1:], cwd=tmp_path).stdout
    buyer = report.partition("Service buyer")[2].partition("**")[2]
    assert re.search(r"\| rtb-lin +\|.*\| 1\d\d,?\d\d\d", buyer)


BY_NUMBER = {"round-robin", "all-in", "fair-query", "rrafl-next-number"}
"""Mechanisms that go by clients' numbers, as the papers' own do."""


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_its_mechanisms_and_responses_keep_their_contracts(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_registered", {})
    load_plugin(paper / "plugins.py")
    for name in {*MECHANISMS.registered} - BY_NUMBER:
        check_mechanism(MECHANISMS.load(name))
    for name in RESPONSES.registered:
        check_response(RESPONSES.load(name))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_its_plugins_are_short_and_it_is_in_the_index(paper: Path) -> None:
    assert len((paper / "plugins.py").read_text(encoding="utf-8").splitlines()) <= 150
    assert f"({paper.name}/README.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*/*.py")), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_it_uses_the_public_face_alone(file: Path) -> None:
    """What a paper needs and lacks there is to be mended there."""
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {module for module in modules if module.partition(".")[0] in PACKAGES}
    assert ours <= {"flmarket", "flmarket.testing"}


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_links_lead_somewhere_and_commands_are_such(page: Path) -> None:
    assert [target for target in links(page) if not leads_somewhere(page, target)] == []
    for words in commands(page.read_text(encoding="utf-8")):
        parse(words)
