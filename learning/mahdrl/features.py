"""The inputs of the agents' networks: a round's clients and, for any market, its context and prior knowledge.

Nothing of it has a unit, so that an agent of one market can play another: money counts in mean bids, clients and
services by their number's logarithm, and DQI by how it goes with the bids. NumPy; arrays are [C, ...] over the clients.
"""

from dataclasses import dataclass, field
from functools import partial
from math import sqrt

import numpy as np

from des.observation import Observation, Offer
from fl.arithmetic.elementary import log
from fl.arithmetic.ordered_sums import mean
from fl.arrays import BoolArray, Float32Array, FloatArray
from fl.surrogate.curves import Curve
from learning.client_selection.scaling import standardised
from learning.mahdrl.win_probability import SMALLEST_PRICE, Rivals

CLIENT_FEATURES = 4
"""The client's DQI and bid among the round's clients, how much of the run is over, and what the budget can buy."""

BOUNDS = {
    "agreement": (-1.0, 1.0),  # correlation of DQI and bids over the clients, mean over the rounds so far
    "spread": (-5.0, 1.0),  # log of the bids' standard deviation over their mean
    "skewness": (-3.0, 3.0),  # of the DQI
    "clients": (-0.92, 1.39),  # log(C / 20), of 8 to 80 clients
    "cores": (0.0, 1.39),  # log K, of 1 to 4
    "services": (0.0, 2.49),  # log of how many take part, 1 to 12
    "scarcity": (-3.0, 3.0),  # log of how many clients all could buy, over C K
    "progress": (0.0, 1.6),  # -log(1 - accuracy) / 3
    "gap": (-0.1, 0.9),  # target - accuracy
    "won at bid": (0.0, 1.0),  # share of the offers at the bid that won so far
    "won above bid": (0.0, 1.0),  # share of the others
    "keenness": (-1.0, 1.0),  # how much higher, in parts of the highest bid, rivals' bids are where an offer lost
    "public": (0.0, 1.0),  # 1 if rivals' bids are
    "money left": (0.0, 1.0),  # share of the budget that the rest of the run can pay
}
"""What an agent knows of its market besides a round's clients, its context, and what its numbers are cut to: about the
ranges in drawn markets (``scenarios.drawn``). To an agent, a market beyond them looks like the nearest within, whose
numbers its networks have seen. How DQI goes with the bids tells which market this is: where the DQI falls with the data
size, as with the published parameters, the dearest clients are not those of the highest DQI."""

CONTEXT = tuple(BOUNDS)  # the numbers of a context, in their order

_LEAST, _MOST = np.array(list(BOUNDS.values())).T

FOR_CHANCES = tuple(
    CONTEXT.index(name)
    for name in ("cores", "services", "scarcity", "progress", "won at bid", "won above bid", "keenness", "public")
)
"""Places of those that say something about rivals."""

SMALLEST_SPREAD = 1e-3

UNTRAINED = 0.1
"""The accuracy before the first round, whatever it is: what an untrained model happens to get right says nothing."""

(_ROUNDS, _AGREEMENT, _PLAIN, _PLAIN_WON, _RAISED, _RAISED_WON, _WON, _WON_KEEN, _LOST, _LOST_KEEN) = range(10)

RANGES = {
    "step_size": (0.5, 1.0),
    "step_clients": (-0.85, 0.0),
    "step_emd": (-0.75, 0.25),
    "first_size": (0.0, 1.0),
    "first_clients": (-1.8, -0.1),
    "first_emd": (-2.7, 1.1),
    "drift_left": (0.5, 1.5),
    "decay": (0.25, 1.55),
}
"""What an agent knows of its own data set before the first round: parameters of the learning curve fitted to it, and
about their range over the curves that come with flmarket. An agent sees others as the nearest within.

A service knows which data it trains on, and may have trained on such data before. Where few large clients are best,
and where many lopsided ones, depends on the curve, and shows in an agent's own progress only when the rounds that count
the most are over. An agent sees how fast the model learns from more images, from more clients and from lopsided ones,
at first and later; not the noise, nor how far it will come."""

NUMBERS = ("known", *RANGES)  # what an agent knows, in its order: first, 1 if it knows a curve at all

_LOW, _HIGH = np.array(list(RANGES.values())).T


def client_features(
    observation: Observation,  # what the service sees
    *,
    budget: bool = True,  # whether the budget is seen; otherwise the last feature is 0
) -> Float32Array:
    """Return [C, 4]: DQI, bid, n / N and the log of how many mean bids the budget is.

    DQI and bids are standardised over the round's clients. DQI tells data sizes apart only in steps of .003 to .005,
    against .1 for a step of EMD: a network would hardly see them in raw values.
    """
    features = np.empty((observation.clients, CLIENT_FEATURES), dtype=np.float32)
    features[:, 0] = standardised(observation.dqi)
    features[:, 1] = standardised(observation.own_bids)
    features[:, 2] = elapsed(observation)
    features[:, 3] = means(observation) if budget else 0.0
    return features


