"""How many images a validation split takes, and leaves: known of a data set by its sizes alone. See ``fl.split``."""

from fractions import Fraction

LARGEST_SHARE = 0.5  # of the training images; clients need most of them


def held_out(images: int, share: float) -> int:
    """Return how many of a data set's training images a split holds out: the share, rounded down."""
    return int(_exact(share) * images)


def left_at_least(rarest: int, share: float) -> int:
    """Return how many images of each label are left for clients, at least, if the rarest label has ``rarest``."""
    return int((1 - _exact(share)) * rarest)


def _exact(share: float) -> Fraction:
    """Return a share as it is written: 0.1 is a tenth, which no 64-bit number is."""
    return Fraction(str(share))
