"""What a learner must know of a market before its first round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fl.surrogate import Curve


@dataclass(frozen=True, slots=True)
class Shape:
    """The fixed quantities of a market."""

    services: tuple[str, ...]  # names of all services of the market, in order
    clients: int  # C
    cores: int  # K
    rounds: int  # N
    reward_bases: Mapping[str, float]  # Omega of each service, by name
    # the learning curve that each service knows, by name; None where it knows none
    curves: Mapping[str, Curve | None] = field(default_factory=dict)
