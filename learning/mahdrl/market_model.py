"""An agent's model of its market: the clients of a round, its rivals and the chance to be served, and its context.

Nothing here has a unit, so that an agent of one market can play another: money counts in mean bids, clients and
services by their number's logarithm, and DQI by how it goes with the bids. NumPy, and torch where an agent learns.
"""

from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from des.observation import Observation, Offer
from fl.arithmetic.elementary import log, waves
from fl.arithmetic.ordered_sums import mean, standardised
from fl.arrays import BoolArray, Float32Array, FloatArray
from fl.surrogate.learning_curves import Curve

SMALLEST_PRICE = 1e-3  # money; keeps ratios of prices finite where a client asks for nothing

# The clients of a round.

CLIENT_FEATURES = 4
"""The client's DQI and bid among the round's clients, how much of the run is over, and what the budget can buy."""


def client_features(
    observation: Observation,
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
    features[:, 3] = purchasing_power(observation) if budget else 0.0
    return features


def purchasing_power(observation: Observation) -> float:
    """Return the log of how many mean bids the budget is, cut to [-3, 3]."""
    typical = max(mean(observation.own_bids), SMALLEST_PRICE)
    return min(max(log(max(observation.budget, SMALLEST_PRICE) / typical), -3.0), 3.0)


def elapsed(observation: Observation) -> float:
    """Return n / N, how much of the run is over."""
    return observation.round / observation.rounds


# Rivals, and the chance to be served: that fewer than K of them outbid an offer. Each outbids it with a probability of
# its own, which a small network, the same for all rivals and clients, learns from what was served and what was refused.
# A rival is keen on the clients that bid high to it, because a bid grows with the data, and outbids for sure only where
# its payment, at least its bid (eq. 5), is above the price.

WAVES = 2.0 ** np.arange(6)
"""Cycles over the range of bids. Bids come in steps that reveal what a client holds, and demand may go up and down with
them; a small network sees such steps only if they are spread out for it."""

STANDING = 2
"""Numbers in a rival's standing to an offer: its bid as a part of the round's highest, and the log of its bid over the
price."""

RIVAL_FEATURES = 3 + 2 * len(WAVES)
"""Numbers that the network sees of a rival: its standing, whether its bid reaches the price, and the bid in waves."""

LARGEST_RATIO = 2.0  # log ratios are cut to this: beyond it, one of the two is out of the question


@dataclass(frozen=True, slots=True)
class ActiveRivals:
    """The R other services that still take part."""

    bids: FloatArray  # [R, C] of each client to each of them, for each client the highest bid first
    highest: float  # the highest bid of the round, to any service

    def __len__(self) -> int:
        return len(self.bids)

    @classmethod
    def of(cls, observation: Observation) -> "ActiveRivals":
        """Return the rivals of the service that observes.

        A service that has left has only zeros as bids. So has one whose clients all ask for nothing; it is left out,
        too. Where bids are not public, all other services may take part, and what clients ask of them is not known: in
        its place stands what they ask of the service itself, on average over the clients.
        """
        if not observation.bids_public:
            asked = observation.own_bids
            unknown = np.broadcast_to(mean(asked), (len(observation.services) - 1, observation.clients))
            return cls(unknown, float(asked.max(initial=SMALLEST_PRICE)))
        own = observation.services.index(observation.service)
        active = [m for m, row in enumerate(observation.bids) if m != own and row.any()]
        ascending: FloatArray = np.sort(observation.bids[active], axis=0)
        return cls(ascending[::-1], float(observation.bids.max(initial=SMALLEST_PRICE)))

    def standing(
        self,
        prices: FloatArray,  # [C, L] considered for each client
        most: int,  # R' is at most this; the rivals with the highest bids for a client are kept
    ) -> FloatArray:
        """Return the rivals' standings to an offer at each price, [C, L, R', 2]."""
        bids = self.bids[:most].T[:, None]  # [C, 1, R']
        standing = np.empty((*prices.shape, bids.shape[2], STANDING))
        standing[..., 0] = bids / self.highest
        ratio = log(np.maximum(bids, SMALLEST_PRICE) / np.maximum(prices, SMALLEST_PRICE)[..., None])
        standing[..., 1] = np.clip(ratio, -LARGEST_RATIO, LARGEST_RATIO)
        return standing


def rivals_kept(services: int, cores: int) -> int:
    """Return how many rivals for a client are looked at: all; in large markets, those that fill its cores thrice."""
    return min(services - 1, max(8, 3 * cores))


def rival_features(
    standing: Any,  # [..., 2], see ``ActiveRivals.standing``
    library: Any,  # ``numpy`` or ``torch``, whichever the array is of
) -> Any:
    """Return what the network sees of rivals, [..., 15]."""
    part, ratio = standing[..., :1], standing[..., 1:]
    if library is np:
        sine, cosine = _waves(part[..., 0].astype(np.float64))
    else:
        angle = part * library.asarray(2.0 * np.pi * WAVES, dtype=part.dtype)
        sine, cosine = library.sin(angle), library.cos(angle)
    reaches = (ratio >= 0) * library.ones_like(ratio)
    return library.concatenate([part, reaches, ratio, sine, cosine], -1)


def _waves(part: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sines and cosines [..., 6] of a part of the range of bids, the same bits on every machine."""
    sine, cosine = waves(part)
    sines, cosines = [sine], [cosine]
    for _ in WAVES[1:]:  # each has twice the cycles of the one before
        sine, cosine = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
        sines.append(sine)
        cosines.append(cosine)
    return np.stack(sines, axis=-1), np.stack(cosines, axis=-1)


def fewer_than(
    cores: int,  # K
    chances: Any,  # [..., R] the probability of each, NumPy or torch
) -> Any:
    """Return the probability [...] that fewer than K of R independent events happen (Poisson binomial)."""
    return sum(exactly(cores, chances))


def exactly(
    most: int,  # how many probabilities
    chances: Any,  # [..., R] the probability of each, NumPy or torch
) -> list[Any]:
    """Return the probabilities [...] that 0, 1, ... ``most`` - 1 of R independent events happen."""
    nothing = 0.0 * chances.sum(-1)  # of shape [...] even without rivals
    number: list[Any] = [nothing + 1.0] + [nothing] * (most - 1)  # of the events so far
    for rival in range(chances.shape[-1]):
        chance = chances[..., rival]
        number = [
            same * (1.0 - chance) + before * chance for same, before in zip(number, [0.0, *number[:-1]], strict=True)
        ]
    return number


# The context: the numbers that tell which market this is, for agents that play any.

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
"""The limits that the numbers are cut to, about their ranges in ``scenarios.random_markets``. To an agent, a market
beyond them looks like the nearest within, whose numbers its networks have seen. How DQI goes with the bids tells which
market this is: where the DQI falls with the data size, as with the published parameters, the dearest clients are not
those of the highest DQI."""

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
"""An agent's knowledge of its own data set before the first round: parameters of the learning curve fitted to it, and
about their range over the curves that come with flmarket. An agent sees others as the nearest within.

A service knows which data it trains on, and may have trained on such data before. Where few large clients are best,
and where many lopsided ones, depends on the curve, and shows in an agent's own progress only when the rounds that count
the most are over. An agent sees how fast the model learns from more images, from more clients and from lopsided ones,
at first and later; not the noise, nor how far it will come."""

NUMBERS = ("known", *RANGES)  # what an agent knows, in its order: first, 1 if it knows a curve at all

_LOW, _HIGH = np.array(list(RANGES.values())).T


def knowledge(curve: Curve | None) -> Float32Array:
    """Return what is known [9], each parameter from -1 to 1 over its range; zeros where there is no curve."""
    if curve is None:
        return np.zeros(len(NUMBERS), dtype=np.float32)
    values = np.array([getattr(curve, name) for name in RANGES])
    within = (np.clip(values, _LOW, _HIGH) - _LOW) / (_HIGH - _LOW)
    known: Float32Array = np.concatenate([[1.0], 2.0 * within - 1.0]).astype(np.float32)
    return known


(_ROUNDS, _AGREEMENT, _PLAIN, _PLAIN_WON, _RAISED, _RAISED_WON, _WON, _WON_KEEN, _LOST, _LOST_KEEN) = range(10)


@dataclass(frozen=True, slots=True)
class RunMemory:
    """An agent's memory of its run."""

    # [10] over the rounds so far: rounds, agreements; offers at the bid, those that won, offers above it, those that
    # won; contested offers that won, the highest rival bids for them, and the same of those that lost
    sums: FloatArray = field(default_factory=partial(np.zeros, 10))
    # what was known before the first of them, see ``knowledge``
    known: Float32Array = field(default_factory=partial(knowledge, None))

    def after(
        self,
        observation: Observation,
        offer: Offer,
        won: BoolArray,  # [k] which of the offers won
    ) -> "RunMemory":
        sums = self.sums.copy()
        sums[_ROUNDS] += 1
        sums[_AGREEMENT] += _agreement(observation)
        raised = offer.payments > observation.own_bids[offer.clients]
        rivals = ActiveRivals.of(observation)
        if len(rivals) >= observation.cores:  # else no offer can be outbid
            keen = rivals.bids[0, offer.clients] / rivals.highest
            for place, which in ((_PLAIN, ~raised), (_RAISED, raised)):
                sums[place] += which.sum()
                sums[place + 1] += (which & won).sum()
            for place, which in ((_WON, won), (_LOST, ~won)):
                sums[place] += which.sum()
                sums[place + 1] += mean(keen[which]) * which.sum() if which.any() else 0.0
        return RunMemory(sums, self.known)


START = RunMemory()  # before the first round


def context(observation: Observation, memory: RunMemory) -> Float32Array:
    """Return the numbers of ``CONTEXT``, [14]."""
    sums, bids = memory.sums, observation.own_bids
    typical = max(mean(bids), SMALLEST_PRICE)
    centred = bids - mean(bids)
    services = len(ActiveRivals.of(observation)) + 1
    clients, cores = observation.clients, observation.cores
    accuracy = observation.accuracy if observation.round > 1 else UNTRAINED
    demand = services * min(clients, observation.budget / typical)
    values: FloatArray = np.array(
        [
            (sums[_AGREEMENT] + _agreement(observation)) / (sums[_ROUNDS] + 1),
            log(max(sqrt(mean(centred * centred)) / typical, SMALLEST_SPREAD)),
            mean(standardised(observation.dqi) ** 3),
            log(clients / 20),
            log(cores),
            log(services),
            log(max(demand, SMALLEST_PRICE) / (clients * cores)),
            -log(max(1.0 - accuracy, SMALLEST_SPREAD)) / 3,
            observation.target_accuracy - accuracy,
            _about_half(sums[_PLAIN_WON], sums[_PLAIN]),
            _about_half(sums[_RAISED_WON], sums[_RAISED]),
            _about_half(sums[_LOST_KEEN], sums[_LOST]) - _about_half(sums[_WON_KEEN], sums[_WON]),
            float(observation.bids_public),
            _money_left(observation),
        ]
    )
    seen: Float32Array = np.clip(values, _LEAST, _MOST).astype(np.float32)
    return seen


def _agreement(observation: Observation) -> float:
    """Return the correlation of DQI and bids over the round's clients; 0 if either is the same for all."""
    return mean(standardised(observation.dqi) * standardised(observation.own_bids))


def _money_left(observation: Observation) -> float:
    """Return which share of the budget the service can pay in every round that is left, 1 without a limit."""
    if observation.total_left is None or observation.budget <= 0:
        return 1.0
    rounds = observation.rounds - observation.round + 1
    return min(observation.total_left / (rounds * observation.budget), 1.0)


def _about_half(total: float, number: float) -> float:
    """Return the mean of values from 0 to 1, given their sum, shrunk towards one half where there are few."""
    return float((total + 1.0) / (number + 2.0))
