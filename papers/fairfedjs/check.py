"""FairFedJS as a public note has it: the index by hand, the queues, and who chooses first in a round."""

from pathlib import Path
from types import ModuleType

import numpy as np

import flmarket
from flmarket.testing import clear_round

HERE = Path(__file__).parent
SHORT = {
    "runs": [],
    "market.mechanism": "fairfedjs",
    "market.options.types": [0, 0, 0, 1, 1, 1],
}
"""Settings with which the scenario plays in a second."""


CLAIMS = [
    {
        "rule": "fairfedjs",
        "markets": 20,
        "by": "payment is not in the abstract",
        "note": "an order of services; offers are paid",
    },
    {"rule": "fairfedjs", "rounds": 3, "markets": 10, "by": "payment is not in the abstract"}
    | {"note": "with the queues of earlier rounds"},
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""


def plugins() -> ModuleType:
    return flmarket.load_plugin(HERE / "plugins.py")


def check_the_index_is_that_of_the_note() -> None:
    """Three jobs by hand: queues 4, 0, 4, payments 2, 4, .4 for each client, costs 2, 2, 3, reputations .8, .8, .5."""
    numbers = [np.array(it) for it in ([4, 0, 4], [2, 4, 0.4], [2, 2, 3], [0.8, 0.8, 0.5])]
    index = plugins().index
    assert np.allclose(index(*numbers, 1), [-3.5, -1.5, 1.6])
    assert np.allclose(index(*numbers, 0), [-4, 0, -4])
    assert np.allclose(index(*numbers, 3), [-2.5, -4.5, 12.8])  # money overtakes need


def check_queues_grow_with_what_is_not_supplied() -> None:
    assert plugins().later(np.array([4, 0, 1]), np.array([10, 5, 0]), np.array([6, 5, 2])).tolist() == [8, 0, 0]


def check_the_job_of_the_lowest_index_chooses_first_and_pays_its_offer() -> None:
    """Two jobs want clients 0 and 1, at 1 and 3 each: money decides at first; with sigma = 0 the longer queue does."""
    offers = np.ones((2, 2)), np.array([[1.0, 1.0], [3.0, 3.0]]), 10.0
    by_money = clear_round(plugins().FairFedJS(types=[0, 1], sigma=1.0), *offers)
    assert np.array_equal(by_money, [[np.nan] * 2, [3.0, 3.0]], equal_nan=True)
    by_need = plugins().FairFedJS(types=[0, 1], sigma=0.0)
    by_need.restore({"queue": [2, 0]})
    assert np.array_equal(clear_round(by_need, *offers), [[1.0, 1.0], [np.nan] * 2], equal_nan=True)
