"""FairFedJS as a public note has it: the index by hand, the queues, and who chooses first in a round."""

from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

import flmarket
from des.allocation import NO_CORE, tie_order_of
from des.mechanism import MECHANISMS, Book, clearing_of
from fl.arithmetic.draws import draw_key

HERE = Path(__file__).parent
SHORT = {
    "runs": [],
    "market.mechanism": "fairfedjs",
    "market.options.types": [0, 0, 0, 1, 1, 1],
}
"""Settings with which the scenario plays in a second."""


def plugins() -> ModuleType:
    scope = ModuleType("fairfedjs")
    source = (HERE / "plugins.py").read_text(encoding="utf-8").partition("@mechanism")[0]
    exec(compile(source, "plugins.py", "exec"), scope.__dict__)  # noqa: S102 - our own formulas, without registering
    return scope


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
    flmarket.load_plugin(HERE / "plugins.py")
    services, clients = np.divmod(np.arange(4), 2)
    payments, bids = np.array([1, 1, 3, 3]) * 1_000_000, np.ones(4, np.int64) * 1_000_000
    ties = partial(tie_order_of, draw_key(7, "ties"), 1, 2)
    view = SimpleNamespace(record=np.zeros((2, 2, 2), np.int64))
    book = Book(services, clients, payments, bids, bids, np.full(2, 10_000_000), 1, ties, lambda: view)
    by_money = MECHANISMS.create("fairfedjs", types=[0, 1], sigma=1.0)
    first = clearing_of(by_money, book, 1)
    assert (first.core != NO_CORE).tolist() == [False, False, True, True]
    assert first.price[2:].tolist() == [3_000_000, 3_000_000]
    by_need = MECHANISMS.create("fairfedjs", types=[0, 1], sigma=0.0)
    by_need.restore({"queue": [2, 0]})
    assert (clearing_of(by_need, book, 1).core != NO_CORE).tolist() == [True, True, False, False]
