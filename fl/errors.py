"""The two kinds of error that a user can meet. Anything else that escapes is a defect of flmarket."""


class InputError(Exception):
    """A request cannot be carried out as it stands; the message says what is wrong and what to do. Exit status 2."""


class RunError(Exception):
    """A run failed; the message says for which service, in which round, and why. Exit status 1."""
