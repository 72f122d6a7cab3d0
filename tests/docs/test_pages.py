"""README, the index of docs/ and CITATION.cff: everything is found from there, and every link leads somewhere."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and pictures, code left out."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def test_anchors_are_made_as_on_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Fig. 2: policies\n## `a_b` and [c](d.md)\n## Twice\n## Twice\n```\n# code\n```\n")
    assert anchors(page) == {"fig-2-policies", "a_b-and-c", "twice", "twice-1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        goal = page.parent / place if place else page
        assert goal.exists(), target
        assert not anchor or anchor in anchors(goal), target


def test_the_index_lists_every_page_once_in_six_groups() -> None:
    text = INDEX.read_text(encoding="utf-8")
    groups = re.findall(r"^## (.+)$", text, re.M)
    assert groups == ["Start", "Guides", "Concepts", "Reference", "Research notebook", "Contributing"]
    listed = [(DOCS / target).resolve() for target in re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| .+ \|$", text, re.M)]
    assert sorted(listed) == sorted([*set(DOCS.rglob("*.md")) - {INDEX}, ROOT / "CONTRIBUTING.md"])


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    assert len(text.split()) <= 1_100


def test_the_citation_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(\w[\w-]*): (.+)$", citation, re.M))
    assert (fields["title"], fields["version"], fields["license"]) == (
        project["name"], project["version"], project["license"]
    )  # fmt: skip
