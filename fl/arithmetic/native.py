"""The compiled extension ``fl._fused`` (``fl/_native``), which is optional: without it, NumPy does its work."""

import importlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from flmarket.core.installation import ROOT


def extension(*functions: str) -> Any | None:
    """Return the extension if it is built and has these functions; one built from an older source may lack some."""
    try:
        module = importlib.import_module("fl._fused")
    except ImportError:
        return None
    return module if all(hasattr(module, name) for name in functions) else None


def kernel_problem() -> str:
    """Return why there is no compiled kernel here, for messages that begin with "the fused kernel"."""
    try:
        files = distribution("flmarket").files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if (
            file.parent.name == "fl"
            and file.name.startswith("_fused.")
            and path.exists()
            and path.parent != ROOT / "fl"
        ):
            return f"is built for the flmarket in {path.parents[1]}, but Python imports the one in {ROOT}"
    return "was not built: it needs a C++ compiler when flmarket is installed, and a CPU it knows"
