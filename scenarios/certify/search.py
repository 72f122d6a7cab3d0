"""The search for a misreport that pays: random restarts, and coordinate search from each.

A party's report is a list of amounts: what each client is worth to a service, or what a client asks of each service.
From a start (the truth first, then random ones) the amounts are changed one at a time, in random order, as long as the
party's true gain rises. What is tried for an amount: the truth, leaving the trade alone, what binds (the bid, the
rivals' offers, just above and below), a step up and down, and a random amount. When nothing helps any more the step is
divided by four, and below ``SMALLEST`` the next start follows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from des.money import MICRO, Micro
from scenarios.certify.players import Bench, Played
from scenarios.certify.sampling import LEAST_BID, MOST_BID, TICK, VALUES, Dice

Side = Literal["services", "clients"]
SIDES: tuple[Side, ...] = ("services", "clients")

FIRST_STEP: Micro = MICRO
SMALLEST: Micro = 2_000
MOST_VALUE: Micro = 3 * VALUES[1]  # the most that a service reports that a client is worth

MOST_IDLE = 100  # so many starts in a row that lead to no report that is new end the search: hardly any is left

ROUNDING: Micro = 1  # gains up to this are rounding: prices are whole micro-units

Report = tuple[Micro, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """The best that one party of one market was found to do."""

    side: Side
    party: int  # its index
    truth: Report  # [C] or [M] its true values, or costs
    report: Report  # what it reports instead
    truthful: Micro  # what it has of the round if it reports the truth, micro-units
    misreporting: Micro  # what it has if it misreports, micro-units

    @property
    def amount(self) -> Micro:
        """What misreporting adds, micro-units; 0 if nothing was found."""
        return self.misreporting - self.truthful

    @property
    def found(self) -> bool:
        return self.amount > ROUNDING


def attack(bench: Bench, side: Side, party: int, tries: int, dice: Dice) -> Gain:
    """Search for the misreport of one party that pays most while all others report the truth."""
    search = _Search(bench, side, party, tries)
    start, truthful = search.truth, search.worth(search.truth)
    idle = 0
    with suppress(_OutOfTriesError):
        while idle < MOST_IDLE:
            known = search.played
            search.climb(start, dice)
            idle = idle + 1 if search.played == known else 0
            start = search.random(dice)
    best, most = search.best, search.most
    return Gain(side, party, search.truth, search.simplified(best, most), truthful, most)


class _OutOfTriesError(Exception):
    """The search has played all that it may."""


class _Search:
    """One party's search.

    Attributes:
        best, most: the best report of all that were tried, and its worth.
    """

    def __init__(self, bench: Bench, side: Side, party: int, tries: int) -> None:
        market = bench.market
        self._bench, self._party, self._left = bench, party, tries + 1
        self._services = side == "services"
        # its true amounts
        self.truth: Report = tuple((market.values[party] if self._services else market.costs[:, party]).tolist())
        self.best, self.most = self.truth, -(10**18)
        self._known: dict[Report, Micro] = {}
        self._rounded: Callable[[int], Micro] = _value if self._services else _bid
        self._turning = self._turning_points(bench.play())

    @property
    def played(self) -> int:
        return len(self._known)

    def worth(self, report: Report) -> Micro:
        """Return what the party truly has of the round with a report, micro-units."""
        if report not in self._known:
            if not self._left:
                raise _OutOfTriesError
            self._left -= 1
            worth = self._known[report] = truly(self._bench, self._services, self._party, report)[1]
            if worth > self.most:
                self.best, self.most = report, worth
        return self._known[report]

    def simplified(self, report: Report, worth: Micro) -> Report:
        """Return the report with the truth in every place where a lie adds nothing. Costs a play for each place."""
        for place, truth in enumerate(self.truth):
            changed = (*report[:place], truth, *report[place + 1 :])
            self._left = 1
            if changed != report and self.worth(changed) == worth:
                report = changed
        return report

    def climb(self, report: Report, dice: Dice) -> None:
        """Change one amount at a time until none helps any more; ``best`` takes note of what is found."""
        worth, step = self.worth(report), FIRST_STEP
        while step >= SMALLEST:
            better = False
            for place in dice.order(len(report)):
                for amount in self._candidates(report, place, step, dice):
                    changed = (*report[:place], amount, *report[place + 1 :])
                    if (found := self.worth(changed)) > worth:
                        report, worth, better = changed, found, True
            if not better:
                step //= 4

    def random(self, dice: Dice) -> Report:
        """Return a start: some amounts true, some scaled, some at a turning point, some anything."""
        found = []
        for place, truth in enumerate(self.truth):
            turning = self._turning[place]
            match dice.below(4):
                case 0:
                    found.append(truth)
                case 1:
                    found.append(self._rounded(round(truth * (0.4 + 1.2 * dice.uniform()))))
                case 2:
                    found.append(turning[dice.below(len(turning))])
                case _:
                    found.append(self._anything(dice))
        return tuple(found)

    def _candidates(self, report: Report, place: int, step: Micro, dice: Dice) -> Iterator[Micro]:
        now = report[place]
        near = [self._rounded(now + step), self._rounded(now - step), self._anything(dice)]
        first = [self.truth[place], *self._turning[place]] if step == FIRST_STEP else []
        yield from (amount for amount in dict.fromkeys([*first, *near]) if amount != now)

    def _anything(self, dice: Dice) -> Micro:
        highest = VALUES[1] if self._services else MOST_BID
        return self._rounded(dice.between(0, highest))

    def _turning_points(self, truthful: Played) -> list[Sequence[Micro]]:
        """Return for each amount those at which the outcome may turn, and those that leave the trade alone."""
        market = self._bench.market
        found: list[Sequence[Micro]] = []
        for place in range(len(self.truth)):
            m, c = (self._party, place) if self._services else (place, self._party)
            if self._services:
                rivals = [amount for amount in truthful.offered[:, c].tolist() if amount >= 0]
                amounts = [0, int(market.costs[m, c]), *(rival + by for rival in rivals for by in (-1, 0, 1))]
            else:
                worth = market.values[:, c].tolist()
                amounts = [MOST_BID, LEAST_BID, worth[m], *worth, worth[m] - TICK, *(value + TICK for value in worth)]
            found.append(list(dict.fromkeys(map(self._rounded, amounts))))
        return found


def truly(bench: Bench, services: bool, party: int, report: Report) -> tuple[Played, Micro]:  # noqa: FBT001
    """Play a party's report against the truth of all others; return what came of it, and what the party truly has."""
    market = bench.market
    if services:
        values = market.values.copy()
        values[party] = report
        played = bench.play(values=values)
        return played, int(played.service_gains(market.values)[party])
    bids = market.costs.copy()
    bids[:, party] = report
    played = bench.play(bids=bids)
    return played, int(played.client_gains(market.costs)[party])


def _value(amount: int) -> Micro:
    return min(max(amount, 0), MOST_VALUE)


def _bid(amount: int) -> Micro:
    return min(max(amount // TICK * TICK, LEAST_BID), MOST_BID)
