"""Observations made by hand, for the tests of ``learning``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from des.records import Observation, Privileged
from fl.streams import stream_key
from learning.policy import PolicyContext


def observation_of(
    bids: Sequence[float],
    dqi: Sequence[float] | None = None,
    *,
    budget: float = 10.0,
    data_size: Sequence[int] | None = None,
    emd: Sequence[float] | None = None,
    seed: int = 0,
) -> Observation:
    """What the second of two services, "own", sees; the other one's bids are nobody's business here."""
    own = np.array(bids, dtype=np.float64)
    hidden = None
    if data_size is not None:
        hidden = Privileged(np.array(data_size), np.array(emd if emd is not None else np.zeros(len(own))))
    return Observation(
        round=1,
        rounds=10,
        service="own",
        services=("other", "own"),
        dqi=np.array(dqi, dtype=np.float64) if dqi is not None else np.full(len(own), 0.5),
        bids=np.stack([own[::-1] * 100, own]),
        budget=budget,
        cores=1,
        accuracy=0.1,
        target_accuracy=0.9,
        key=stream_key(seed, "policy", "own", 1),
        privileged=hidden,
    )


@pytest.fixture(scope="session")
def observe() -> Callable[..., Observation]:
    """``observe(bids, dqi, budget=..., data_size=..., emd=..., seed=...)``."""
    return observation_of


@pytest.fixture(scope="session")
def context() -> PolicyContext:
    options: dict[str, Any] = {"services": 2, "clients": 5, "cores": 1, "rounds": 10}
    return PolicyContext("own", budget=10.0, target_accuracy=0.9, reward_base=100.0, **options)
