"""The documentation site: it builds strictly, needs no network, and has an entry for whatever the code declares."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import flmarket
from flmarket.cli.program import app
from scenarios.file.reference import reference
from scenarios.logs.columns import ALL_TABLES
from support.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    pytest.importorskip("mkdocs", reason="pip install '.[docs]'")
    built = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return built


def article(page: Path) -> str:
    """Return what a page says, without the navigation."""
    found = re.search(r"<article.*</article>", page.read_text(encoding="utf-8"), re.S)
    return found[0] if found else ""


def entries(page: Path) -> list[str]:
    """Return the first cells of a page's tables that are code."""
    return [unescape(cell) for cell in re.findall(r"<tr>\s*<td><code>(.*?)</code>", article(page), re.S)]


def test_it_loads_nothing_from_the_network_and_has_its_search_index(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]*\bsrc=\"?https?:", text), page
        loaded = re.findall(r"<link[^>]*>", text)
        assert not [link for link in loaded if "http" in link and 'rel="canonical"' not in link], page
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert "total_budget" in index


def test_no_list_or_table_is_left_as_text(site: Path) -> None:
    """mkdocs needs four spaces where GitHub is content with two."""
    for page in site.rglob("*.html"):
        prose = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", article(page), flags=re.S)
        for paragraph in re.findall(r"<p>(.*?)</p>", prose, re.S):
            assert not re.search(r"^\s*(\||[-*] )|```", paragraph, re.M), (page, paragraph)


def test_every_command_and_option_has_its_entry(site: Path) -> None:
    page = site / "reference/commands.html"
    headings = re.findall(r"<h2[^>]*>(.*?)<a", article(page))
    options = " ".join(entries(page))
    waiting = [("flmarket", app)]
    while waiting:
        name, command = waiting.pop()
        command = command.make_context(name, [], resilient_parsing=True).command
        assert name in headings
        assert {option for each in command.params for option in each.opts if option[:2] == "--"} <= {
            "--help",
            *re.findall(r"--[\w-]+", options),
        }
        waiting += [(f"{name} {part}", found) for part, found in getattr(command, "commands", {}).items()]


def test_every_key_of_the_scenario_file_has_its_entry(site: Path) -> None:
    declared = re.findall(r"^\| `([^`]+)` \|", reference(), re.M)
    assert "total_budget" in declared
    assert set(declared) <= set(entries(site / "scenario.html"))


def test_every_column_has_its_entry(site: Path) -> None:
    found = entries(site / "logs.html")
    for table in ALL_TABLES.values():
        assert set(table.names) <= set(found)


def test_every_public_name_and_exit_status_has_its_entry(site: Path) -> None:
    pages = "".join(article(site / f"reference/{name}.html") for name in ("python", "plug-ins", "errors"))
    assert set(flmarket.__all__) <= set(re.findall(r'id="flmarket\.(\w+)"', pages))
    assert entries(site / "reference/errors.html") == ["0", "1", "2", "70", "130", "143", "129"]
