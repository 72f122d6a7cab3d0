"""The rounds that decided a run: exits, interventions, and the worst round of each service."""

from dataclasses import dataclass

import numpy as np

from des.money import MICRO
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.what_if.reasons import cash
from scenarios.file.toml import value_text


@dataclass(frozen=True, slots=True)
class Decisive:
    """A round that decided something."""

    round: int  # its number
    words: str  # what happened
    service: int | None = None  # the place of the service that it is about; None for an intervention


def decisive(run: RunResult) -> list[Decisive]:
    """Return the rounds that decided a run, in order.

    They are the rounds in which a service met its target and left, those in which an intervention began, and for each
    service the one in which most of the money that it offered was not spent.
    """
    services, last = run.setting.services, len(run["spent"])
    rounds = [
        Decisive(number, f"{services[m]} reaches its target and leaves", m)
        for m, number in enumerate(run.exits)
        if number is not None
    ]
    for change in run.setting.scenario.interventions:
        if change.round <= last:
            rounds.append(Decisive(change.round, f"intervention: {change.key} = {value_text(change.value)}"))
    wasted = np.rint(MICRO * run.wasted).astype(np.int64)
    for m, place in enumerate(wasted.argmax(axis=0).tolist()):
        if money := int(wasted[place, m]):
            refused, wanted = (int(run[name][place, m]) for name in ("refused", "wanted"))
            words = f"worst round of {services[m]}: {refused} of {wanted} offers refused, {cash(money)} not spent"
            rounds.append(Decisive(place + 1, words, m))
    return sorted(rounds, key=lambda event: event.round)
