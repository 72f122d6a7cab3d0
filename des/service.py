"""A federated-learning service (FLSD): what it is, how far it has come, and when it leaves."""

from dataclasses import dataclass

from des.money import Micro
from des.records import Status
from fl.quality import DQIParameters


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service as the scenario describes it.

    Attributes:
        name: unique in the market.
        dataset: name of the data set it learns.
        labels: L of that data set.
        dqi: the data set's DQI parameters (eq. 6).
        budget: B_m per round, micro-units.
        target_accuracy: at which it leaves, in (0, 1].
        reward_base: Omega_m > 1.
        local_epochs: a client's passes over its data in one round.
        policy: label of its policy, for logs and messages; the market runs no policy.
        privileged: its policy may see what the paper hides (``Observation.privileged``).
    """

    name: str
    dataset: str
    labels: int
    dqi: DQIParameters
    budget: Micro
    target_accuracy: float
    reward_base: float
    local_epochs: int
    policy: str
    privileged: bool = False


@dataclass(slots=True)
class ServiceState:
    """How far a service has come. Plain data: all that a market needs to go on at a round boundary.

    Attributes:
        accuracy: of its global model, in [0, 1]; held once it has left.
        status: at the end of the last round.
    """

    accuracy: float
    status: Status = Status.TRAINING

    @property
    def active(self) -> bool:
        """Whether the service still takes part."""
        return self.status is Status.TRAINING


def reward(spec: ServiceSpec, accuracy: float) -> float:
    """Return r = Omega^accuracy, and Omega^target once the target is met.

    The reward of a service that has left is absorbing: it gets Omega^target in every remaining round, so that finishing
    early is never punished.
    """
    return float(spec.reward_base ** min(accuracy, spec.target_accuracy))
