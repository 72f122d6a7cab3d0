"""Which code trains: picks the kernel for a model and device, and makes trainers that use it."""

from dataclasses import dataclass

from fl.datasets import Dataset
from fl.errors import InputError
from fl.local import FloatVector, ReferenceTrainer, Trainer, TrainingSettings
from fl.models import build


class KernelError(InputError):
    """The kernel that was asked for can't train this model on this machine."""


@dataclass(frozen=True)
class Engine:
    """Makes trainers for one data set and model.

    Attributes:
        dataset: what is learned.
        settings: how.
    """

    dataset: Dataset
    settings: TrainingSettings

    @property
    def kernel(self) -> str:
        """Name of the code that trains, for ``meta.json``."""
        return "reference"

    def trainer(self) -> Trainer:
        """Return a new trainer, for one thread."""
        return self._reference(0)

    def initial_parameters(self, seed: int, *purpose: str | int) -> FloatVector:
        """Return the parameters [P] of a new global model, which depend on (seed, purpose) alone."""
        return self._reference(seed, *purpose).parameters

    def _reference(self, seed: int, *purpose: str | int) -> ReferenceTrainer:
        module = build(self.settings.model, self.dataset.info.labels, seed, *purpose)
        return ReferenceTrainer(module, self.dataset.scale, self.dataset.offset)
