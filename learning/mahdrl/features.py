"""What the agents' networks see of an observation. NumPy; arrays are [C, ...] over the clients of a round."""

import numpy as np

from des.records import FloatArray, Observation
from fl.errors import RunError
from learning.mahdrl.networks import Floats

CLIENT_FEATURES = 3
"""DQI and bid of the client among the round's clients, and how much of the run is over."""

WIN_FEATURES = 5
"""How an offer compares with what rivals would pay at the least."""

SMALLEST_PRICE = 1e-3
"""Money; keeps ratios of prices finite where a client asks for nothing."""


class ObservationError(RunError):
    """An observation holds what no agent can decide on."""


def check(observation: Observation) -> None:
    """Refuse numbers that are none, before a network spreads them.

    Raises:
        ObservationError: says which service, round, array and client.
    """
    where = f"service {observation.service!r}, round {observation.round}"
    for name, values in (("dqi", observation.dqi), ("bids", observation.bids)):
        if not np.isfinite(values).all():
            client = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise ObservationError(f"{where}: the observation's {name} of client {client} is not a finite number")
    for name, value in (("budget", observation.budget), ("accuracy", observation.accuracy)):
        if not np.isfinite(value):
            raise ObservationError(f"{where}: the observation's {name} is not a finite number")


def standardised(values: FloatArray) -> FloatArray:
    """Return values less their mean, in standard deviations; zeros where all are equal.

    DQI tells data sizes apart only in steps of .003 to .005, against .1 for a step of EMD: raw, a network would not
    see them.
    """
    centred = values - values.mean()
    spread = float(np.sqrt((centred * centred).mean()))
    return centred / spread if spread > 1e-9 else np.zeros_like(centred)


def client_features(observation: Observation) -> Floats:
    """Return [C, 3]: DQI and bid, standardised over the round's clients, and n / N."""
    features = np.empty((observation.clients, CLIENT_FEATURES), dtype=np.float32)
    features[:, 0] = standardised(observation.dqi)
    features[:, 1] = standardised(observation.own_bids)
    features[:, 2] = observation.round / observation.rounds
    return features


def rival_bids(observation: Observation) -> FloatArray:
    """Return [R, C] each client's bids to the other services that still take part, the highest first.

    A service that left has zeros for all its bids; so would one whose clients all ask for nothing, which cannot
    outbid anyone either.
    """
    own = observation.services.index(observation.service)
    active = [m for m, row in enumerate(observation.bids) if m != own and row.any()]
    ascending: FloatArray = np.sort(observation.bids[active], axis=0)
    return ascending[::-1]


def win_features(prices: FloatArray, bids: FloatArray, rivals: FloatArray, cores: int) -> Floats:
    """Return [C, L, 5]: what decides whether an offer at a price is served.

    Payments are at least bids (eq. 5), so the K-th highest rival bid is what it takes to be served for sure against
    rivals that pay just their bids. All are ratios, so that they mean the same in any market.

    Args:
        prices: [C, L] prices considered for each client.
        bids: [C] own bids.
        rivals: [R, C] as ``rival_bids`` gives them.
        cores: K.
    """
    above = (rivals[:, :, None] >= prices).sum(axis=0)
    critical = rivals[cores - 1] if len(rivals) >= cores else np.zeros(len(bids))
    features = np.empty((*prices.shape, WIN_FEATURES), dtype=np.float32)
    features[..., 0] = above / cores
    features[..., 1] = above >= cores
    features[..., 2] = _log_ratio(prices, bids[:, None])
    features[..., 3] = _log_ratio(prices, critical[:, None])
    features[..., 4] = len(rivals) / (len(rivals) + cores)
    return features


def _log_ratio(prices: FloatArray, reference: FloatArray) -> FloatArray:
    ratio = np.log(np.maximum(prices, SMALLEST_PRICE)) - np.log(np.maximum(reference, SMALLEST_PRICE))
    return np.asarray(np.clip(ratio, -2.0, 2.0))
