"""README, the index of docs/ and CITATION.cff: everything is found from there, and every link leads somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from support.pages import RESEARCH, ROOT, anchors, goal, leads_somewhere, links, of

DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def test_anchors_are_made_as_on_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Fig. 2: policies\n## `a_b` and [c](d.md)\n## Twice\n## Twice\n```\n# code\n```\n")
    assert anchors(page) == {"fig-2-policies", "a_b-and-c", "twice", "twice-1"}


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Those into research/ are tested there."""
    own = [target for target in links(page) if not goal(page, target).is_relative_to(RESEARCH)]
    assert [target for target in own if not leads_somewhere(page, target)] == []


def test_the_index_lists_every_page_once_in_five_groups() -> None:
    text = INDEX.read_text(encoding="utf-8")
    groups = re.findall(r"^## (.+)$", text, re.M)
    assert groups == ["Start", "Guides", "Concepts", "Reference", "Contributing"]
    listed = [(DOCS / target).resolve() for target in re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| .+ \|$", text, re.M)]
    assert sorted(listed) == sorted([*set(DOCS.rglob("*.md")) - {INDEX}, ROOT / "CONTRIBUTING.md"])


@pytest.mark.parametrize(
    "page", [*DOCS.glob("[a-z]*.md"), *DOCS.glob("extending/*.md"), *DOCS.glob("tutorials/*.md")], ids=of
)
def test_a_page_begins_with_what_it_is_for_and_ends_with_what_to_read_next(page: Path) -> None:
    _, first, *_, last = page.read_text(encoding="utf-8").strip().split("\n\n")
    assert first.startswith("After this page you ")
    assert re.match(r"Next: .*\]\(", last, re.S)


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    assert len(text.split()) <= 1_100


def test_citation_changelog_and_recipe_are_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(\w[\w-]*): (.+)$", citation, re.M))
    assert (fields["title"], fields["version"], fields["license"]) == (
        project["name"], project["version"], project["license"]
    )  # fmt: skip
    recipe = (ROOT / "conda/recipe.yaml").read_text(encoding="utf-8")
    assert f"version: {project['version']}\n" in recipe
    needed = [re.fullmatch(r"([\w-]+)(>=.+)", it) for it in project["dependencies"]]
    run = re.findall(r"    - (\S+) (>=\S+)", recipe.partition("  run:\n")[2])
    assert run == [
        ("python", project["requires-python"]),
        *((it[1].replace("matplotlib", "matplotlib-base"), it[2]) for it in needed if it),
    ]
    released = re.findall(r"^## \[(.+)\](?: - (.+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert released[:2] == [("Unreleased", ""), (fields["version"], fields["date-released"])]
