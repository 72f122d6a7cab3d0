"""Where in a user's own code an exception comes from, for the one line that reports a plug-in's failure."""

import sysconfig
import traceback
from functools import cache
from pathlib import Path

from fl.installation import PACKAGES, ROOT


def blame(error: BaseException) -> str:
    """Return the place of an exception in a plug-in, as messages end with it: `` (mine.py:12)``.

    That is the last frame in code that belongs neither to flmarket nor to an installed library. Where there is none,
    because the plug-in itself is an installed package, it is the frame that flmarket called; nothing if the exception
    is not from a plug-in at all.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append((error.filename, error.lineno))
    foreign = [frame for frame in frames if not _is_below(frame[0], *_ours())]
    own = [frame for frame in foreign if not _is_below(frame[0], *_libraries()) and not frame[0].startswith("<frozen")]
    found = own[-1] if own else next(iter(foreign), None)
    return f" ({found[0]}:{found[1]})" if found else ""


def _is_below(file: str, *folders: Path) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)


@cache
def _ours() -> tuple[Path, ...]:
    return tuple(ROOT / package for package in PACKAGES)


@cache
def _libraries() -> tuple[Path, ...]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    return tuple({Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
