"""What the agents' networks see of an observation. NumPy; arrays are [C, ...] over the clients of a round."""

import numpy as np

from des.records import Observation
from fl.arrays import Float32Array, FloatArray

CLIENT_FEATURES = 4
"""DQI and bid of the client among the round's clients, how much of the run is over, and what the budget can buy."""

SMALLEST_PRICE = 1e-3
"""Money; keeps ratios of prices finite where a client asks for nothing."""


def standardised(values: FloatArray) -> FloatArray:
    """Return values less their mean, in standard deviations; zeros where all are equal.

    DQI tells data sizes apart only in steps of .003 to .005, against .1 for a step of EMD: raw, a network would not
    see them.
    """
    centred = values - values.mean()
    spread = float(np.sqrt((centred * centred).mean()))
    return centred / spread if spread > 1e-9 else np.zeros_like(centred)


def client_features(
    observation: Observation, *, standardise: bool = True, schedule: bool = True, budget: bool = True
) -> Float32Array:
    """Return [C, 4]: DQI, bid, n / N and the log of how many mean bids the budget is.

    Args:
        observation: of a service's round.
        standardise: DQI and bids over the round's clients; else they are as they come, bids in units of the budget.
        schedule: else 0 in place of n / N.
        budget: else 0 in place of what the budget can buy.
    """
    features = np.empty((observation.clients, CLIENT_FEATURES), dtype=np.float32)
    if standardise:
        features[:, 0] = standardised(observation.dqi)
        features[:, 1] = standardised(observation.own_bids)
    else:
        features[:, 0] = observation.dqi
        features[:, 1] = observation.own_bids / max(observation.budget, SMALLEST_PRICE)
    features[:, 2] = elapsed(observation) if schedule else 0.0
    features[:, 3] = means(observation) if budget else 0.0
    return features


def means(observation: Observation) -> float:
    """Return the log of how many mean bids the budget is, cut at e^3 either way: what is worth it depends on that."""
    mean = max(float(observation.own_bids.mean()), SMALLEST_PRICE)
    return float(np.clip(np.log(max(observation.budget, SMALLEST_PRICE) / mean), -3.0, 3.0))


def elapsed(observation: Observation) -> float:
    """Return n / N, how much of the run is over."""
    return observation.round / observation.rounds
