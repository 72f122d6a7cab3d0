"""A certificate: what an attack on a mechanism found, over many sampled markets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from des.mechanism import MECHANISMS, Mechanism
from des.money import text
from flmarket.benchmark.certify.players import SIDES, Bench, Side, of
from flmarket.benchmark.certify.sampling import IMAGES, Dice, SampledMarket, Sizes, doubled, sample
from flmarket.benchmark.certify.search import Gain, attack
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from flmarket.core.tracking import tracked


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """The plan of an attack: the mechanism, the sampled markets and the effort."""

    mechanism: str  # its name
    options: Mapping[str, Any] = field(default_factory=dict)  # the scenario's ``market.options``
    shape: Sizes = field(default_factory=Sizes)  # how large the sampled markets are
    markets: int = 50  # how many are sampled
    tries: int = 200  # misreports that are played for each party of a market, at most
    seed: int = 0  # of all draws
    rounds: int = 1  # how many each market has, over which the mechanism remembers
    sybils: bool = False  # whether clients come as two, too

    @property
    def scope(self) -> str:
        """What of a market is attacked."""
        if self.rounds == 1:
            return "in one round"
        return f"over {self.rounds} rounds, with a misreport for odd rounds and one for even ones"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The result of a plan."""

    plan: AttackPlan
    # how many rounds were cleared. In each, prices were at least the bid, at most the offer, and within the budget.
    clearings: int
    attacked: Mapping[Side, list[Gain]]  # what each party could gain

    def gaining(self, side: Side) -> list[Gain]:
        """Return the gains of those that gain by misreporting, the largest first."""
        return sorted((it for it in self.attacked[side] if it.found), key=lambda it: -it.amount)

    def title(self) -> str:
        """Return what was attacked, and how hard."""
        plan, shape = self.plan, self.plan.shape
        name = " ".join([plan.mechanism, *(f"{key}={value}" for key, value in plan.options.items())])
        services = counted(shape.services, "service") if shape.services else "2 to 4 services"
        clients = counted(shape.clients, "client") if shape.clients else "2 to 5 clients"
        cores = counted(shape.cores, "core") if shape.cores else "1 to 2 cores"
        budgets = "budgets that can bind" if shape.budgets else "budgets that never bind"
        scope = f", {plan.scope}" if plan.rounds > 1 else ""
        return (
            f"{name}: {counted(plan.markets, 'market')} with {services}, {clients}, {cores} and {budgets}; "
            f"seed {plan.seed}, at most {plan.tries:,} misreports for each party{scope}"
        )

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield each property, whether it held, and what was found."""
        held = f"in all {counted(self.clearings, 'clearing')}"
        if MECHANISMS.load(self.plan.mechanism).below_bid:
            yield "individual rationality of clients", "not promised", "who has delivered may be paid less than the bid"
        else:
            yield "individual rationality of clients", "held", f"price at least the bid {held}"
        yield "individual rationality of services", "held", f"price at most the offer {held}"
        yield "budget balance", "held", f"clients get what services pay, within the budgets, {held}"
        if MECHANISMS.load(self.plan.mechanism).menu is not Mechanism.menu:
            yield (
                "menu",
                "not attacked",
                "clients do all of the work here; flmarket.testing.check_menu attacks the menu",
            )
        for side, attacked in self.attacked.items():
            parties, gaining = counted(len(attacked), side[:-1]), self.gaining(side)
            name = "Sybil-proofness" if side == "sybils" else f"truthfulness of {side}"
            if not gaining:
                sentence = f"{parties} attacked {self.plan.scope}; all data sets have {IMAGES:,} images"
                yield name, "no gain found", sentence
                continue
            best = gaining[0]
            share = f"{best.amount / best.truthful:.0%} more" if best.truthful > 0 else "from nothing"
            sentence = f"{len(gaining):,} of {parties} gain; the largest gain is {text(best.amount)} ({share})"
            yield name, "fails", sentence
            regret = sum(gain.amount for gain in gaining) // len(attacked)
            sentence = f"mean over the {parties} of the most that another report was found to add, at least"
            yield f"regret of truth of {side}", text(regret), sentence


def certify(plan: AttackPlan) -> Certificate:
    """Attack a mechanism."""
    MECHANISMS.create(plan.mechanism, **plan.options)
    attacked: dict[Side, list[Gain]] = {side: [] for side in SIDES}
    clearings = 0
    for number in tracked(range(plan.markets), "markets attacked"):
        market = sample(plan.shape, plan.seed, number)
        bench = Bench(MECHANISMS.create(plan.mechanism, **plan.options), market, plan.rounds)
        for side, count in zip(SIDES, market.values.shape, strict=True):
            for party in range(count):
                dice = Dice(plan.seed, side, number, party)
                attacked[side].append(attack(bench, side, party, plan.tries, dice))
        clearings += bench.plays
        for client in range(market.values.shape[1]) if plan.sybils else ():
            attacked.setdefault("sybils", []).append(
                _as_two(plan, market, client, Dice(plan.seed, "sybils", number, client))
            )
    return Certificate(plan, clearings, attacked)


def _as_two(plan: AttackPlan, market: SampledMarket, client: int, dice: Dice) -> Gain:
    """Return the best that a client was found to do under two names, against the truth under one."""
    one, two = (
        Bench(MECHANISMS.create(plan.mechanism, **plan.options), it, plan.rounds) for it in doubled(market, client)
    )
    truth = tuple(of(client, "sybils", one.market.costs).ravel().tolist()) * one.parts
    truthful = one.truly("sybils", client, truth)[1]
    if one.posted:
        raise InputError(
            f"--sybils: {plan.mechanism} sets prices of its own, and sees {IMAGES:,} images under each name, not half"
        )
    return replace(attack(two, "sybils", client, plan.tries, dice), truthful=truthful, honest=one.market)
