"""How large images may be: what a header says is checked before anything is decoded or memory is asked for."""

from collections.abc import Sequence
from math import prod

from fl.dataset import DatasetError

MOST_NUMBERS = 1 << 20
"""Channels times pixels of one image, say 3 x 591 x 591: networks for larger ones are beyond these simulations."""

MOST_BYTES = 1 << 33  # of all images together: they are kept in memory


def require_small(
    count: int,  # how many images there are
    shape: Sequence[int],  # [channels, height, width], or [height, width]
    what: str = "its images",  # what the message calls them
) -> None:
    """Raise unless images can be kept and trained."""
    sides, numbers = " x ".join(map(str, shape)), prod(shape)
    if numbers > MOST_NUMBERS:
        raise DatasetError(
            f"{what} have too many pixels: {sides} are {numbers:,} numbers, more than {MOST_NUMBERS:,}; make them "
            "smaller"
        )
    if count * numbers > MOST_BYTES:
        raise DatasetError(
            f"{what} have too many pixels: {count:,} images of {sides} take {count * numbers / 2**30:.0f} GiB, more "
            f"than {MOST_BYTES >> 30}; make them smaller or fewer"
        )
