"""Optional extras: what each is for, and one clear line where something is used that is not installed."""

import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from flmarket.core.errors import InputError

EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "torch": "networks that the compiled kernel does not train; GPUs; `flmarket train`; downloads of data sets",
        "rl": "RL environments: `flmarket.parallel_env`, `service_env`, `vector_env`; `examples/train_sb3.py`",
        "ray": "`flmarket run --engine ray`",
        "parquet": "`flmarket export --parquet`",
        "tensorboard": "`flmarket train --tensorboard`, `flmarket run --track tensorboard`",
        "mlflow": "`flmarket run --track mlflow`",
        "wandb": "`flmarket run --track wandb` (Weights & Biases)",
        "web": "`flmarket tui --web`",
        "png": "pictures of the screen as PNG as well as SVG",
    }
)
"""The extras that ``pip install 'flmarket[NAME]'`` adds, and what each is for."""


def require_extra(
    extra: str,  # the extra's name
    what: str,  # what needs it, as the user called it
    packages: str,  # what it brings, in words
    *modules: str,  # the names that these packages are imported by
) -> None:
    """Say what to install where packages of an extra are missing. Imports nothing."""
    if any(find_spec(module) is None for module in modules):
        raise InputError(f"{what} needs {packages}: {install_command(f'flmarket[{extra}]')}")


def install_command(what: str) -> str:
    """Return the shell command that installs something where this flmarket runs, whatever ``pip`` the shell finds."""
    python, here = Path(sys.executable), Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return shlex.join([str(shown), "-m", "pip", "install", what])
