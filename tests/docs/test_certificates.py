"""The witnesses in docs/mechanisms/certificates are scenarios that play what their first lines say."""

from pathlib import Path

import pytest

from support.witnesses import said_and_played

FOLDER = Path(__file__).parents[2] / "docs/mechanisms/certificates"
WITNESSES = sorted(FOLDER.rglob("*.toml"))


def test_there_are_witnesses() -> None:
    assert len(WITNESSES) >= 8


@pytest.mark.parametrize("path", WITNESSES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_witness_plays_what_it_says(path: Path) -> None:
    said, played = said_and_played(path)
    assert said == played
