"""A trial of a registered model: it is trained and evaluated as in a run, on a few drawn images.

A run relies on what is shown here: that a client's training depends on the parameters, the images and the seed alone,
that only parameters change, and that each image is judged by itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._pytree import tree_leaves

from fl.arithmetic.streams import stream, stream_key
from fl.arrays import Float32Array, Pixels
from fl.data.dataset import Shape
from fl.training.local import BatchedTrainer, ReferenceTrainer
from fl.training.networks import build, faults_of, hidden_widths, is_untouched, seeded
from fl.training.regime import Regime
from fl.training.tasks import ClientData, Traits, Use
from flmarket.core.code_digests import recorded
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import PluginError

IMAGES, BATCH = 5, 3
"""So that the last step of an epoch has fewer images than the others, as in a run."""
_SCALING, _AS_THEY_ARE = (1 / 128, -1.0), (1.0, 0.0)
_KEY, _EARLIER = stream_key(0, "trial"), stream_key(0, "trial", "earlier")
_UNREPEATABLE = (
    "remembers {} of earlier batches, or draws from a generator of its own, so that results would depend on the number "
    "of workers; let each call start anew, and draw from torch's generator"
)
_BESIDE = (
    "judges an image by those beside it ({}), so that accuracy would depend on their order; use GroupNorm or LayerNorm "
    "in place of statistics over the batch"
)
_BY_PLACE = (
    "judges an image by its place among others, or by their number, so that accuracy would depend on their order; let "
    "each call treat all images alike"
)

Tried = tuple[Float32Array, bool]
"""Parameters or logits, and whether random numbers were drawn for them."""


class Trial:
    """A model, and what it is tried on."""

    def __init__(
        self, name: str, labels: int, shape: Shape, batch_size: int, service: str = "", *, standardise: bool = True
    ) -> None:
        self._model, self._service = (name, labels, shape), service
        self._scaling = _SCALING if standardise else _AS_THEY_ARE
        self._regime = Regime(batch_size=min(batch_size, BATCH), momentum=0.5)
        rng = stream(0, "trial")
        # The darkest and the brightest pixel of an image of the second set are those of none of the first.
        self._dim, self._full = (
            rng.integers(*range_, size=(IMAGES, *shape)).astype(np.uint8) for range_ in ((64, 192), (0, 256))
        )
        self._labels = rng.integers(labels, size=IMAGES).astype(np.uint8)

    @cached_property
    def traits(self) -> Traits:
        """What decides which code can train the model.

        Raises:
            PluginError: none can, or the results could not be repeated.
        """
        threads, modules = torch.get_num_threads(), [self._build(), self._build()]
        try:
            with faults_of(*self._model, self._service):
                return self._traits(*map(self._trainer, modules))
        finally:
            torch.set_num_threads(threads)

    @cached_property
    def stacks(self) -> bool:
        """Whether clients that are trained together (``fl.training.local``) get what each gets alone."""
        module, alone = self._build(), self._trainer(self._build())
        if not is_untouched(module):
            return False
        start, clients = alone.parameters, [self._client(slice(IMAGES)), self._client(slice(BATCH - 1))]
        try:
            together = BatchedTrainer(module, "cpu", *self._scaling).train(start, clients, self._regime)
        except Exception:
            return False
        expected = [alone.train(start, *client, self._regime)[0] for client in clients]
        return all(np.allclose(result, one, atol=1e-5) for (result, _), one in zip(together, expected, strict=True))

    def _traits(self, used: ReferenceTrainer, new: ReferenceTrainer) -> Traits:
        start = used.parameters
        if new.parameters.tobytes() != start.tobytes():
            raise PluginError("begins with other parameters each time it is made; draw them from torch's generator")
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
        if changed := [name for name, now in used.module.named_buffers() if not torch.equal(now, buffers[name])]:
            raise PluginError(
                f"changes buffers in training ({', '.join(changed)}), which do not travel with the parameters; use "
                "GroupNorm for BatchNorm, weight_norm for spectral_norm, and nothing that calls leave to later ones"
            )
        uses: dict[Use, Callable[[ReferenceTrainer], Tried]]
        uses = {"evaluation": judge, "training": train}
        tried = {use: (run(used), run(new)) for use, run in uses.items()}
        other = any(old.tobytes() != fresh.tobytes() for (old, _), (fresh, _) in tried.values())
        of_new = _attributes(new.module)  # once both have done both: some are written in one of them alone
        now = {key: digest for key, digest in _attributes(used.module).items() if digest != attributes.get(key)}
        kept = [f"`{key}`" for key, digest in now.items() if other or digest != of_new.get(key)]
        if kept or other:
            raise PluginError(_UNREPEATABLE.format(", ".join(kept) or "something"))
        logits, _ = judge(used)
        for rows in (slice(0, None, 2), slice(1, None, 2)):
            others = self._full.copy()
            others[rows] = self._dim[rows]
            if judge(used, others)[0][rows].tobytes() != logits[rows].tobytes():
                raise PluginError(_BESIDE.format(self._culprit(used, others, rows)))
        # Other places and another number, for which another CPU may round otherwise. Random numbers are drawn by place.
        last = slice(None, -BATCH - 1, -1)
        expected, drew = tried["evaluation"][1]
        error = np.abs(judge(used, self._dim[last])[0] - expected[last])
        if not drew and (error > 1e-4 * np.abs(expected).max()).any():
            raise PluginError(_BY_PLACE)
        return Traits(hidden_widths(used.module), frozenset(use for use, ((_, drew), _) in tried.items() if drew))

    def _culprit(self, trainer: ReferenceTrainer, others: Pixels, rows: slice) -> str:
        """Return the first module that gives something else for the same rows beside other images."""
        seen: list[tuple[nn.Module, list[Tensor], list[Tensor]]] = []

        def record(module: nn.Module, *data: object) -> None:
            inputs, outputs = ([x[rows].clone() for x in tree_leaves(part) if _is_batch(x)] for part in data)
            seen.append((module, inputs, outputs))

        handle = register_module_forward_hook(record)
        for pixels in (self._dim, others):
            trainer.logits(trainer.parameters, pixels)
        handle.remove()
        names = {module: name for name, module in trainer.module.named_modules()}
        half = len(seen) // 2
        for (module, inputs, outputs), (_, same, other) in zip(seen[:half], seen[half:], strict=True):
            if all(map(torch.equal, inputs, same)) and not all(map(torch.equal, outputs, other)):
                return f"{type(module).__name__} {names[module]!r}" if names[module] else type(module).__name__
        return "the model"

    def _build(self) -> nn.Module:
        return build(*self._model, 0, "trial", service=self._service)

    def _trainer(self, module: nn.Module) -> ReferenceTrainer:
        return ReferenceTrainer(module, self._model[2], *self._scaling)

    def _client(self, images: slice) -> ClientData:
        labels = self._labels[images]
        return ClientData(self._full[images], labels, np.arange(len(labels), dtype=np.int32)[None])


def _is_batch(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and len(value) == IMAGES


@contextmanager
def _doing(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise PluginError(f"fails to {what}: {blame(error)}") from error


def _attributes(module: nn.Module) -> dict[str, str]:
    """Return digests of what its modules hold, by name, besides what torch keeps in every module."""
    common = vars(nn.Module())
    return {
        f"{path}.{name}".lstrip("."): recorded(value, otherwise="")["sha256"]
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if name not in common and not callable(value)
    }
