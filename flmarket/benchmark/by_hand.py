"""One round that is cleared outside of a market, to hold a mechanism against its source.

``flmarket.testing`` exports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from des.allocation import NO_CORE, tie_order_of
from des.mechanism import MECHANISMS, Book, Mechanism, RoundView, asks_of, clearing_of, record_of
from des.money import MICRO, to_micro
from des.observation import Offer
from des.offer_checks import check_offer
from fl.arithmetic.draws import draw_key
from fl.arrays import AnyArray, FloatArray
from flmarket.benchmark.certify.sampling import IMAGES
from flmarket.core.errors import InputError
from flmarket.core.names import suggest
from scenarios.file.problems import number
from scenarios.file.schema import LARGEST_SUM

_KINDS = {"numbers": "iuf", "whole numbers": "iu", "booleans": "b"}  # by NumPy's letters
_LARGEST = float(np.finfo(np.float64).max)

_SEEN = {
    "number": ("", "whole numbers", 1, inf),
    "rounds": ("", "whole numbers", 1, inf),
    "data_size": ("MC", "whole numbers", 0, inf),
    "emd": ("MC", "numbers", 0, 2),
    "dqi": ("MC", "numbers", -_LARGEST, _LARGEST),
    "accuracy": ("M", "numbers", 0, 1),
    "target": ("M", "numbers", 0, 1),
    "total_left": ("M", "numbers", 0, inf),
    "record": ("2MC", "whole numbers", 0, inf),
    "arrival": ("M", "numbers", 0, _LARGEST),
    "demand": ("M", "whole numbers", 0, inf),
    "serves": ("MC", "booleans", 0, 1),
}
"""The shape of each field of ``RoundView``, what it holds, and the limits of that."""


def clear_round(
    mechanism: Mechanism | str,
    bids: npt.ArrayLike,
    payments: npt.ArrayLike,
    budgets: npt.ArrayLike,
    *,
    cores: int | npt.ArrayLike = 1,
    seed: int | None = None,
    **seen: Any,
) -> FloatArray:
    """Clear one round outside of a market, and return what each client is paid: to hold a rule against its source.

        clear_round("proportional-share", bids=[4.0, 2.5, 1.5], payments=[1000, 500, 250], budgets=9)  # 6, 3, NaN

    Args:
        mechanism: clears the round: an object, or the name of one that needs no options.
        bids: [M, C], or [C] where there is one service, what clients ask, money.
        payments: of the shape of ``bids``, or one number for all: what services offer, or what clients are worth to
            them where the mechanism ``keeps_budgets``, money; NaN where a service names a client not at all.
        budgets: [M], or one number for all, money.
        cores: K, how many services each client serves at most, or [C] where clients have different numbers of cores.
        seed: ties are broken by the draws of a market of that seed; without one, lower numbers go first.
        seen: what the mechanism sees of the round, fields of ``RoundView``, besides what follows from the offers; what
            is [M, C] there may have the shape of ``bids``. By default it is the last round, round 1, all data sets have
            5,000 images and an EMD of 0, all DQI is 1, accuracies are 0 and targets 1, and nothing has been delivered
            yet.

    Returns:
        As ``bids``, the prices of those that serve, money; NaN for the others. The mechanism is asked once, so that
        nothing is offered again (``steps``), and not told of deliveries (``settle``, ``close``).

    Raises:
        InputError: an argument is not of its shape, not what it must hold, or not within its limits, or the mechanism
            is none.
        RunError: an offer breaks a constraint, or the mechanism a rule of the market.
    """
    made = MECHANISMS.create(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(made, Mechanism):
        instead = f"the class itself; {made.__name__}() makes one" if isinstance(made, type) else repr(made)
        raise InputError(f"mechanism must be an object of a mechanism, or the name of one, not {instead}")
    given = _read("bids", bids, None, 0, LARGEST_SUM)
    if given.ndim not in (1, 2) or not given.size:
        raise InputError(f"bids must be [M, C] or [C], of at least one client, not of shape {given.shape}")
    asked = to_micro(np.atleast_2d(given).astype(np.float64))
    services, clients = asked.shape
    named_prices = _read("payments", payments, [given.shape, ()], 0, LARGEST_SUM, missing=True)
    offered = np.broadcast_to(named_prices.astype(np.float64), given.shape).reshape(asked.shape)
    money = _read("budgets", budgets, [(services,), ()], 0, LARGEST_SUM)
    funds = to_micro(np.broadcast_to(money.astype(np.float64), services))
    capacity = _read("cores", cores, [(), (clients,)], 1, inf, "whole numbers")
    named, ones = ~np.isnan(offered), np.ones(asked.shape)
    view = RoundView(
        1, 1, np.full(asked.shape, IMAGES), 0 * ones, ones, 0 * ones[:, 0], ones[:, 0], np.full(services, np.inf),
        record_of(made, asked), ones[:, 0], named.sum(axis=1), ones == 1,
    )  # fmt: skip
    view = replace(view, **_seen(seen, asked.shape, given.shape))
    asks = asks_of(made, asked, view.data_size, view.number, view.serves)
    offers = [
        check_offer(
            Offer(np.flatnonzero(named[m]), offered[m, named[m]]),
            policy="by hand", service=str(m), round_=view.number, bids=asks.least[m], budget=int(funds[m]),
            unwilling=None if asks.willing is None else ~asks.willing[m], over_budget=made.keeps_budgets,
        )
        for m in range(services)
    ]  # fmt: skip
    m, c = np.nonzero(named)
    paid = np.concatenate([it.payments for it in offers])
    order = np.arange(asked.size).reshape(-1, services) / asked.size
    ties = order.__getitem__
    if seed is not None:
        drawn = int(_read("seed", seed, [()], 0, inf, "whole numbers"))
        ties = partial(tie_order_of, draw_key(drawn, "ties"), view.number, services)
    cores_of = capacity if capacity.ndim else None
    book = Book(
        m, c, paid, asked[m, c], asks.least[m, c], funds, int(capacity.max()), ties, lambda: view, cores_of=cores_of
    )
    clearing = clearing_of(made, book, view.number)
    prices = np.full(asked.shape, np.nan)
    prices[m, c] = np.where(clearing.core == NO_CORE, np.nan, clearing.price / MICRO)
    return prices.reshape(given.shape)


def _seen(seen: Mapping[str, Any], market: tuple[int, int], bids: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of ``RoundView`` that are given, checked; ``market`` is M, C, ``bids`` the shape of bids."""
    fields: dict[str, Any] = {}
    for name, given in seen.items():
        if name not in _SEEN:
            raise InputError(f"a mechanism sees no {name!r} of a round{suggest(name, _SEEN)}")
        letters, kind, low, high = _SEEN[name]
        shape = tuple({"2": 2, "M": market[0], "C": market[1]}[letter] for letter in letters)
        array = _read(name, given, [shape, bids] if letters == "MC" else [shape], low, high, kind)
        fields[name] = array.reshape(shape) if shape else int(array)
    fields.setdefault("rounds", fields.get("number", 1))
    if fields["rounds"] < fields.get("number", 1):
        raise InputError(f"number must be at most rounds, {fields['rounds']}, not {fields['number']}")
    return fields


def _read(
    name: str,
    given: object,
    shapes: Sequence[tuple[int, ...]] | None,  # those that it may have; None if that is checked elsewhere
    low: float,
    high: float,
    kind: str = "numbers",
    *,
    missing: bool = False,  # whether NaN has a meaning
) -> AnyArray:
    """Return an argument as an array of one of its shapes, whose elements are of a kind, from ``low`` to ``high``."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise InputError(f"{name} must be an array; its lists are of different lengths") from None
    if shapes is not None and array.shape not in shapes:
        of = " or ".join(f"of shape {shape}" if shape else "one number" for shape in dict.fromkeys(shapes))
        raise InputError(f"{name} must be {of}, not of shape {array.shape}")
    if array.size and array.dtype.kind not in _KINDS[kind]:
        raise InputError(f"{name} must be {kind}, not {array.dtype}")
    wrong = ~((array >= low) & (array <= high))
    if missing:
        wrong &= array == array
    if wrong.any():
        limits = [f"at least {number(low)}"] if low > -_LARGEST else []
        limits += ["finite"] if high == _LARGEST else [f"at most {number(high)}"] if high < inf else []
        raise InputError(f"{name} must be {' and '.join(limits)}, not {array[wrong][0]}")
    return array
