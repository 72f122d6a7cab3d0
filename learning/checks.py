"""Observations that cannot be acted on are refused."""

import numpy as np

from des.records import Observation
from fl.errors import RunError


class ObservationError(RunError):
    """A service observes values that are not finite."""


def require_finite(observation: Observation) -> None:
    """Refuse values that are not finite, before a policy decides on them or a network spreads them.

    Raises:
        ObservationError: names the service, round, array and client.
    """
    where = f"service {observation.service!r}, round {observation.round}"
    for name, values in (("dqi", observation.dqi), ("bids", observation.bids)):
        if not np.isfinite(values).all():
            client = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise ObservationError(f"{where}: the observation's {name} of client {client} is not a finite number")
    for name, value in (("budget", observation.budget), ("accuracy", observation.accuracy)):
        if not np.isfinite(value):
            raise ObservationError(f"{where}: the observation's {name} is not a finite number")
