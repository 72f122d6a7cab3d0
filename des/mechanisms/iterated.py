"""Iterated offers: services whose offers were refused may offer again in the same slot."""

from des.mechanisms.pay_as_offered import PayAsOffered
from flmarket.core.plugin_options import whole

__all__ = ["Iterated"]


class Iterated(PayAsOffered):
    """Pays as offered, in several steps: a refused service has its money back, and may offer it to other clients.

    A client keeps the K highest of all offers that it has been made so far, and refuses the others; a service that was
    refused offers again, to clients that it has not tried (deferred acceptance: Gale and Shapley, "College admissions
    and the stability of marriage", American Mathematical Monthly 69, 1962; with money, Kelso and Crawford, Econometrica
    50, 1982). The round is cleared when no offer is refused any more, or after the last step. How much more is served
    than with ``pay-as-offered`` is what bidding once wastes. It is an allocation rule: the payment is the offer.

    Fidelity to Gale and Shapley (1962), where each service wants one client: checked:
    tests/des/mechanisms/test_sources.py::test_offers_that_are_iterated_end_in_the_stable_marriages_of_gale_and_shapley.

    Fidelity to Gale and Shapley (1962); Kelso and Crawford (1982): interpretation: services offer what their policies
    say, under budgets and for so many steps, so no stable outcome is claimed.
    """

    summary = "pay-as-offered; services that were refused may offer again within the round"

    def __init__(
        self,
        *,
        steps: int = 3,  # how many times a service may offer in a round, from 1 (as ``pay-as-offered``) to 1000
    ) -> None:
        self._steps = whole("steps", steps, 1, 1000)

    @property
    def steps(self) -> int:
        return self._steps
