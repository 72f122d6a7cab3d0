"""The two kinds of error that a user can meet. Anything else that escapes is a defect of flmarket."""

from collections.abc import Callable


class _UsersError(Exception):
    """What both have in common: their message is all that a user sees."""

    def reword(self, words: Callable[[str], str]) -> None:
        """Put the message into other words; see ``fl.words``."""
        self.args = tuple(words(part) if isinstance(part, str) else part for part in self.args)


class InputError(_UsersError):
    """A request cannot be carried out as it stands; the message says what is wrong and what to do. Exit status 2."""


class RunError(_UsersError):
    """A run failed; the message says for which service, in which round, and why. Exit status 1."""
