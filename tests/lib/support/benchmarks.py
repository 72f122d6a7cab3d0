"""Benchmarks as modules, for tests of what they play and print."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[3] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """Import a script of ``benchmarks/``, which may import its neighbours, as if it were started there."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
