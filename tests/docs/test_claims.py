"""`benchmarks/claims.py`, its table of claims, and the pages: what they state stands there, and has a source."""

import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest

from support.benchmarks import benchmark, printed
from support.pages import parse

bench = benchmark("claims")
BRACES, Claim, claims, compare = bench.BRACES, bench.Claim, bench.claims, bench.compare
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BOOK = sorted((ROOT / "docs").rglob("*.md"))
WITHOUT = {
    "docs/auction-based-fl.md": "times of one run whose command stands beside them, and what follows for a whole one",
    "docs/continuous.md": "an example by hand, and tables of runs whose commands stand beside them",
    "docs/decisions/algorithm1.md": "differences of the trial, whose tables research/tests/test_tables.py holds",
    "docs/decisions/batches.md": "limits that the code has, not measurements",
    "docs/decisions/data.md": "limits of the sizes of files, in the code",
    "docs/decisions/engine.md": "measured once, when it was decided; no command is kept",
    "docs/decisions/first-ten-minutes.md": "what was met in an earlier version; cannot be made again",
    "docs/decisions/market.md": "measured once, before one of two loops left; its code is gone",
    "docs/decisions/screens.md": "a limit that was set, not a measurement",
    "docs/mechanisms/vcg.md": "measured on one machine; the command stands beside them, and their intervals are wide",
}
"""Pages with figures that have no command, and why."""
PAGES = [ROOT / "README.md", *BOOK]
UNIT = r"(?:times (?:as|the)|rounds/s|rounds a (?:CPU )?second|(?:s|ms|us|seconds?|minutes?|hours?|MB|GB|kB)\b(?! a\b))"
MEASURED = re.compile(rf"[\d.,]*\d\**\s+{UNIT}|[+-]?[\d.]*\d \[[+-]?[\d.]+, [+-]?[\d.]+\]|[\d.]*\d ± [\d.]*\d")
"""Times, rates, ratios, and estimates with an interval."""


def flat(text: str) -> str:
    return " ".join(text.split())


def prose(page: Path) -> str:
    """Return a page without its code, its tables and what is generated from results."""
    text = re.sub(r"<!-- figures: begin -->.*<!-- figures: end -->", "", page.read_text(), flags=re.S)
    return flat(re.sub(r"^```.*?^```|^ *\|.*?\|$|^ {4}.*?$", "", text, flags=re.M | re.S))


def stated(words: str) -> str:
    return flat(BRACES.sub(r"\1", words))


@pytest.mark.parametrize(("name", "claim"), claims().items())
def test_the_words_of_a_claim_stand_in_its_page_and_its_commands_are_commands(name: str, claim: Claim) -> None:
    page = flat((ROOT / claim.page).read_text())
    assert [words for words in claim.words if stated(words) not in page] == []
    assert all(BRACES.findall(words) for words in claim.words)
    for line in claim.commands:
        program, first, *_ = line.split()
        assert (program == "python" and (ROOT / first).is_file()) or program == "flmarket"
    for line in claim.commands:
        if line.startswith("flmarket "):
            parse(shlex.split(line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_figure_in_prose_has_a_source(page: Path) -> None:
    """If this fails: add the figure to benchmarks/claims.toml, with the command that makes it, or leave it out."""
    text = prose(page)
    for claim in claims().values():
        for words in claim.words if ROOT / claim.page == page else ():
            text = text.replace(stated(words), "")
    found = [text[max(0, it.start() - 40) : it.end() + 20] for it in MEASURED.finditer(text)]
    assert bool(found) == (str(page.relative_to(ROOT)) in WITHOUT), found


def test_the_tables_on_speed_are_those_of_the_stored_results() -> None:
    """If this fails: python benchmarks/measure.py"""
    measure = benchmark("measure")
    for page, content in (("performance.md", measure.ten), ("measurements.md", measure.tables)):
        assert measure.renewed(DOCS / page, content(measure.kept())) == (DOCS / page).read_text()
    assert {figure["what"] for figure in measure.kept()} >= set(measure.TEN)


def test_what_pages_say_of_speed_agrees_with_the_tables() -> None:
    """Those of `make bench`, whose rows the commands print as they stand in the page."""
    rows, checked = (DOCS / "measurements.md").read_text(), 0
    for name, claim in claims().items():
        if claim.prints[0].startswith("| the reference workload"):
            checked += 1
            assert [it for it in compare(claim, rows) if it.matters] == [], name
    assert checked


def one(words: str, prints: str | None = None, within: float = 0.0) -> Claim:
    return Claim("README.md", ["flmarket --version"], [words], [prints or words], within)


def test_figures_are_compared_to_their_last_digit_or_within_a_share() -> None:
    def here(claim: Claim, output: str) -> tuple[list[str], bool]:
        [figure] = compare(claim, output)
        return figure.here, figure.matters

    assert here(one("gain {.12} [{.10}, {.14}]"), "gain\n 0.1201 [0.0999, 0.14]") == (
        ["0.1201", "0.0999", "0.14"],
        False,
    )
    assert here(one("gain {.12}"), "gain 0.13") == (["0.13"], True)
    assert here(one("takes {1,000} s", within=0.2), "takes 1,150.5 s") == (["1,150.5"], False)
    assert here(one("takes {1,000} s", within=0.1), "takes 1,150.5 s") == (["1,150.5"], True)
    assert here(one("{1} of {2}", "| a | ... | {1} {0} |"), "| a | b | 2 1 |") == (["1", "2"], False)
    assert here(one("gain {.12}"), "nothing") == ([], True)


def test_it_prints_the_page_beside_what_came_out_and_fails_where_it_matters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = version("flmarket")
    known = {"same": one(f"flmarket {{{release[:-2]}}}"), "other": one("flmarket {9}")}
    monkeypatch.setattr(bench, "claims", lambda: known)
    for name, status, last in (("same", 0, "the same"), ("other", 1, "matters")):
        monkeypatch.setattr("sys.argv", ["claims.py", name])
        with pytest.raises(SystemExit) as end:
            bench.main()
        printed = capsys.readouterr().out
        assert (int(end.value.code or 0), printed.splitlines()[-1]) == (status, f"  {last}")
    assert "README.md: flmarket 9\n  page: 9\n  here: " in printed


def test_it_lists_what_can_be_made() -> None:
    assert "quickstart: docs/start.md\n    $ flmarket run quickstart --quiet\n" in printed("benchmarks/claims.py")
