"""FedProx: federated averaging of clients that are held near the global model as they train."""

from fl.training.aggregators.fedavg import FedAvg
from flmarket.core.plugin_options import in_range

__all__ = ["FedProx"]


class FedProx(FedAvg):
    """FedAvg of clients whose loss has a proximal term, ``mu / 2`` times the squared distance (Li et al., 2020).

    Fidelity to Li et al. (2020): checked:
    tests/fl/training/test_aggregation.py::test_a_proximal_term_is_what_plain_torch_makes_of_it.
    """

    def __init__(self, *, mu: float = 0.01) -> None:
        """Take the weight of the proximal term."""
        self.proximal = in_range("mu", mu, 0)
