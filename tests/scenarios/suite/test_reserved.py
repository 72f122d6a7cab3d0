"""No agent is trained on a market of the suite."""

import pytest

from fl.errors import InputError
from scenarios.drawn import drawn
from scenarios.loader import builtin_names, load
from scenarios.suite.frozen import read
from scenarios.suite.reserved import hashes, market_hash, require_outside
from scenarios.train import plan_training


def test_every_market_of_the_suite_is_refused_under_any_name() -> None:
    suite = read()
    assert sorted(hashes().values()) == sorted(suite.markets)
    market = suite.market("starved").scenario
    services = tuple(it.model_copy(update={"name": f"my-{it.name}", "policy": "mahdrl"}) for it in market.services)
    renamed = market.model_copy(update={"name": "mine", "description": "", "rounds": 30, "services": services})
    assert market_hash(renamed) == market_hash(market)
    with pytest.raises(InputError, match="scenario 'mine' is the market 'starved' of the suite"):
        require_outside([renamed])
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        plan_training([load("paper"), renamed], "mahdrl", options={}, command="")
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        require_outside([market.model_copy(update={"services": tuple(reversed(market.services))})])
    quiet = market.model_copy(update={"training": market.training.model_copy(update={"backend": "noiseless"})})
    with pytest.raises(InputError, match="is the market 'starved' of the suite"):
        require_outside([quiet])


def test_other_markets_are_not() -> None:
    require_outside([*map(load, builtin_names()), *drawn(0, 128)])
    market = read().market("starved").scenario
    require_outside([market.model_copy(update={"clients": market.clients.model_copy(update={"count": 25})})])
