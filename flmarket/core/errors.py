"""The two kinds of error that a user can meet. Anything else that escapes is a defect of flmarket.

The same message is read in the shell, in Python and on the screens, so it names a thing ("baseline 'x'") or an option
("the option fresh") in words that are understood in all three.
"""


class InputError(Exception):
    """A request cannot be carried out as it stands; the message says what is wrong and what to do. Exit status 2."""


class RunError(Exception):
    """A run failed; the message says for which service, in which round, and why. Exit status 1."""


_MOST = 300
"""Characters of a message that quotes what it found."""


def shortened(error: BaseException) -> str:
    """Return an error's message for use in another one: without the end of one that quotes a very long value."""
    text = str(error)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
