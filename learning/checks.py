"""Observations that can't be acted on are refused, not guessed at."""

import numpy as np

from des.records import FloatArray, Observation
from fl.errors import RunError


class ObservationError(RunError):
    """What a service observes holds values that are not finite numbers."""


def require_finite(observation: Observation) -> None:
    """Raise ObservationError, naming service and round, unless every number in the observation is finite."""
    numbers: dict[str, FloatArray | float] = {
        "dqi": observation.dqi,
        "bids": observation.bids,
        "budget": observation.budget,
        "accuracy": observation.accuracy,
    }
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise ObservationError(
                f"service {observation.service!r}, round {observation.round}: {name} holds a value that is not finite"
            )
