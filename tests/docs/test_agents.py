"""docs/agents.md has a card of each agent that comes with flmarket, and says what its file says."""

import json
import math
import re
from pathlib import Path

import pytest
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "learning/agents").glob("*.json"))
ROWS = [
    [cell.strip() for cell in row.split("|")[1:-1]]
    for row in re.findall(r"^\|.*\|$", (ROOT / "docs/agents.md").read_text(encoding="utf-8"), re.M)
]


def test_each_agent_has_a_card() -> None:
    assert sorted(ROWS[0][1:]) == sorted(f"`{path.stem}`" for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_card_says_what_the_file_says(path: Path) -> None:
    place = ROWS[0].index(f"`{path.stem}`")
    card = {row[0]: row[place] for row in ROWS if len(row) == len(ROWS[0])}
    agent = json.loads(path.read_text(encoding="utf-8"))
    plan, about = agent["plan"], agent["about"]
    assert card["episodes, seed"].startswith(f"{plan['episodes']:,}, seed {plan['seed']}")
    assert card["trained with"].startswith(f"torch {about['versions']['torch']}, {about['machine']}")
    assert card["trained with"].endswith(f"revision {about['git'][:8]}")
    tensors = load_file(path.with_suffix(".safetensors"))
    assert card["parameters (float32)"] == f"{sum(math.prod(it.shape) for it in tensors.values()):,}"
    if agent["agents"] is not None:  # the services that it plays
        assert card["plays"] == ", ".join(f"`{name}`" for name in agent["agents"])
