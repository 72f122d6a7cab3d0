"""A cost that rises with the quality of data: the better they are, the dearer they were to gather."""

from des.cost import Cost, Work
from fl.arithmetic.elementary import exp
from fl.arrays import FloatArray

__all__ = ["Quality"]


class Quality(Cost):
    """The client's type times ``exp(-EMD)``, whatever the amount of data."""

    summary = "the better the data, the dearer: a price of the client's own times e^-EMD"

    uses_speed = False

    def amounts(self, work: Work) -> FloatArray:
        return work.unit * exp(-work.emd) + 0.0 * work.data_size
