"""What the agents' networks see of an observation. NumPy; arrays are [C, ...] over the clients of a round."""

import numpy as np

from des.records import Observation
from fl.arrays import Float32Array
from fl.elementary import log
from fl.ordered import mean
from learning.scaling import standardised

CLIENT_FEATURES = 4
"""The client's DQI and bid among the round's clients, how much of the run is over, and what the budget can buy."""

SMALLEST_PRICE = 1e-3  # money; keeps ratios of prices finite where a client asks for nothing


def client_features(
    observation: Observation,  # what the service sees
    *,
    # whether DQI and bids are standardised over the round's clients. DQI tells data sizes apart only in steps of .003
    # to .005, against .1 for a step of EMD: a network would hardly see them in raw values. Otherwise DQI is raw, and
    # bids are in units of the budget.
    standardise: bool = True,
    schedule: bool = True,  # whether n / N is seen; otherwise it is 0
    budget: bool = True,  # whether the budget is seen; otherwise the last feature is 0
) -> Float32Array:
    """Return [C, 4]: DQI, bid, n / N and the log of how many mean bids the budget is."""
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
    """Return the log of how many mean bids the budget is, cut to [-3, 3]."""
    typical = max(mean(observation.own_bids), SMALLEST_PRICE)
    return min(max(log(max(observation.budget, SMALLEST_PRICE) / typical), -3.0), 3.0)


def elapsed(observation: Observation) -> float:
    """Return n / N, how much of the run is over."""
    return observation.round / observation.rounds
