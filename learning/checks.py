"""Observations that can't be acted on are refused, not guessed at."""

import numpy as np

from des.records import Observation
from fl.errors import RunError


class ObservationError(RunError):
    """What a service observes holds values that are not finite numbers."""


def require_finite(observation: Observation) -> None:
    """Refuse numbers that are none, before a policy decides on them or a network spreads them.

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
