"""papers/certificates.md: it is what was found, of the rules as they are, and each witness plays what it says."""

from pathlib import Path

import pytest

from certificates import PROPERTIES, Claim, claims, digest, found, papers, tables
from des.mechanism import MECHANISMS
from scenarios.file.reference import renewed
from scenarios.file.schema import REGISTRIES
from scenarios.plugin_files import load_plugin
from support.pages import ROOT
from support.witnesses import said_and_played

PAGE = ROOT / "papers" / "certificates.md"
CLAIMS = [(paper, claim) for paper in papers() for claim in claims(paper)]
WITNESSES = sorted(ROOT.glob("papers/*/witnesses/**/*.toml"))


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_registered", {})


def test_the_tables_are_what_was_found() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page, tables())


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=lambda it: it.name if isinstance(it, Path) else it.label)
def test_a_certificate_is_of_the_rule_as_it_is(paper: Path, claim: Claim) -> None:
    """If this fails: ``PYTHONPATH=tools python -m certificates papers/certificates.md``."""
    assert found()[f"{paper.name}: {claim.label}"]["of"] == digest(paper, claim)
    assert {*claim.claimed} <= {*PROPERTIES}


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_every_mechanism_of_a_paper_is_attacked(paper: Path) -> None:
    load_plugin(paper / "plugins.py")
    assert {*MECHANISMS.registered} <= {claim.rule for claim in claims(paper)}


def test_every_witness_is_of_a_gain_that_was_found_and_none_is_missing() -> None:
    expected = {
        paper / claim.folder / f"{claim.rule}-{side}.toml"
        for paper, claim in CLAIMS
        for side, row in found()[f"{paper.name}: {claim.label}"].items()
        if isinstance(row, dict) and "largest" in row and "without" not in row
    }
    assert expected == {*WITNESSES}


@pytest.mark.slow
@pytest.mark.parametrize("path", WITNESSES, ids=lambda path: str(path.relative_to(ROOT / "papers")))
def test_a_witness_plays_what_it_says_and_the_page(path: Path) -> None:
    paper = ROOT / "papers" / path.relative_to(ROOT / "papers").parts[0]
    load_plugin(paper / "plugins.py")
    said, played = said_and_played(path)
    assert said == played
    [(claim, side)] = [
        (claim, side)
        for owner, claim in CLAIMS
        for side in ("clients", "services")
        if path == owner / claim.folder / f"{claim.rule}-{side}.toml"
    ]
    row = found()[f"{paper.name}: {claim.label}"][side]
    gain = round(1e6 * float(played[1])) - round(1e6 * float(played[0]))
    assert gain == row["largest"] if claim.rounds == 1 else gain > 1
