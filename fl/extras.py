"""Optional extras: one clear line where something is used that is not installed."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from fl.errors import InputError


@contextmanager
def needs_extra(extra: str, what: str, packages: str, *, modules: Collection[str]) -> Iterator[None]:
    """Turn the failure to import a package of an extra into what to install.

    Args:
        extra: the extra's name.
        what: what needs it, as the user called it.
        packages: what is missing, in words.
        modules: the packages' import names; a failure to import anything else is a defect, and stays as it is.

    Raises:
        InputError: one of the packages is not installed.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in modules:
            raise
        raise InputError(f"{what} needs {packages}: pip install 'flmarket[{extra}]'") from error
