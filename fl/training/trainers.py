"""The choice of the code that trains: picks the kernel for a model and a data set, and creates its trainers.

``fused`` is the compiled kernel (``fl.training.fused``), for ``cnn`` on images of two shapes, and for networks of fully
connected layers on any; ``reference`` is plain torch, for any model and shape. ``auto`` takes the fused kernel where it
can. torch, which takes a second to import, is imported where it trains.
"""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from fl.arithmetic.streams import stream_key
from fl.arrays import Float32Array, Int32Array, Labels, Pixels
from fl.data.dataset import DatasetInfo, Shape
from fl.data.registry import Dataset
from fl.training import fused
from fl.training.models import HIDDEN, MODELS
from fl.training.regime import Kernel, Regime
from fl.training.tasks import Trainer, Traits, Use
from flmarket.core.errors import InputError
from flmarket.core.installation import require_extra

if TYPE_CHECKING:
    from fl.training.local import BatchedTrainer, TorchModel
    from fl.training.trial import Trial


class KernelError(InputError):
    """The requested kernel or device cannot train this model on this machine."""


def traits_of(regime: Regime, data: DatasetInfo, service: str = "") -> Traits:
    """Return what decides which code can train a model; one of a user's own is tried (``fl.training.trial``)."""
    if MODELS.is_builtin(regime.model):
        return Traits(HIDDEN.get(regime.model))
    return _trial(regime, data, service).traits


def _trial(regime: Regime, data: DatasetInfo, service: str) -> "Trial":
    require_extra("torch", f"model {regime.model!r}", "PyTorch", "torch")
    made_by = MODELS.load(regime.model)
    key = made_by if isinstance(made_by, Hashable) else object()
    model = regime.model, data.labels, data.shape, regime.batch_size, service
    return _trial_of(key, *model, standardise=data.standardise)


@lru_cache(maxsize=16)  # who checks a scenario, plans its runs and plays one shares what was found
def _trial_of(_made_by: object, *model: Any, standardise: bool) -> "Trial":
    from fl.training.trial import Trial

    return Trial(*model, standardise=standardise)


def parameter_count(model: str, labels: int, shape: Shape) -> int:
    """Return how many parameters a model has; torch is imported only where its layers are not listed here.

    Raises:
        UnknownPluginError, ModelError, PluginError: as in ``fl.training.networks.build``.
    """
    if (listed := fused.parameter_count(model, labels, shape)) is not None:
        return listed
    require_extra("torch", f"counting the parameters of model {model!r}", "PyTorch", "torch")
    made_by = MODELS.load(model)
    return _counted(made_by if isinstance(made_by, Hashable) else object(), model, labels, shape)


@lru_cache(maxsize=16)  # for all runs of a report
def _counted(_made_by: object, model: str, labels: int, shape: Shape) -> int:
    from fl.training.networks import build

    return sum(each.numel() for each in build(model, labels, shape, 0).parameters())


def require_device(device: str) -> None:
    """Check that torch can use a device on this machine."""
    if device == "cpu":
        return
    require_extra("torch", f"training.device = {device!r}", "PyTorch", "torch")
    import torch

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise KernelError(f"training.device = {device!r}: torch finds no CUDA device here; use 'cpu'")


class FusedTrainer:
    """Local training in the compiled kernel."""

    def __init__(self, architecture: fused.Architecture, scale: float, offset: float) -> None:
        self._architecture, self._scale, self._offset = architecture, scale, offset

    def train(
        self, parameters: Float32Array, pixels: Pixels, labels: Labels, order: Int32Array, regime: Regime
    ) -> tuple[Float32Array, float]:
        return fused.train(
            self._architecture,
            parameters,
            self._images(pixels),
            labels,
            order,
            batch_size=regime.batch_size,
            learning_rate=regime.learning_rate,
            momentum=regime.momentum,
            scale=self._scale,
            offset=self._offset,
        )

    def correct(self, parameters: Float32Array, pixels: Pixels, labels: Labels) -> int:
        return fused.correct(
            self._architecture,
            parameters,
            self._images(pixels),
            labels,
            scale=self._scale,
            offset=self._offset,
        )

    def _images(self, pixels: Pixels) -> Pixels:
        """The pixels [n, channels, height, width] as the kernel wants them: a single channel is no dimension."""
        shape = self._architecture.shape
        return pixels.reshape(-1, *(shape if shape.channels > 1 else shape[1:]))


@dataclass(frozen=True)
class Engine:
    """Creates trainers for one data set and model."""

    dataset: Dataset  # what is learned
    regime: Regime  # how it is learned
    wanted: Kernel = "auto"  # the requested kernel
    service: str = ""  # who learns it, for messages

    @cached_property
    def traits(self) -> Traits:
        """What decides which code can train the model."""
        return traits_of(self.regime, self.dataset.info, self.service)

    @cached_property
    def kernel(self) -> str:
        """The arithmetic of the code that trains, for ``meta.json``: ``reference`` or ``fused``."""
        model = self.regime.model
        problem = fused.obstacle(model, self.dataset.info.shape, self.traits.hidden)
        if self.wanted != "reference":
            if problem is None:
                fused.kernel_name()
                return fused.ARITHMETIC
            if self.wanted == "fused":
                raise KernelError(f'training.kernel = "fused": {problem}; use "auto" or "reference"')
        require_extra("torch", f"training model {model!r} without the compiled kernel", "PyTorch", "torch")
        return "reference"

    @property
    def evaluation_chunk(self) -> int:
        """Test images to evaluate at once: torch slows down beyond a few hundred, the fused kernel does not."""
        return 250 if self.kernel == "reference" else 1000

    def trainer(self, seed: int = 0, *purpose: str | int, device: str = "cpu") -> Trainer:
        """Return a new trainer, for one thread; what a model has besides parameters is that of (seed, purpose)."""
        if self.kernel == "reference" or device != "cpu":
            return self._in_torch.reference(device, seed, *purpose)
        return FusedTrainer(self._architecture, self.dataset.scale, self.dataset.offset)

    def batched(self, device: str, seed: int = 0, *purpose: str | int) -> "BatchedTrainer | None":
        """Return a trainer of all clients of a service together on ``device``; None if each would get another model."""
        require_device(device)
        if not MODELS.is_builtin(self.regime.model) and (
            self.traits.draws or not _trial(self.regime, self.dataset.info, self.service).stacks
        ):
            return None
        return self._in_torch.batched(device, seed, *purpose)

    def drawing(self, use: Use, seed: int, *purpose: str | int) -> AbstractContextManager[object]:
        """Return a context in which the model is trained or evaluated, and what it draws is that of (seed, purpose)."""
        if use not in self.traits.draws:
            return nullcontext()
        return self._in_torch.drawing(stream_key(seed, "draws", use, *purpose))

    def initial_parameters(self, seed: int, *purpose: str | int) -> Float32Array:
        """Return the parameters [P] of a new global model, which depend on (seed, purpose) alone."""
        if self.kernel == "reference" or not MODELS.is_builtin(self.regime.model):
            return self._in_torch.initial_parameters(seed, *purpose)
        return fused.initial_parameters(self._architecture, seed, *purpose)

    @cached_property
    def _architecture(self) -> fused.Architecture:
        labels, shape = self.dataset.info.labels, self.dataset.info.shape
        if self.regime.model == "cnn":
            return fused.Architecture("cnn", labels, shape=shape)
        return fused.Architecture("mlp", labels, self.traits.hidden or (), shape)

    @cached_property
    def _in_torch(self) -> "TorchModel":
        from fl.training.local import TorchModel

        return TorchModel(self.dataset, self.regime.model)
