"""How a policy can be exploited: a best response to it, searched for in markets in lockstep.

The cross-entropy method (Rubinstein, "The cross-entropy method for combinatorial and continuous optimization",
Methodology and Computing in Applied Probability 1, 1999) over the weights of ``scenarios.league.rule``: in each
generation a population is drawn, every member visits every seat among residents in the same few markets, and the next
generation is drawn around the best. What is found is a lower bound on what the best response of all would gain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fl.arrays import FloatArray, IntArray
from fl.streams import stream
from learning.lockstep.markets import Lockstep
from learning.lockstep.offers import Offers
from learning.lockstep.play import TOGETHER, Joint, play, seating
from learning.lockstep.rounds import View
from learning.seats import MarketFactory
from learning.statistics import area_under_curve
from scenarios.league.league import Game, League
from scenarios.league.rule import NAMES, STARTS, WIDTH, Seen, Weights, offers

ELITE = 0.2
"""The share of a population around which the next one is drawn."""

KEPT = 0.2
"""How much of the centre and the spread of the earlier generation stays."""

WIDEST = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 0.15, 0.5, 0.3, 0.2])
"""Standard deviations of the first generation around the starts, in the order of ``Weights``."""

NARROWEST = 0.05
"""The least spread of later generations, in parts of the first one's."""

CHOOSING = 3
"""How many times the markets of one generation the last choice is made in."""


@dataclass(frozen=True, slots=True)
class Search:
    """How hard a best response is searched for.

    Attributes:
        generations: how many populations are drawn.
        population: members of each.
        markets: training seeds of each generation; a member visits every seat in each.
        seed: of all draws, training seeds included.
    """

    generations: int = 12
    population: int = 32
    markets: int = 2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """A best response that was found.

    Attributes:
        weights: [WIDTH] of the rule, in the order of ``scenarios.league.rule.NAMES``.
        trained: its AUC in the training markets in which it was chosen.
    """

    weights: tuple[float, ...]
    trained: float


def respond(
    league: League,
    resident: str,
    factory: MarketFactory,
    search: Search,
    report: Callable[[str], None] = lambda _: None,
) -> Response:
    """Search for a best response among services that play one policy.

    Args:
        league: the market and its policies; nothing is played on its seeds.
        resident: the policy's label.
        factory: makes the market, which can be played in lockstep.
        search: how hard.
        report: called with a line after each generation.
    """
    centre, spread = np.zeros(WIDTH), np.ones(WIDTH)
    starts = np.array([[getattr(start, name) for name in NAMES] for start in STARTS.values()])[: search.population]
    best_of: list[FloatArray] = []
    for generation in range(search.generations):
        noise = stream(search.seed, "best response", resident, generation).standard_normal((search.population, WIDTH))
        if generation == 0:
            points = starts[np.arange(search.population) % len(starts)] + WIDEST * noise
            points[: len(starts)] = starts
        else:
            points = centre + spread * noise
            points[:2] = [best_of[-1], centre][: search.population]
        seeds = training_seeds(search, resident, generation)
        scores = visit(league, resident, points, seeds, factory).mean(axis=(1, 2))
        order = np.argsort(-scores, kind="stable")
        elite = points[order[: max(2, round(ELITE * search.population))]]
        kept = KEPT if generation else 0.0
        centre = kept * centre + (1 - kept) * elite.mean(axis=0)
        spread = np.maximum(kept * spread + (1 - kept) * elite.std(axis=0), NARROWEST * WIDEST)
        best_of.append(points[order[0]])
        report(f"{resident}: generation {generation + 1} of {search.generations}, best AUC {scores[order[0]]:.4f}")
    candidates = np.array([centre, *best_of])
    last = range(search.generations, search.generations + CHOOSING)
    seeds = [seed for number in last for seed in training_seeds(search, resident, number)]
    scores = visit(league, resident, candidates, seeds, factory).mean(axis=(1, 2))
    return Response(tuple(candidates[int(scores.argmax())].tolist()), float(scores.max()))


def training_seeds(search: Search, resident: str, generation: int) -> list[int]:
    """Return the seeds of a generation's markets: from 2^62 on, where no seed of a command lies."""
    draw = stream(search.seed, "best response markets", resident, generation)
    return [2**62 + int(it) for it in draw.integers(2**62, size=search.markets)]


def visit(
    league: League, resident: str, points: FloatArray, seeds: Sequence[int], factory: MarketFactory
) -> FloatArray:
    """Return what rules get among residents: AUC [point, seed, M] of each in every seat of every market.

    Args:
        league, resident, factory: see ``respond``.
        points: [point, WIDTH] weights.
        seeds: the markets'.
    """
    seats = len(league.services)
    games = [(p, seed, m) for p in range(len(points)) for seed in seeds for m in range(seats)]
    found: list[float] = []
    for start in range(0, len(games), 2 * TOGETHER):
        batch = games[start : start + 2 * TOGETHER]
        seatings = [
            seating(factory, seed, resident, league.entrant(Game(resident, resident, "", seed))) for _, seed, _ in batch
        ]
        markets = Lockstep([factory] * len(batch), [seed for _, seed, _ in batch])
        seat = np.array([m for *_, m in batch])
        joint = Joint(seat, _decider(markets, seat, points[[p for p, *_ in batch]]))
        arrivals = [spec.arrival for spec in markets.kinds.markets[0].services]
        auc = area_under_curve(play(markets, seatings, joint)[:, 0], arrivals)
        found += auc[np.arange(len(batch)), seat].tolist()
    return np.array(found).reshape(len(points), len(seeds), seats)


def _decider(markets: Lockstep, seats: IntArray, points: FloatArray) -> Callable[[View], Offers]:
    """Return what decides for the service ``seats[b]`` of each market by the rule of ``points[b]``."""
    kinds = markets.kinds
    public = np.array([market.population.spec.disclosure.public_bids for market in kinds.each])

    def decide(view: View) -> Offers:
        b = np.flatnonzero(view.asked[np.arange(len(seats)), seats])
        m = seats[b]
        bids = np.where(view.asked[b, :, None], view.asks[b], 0)
        own = np.arange(bids.shape[1]) == m[:, None]
        bids = np.where((own | public[b, None])[:, :, None], bids, 0)
        seen = Seen(
            dqi=view.dqi[b, m],
            bids=bids,
            seats=m,
            available=view.available[b, m],
            clients=kinds.there[b],
            budget=view.budget[b, m],
            cores=view.cores[b],
            time=(view.round[b] - 1) / kinds.rounds[b],
        )
        row, client, payment = offers(Weights.of(points[b]), seen)
        return Offers(b[row], m[row], client, payment)

    return decide
