"""The summary of a run: the targets met, when and at what price, and the rounds that decided it. Plain data."""

from dataclasses import dataclass

from des.money import MICRO
from des.observation import Status
from flmarket.analysis.what_if.reasons import cash
from scenarios.file.schema import Scenario
from scenarios.file.toml_text import value_text
from tui.state.history import History
from tui.state.rivalry import Rivalry


@dataclass(frozen=True, slots=True)
class Result:
    """One service after some rounds."""

    service: int  # its place
    accuracy: float  # the accuracy of its model on test images, in [0, 1]
    reached: int | None  # the round in which it met the target; None if it did not
    spent: float  # what it paid altogether, in units of money

    @property
    def per_point(self) -> float:
        """Money for each percentage point of accuracy, as the measure ``cost per point`` of ``flmarket report``."""
        return self.spent / max(100 * self.accuracy, 1e-9)


@dataclass(frozen=True, slots=True)
class Decisive:
    """A round that decided something."""

    round: int  # its number
    words: str  # what happened
    service: int | None = None  # the place of the service that it is about; None for a shock


def results(history: History, rivalry: Rivalry, last: int) -> list[Result]:
    """Return how each service stands after a round that ``rivalry`` has read."""
    if not last:
        return []
    spent = rivalry.at(last).spent.tolist()
    found = []
    for m, row in enumerate(history[last].services):
        found.append(Result(m, row.test_accuracy, history.exit_of(m, last), spent[m] / MICRO))
    return found


def decisive(history: History, rivalry: Rivalry, scenario: Scenario | None, last: int) -> list[Decisive]:
    """Return the rounds up to ``last`` that decided the run, in order.

    They are the rounds in which a service met its target and left, those in which a shock began, and for each service
    the one in which most of its money was tied up in offers that were refused.
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
    sums = rivalry.at(last)
    for m, (number, money) in enumerate(zip(sums.worst.tolist(), sums.highest.tolist(), strict=True)):
        if number:
            row = history[number].services[m]
            words = f"worst of {row.service}: {row.refused} of {row.wanted} offers refused, {cash(money)} in them"
            found.append(Decisive(number, words, m))
    return sorted(found, key=lambda event: event.round)
