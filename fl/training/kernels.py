"""The kernels that can train: the compiled one, and plain torch. Light: no torch unless a GPU is asked for."""

from fl.data.dataset import Shape
from fl.training import fused
from fl.training.regime import Kernel
from flmarket.core.errors import InputError
from flmarket.core.extras import require_extra


class KernelError(InputError):
    """The requested kernel or device cannot train this model on this machine."""


def kernel_for(model: str, shape: Shape, wanted: Kernel) -> str:
    """Return the arithmetic in which a model is trained on images of a shape, for ``meta.json``."""
    problem = "" if wanted == "reference" else fused.obstacle(model, shape)
    if problem is None:
        fused.kernel_name()
        return fused.ARITHMETIC
    if wanted == "fused":
        raise KernelError(f'training.kernel = "fused": {problem}; use "auto" or "reference"')
    require_extra("torch", f"training model {model!r} without the compiled kernel", "PyTorch", "torch")
    return "reference"


def require_device(device: str) -> None:
    """Check that torch can use a device on this machine."""
    if device == "cpu":
        return
    require_extra("torch", f"training.device = {device!r}", "PyTorch", "torch")
    import torch

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise KernelError(f"training.device = {device!r}: torch finds no CUDA device here; use 'cpu'")
