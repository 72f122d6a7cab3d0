"""Markets that no agent is trained on: those of the suite, on which agents are compared."""

import hashlib
from collections.abc import Iterable

from fl.errors import InputError
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, settled
from scenarios.suite.frozen import read


def market_hash(scenario: Scenario) -> str:
    """Return what two scenarios have in common if they are the same market: SHA-256 of all but names and policies.

    The name, the description, the number of rounds, the backend, the order of the services and who plays for them do
    not make another market.
    """
    plays: dict[str, object] = {"policy": "random", "policy_options": {}, "checkpoint": None}
    alike = sorted((it.model_copy(update={**plays, "name": "service"}) for it in scenario.services), key=repr)
    services = [it.model_copy(update={"name": f"service-{m}"}) for m, it in enumerate(alike)]
    training = scenario.training.model_copy(update={"backend": "real"})
    plain = {"name": "market", "description": "", "rounds": 1, "services": tuple(services), "training": training}
    return hashlib.sha256(dumps(settled(scenario.model_copy(update=plain))).encode()).hexdigest()


def hashes() -> dict[str, str]:
    """Return the names of the suite's markets by their ``market_hash``. Errors as in ``frozen.read``."""
    return {market_hash(market.scenario): name for name, market in read().markets.items()}


def require_outside(scenarios: Iterable[Scenario]) -> None:
    """Refuse to train on a market of the suite: what an agent is compared on is nothing that it has seen.

    Raises:
        InputError: a scenario is one of the suite's markets, whatever it is called and whoever plays in it.
    """
    reserved = hashes()
    for scenario in scenarios:
        if (name := reserved.get(market_hash(scenario))) is not None:
            raise InputError(
                f"scenario {scenario.name!r} is the market {name!r} of the suite, on which agents are compared, so "
                "none may be trained on it; change it, such as with --set clients.count=25"
            )
