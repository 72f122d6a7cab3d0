"""The shipped agent in ten situations, and what it looks at: prints tables of notebook/any-market.md.

    python research/situations.py

DQI and bids are in standard deviations over the round's clients, payments in parts of the bid.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from any_market import Point
from experiment import command_line

from des.observation import Observation, Offer
from fl.arithmetic.ordered_sums import standardised
from fl.arrays import Float32Array
from learning.mahdrl.agent import Brain
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.market_model import CONTEXT, RunMemory, context, knowledge
from learning.training.agent_files import load
from scenarios.build import Shelf, build_federation, build_market

ROUNDS = range(1, 41)
EARLY, LATE = range(1, 6), range(30, 41)


@dataclass(frozen=True)
class Situation:
    """A market, one of its services, and the rounds that are looked at."""

    market: Point
    rounds: Sequence[int] = ROUNDS


SITUATIONS = {
    "the paper's market, rounds 1-5": Situation(Point(3, 2, dqi="published"), EARLY),
    "the paper's market, rounds 30-40": Situation(Point(3, 2, dqi="published"), LATE),
    "the same with the fitted DQI": Situation(Point(3, 2)),
    "alone, without rivals": Situation(Point(1, 2)),
    "six services, one core": Situation(Point()),
    "twelve services, one core": Situation(Point(12)),
    "six services, three cores": Situation(Point(cores=3)),
    "budget of one large client": Situation(Point(budget=5.0)),
    "budget for all that is there": Situation(Point(budget=60.0)),
    "noisy costs, rivals' bids hidden": Situation(
        Point(changes=("clients.cost.noise=0.5", "market.bids=own")),
    ),
}


@dataclass(frozen=True)
class Decision:
    """A service's observation and its decision."""

    observation: Observation
    memory: RunMemory
    offer: Offer
    won: int


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--checkpoint", help="another agent than the shipped one")
    arguments = parser.parse_args()
    settings, networks = load(arguments.checkpoint, "mahdrl", "any", MahdrlSettings)
    brain = Brain(**networks, settings=settings)
    decisions = {
        name: [one for seed in range(arguments.seeds) for one in play(brain, situation, seed)]
        for name, situation in SITUATIONS.items()
    }
    print("| situation | offers a round | won | DQI | bid | paid above bid |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, rows in decisions.items():
        print(f"| {name} | " + " | ".join(what(rows)) + " |")
    print(f"\n| what it sees | other clients (n = {sum(map(len, decisions.values()))}) | sum offered |")
    print("| --- | ---: | ---: |")
    for name, others, sums in sorted(looked_at(brain, decisions), key=lambda row: -row[1]):
        print(f"| {name} | {others:.1%} | {sums:+.1%} |")


def play(brain: Brain, situation: Situation, seed: int) -> Iterator[Decision]:
    """Yield what the first service saw and did in the rounds of a situation."""
    scenario = situation.market.scenario()
    market = build_market(scenario, seed, build_federation(scenario, seed, Shelf(), workers=0))
    memories = {spec.name: RunMemory(known=knowledge(spec.curve)) for spec in market.services}
    while not market.finished:
        asked = market.open_round()
        before = dict(memories)
        offers = {name: brain.decide(it, memories[name]) for name, it in asked.items()}
        feedback = market.close_round(offers).feedback
        for name, observation in asked.items():
            memories[name] = memories[name].after(observation, offers[name], feedback[name].won)
        first = scenario.services[0].name
        if first in asked and asked[first].round in situation.rounds:
            won = int(feedback[first].won.sum())
            yield Decision(asked[first], before[first], offers[first], won)


def what(decisions: Sequence[Decision]) -> list[str]:
    """Return the numbers of a situation, as they are shown."""
    offers = np.mean([len(it.offer.clients) for it in decisions])
    won = np.sum([it.won for it in decisions]) / max(1, np.sum([len(it.offer.clients) for it in decisions]))
    dqi = np.concatenate([standardised(it.observation.dqi)[it.offer.clients] for it in decisions])
    bid = np.concatenate([standardised(it.observation.own_bids)[it.offer.clients] for it in decisions])
    asked = sum(float(it.observation.own_bids[it.offer.clients].sum()) for it in decisions)
    paid = sum(float(it.offer.payments.sum()) for it in decisions) / max(asked, 1e-9) - 1
    return [f"{offers:.1f}", f"{won:.0%}", f"{dqi.mean():+.2f}", f"{bid.mean():+.2f}", f"{paid:.1%}"]


# Each number of the context is replaced, one at a time, by its mean over all situations, and the learning curve of its
# data set by none.
def looked_at(brain: Brain, decisions: dict[str, list[Decision]]) -> Iterator[tuple[str, float, float]]:
    """Yield what replacing each number of the context by its mean changes, and telling no learning curve."""
    rows = [it for found in decisions.values() for it in found]
    usual = np.mean([context(it.observation, it.memory) for it in rows], axis=0)
    for place, name in enumerate(CONTEXT):
        with patch("learning.mahdrl.agent.context", fixed(place, float(usual[place]))):
            offers = [brain.decide(it.observation, it.memory) for it in rows]
        yield name, *changed(rows, offers)
    if brain.settings.curve:
        untold = [replace(it.memory, known=knowledge(None)) for it in rows]
        offers = [brain.decide(it.observation, memory) for it, memory in zip(rows, untold, strict=True)]
        yield "(no learning curve)", *changed(rows, offers)


def changed(rows: Sequence[Decision], offers: Sequence[Offer]) -> tuple[float, float]:
    """Return which share of the offers goes to other clients than it did, and by how much offered sums differ."""
    pairs = list(zip(rows, offers, strict=True))
    kept = sum(len(np.intersect1d(it.offer.clients, offer.clients)) for it, offer in pairs)
    most = sum(max(len(it.offer.clients), len(offer.clients)) for it, offer in pairs)
    before, after = (sum(float(one.payments.sum()) for one in each) for each in ([it.offer for it in rows], offers))
    return 1 - kept / max(1, most), after / before - 1


def fixed(place: int, value: float) -> Callable[[Observation, RunMemory], Float32Array]:
    """Return a context one number of which is always the same."""

    def known(observation: Observation, memory: RunMemory) -> Float32Array:
        found = context(observation, memory)
        found[place] = value
        return found

    return known


if __name__ == "__main__":
    main()
