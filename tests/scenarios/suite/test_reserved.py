"""No agent is trained on a market of the suite."""

import re

import pytest

from fl.errors import InputError
from scenarios.drawn import drawn
from scenarios.file.schema import Scenario
from scenarios.loader import builtin_names, load, parse
from scenarios.suite.frozen import FOLDER, read
from scenarios.suite.reserved import _alike, _market, require_outside
from scenarios.train import plan_training


def same_market(one: Scenario, other: Scenario) -> bool:
    return _alike(_market(one), _market(other))


def test_every_market_of_the_suite_is_refused_under_any_name() -> None:
    suite = read()
    for name, frozen in suite.markets.items():
        assert [it for it, market in suite.markets.items() if same_market(frozen.scenario, market.scenario)] == [name]
    market = suite.market("starved").scenario
    services = tuple(it.model_copy(update={"name": f"my-{it.name}", "policy": "mahdrl"}) for it in market.services)
    renamed = market.model_copy(update={"name": "mine", "description": "", "rounds": 30, "services": services})
    assert same_market(renamed, market)
    with pytest.raises(InputError, match="scenario 'mine' is the market 'starved' of the suite"):
        require_outside([renamed])
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        plan_training([load("paper"), renamed], "mahdrl", options={}, command="")
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        require_outside([market.model_copy(update={"services": tuple(reversed(market.services))})])
    quiet = market.model_copy(update={"training": market.training.model_copy(update={"backend": "noiseless"})})
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        require_outside([quiet])


def test_a_market_whose_numbers_are_a_hair_away_is_refused() -> None:
    for name in ("starved", "twelve", "run-long", "secrets"):
        text = (FOLDER / "markets" / f"{name}.toml").read_text()
        for key in ("budget", "total_budget", "per_sample"):
            text = re.sub(rf"\b({key} = )([\d.]+)", lambda it: f"{it[1]}{float(it[2]) * 1.000001:.6f}", text)
        close = parse(text)
        assert close != read().market(name).scenario
        with pytest.raises(
            InputError, match=rf"is the market '{name}' of the suite, .* within 1% of its\. Train in markets"
        ):
            require_outside([close])
    market = read().market("many-clients").scenario
    of_size = {
        count: market.model_copy(update={"clients": market.clients.model_copy(update={"count": count})})
        for count in (301, 304)
    }
    assert same_market(of_size[301], market)
    assert not same_market(of_size[304], market)


def test_each_service_has_another_one_that_it_is_like() -> None:
    market = read().market("starved").scenario
    one, two, three = market.services
    assert not same_market(market, market.model_copy(update={"services": (one, one, three)}))
    assert not same_market(market, market.model_copy(update={"services": (one, two)}))
    assert same_market(market, market.model_copy(update={"services": (three, one, two)}))


@pytest.mark.parametrize(
    "more",
    [
        ["training.validation=0.2", "training.eval_samples=100"],
        ["timeline.upload_seconds=0.6"],
        ["clients.speed=[1, 1]", "services.mnist.total_budget=1e6"],
        ["clients.data_size=[400, 100, 200, 300]", "clients.emd=[0.4, 0.6, 0.8, 1.0, 0.4, 0.6, 0.8, 1.0]"],
    ],
)
def test_what_the_surrogate_ignores_makes_no_other_market(more: list[str]) -> None:
    copy = load(str(FOLDER / "markets/like-paper.toml"), more)
    with pytest.raises(InputError, match="is the market 'like-paper' of the suite"):
        require_outside([copy])


def test_what_is_drawn_more_often_makes_another_market() -> None:
    require_outside([load(str(FOLDER / "markets/like-paper.toml"), ["clients.data_size=[100, 100, 200, 300, 400]"])])


def test_other_markets_are_not() -> None:
    require_outside([*map(load, builtin_names()), *drawn(0, 128)])
    market = read().market("starved").scenario
    require_outside([market.model_copy(update={"clients": market.clients.model_copy(update={"count": 25})})])
