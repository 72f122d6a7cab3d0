"""The two kinds of error a user can meet. Anything else that escapes is a defect of flmarket."""


class InputError(Exception):
    """What was asked for can't be done as it stands; the message says what is wrong and what to do. Exit status 2."""


class RunError(Exception):
    """A run failed on its way; the message says which service, client and round. Exit status 1."""
