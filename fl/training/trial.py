"""A trial of a registered model: it is trained and evaluated as in a run, on a few drawn images.

A run relies on what is shown here: that a client's training depends on the parameters, the images and the seed alone,
that only parameters change, and that each image is judged by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fl.arithmetic.streams import stream, stream_key
from fl.arrays import Float32Array, Pixels
from fl.data.dataset import Shape
from fl.training.batched import BatchedTrainer
from fl.training.generators import seeded
from fl.training.local import ReferenceTrainer
from fl.training.networks import build, faults_of, hidden_widths, is_untouched, vector
from fl.training.regime import Regime
from fl.training.tasks import ClientData, Traits, Use
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import PluginError

IMAGES, BATCH = 5, 3
"""So that the last step of an epoch has fewer images than the others, as in a run."""
_SCALING = 1 / 128, -1.0
_KEY, _EARLIER = stream_key(0, "trial"), stream_key(0, "trial", "earlier")
_UNREPEATABLE = (
    "gives other results each time it starts from the same seed and parameters: {} remembers something, or draws "
    "random numbers from a generator of its own; use torch's"
)
_REMEMBERS = "remembers {} of earlier batches, so that results would depend on --workers; let each call start anew"
_BESIDE = (
    "judges an image by those beside it ({}), so that accuracy would depend on their order; use GroupNorm or LayerNorm "
    "in place of statistics over the batch"
)

Tried = tuple[Float32Array, bool]
"""Parameters or logits, and whether random numbers were drawn for them."""


class Trial:
    """A model, and what it is tried on."""

    def __init__(self, name: str, labels: int, shape: Shape, batch_size: int, service: str = "") -> None:
        self._model, self._service = (name, labels, shape), service
        self._regime = Regime(batch_size=min(batch_size, BATCH), momentum=0.5)
        rng = stream(0, "trial")
        # The darkest and the brightest pixel of an image of the second set are those of none of the first.
        self._dim, self._full = (
            rng.integers(*range_, size=(IMAGES, *shape)).astype(np.uint8) for range_ in ((64, 192), (0, 256))
        )
        self._labels = rng.integers(labels, size=IMAGES).astype(np.uint8)

    def traits(self) -> Traits:
        """Return what decides which code can train the model.

        Raises:
            PluginError: none can, or the results could not be repeated.
        """
        threads, modules = torch.get_num_threads(), [self._build(), self._build()]
        try:
            with faults_of(*self._model, self._service):
                return self._traits(*map(self._trainer, modules))
        finally:
            torch.set_num_threads(threads)

    def stacks(self) -> bool:
        """Return whether clients that are trained together (``fl.training.batched``) get what each gets alone."""
        module, alone = self._build(), self._trainer(self._build())
        if not is_untouched(module):
            return False
        start, clients = alone.parameters, [self._client(slice(IMAGES)), self._client(slice(BATCH - 1))]
        try:
            together = BatchedTrainer(module, "cpu", *_SCALING).train(start, clients, self._regime)
        except Exception:
            return False
        expected = [alone.train(start, *client, self._regime)[0] for client in clients]
        return all(np.allclose(found, it, atol=1e-5) for (found, _), it in zip(together, expected, strict=True))

    def _traits(self, used: ReferenceTrainer, new: ReferenceTrainer) -> Traits:
        start = used.parameters
        if new.parameters.tobytes() != start.tobytes():
            raise PluginError("begins with other parameters each time it is made; draw them from torch's generator")
        if vector(self._build().parameters()).tobytes() != start.tobytes():
            raise PluginError("sets parameters by the first images that it gets; set them when it is made")
        if not any(parameter.requires_grad for parameter in used.module.parameters()):
            raise PluginError("has only frozen parameters, so that there is nothing to train")
        buffers = {name: buffer.clone() for name, buffer in used.module.named_buffers()}
        attributes = _attributes(used.module)

        def train(trainer: ReferenceTrainer, images: slice = slice(IMAGES), key: bytes = _KEY) -> Tried:
            with _doing("train"), seeded(key) as drew:
                return trainer.train(start, *self._client(images), self._regime)[0], drew()

        def judge(trainer: ReferenceTrainer, pixels: Pixels = self._dim, key: bytes = _KEY) -> Tried:
            with _doing("evaluate"), seeded(key) as drew:
                return trainer.logits(start, pixels).numpy(), drew()

        # One step, other images and other random numbers than below: else what a model keeps of them would be the same.
        train(used, slice(-self._regime.batch_size, None), _EARLIER)
        judge(used, self._full, _EARLIER)
        if changed := [name for name, it in used.module.named_buffers() if not torch.equal(it, buffers[name])]:
            raise PluginError(
                f"changes buffers in training ({', '.join(changed)}), which do not travel with the parameters; use "
                "GroupNorm for BatchNorm, weight_norm for spectral_norm, and nothing that calls leave to later ones"
            )
        uses: dict[Use, Callable[[ReferenceTrainer], Tried]]
        uses = {"evaluation": judge, "training": train}
        tried = {use: (run(used), run(new)) for use, run in uses.items()}
        other = [run for use, run in uses.items() if len({it.tobytes() for it, _ in tried[use]}) > 1]
        of_new = _attributes(new.module)  # once both have done both: some are written in one of them alone
        now = {key: it for key, it in _attributes(used.module).items() if it != attributes.get(key)}
        if kept := [key for key, it in now.items() if other or it != of_new.get(key)]:
            raise PluginError(_REMEMBERS.format(", ".join(f"`{key}`" for key in kept)))
        if other:
            raise PluginError(_UNREPEATABLE.format(_culprit(other[0], used, other[0], self._trainer(self._build()))))
        found, _ = judge(used)
        for rows in (slice(0, None, 2), slice(1, None, 2)):
            others = self._full.copy()
            others[rows] = self._dim[rows]
            mixed = partial(judge, pixels=others)
            if mixed(used)[0][rows].tobytes() != found[rows].tobytes():
                raise PluginError(_BESIDE.format(_culprit(judge, used, mixed, used, rows)))
        return Traits(hidden_widths(used.module), frozenset(use for use, ((_, drew), _) in tried.items() if drew))

    def _build(self) -> nn.Module:
        return build(*self._model, 0, "trial", service=self._service)

    def _trainer(self, module: nn.Module) -> ReferenceTrainer:
        return ReferenceTrainer(module, self._model[2], *_SCALING)

    def _client(self, images: slice) -> ClientData:
        labels = self._labels[images]
        return ClientData(self._full[images], labels, np.arange(len(labels), dtype=np.int32)[None])


@contextmanager
def _doing(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise PluginError(f"fails to {what}: {blame(error)}") from error


def _attributes(module: nn.Module) -> dict[str, str]:
    """Return what its modules hold, by name, besides what torch keeps in every module."""
    common = vars(nn.Module())
    return {
        f"{path}.{name}".lstrip("."): _shown(value)
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if name not in common
    }


def _shown(value: object, depth: int = 8) -> str:
    """Return a text that differs where values do, those in containers and in attributes of plain objects, too."""
    if isinstance(value, Tensor):
        return str((value.shape, value.detach().to_dense().tolist()))
    if isinstance(value, np.ndarray):
        return str((value.shape, value.tolist()))
    if isinstance(value, str | bytes | int | float | complex | np.generic):
        return repr(value)
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return str([_shown(it, depth - 1) for it in value])
    if depth and hasattr(value, "__dict__") and not callable(value) and type(value).__module__.split(".")[0] != "torch":
        return _shown(vars(value), depth - 1)
    return type(value).__name__


def _culprit(
    run: Callable[[ReferenceTrainer], object],
    trainer: ReferenceTrainer,
    again: Callable[[ReferenceTrainer], object],
    other: ReferenceTrainer,
    rows: slice = slice(None),
) -> str:
    """Return the first module that gives something else, in those rows, for the same in the second of two runs."""

    def same(one: Sequence[Tensor], two: Sequence[Tensor]) -> bool:
        of_rows = [(a, b) for a, b in zip(one, two, strict=False) if a.ndim and len(a) in (BATCH, IMAGES)]
        return all(torch.equal(a[rows], b[rows]) for a, b in of_rows)

    for (name, given, found), (_, taken, other_found) in zip(_seen(run, trainer), _seen(again, other), strict=False):
        if same(given, taken) and not same(found, other_found):
            return name
    return "the model"


def _seen(
    run: Callable[[ReferenceTrainer], object], trainer: ReferenceTrainer
) -> list[tuple[str, list[Tensor], list[Tensor]]]:
    """Return what the modules of a model get and give in a run, in the order in which they are done."""
    seen: list[tuple[str, list[Tensor], list[Tensor]]] = []

    def record(module: nn.Module, *data: object) -> None:
        given, found = ([it.detach().clone() for it in tree_leaves(part) if isinstance(it, Tensor)] for part in data)
        seen.append((names[module], given, found))

    names = {
        it: f"{type(it).__name__} {name!r}" if name else type(it).__name__
        for name, it in trainer.module.named_modules()
    }
    handles = [module.register_forward_hook(record) for module in names]
    run(trainer)
    for handle in handles:
        handle.remove()
    return seen
