"""Optional extras: what each is for, and one clear line where something is used that is not installed."""

import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from flmarket.core.errors import InputError

EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "rl": "RL environments: `flmarket.parallel_env`, `service_env`, `vector_env`; `examples/train_sb3.py`",
        "ray": "`flmarket run --engine ray`",
        "parquet": "`flmarket export --parquet`",
        "tensorboard": "`flmarket train --tensorboard`",
        "web": "`flmarket tui --web`",
        "png": "pictures of the screen as PNG as well as SVG",
    }
)
"""The extras that ``pip install 'flmarket[NAME]'`` adds, and what each is for."""


@contextmanager
def needs_extra(
    extra: str,  # the extra's name
    what: str,  # what needs it, as the user called it
    packages: str,  # what is missing, in words
    *,
    # the packages' import names; a failure to import anything else is a defect, and stays as it is
    modules: Collection[str],
) -> Iterator[None]:
    """Turn the failure to import a package of an extra into what to install."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in modules:
            raise
        raise InputError(f"{what} needs {packages}: {install_command(f'flmarket[{extra}]')}") from error


def install_command(what: str) -> str:
    """Return the shell command that installs something where this flmarket runs, whatever ``pip`` the shell finds."""
    python, here = Path(sys.executable), Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return shlex.join([str(shown), "-m", "pip", "install", what])
