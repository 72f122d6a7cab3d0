"""The backends, by name: what a market's federation can be. Light: torch is imported only where models are trained.

Code that depends on a scenario's ``training.backend`` asks the backend itself, never its name. A new backend is a
federation (``fl.training.jobs.Federation``), a class here that creates it, and an entry in ``BACKENDS``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from fl.data.registry import Dataset
from fl.surrogate.fitted import Fit, FitError, shipped_curve, staleness_fit, surrogate_fit
from fl.surrogate.learning_curves import Curve, Stale, SurrogateFederation
from fl.training.aggregator import Aggregator
from fl.training.aggregators.fedavg import FedAvg
from fl.training.jobs import Federation
from fl.training.regime import Device, Kernel, Regime
from fl.training.tasks import Task
from fl.training.trainers import Engine, require_device


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """The learning task of one service: its data set, and how its clients train."""

    service: str  # its name
    dataset: str  # name of its data set
    regime: Regime  # how its clients train


@dataclass(frozen=True, slots=True)
class FederationSpec:
    """The input from which a backend creates a scenario's federation."""

    tasks: Sequence[TaskSpec]  # one for each service
    seed: int  # the run's seed
    load: Callable[[str], Dataset]  # returns a data set by its name; only backends that train call it
    eval_samples: int | None = None  # the most images that each evaluation looks at; None for all
    # the share of each data set's training images that accuracy is measured on, and no client has; 0: it is measured on
    # test images
    validation: float = 0.0
    workers: int = 1  # training threads; results do not depend on their number
    kernel: Kernel = "auto"  # the code that trains on a CPU
    device: Device = "cpu"  # where models train
    aggregator: Callable[[], Aggregator] = FedAvg  # returns the rule of one service, new; only backends that train ask


class Backend(ABC):
    """One value of ``training.backend``."""

    name: ClassVar[str]  # the value
    summary: ClassVar[str]  # what it does, in a few words
    # whether it trains networks on images. Only then are data sets loaded, and only then do ``training.kernel`` and
    # ``training.device`` matter.
    trains: ClassVar[bool]
    accuracy: ClassVar[str]  # what its accuracies are, as figures name them
    note: ClassVar[str | None] = None  # what users must know before they rely on its results, if anything

    @property
    def remark(self) -> str | None:
        """The remark shown with its results: its note, with its name; None without a note."""
        return self.note and f'backend = "{self.name}": {self.note}'

    def fits(self, dataset: str, regime: Regime, *, outlasting: bool = False) -> Sequence[Fit]:
        """Return the fits that it follows for a data set in a regime, and whether or not work outlasts rounds."""
        return ()

    def known(self, dataset: str, regime: Regime) -> Curve | None:
        """Return how a data set is learned in a regime, as far as that is known beforehand; None if it is not."""
        fit = shipped_curve(dataset, regime)
        return None if fit is None else _curve(fit)

    def kernels(self, spec: FederationSpec) -> Mapping[str, str]:
        """Return which code would train each service's models here; empty where none are trained."""
        return {}

    def require(self, spec: FederationSpec) -> None:  # noqa: B027 - optional: not all have anything to check
        """Check what can be checked of a federation without creating it."""

    @abstractmethod
    def federation(self, spec: FederationSpec) -> Federation:
        """Return a new federation, before its first round."""


class RealTraining(Backend):
    """Trains and evaluates networks on images."""

    name = "real"
    summary = "train and evaluate networks on images"
    trains = True
    accuracy = "test accuracy"

    def kernels(self, spec: FederationSpec) -> Mapping[str, str]:
        return {
            task.service: Engine(spec.load(task.dataset), task.regime, spec.kernel, task.service).kernel
            for task in spec.tasks
        }

    def require(self, spec: FederationSpec) -> None:
        self.kernels(spec)
        require_device(spec.device)

    def federation(self, spec: FederationSpec) -> Federation:
        from fl.training.federation import RealFederation

        tasks = [
            Task(it.service, spec.load(it.dataset), it.regime, spec.eval_samples, spec.validation, spec.aggregator())
            for it in spec.tasks
        ]
        return RealFederation(tasks, spec.seed, workers=spec.workers, kernel=spec.kernel, device=spec.device)


class FittedCurves(Backend):
    """Follows learning curves that were fitted to real training."""

    name = "surrogate"
    summary = (
        "follow fitted learning curves, to train policies and explore in seconds (never a result of real training)"
    )
    trains = False
    accuracy = "accuracy on fitted curves"
    note = "accuracies follow fitted curves; no model is trained (docs/surrogate.md)"

    def fits(self, dataset: str, regime: Regime, *, outlasting: bool = False) -> Sequence[Fit]:
        fit, stale = surrogate_fit(dataset, regime), staleness_fit(dataset, regime) if outlasting else None
        _curve(fit)
        return (fit,) if stale is None else (fit, stale)

    def known(self, dataset: str, regime: Regime) -> Curve:
        return _curve(surrogate_fit(dataset, regime))

    def federation(self, spec: FederationSpec) -> Federation:
        fits = {it.service: staleness_fit(it.dataset, it.regime) for it in spec.tasks}
        stale = {name: Stale(**fit.parameters) for name, fit in fits.items() if fit is not None}
        return SurrogateFederation(self.curves(spec), spec.seed, stale)

    def curves(self, spec: FederationSpec) -> dict[str, Curve]:
        return {it.service: self.known(it.dataset, it.regime) for it in spec.tasks}


class NoiselessCurves(FittedCurves):
    """Follows the same curves without their noise."""

    name = "noiseless"
    summary = "follow the surrogate's curves without luck and noise, to train policies on what a choice is worth"
    accuracy = "accuracy on fitted curves without noise"
    note = (
        "accuracies follow fitted curves without luck and noise; no model is trained, and the results are not to be "
        "reported (docs/surrogate.md)"
    )

    def known(self, dataset: str, regime: Regime) -> Curve:
        return super().known(dataset, regime).noiseless()


REAL = RealTraining()
BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {backend.name: backend for backend in (REAL, FittedCurves(), NoiselessCurves())}
)
"""All backends; the first is the default."""


def _curve(fit: Fit) -> Curve:
    try:
        return Curve.of(fit.parameters)
    except KeyError as error:
        raise FitError(
            f"the surrogate fit of data set {fit.dataset!r} for {fit.regime} cannot be used: it has no parameter "
            f"{error}; make it again with flmarket calibrate surrogate SCENARIO, or choose another training.backend"
        ) from error
