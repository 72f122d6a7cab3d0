"""What a learner must know of a market before its first round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fl.surrogate import Curve


@dataclass(frozen=True, slots=True)
class Shape:
    """The fixed quantities of a market.

    Attributes:
        services: names of all services of the market, in order.
        clients: C.
        cores: K.
        rounds: N.
        reward_bases: Omega of each service, by name.
        curves: the learning curve that each service knows, by name; None where it knows none.
    """

    services: tuple[str, ...]
    clients: int
    cores: int
    rounds: int
    reward_bases: Mapping[str, float]
    curves: Mapping[str, Curve | None] = field(default_factory=dict)
