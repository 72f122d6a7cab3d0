"""Markets that no agent is trained on: those of the suite, on which agents are compared."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fl.errors import InputError
from scenarios.file.schema import Scenario, Timeline
from scenarios.suite.frozen import read

TOLERANCE = 0.01
"""How far numbers of two markets may be apart, relatively, that are the same market: less is a change in name only."""

_ZERO = 1e-6  # the same as 0


def require_outside(scenarios: Iterable[Scenario]) -> None:
    """Refuse to train on a market of the suite: what an agent is compared on is nothing that it has seen."""
    reserved = {name: _market(market.scenario) for name, market in read().markets.items()}
    for scenario in scenarios:
        market = _market(scenario)
        for name, kept in reserved.items():
            if _alike(market, kept):
                raise InputError(
                    f"scenario {scenario.name!r} is the market {name!r} of the suite, on which agents are compared, so "
                    f"none may be trained on it, nor on one whose numbers are within {TOLERANCE:.0%} of its. "
                    "Train in markets of your own, or in drawn ones (--draw); a near copy would be against the rules "
                    "of the suite, too (docs/suite.md)"
                )


def _market(scenario: Scenario) -> dict[str, Any]:
    """Return what makes a scenario the market that it is.

    The name, the description, the number of rounds, the backend, the clock and who plays do not make another market;
    nor does the order of what is drawn from, if each has the same frequency. ``_alike`` sees to that of the services.
    """
    plain = {"name": "market", "description": "", "rounds": 1, "timeline": Timeline()}
    data = scenario.model_copy(update=plain).model_dump(exclude_none=True)
    del data["training"]
    for key in ("data_size", "emd", "speed"):
        data["clients"][key] = _frequencies(data["clients"][key])
    for service in data["services"]:
        if service.get("total_budget", 0) >= scenario.rounds * service["budget"] and not scenario.interventions:
            service.pop("total_budget", None)  # more than it could ever spend
        service["regime"] = asdict(scenario.training_for(service["dataset"]))  # what a fit is chosen by
        for key in ("name", "policy", "policy_options", "checkpoint"):
            service.pop(key, None)
    return data


def _frequencies(values: Sequence[float]) -> list[list[float]]:
    """Return the values that are drawn from, in ascending order, each with its part of all."""
    return [[value, count / len(values)] for value, count in sorted(Counter(values).items())]


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values of scenarios, or all in them, are the same as far as it matters."""
    match one, other:
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
        case str(), str():
            return one == other
        case Sequence(), Sequence():
            if len(one) != len(other):
                return False
            if all(isinstance(each, Mapping) for each in one):  # services, in any order
                return _paired(one, other)
            return all(map(_alike, one, other))
        case bool(), bool():
            return one == other
        case int() | float(), int() | float():
            return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=_ZERO)
    return bool(one == other)


def _paired(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether each has one of the others to itself that it is like."""
    left = list(others)
    for one in some:
        match = next((place for place, other in enumerate(left) if _alike(one, other)), None)
        if match is None:
            return False
        del left[match]
    return True
