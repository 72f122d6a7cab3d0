"""A federated-learning service (FLSD): what it is, how far it has come, when it arrives and leaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from des.money import Micro
from des.observation import Status
from fl.data.dqi import DQIParameters
from fl.surrogate.learning_curves import Curve


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    name: str  # unique in the market
    dataset: str  # name of the data set that it learns
    labels: int  # L, how many labels that data set has
    dqi: DQIParameters  # the data set's DQI parameters (eq. 6)
    budget: Micro  # B_m per round, micro-units
    target_accuracy: float  # the accuracy at which it leaves, in (0, 1]
    reward_base: float  # Omega_m, above 1
    local_epochs: int  # a client's passes over its data in one round
    policy: str  # label of its policy, for logs and messages; the market itself runs no policy
    privileged: bool = False  # whether its policy sees what the paper hides (``Observation.privileged``)
    arrival: int = 1  # the first slot in which it takes part, as rounds are called where each is one
    # when it came to the market, in slots: 2.5 is the middle of the second; None: as its first one began
    came: float | None = None
    last: int | None = None  # the slot with which it leaves in any case; None: it stays until it meets its target
    # the most that it can pay in the whole run, micro-units; None if there is no such limit
    total_budget: Micro | None = None
    # the most that budgets of rounds can add up to that are not spent, micro-units; None: what is not spent lapses
    budget_cap: Micro | None = None
    model_bytes: int = 0  # of its model, where clients have bandwidths
    # how its data set is learned, as fitted to earlier trainings; None if that is not known. The market does not look
    # at it.
    curve: Curve | None = None


@dataclass(slots=True)
class ServiceState:
    """The progress of a service: plain data, from which a market can continue at a round boundary."""

    accuracy: float  # the accuracy of its global model, in [0, 1]; held once it has left
    test_accuracy: float  # the same model's accuracy on test images; nothing follows from it
    status: Status = Status.TRAINING  # its status at the end of the last round

    @classmethod
    def first(cls, spec: ServiceSpec, accuracy: float, test_accuracy: float | None) -> Self:
        status = Status.WAITING if spec.arrival > 1 else Status.TRAINING
        return cls(accuracy, accuracy if test_accuracy is None else test_accuracy, status)

    @property
    def active(self) -> bool:
        return self.status is Status.TRAINING

    @property
    def stays(self) -> bool:
        return not self.status.gone

    def takes_part(self, spec: ServiceSpec, round_: int) -> bool:
        """Whether the service takes part in the next round: it does already, or has waited for this one."""
        return self.active or (self.status is Status.WAITING and spec.arrival <= round_)

    def begin_round(self, spec: ServiceSpec, round_: int) -> None:
        """Arrive if the service has waited for this round."""
        if self.takes_part(spec, round_):
            self.status = Status.TRAINING

    def leave_at(self, spec: ServiceSpec, round_: int) -> bool:
        """Leave the market if the accuracy meets the target, or patience is over; return whether it does.

        The round still counts.
        """
        if reached(self.accuracy, spec.target_accuracy):
            self.status = Status.REACHED
        elif spec.last is not None and round_ >= spec.last:
            self.status = Status.GAVE_UP
        return self.status.leaves

    def end_round(self) -> None:
        """Be gone from the next round on, if it leaves with this one."""
        if self.status.leaves:
            self.status = Status.LEFT

    def plain(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        return {"accuracy": self.accuracy, "status": self.status.value, "test_accuracy": self.test_accuracy}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        return cls(plain["accuracy"], plain["test_accuracy"], Status(plain["status"]))


def reached(accuracy: Any, target: Any) -> Any:
    """Return whether the target accuracy is met, of one service or of many."""
    return accuracy >= target
