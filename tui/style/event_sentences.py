"""Market events in words, and what accuracies are called."""

from collections.abc import Iterable

from des.log_records import Kind, MarketEvent
from des.money import MICRO
from fl.backends import BACKENDS
from scenarios.file.schema import Scenario
from tui.style.formats import percent

CURVES = {
    "reward": "reward per round",
    "spent": "money spent per round",
    "mean_payment": "mean price of a client",
}
"""Titles of the curves, but for that of accuracies."""


def accuracy_words(scenarios: Iterable[Scenario | None]) -> str:
    """Return what the accuracies that scenarios report are, as reports name them; None is one that is not known yet."""
    found = {BACKENDS[scenario.training.backend].accuracy for scenario in scenarios if scenario is not None}
    return found.pop() if len(found) == 1 else "accuracy"


def accuracy_column(scenario: Scenario | None) -> str:
    """Return the title of a column with a scenario's reported accuracies: only networks are tested on images."""
    trains = scenario is not None and BACKENDS[scenario.training.backend].trains
    return "test accuracy %" if trains else "accuracy %"


def event_words(event: MarketEvent) -> str:
    """Return a sentence that describes an event."""
    amount = event.amount or 0
    money = f"{amount / MICRO:.2f}"
    match event.event:
        case Kind.REFRESH:
            return "all clients refresh their data"
        case Kind.BID:
            return f"{event.service} has all bids; the lowest is {money}"
        case Kind.DECISION:
            return f"{event.service} offers {money} in total"
        case Kind.AWARD:
            return f"client {event.client} gives {event.service} core {event.core} for {money}"
        case Kind.TRAIN_START:
            return f"client {event.client} starts training for {event.service} on core {event.core}"
        case Kind.TRAIN_END:
            return f"client {event.client} has trained for {event.service}"
        case Kind.UPLOAD:
            return f"client {event.client} has sent its update to {event.service}"
        case Kind.AGGREGATE:
            return f"{event.service} averages updates from {amount:g} images"
        case Kind.EVALUATE:
            return f"{event.service} now has an accuracy of {percent(float(amount))} %"
        case Kind.PAY:
            return f"{event.service} pays client {event.client} {money}"
        case Kind.EXIT:
            return f"{event.service} has reached its target with {percent(float(amount))} % and leaves"
