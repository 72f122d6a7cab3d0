"""No agent is trained on a market of the suite."""

import pytest

from flmarket.core.errors import InputError
from scenarios.file.schema import Scenario
from scenarios.loader import builtin_names, load
from scenarios.random_markets import drawn
from scenarios.suite.frozen import FOLDER, read, require_outside
from scenarios.train import plan_training


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starved", "twelve", "run-long", "secrets"])
def test_a_market_of_the_suite_is_refused_under_any_name_with_any_rounds_and_policies(name: str) -> None:
    market = read().market(name).scenario
    services = tuple(it.model_copy(update={"name": f"my-{it.name}", "policy": "mahdrl"}) for it in market.services)
    renamed = market.model_copy(update={"name": "mine", "description": "", "rounds": 30, "services": services})
    with pytest.raises(InputError, match=f"scenario 'mine' is the market '{name}' of the suite"):
        plan_training([load("paper"), renamed])


@pytest.mark.parametrize(
    "more", [["training.backend=noiseless"], ["training.validation=0.2"], ["timeline.upload_seconds=0.6"]]
)
def test_what_the_surrogate_ignores_makes_no_other_market(more: list[str]) -> None:
    with pytest.raises(InputError, match="is the market 'like-paper' of the suite"):
        require_outside([like_paper(*more)])


def test_other_markets_are_not_refused() -> None:
    require_outside([*map(load, builtin_names()), *drawn(0, 128)])
    require_outside([like_paper("clients.count=25"), like_paper("clients.data_size=[100, 100, 200, 300, 400]")])


def like_paper(*changes: str) -> Scenario:
    return load(str(FOLDER / "markets/like-paper.toml"), changes)
