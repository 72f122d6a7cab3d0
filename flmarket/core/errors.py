"""The two kinds of error that a user can meet. Anything else that escapes is a defect of flmarket."""

from collections.abc import Callable


class _UsersError(Exception):
    """The base of both errors: their message is all that a user sees."""

    def reword(self, words: Callable[[str], str]) -> None:
        """Put the message into other words; see ``flmarket.core.words``."""
        self.args = tuple(words(part) if isinstance(part, str) else part for part in self.args)


class InputError(_UsersError):
    """A request cannot be carried out as it stands; the message says what is wrong and what to do. Exit status 2."""


class RunError(_UsersError):
    """A run failed; the message says for which service, in which round, and why. Exit status 1."""


_MOST = 300
"""Characters of a message that quotes what it found."""


def shortened(error: BaseException) -> str:
    """Return an error's message for use in another one: without the end of one that quotes a very long value."""
    text = str(error)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
