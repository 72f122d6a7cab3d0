"""The compiled extension ``fl._fused`` (``fl/_native``), which is optional: without it, NumPy does its work."""

import importlib
from typing import Any


def extension(*functions: str) -> Any | None:
    """Return the extension if it is built and has these functions; one built from an older source may lack some."""
    try:
        found = importlib.import_module("fl._fused")
    except ImportError:
        return None
    return found if all(hasattr(found, name) for name in functions) else None