def means(observation: Observation) -> float:
    """Return the log of how many mean bids the budget is, cut to [-3, 3]."""
    typical = max(mean(observation.own_bids), SMALLEST_PRICE)
    return min(max(log(max(observation.budget, SMALLEST_PRICE) / typical), -3.0), 3.0)


def elapsed(observation: Observation) -> float:
    """Return n / N, how much of the run is over."""
    return observation.round / observation.rounds


def knowledge(curve: Curve | None) -> Float32Array:
    """Return what is known [9], each parameter from -1 to 1 over its range; zeros where there is no curve."""
    if curve is None:
        return np.zeros(len(NUMBERS), dtype=np.float32)
    values = np.array([getattr(curve, name) for name in RANGES])
    within = (np.clip(values, _LOW, _HIGH) - _LOW) / (_HIGH - _LOW)
    known: Float32Array = np.concatenate([[1.0], 2.0 * within - 1.0]).astype(np.float32)
    return known


def _nothing() -> FloatArray:
    return np.zeros(10)


@dataclass(frozen=True, slots=True)
class Memory:
    """An agent's memory of its run."""

    # [10] over the rounds so far: rounds, agreements; offers at the bid, those that won, offers above it, those that
    # won; contested offers that won, the highest rival bids for them, and the same of those that lost
    sums: FloatArray = field(default_factory=_nothing)
    # what was known before the first of them, see ``knowledge``
    known: Float32Array = field(default_factory=partial(knowledge, None))

    def after(
        self,
        observation: Observation,  # what the service saw
        offer: Offer,  # what it offered
        won: BoolArray,  # [k] which of the offers won
    ) -> "Memory":
        """Return the memory after a round."""
        sums = self.sums.copy()
        sums[_ROUNDS] += 1
        sums[_AGREEMENT] += _agreement(observation)
        raised = offer.payments > observation.own_bids[offer.clients]
        rivals = Rivals.of(observation)
        if len(rivals) >= observation.cores:  # else no offer can be outbid
            keen = rivals.bids[0, offer.clients] / rivals.highest
            for place, which in ((_PLAIN, ~raised), (_RAISED, raised)):
                sums[place] += which.sum()
                sums[place + 1] += (which & won).sum()
            for place, which in ((_WON, won), (_LOST, ~won)):
                sums[place] += which.sum()
                sums[place + 1] += _total(keen[which])
        return Memory(sums, self.known)


def context(observation: Observation, memory: Memory) -> Float32Array:
    """Return the numbers of ``CONTEXT``, [14]."""
    sums, bids = memory.sums, observation.own_bids
    typical = max(mean(bids), SMALLEST_PRICE)
    services = len(Rivals.of(observation)) + 1
    clients, cores = observation.clients, observation.cores
    accuracy = observation.accuracy if observation.round > 1 else UNTRAINED
    demand = services * min(clients, observation.budget / typical)
    values: FloatArray = np.array(
        [
            (sums[_AGREEMENT] + _agreement(observation)) / (sums[_ROUNDS] + 1),
            log(max(_deviation(bids) / typical, SMALLEST_SPREAD)),
            mean(standardised(observation.dqi) ** 3),
            log(clients / 20),
            log(cores),
            log(services),
            log(max(demand, SMALLEST_PRICE) / (clients * cores)),
            -log(max(1.0 - accuracy, SMALLEST_SPREAD)) / 3,
            observation.target_accuracy - accuracy,
            _share(sums[_PLAIN_WON], sums[_PLAIN]),
            _share(sums[_RAISED_WON], sums[_RAISED]),
            _mean(sums[_LOST_KEEN], sums[_LOST]) - _mean(sums[_WON_KEEN], sums[_WON]),
            float(observation.bids_public),
            _money_left(observation),
        ]
    )
    seen: Float32Array = np.clip(values, _LEAST, _MOST).astype(np.float32)
    return seen


def _agreement(observation: Observation) -> float:
    """Return the correlation of DQI and bids over the round's clients; 0 if either is the same for all."""
    return mean(standardised(observation.dqi) * standardised(observation.own_bids))


def _deviation(values: FloatArray) -> float:
    centred = values - mean(values)
    return sqrt(mean(centred * centred))


def _money_left(observation: Observation) -> float:
    """Return which share of the budget the service can pay in every round that is left, 1 without a limit."""
    if observation.total_left is None or observation.budget <= 0:
        return 1.0
    rounds = observation.rounds - observation.round + 1
    return min(observation.total_left / (rounds * observation.budget), 1.0)


def _share(won: float, offers: float) -> float:
    """Return the share that won; one half before there were any offers, and near it after few."""
    return float((won + 1.0) / (offers + 2.0))


def _mean(total: float, number: float) -> float:
    """Return the mean of a sum of values of about one half, shrunk towards that if there are few."""
    return float((total + 1.0) / (number + 2.0))


def _total(values: FloatArray) -> float:
    return mean(values) * len(values) if len(values) else 0.0
