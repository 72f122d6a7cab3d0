"""Scripts of benchmarks/ and research/ in this process, for tests of what they play and print."""

import importlib
import io
import runpy
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def benchmark(name: str) -> ModuleType:
    """Import a script of ``benchmarks/``, which may import its neighbours, as if it were started there."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def printed(script: str, *arguments: str) -> str:
    """Start a script from the root and return what it prints."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as output, suppress(SystemExit):
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", [script, *arguments])
        patch.syspath_prepend((ROOT / script).parent)
        runpy.run_path(script, run_name="__main__")
    return output.getvalue()
