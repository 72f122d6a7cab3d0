"""The kernels that can train: the compiled one, and plain torch. Light: no torch unless a GPU is asked for."""

from fl.data.dataset import Shape
from fl.training import fused
from fl.training.regime import Kernel
from flmarket.core.errors import InputError


class KernelError(InputError):
    """The requested kernel or device cannot train this model on this machine."""


def kernel_for(model: str, shape: Shape, wanted: Kernel) -> str:
    """Return the arithmetic in which a model is trained on images of a shape, for ``meta.json``."""
    if wanted == "reference":
        return "reference"
    problem = fused.obstacle(model, shape)
    if problem is None:
        fused.kernel_name()
        return fused.ARITHMETIC
    if wanted == "fused":
        raise KernelError(f'training.kernel = "fused": {problem}; use "auto" or "reference"')
    return "reference"


def require_device(device: str) -> None:
    """Check that torch can use a device on this machine."""
    if device == "cpu":
        return
    import torch

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise KernelError(f"training.device = {device!r}: torch finds no CUDA device here; use 'cpu'")
