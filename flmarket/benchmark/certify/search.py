"""The search for a misreport that pays: random restarts, and coordinate search from each.

From a start (the truth first) the amounts of a report are changed one at a time, in random order, as long as the
party's true gain rises. When nothing helps any more the step is divided by four, and below ``SMALLEST`` the next start
follows.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from des.money import MICRO, Micro
from flmarket.benchmark.certify.players import Bench, Report, Side, of
from flmarket.benchmark.certify.sampling import LEAST_BID, MOST_BID, TICK, VALUES, Dice, SampledMarket

FIRST_STEP: Micro = MICRO
SMALLEST: Micro = 2_000
MOST_VALUE: Micro = 3 * VALUES[1]  # the most that a service reports that a client is worth

MOST_IDLE = 100  # so many starts in a row that lead to no report that is new end the search: hardly any is left

ROUNDING: Micro = 1  # gains up to this are rounding: prices are whole micro-units


@dataclass(frozen=True, slots=True)
class Gain:
    """The best that one party of one market was found to do."""

    side: Side
    party: int  # its index
    truth: Report  # its true values, or costs
    report: Report  # what it reports instead
    truthful: Micro  # what it has of the round if it reports the truth
    misreporting: Micro  # what it has if it misreports
    market: SampledMarket = field(compare=False, repr=False)
    honest: SampledMarket | None = field(default=None, compare=False, repr=False)  # where the truth is told, if another

    @property
    def amount(self) -> Micro:
        """The gain from misreporting; 0 if nothing was found."""
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
            known = len(search.known)
            search.climb(start, dice)
            idle = idle + 1 if len(search.known) == known else 0
            start = search.random(dice)
    best = max(search.known, key=search.known.__getitem__)
    most = search.known[best]
    return Gain(side, party, search.truth, search.simplified(best, most), truthful, most, bench.market)


class _OutOfTriesError(Exception):
    """The search has played all that it may."""


class _Search:
    """One party's search."""

    def __init__(self, bench: Bench, side: Side, party: int, tries: int) -> None:
        self._bench, self._side, self._party, self._left = bench, side, party, tries + 1
        market = bench.market
        # its true amounts
        self._once: Report = tuple(
            of(party, side, market.values if side == "services" else market.costs).ravel().tolist()
        )
        self.truth = self._once * bench.parts
        self.known: dict[Report, Micro] = {}  # what the party truly has of the round with each report that was tried
        turning = [list(dict.fromkeys(map(self._rounded, amounts))) for amounts in self._turning_points()]
        self._turning = turning * bench.parts

    def worth(self, report: Report) -> Micro:
        """Return what the party truly has of the round with a report."""
        if report not in self.known:
            if not self._left:
                raise _OutOfTriesError
            self._left -= 1
            self.known[report] = self._bench.truly(self._side, self._party, report)[1]
        return self.known[report]

    def simplified(self, report: Report, worth: Micro) -> Report:
        """Return the report with the truth in every place where a lie adds nothing. Costs a play for each place."""
        for place, truth in enumerate(self.truth):
            self._left = 1
            changed = (*report[:place], truth, *report[place + 1 :])
            if self.worth(changed) == worth:
                report = changed
        return report

    def climb(self, report: Report, dice: Dice) -> None:
        """Change one amount at a time until none helps any more."""
        worth, step = self.worth(report), FIRST_STEP
        while step >= SMALLEST:
            better = False
            for place in dice.order(len(report)):
                for amount in self._candidates(report, place, step, dice):
                    changed = (*report[:place], amount, *report[place + 1 :])
                    if (value := self.worth(changed)) > worth:
                        report, worth, better = changed, value, True
            if not better:
                step //= 4

    def random(self, dice: Dice) -> Report:
        """Return a start: some amounts true, some scaled, some at a turning point, some anything."""
        report = []
        for truth, turning in zip(self.truth, self._turning, strict=True):
            match dice.below(4):
                case 0:
                    report.append(truth)
                case 1:
                    report.append(self._rounded(round(truth * (0.4 + 1.2 * dice.uniform()))))
                case 2:
                    report.append(turning[dice.below(len(turning))])
                case _:
                    report.append(self._anything(dice))
        return tuple(report)

    def _candidates(self, report: Report, place: int, step: Micro, dice: Dice) -> Iterator[Micro]:
        now = report[place]
        near = [self._rounded(now + step), self._rounded(now - step), self._anything(dice)]
        first = [self.truth[place], *self._turning[place]] if step == FIRST_STEP else []
        yield from (amount for amount in dict.fromkeys([*first, *near]) if amount != now)

    def _anything(self, dice: Dice) -> Micro:
        return self._rounded(dice.between(0, VALUES[1] if self._side == "services" else MOST_BID))

    def _rounded(self, amount: int) -> Micro:
        """Return the nearest amount that the party can report."""
        if self._side == "services":
            return min(max(amount, 0), MOST_VALUE)
        return min(max(amount // TICK * TICK, LEAST_BID), MOST_BID)

    def _turning_points(self) -> Iterator[list[Micro]]:
        """Yield for each amount those at which the outcome may turn, and those that leave the trade alone."""
        market, truthful = self._bench.market, self._bench.play()
        for place in range(len(self._once)):
            if self._side == "services":
                rivals = [amount for amount in truthful.offered[:, place].tolist() if amount >= 0]
                cost = int(market.costs[self._party, place])
                yield [0, cost, *(rival + by for rival in rivals for by in (-1, 0, 1))]
            else:
                service, name = divmod(place, len(self._once) // len(market.values))
                worth = market.values[:, self._party + name].tolist()
                truth = worth[service]
                yield [MOST_BID, LEAST_BID, truth, *worth, truth - TICK, *(value + TICK for value in worth)]
