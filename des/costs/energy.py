"""The energy that training takes, and that of an upload, at the client's price of it."""

from des.cost import Cost, Work
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range

__all__ = ["Energy"]


class Energy(Cost):
    """The client's type, the price of a joule, times ``kappa * f^2 * cycles * D + upload``, with f = frequency * speed.

    The usual model of dynamic power in CMOS circuits: a cycle at f hertz takes ``kappa * f^2`` joules.
    """

    summary = "energy of chip and radio at a price of the client's own: kappa * f^2 * cycles * D, and the upload"

    def __init__(
        self,
        *,
        kappa: float = 1e-28,  # effective capacitance of the chip, joules a cycle and hertz squared
        frequency: float = 1e9,  # of a client of speed 1, hertz
        cycles: float = 1e7,  # that an image takes in all epochs of a round
        upload: float = 0.0,  # energy of an upload, joules
    ) -> None:
        hertz = in_range("frequency", frequency, 0)
        self._joules = in_range("kappa", kappa, 0) * hertz * hertz * in_range("cycles", cycles, 0)  # an image, speed 1
        self._upload = in_range("upload", upload, 0)

    def amounts(self, work: Work) -> FloatArray:
        return work.unit * (self._joules * work.speed * work.speed * work.data_size + self._upload)
