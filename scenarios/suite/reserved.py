"""Markets that no agent is trained on: those of the suite, on which agents are compared."""

from collections.abc import Iterable

from flmarket.core.errors import InputError
from scenarios.file.schema import Scenario
from scenarios.suite.frozen import read


def require_outside(scenarios: Iterable[Scenario]) -> None:
    """Refuse to train on a market of the suite, whatever its name, its length, its backend and who plays."""
    reserved = {_market(market.scenario): name for name, market in read().markets.items()}
    for scenario in scenarios:
        if name := reserved.get(_market(scenario)):
            raise InputError(
                f"scenario {scenario.name!r} is the market {name!r} of the suite, on which agents are compared, so "
                "none may be trained on it; train in markets of your own, or in drawn ones"
            )


def _market(scenario: Scenario) -> str:
    return scenario.model_dump_json(
        exclude={
            "name": True,
            "description": True,
            "rounds": True,
            "training": True,
            "timeline": True,
            "services": {"__all__": {"name", "policy", "policy_options", "checkpoint"}},
        }
    )
