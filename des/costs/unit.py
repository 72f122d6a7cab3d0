"""A price of each client's own for every image, as in most reverse auctions of this literature."""

from des.cost import Cost, Work
from fl.arrays import FloatArray

__all__ = ["UnitPrice"]


class UnitPrice(Cost):
    """Each image costs the client its type: a private price a sample."""

    summary = "a price of the client's own for each image"

    uses_speed = False

    def amounts(self, work: Work) -> FloatArray:
        return work.unit * work.data_size
