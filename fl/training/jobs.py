"""The jobs that a market gives to federated learning in each round, and their results. Light: no torch.

``Federation`` is the one seam between the market and model training; ``fl.backends`` lists its implementations.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from fl.arrays import AnyArray, FloatArray, IntArray
from fl.training.trigger import Trigger
from flmarket.core.errors import RunError


class Conduct(NamedTuple):
    """How a client's training departs from honest work; what it says of it is another matter (``fl.training.conduct``).

    What several causes change in one client is one conduct: ``conduct._replace(epochs=1)``.
    """

    epochs: int | None = None  # local epochs that it trains, at least 1; None: as many as the service asks for
    label_noise: float = 0.0  # probability that an image of the client has a wrong label, whenever it comes
    label_flip: float = 0.0  # probability that it takes an image with label l of L for L - 1 - l
    # what it sends for an update: that of its training; the old model; or random numbers, in norm like its training's
    update: Literal["trained", "old", "random"] = "trained"
    clip: float | None = None  # the largest Euclidean norm of its update, which is scaled down to it
    noise: float = 0.0  # standard deviation of Gaussian noise on each parameter, after clipping
    update_scale: float = 1.0  # what its update is multiplied by, last of all


HONEST = Conduct()


class TrainingJob(NamedTuple):
    """One client's local training for one service in one round."""

    service: str  # name of the service
    client: int  # index of the client
    size: int  # D, images in the client's data set
    emd: float  # its realised EMD (eq. 1)
    # the images that the client says it has, by which its update is weighted; None where that is D
    reported: int | None = None
    # the round in which its label mix was drawn, if that lasts (0: at the start); None for this round's
    mix: int | None = None
    counts: tuple[int, ...] | None = None  # images of each label; None: drawn to fit the EMD
    images: IntArray | None = None  # [D] indices into the training split; None: drawn to fit the label counts
    conduct: Conduct | None = None  # how its training departs from honest work; None: in nothing

    @property
    def weight(self) -> int:
        """The weight of its update in FedAvg: a server knows no other size than the one that is reported."""
        return self.size if self.reported is None else self.reported


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """The outcome of one service's round of training."""

    accuracy: float  # the new global model's accuracy, in [0, 1], as ``Federation.accuracy``
    losses: FloatArray  # [jobs of the service] each client's mean local training loss, in the order of the jobs
    test_accuracy: float | None = None  # see ``Federation.test_accuracy``

    @property
    def reported(self) -> float:
        """The accuracy for reports: on test images."""
        return self.accuracy if self.test_accuracy is None else self.test_accuracy


class Diverged(RunError):  # noqa: N818 - it names what happened to the model, as "diverged" does in every log
    """Training produced a loss or parameters that are no longer finite numbers."""

    def __init__(self, service: str, round_: int, client: int | None, *, changed: bool = False) -> None:
        super().__init__(service, round_, client)
        self.service, self.round, self.client = service, round_, client
        self.changed = changed  # whether clients add noise to their updates or scale them

    def __str__(self) -> str:
        what = "the global model is" if self.client is None else f"the loss of client {self.client} is"
        others = "; its clients add noise to updates, or scale them: lower response.clip or update_scale"
        return (
            f"service {self.service!r}: training diverged in round {self.round}: {what} not finite; "
            f"lower learning_rate (or local_epochs, momentum) for its data set{others if self.changed else ''}"
        )


class Delivery(NamedTuple):
    """One update that a service takes into its next model."""

    round: int  # in which the client began
    client: int
    staleness: int  # how many models the service has made since then


class Federation(Protocol):
    """Trains the services' global models on the data that their clients hold. Implementations inherit from it."""

    @property
    @abstractmethod
    def kernels(self) -> Mapping[str, str]:
        """The code that trains each service's model, by service. Results are the same bytes only if it is the same."""
        ...

    @abstractmethod
    def accuracy(self, service: str) -> float:
        """Return the accuracy in [0, 1] of the service's current global model, which the market acts on.

        It is measured on validation images, which no client has, or on test images if no others are held out.
        """
        ...

    def test_accuracy(self, service: str) -> float | None:
        """Return the same model's accuracy on test images, for reports alone; None where that is ``accuracy``."""
        return None

    @abstractmethod
    def train_round(
        self,
        round_: int,  # the round, from 1
        jobs: Sequence[TrainingJob],  # the round's jobs, in any order; a service without a job keeps its model
    ) -> Mapping[str, TrainingOutcome]:
        """Train all of a round's jobs, aggregate per service and evaluate the new global models."""
        ...

    def trial(self, round_: int, jobs: Sequence[TrainingJob]) -> Callable[[Sequence[TrainingJob]], float]:
        """Return a function of some jobs of one service among a round's: the accuracy if these alone were trained.

        A trial leaves the models as they are; the function is of no use once a round has been trained.
        """
        before = self.state()

        def accuracy(some: Sequence[TrainingJob]) -> float:
            outcome = self.train_round(round_, some)[some[0].service]
            self.restore(before)
            return outcome.accuracy

        return accuracy

    @abstractmethod
    def state(self) -> dict[str, AnyArray]:
        """Return the arrays, by name, from which training can continue."""
        ...

    @abstractmethod
    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a ``state`` of a federation for the same services and seed."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Release workers and memory. The federation cannot be used afterwards."""
        ...


class Asynchronous(Federation, Protocol):
    """A federation in which work can outlast the round in which it begins, and updates be aggregated as they arrive."""

    @abstractmethod
    def begin(self, round_: int, jobs: Sequence[TrainingJob], slot: int | None = None) -> Mapping[str, FloatArray]:
        """Train jobs on the models of now, and keep what they yield until it is aggregated or forgotten.

        Args:
            round_: the round, from 1.
            jobs: of clients that begin now.
            slot: the one for which clients hold their data; None where the round is one.

        Returns:
            By service, the mean local training loss of each of its jobs, in their order.
        """
        ...

    @abstractmethod
    def aggregate(self, service: str, model: int, deliveries: Sequence[Delivery], trigger: Trigger) -> None:
        """Make a service's next model, its ``model``-th, of updates that were begun and have arrived."""
        ...

    @abstractmethod
    def evaluate(self, services: Sequence[str]) -> None:
        """Measure the accuracy of services' models, which ``accuracy`` returns from then on."""
        ...

    @abstractmethod
    def forget(self, service: str, updates: Sequence[Delivery] | None = None) -> None:
        """Drop updates of a service; all if it is not said which."""
        ...
