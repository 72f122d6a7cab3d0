"""The rounds that decided a run: exits, interventions, and the worst round of each service. Plain data."""

from dataclasses import dataclass

import numpy as np

from des.money import MICRO
from des.observation import Status
from flmarket.analysis.what_if.reasons import cash
from scenarios.file.schema import Scenario
from scenarios.file.toml_text import value_text
from tui.state.history import History


@dataclass(frozen=True, slots=True)
class Decisive:
    """A round that decided something."""

    round: int  # its number
    words: str  # what happened
    service: int | None = None  # the place of the service that it is about; None for a shock


def decisive(history: History, scenario: Scenario | None, last: int) -> list[Decisive]:
    """Return the rounds up to ``last`` that decided the run, in order.

    They are the rounds in which a service met its target and left, those in which a shock began, and for each service
    the one in which most of the money that it offered was not spent.
    """
    found = []
    for number in history.exits:
        if number <= last:
            for m, row in enumerate(history[number].services):
                if row.status is Status.REACHED:
                    found.append(Decisive(number, f"{row.service} reaches its target and leaves", m))
    for change in scenario.interventions if scenario else ():
        if change.round <= last:
            found.append(Decisive(change.round, f"shock: {change.key} = {value_text(change.value)}"))
    wasted = np.rint(MICRO * (history.column("offered", last) - history.column("spent", last))).astype(np.int64)
    for m, place in enumerate(wasted.argmax(axis=0).tolist() if last else ()):
        if money := int(wasted[place, m]):
            row = history[place + 1].services[m]
            words = f"worst of {row.service}: {row.refused} of {row.wanted} offers refused, {cash(money)} not spent"
            found.append(Decisive(place + 1, words, m))
    return sorted(found, key=lambda event: event.round)
