"""Many clients at a glance: neighbouring clients together, and how many of them each service got. No Textual."""

from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from des.log_records import Kind
from tui.state.bid_verdicts import ORDER, BidVerdict
from tui.state.moment import Moment


class Heat:
    """Groups of clients by services, at a moment of a run."""

    def __init__(self, view: Moment, rows: int) -> None:
        self._view, self._book = view, view.book
        self.size = max(2, ceil(self._book.clients / max(1, rows)))  # clients in a group; the last may have fewer
        self.count = ceil(self._book.clients / self.size)  # groups

    def clients(self, group: int) -> range:
        return range(group * self.size, min(self._book.clients, (group + 1) * self.size))

    @cached_property
    def served(self) -> NDArray[np.int64]:
        """The number of clients of each group that each service got, [groups, M]; in a walk, of those paid by then."""
        return self._counted(BidVerdict.SERVED)

    @cached_property
    def outbid(self) -> NDArray[np.int64]:
        """The number of clients of each group that each service was outbid for, [groups, M]; in a walk, once known."""
        return self._counted(BidVerdict.OUTBID)

    def _counted(self, verdict: BidVerdict) -> NDArray[np.int64]:
        names = [row.service for row in self._view.logged.services]
        found = np.zeros((self.count * self.size, len(names)), np.int64)
        for m, name in enumerate(names):
            if self._view.event is None or (verdict is BidVerdict.OUTBID and self._view.allocated):
                found[: self._book.clients, m] = self._book.verdicts[m] == ORDER.index(verdict)
            elif verdict is BidVerdict.SERVED:
                paid = [
                    client
                    for (service, client), kind in self._view.reached.items()
                    if service == name and kind is Kind.PAY
                ]
                found[paid, m] = 1
        grouped: NDArray[np.int64] = found.reshape(self.count, self.size, len(names)).sum(axis=1)
        return grouped
