"""The backends: what can stand behind a market's federation, by name. Light: torch is imported when real models train.

Everything that depends on a scenario's ``training.backend`` asks the backend itself. A new one is a federation of its
own (``fl.jobs.Federation``), a class here that makes it, and its name in ``BACKENDS``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from fl.datasets import Dataset
from fl.fitted import Fit, surrogate_fit
from fl.jobs import Federation
from fl.regime import Device, Kernel, Regime


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What one service learns, and how its clients train.

    Attributes:
        service: its name.
        dataset: name of its data set.
        regime: how its clients train.
    """

    service: str
    dataset: str
    regime: Regime


@dataclass(frozen=True, slots=True)
class FederationSpec:
    """What a scenario asks of its backend.

    Attributes:
        tasks: one for each service.
        seed: the run's seed.
        load: returns a data set by its name; backends that do not train never call it.
        eval_samples: test images that each evaluation looks at; None for all.
        workers: training threads; results do not depend on their number.
        kernel: the code that trains on a CPU.
        device: where models train.
    """

    tasks: Sequence[TaskSpec]
    seed: int
    load: Callable[[str], Dataset]
    eval_samples: int | None = None
    workers: int = 1
    kernel: Kernel = "auto"
    device: Device = "cpu"


class Backend(ABC):
    """One value of ``training.backend``.

    Attributes:
        name: the value.
        summary: what it does and what for, in a few words.
        trains: whether it trains networks on images: only then are data sets loaded, and do ``training.kernel`` and
            ``training.device`` matter.
        note: what a user must know before believing its results; None if there is nothing.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    trains: ClassVar[bool]
    note: ClassVar[str | None] = None

    def fits(self, dataset: str, regime: Regime) -> Sequence[Fit]:
        """Return the fits that it follows for a data set in a training regime.

        Raises:
            FitError: there is none; the message says how to make one.
        """
        return ()

    @abstractmethod
    def federation(self, spec: FederationSpec) -> Federation:
        """Return a new federation, before its first round.

        Raises:
            InputError: something that it needs (data sets, fits, a kernel, a device) is missing here.
        """


class RealTraining(Backend):
    """Trains and evaluates networks on images."""

    name = "real"
    summary = "train and evaluate networks on images"
    trains = True

    def federation(self, spec: FederationSpec) -> Federation:
        """See ``Backend.federation``."""
        from fl.federation import RealFederation, Task  # brings torch

        tasks = [Task(it.service, spec.load(it.dataset), it.regime, spec.eval_samples) for it in spec.tasks]
        return RealFederation(tasks, spec.seed, workers=spec.workers, kernel=spec.kernel, device=spec.device)


class FittedCurves(Backend):
    """Follows learning curves that were fitted to real training."""

    name = "surrogate"
    summary = (
        "follow fitted learning curves, to train policies and explore in seconds (never a result of real training)"
    )
    trains = False
    note = "accuracies follow fitted curves; no model is trained (docs/surrogate.md)"

    def fits(self, dataset: str, regime: Regime) -> Sequence[Fit]:
        """See ``Backend.fits``: the data set's learning curve."""
        return (surrogate_fit(dataset, regime),)

    def federation(self, spec: FederationSpec) -> Federation:
        """See ``Backend.federation``."""
        from fl.surrogate import Curve, SurrogateFederation

        fits = {it.service: surrogate_fit(it.dataset, it.regime) for it in spec.tasks}
        return SurrogateFederation({name: Curve.of(fit.parameters) for name, fit in fits.items()}, spec.seed)


REAL = RealTraining()
BACKENDS: Mapping[str, Backend] = MappingProxyType({backend.name: backend for backend in (REAL, FittedCurves())})
"""All backends; the first is what a scenario gets that names none."""
