"""Where in a user's own code an exception comes from, for the one line that reports a plug-in's failure."""

import sysconfig
import traceback
from functools import cache
from pathlib import Path

from fl.installation import PACKAGES, ROOT


def blame(error: BaseException) -> str:
    """Return the place of an exception in a plug-in, as messages end with it: `` (mine.py:12)``.

    That is the last frame in code that belongs neither to flmarket nor to an installed package; nothing where there is
    none.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append((error.filename, error.lineno))
    own = [(file, line) for file, line in frames if not file.startswith("<frozen") and not _is_installed(file)]
    return f" ({own[-1][0]}:{own[-1][1]})" if own else ""


@cache
def _is_installed(file: str) -> bool:
    """Return whether a file belongs to flmarket, the standard library, or an installed package."""
    paths = sysconfig.get_paths()
    libraries = [Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(folder) for folder in (*libraries, *(ROOT / name for name in PACKAGES)))
