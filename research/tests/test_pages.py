"""The notebook: its table of experiments is whole, links lead somewhere, commands and scripts are what a page says."""

import re
from pathlib import Path

import pytest

from learning.policy import POLICIES
from support.benchmarks import printed
from support.pages import RESEARCH, ROOT, commands, goal, leads_somewhere, links, of, parse, scripts, understands

README = RESEARCH / "README.md"
PAGES = sorted(RESEARCH.rglob("*.md"))
PRODUCT = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
HELPERS = {"everywhere_markets.py", "experiment.py", "lockstep_play.py", "offer_rule.py", "spending.py"}
"""Modules that the experiments share."""
EXPERIMENTS = sorted(path for path in RESEARCH.glob("*.py") if path.name not in HELPERS)
COMMANDS = [(of(page), words) for page in PAGES for words in commands(page.read_text())]
SCRIPTS = [
    (of(page), words) for page in [*PAGES, *PRODUCT] for words in scripts(page) if words[0].startswith("research")
]


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that other tests have imported registers its policies again."""
    monkeypatch.setattr(POLICIES, "_registered", {})


def shown(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [target for target in links(page) if not leads_somewhere(page, target)] == []


@pytest.mark.parametrize("page", PRODUCT, ids=of)
def test_links_from_the_product_lead_somewhere(page: Path) -> None:
    here = [target for target in links(page) if goal(page, target).is_relative_to(RESEARCH)]
    assert [target for target in here if not leads_somewhere(page, target)] == []


def test_the_readme_lists_every_page_and_every_experiment() -> None:
    listed = {goal(README, target) for target in links(README)}
    assert listed >= {page for page in PAGES if page != README}
    named = set(re.findall(r"python research/(\w+\.py)", README.read_text()))
    assert named == {path.name for path in EXPERIMENTS}


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=shown)
def test_every_command_is_one(page: str, words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(("page", "words"), SCRIPTS, ids=shown)
def test_every_script_takes_its_arguments(page: str, words: list[str]) -> None:
    understands(words)


@pytest.mark.parametrize("script", EXPERIMENTS, ids=lambda path: path.name)
def test_every_experiment_explains_itself(script: Path) -> None:
    assert f"usage: {script.name}" in printed(of(script), "--help")
