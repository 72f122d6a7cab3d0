"""The paper's cost: so much for each image, less so much for each unit of EMD."""

from des.cost import Cost, Work
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range

__all__ = ["Linear"]


class Linear(Cost):
    """The paper's: the client's type, 1 if none is drawn, times ``per_sample * D - per_emd * EMD``.

    Fidelity to Cheng et al. (2023), eq. (5): checked: tests/des/test_cost.py::test_a_cost_is_that_of_its_formula,
    tests/des/test_equations.py::test_equation_5_bids_follow_the_data.
    """

    summary = "so much for each image, less so much for each unit of EMD (the paper's)"

    uses_speed = False

    def __init__(self, *, per_sample: float = 1.0, per_emd: float = 0.0) -> None:
        """Take money for each image, and money less for each unit of EMD."""
        self.per_sample = in_range("per_sample", per_sample, 0, 1_000_000)
        self.per_emd = in_range("per_emd", per_emd, -1_000_000, 1_000_000)

    def amounts(self, work: Work) -> FloatArray:
        return (self.per_sample * work.data_size - self.per_emd * work.emd) * work.unit
