"""Allocation of a client's K cores to the highest payments (eqs. 2, 4, 5). No clock, no state."""

from collections.abc import Callable, Collection

import numpy as np

from des.money import MicroArray
from fl.arithmetic.draws import uniforms
from fl.arithmetic.native import extension
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray, UInt32Array

NO_CORE = -1
"""The core of an offer that was refused, in what ``allocate`` returns and in ``Clearing.core``."""
TIED = -2
"""The extension's word for offers to a client for whose last core equal payments compete."""

_native = extension("highest")


def allocate(
    services: IntArray,
    clients: IntArray,
    payments: MicroArray,
    cores: int | IntArray,
    tie_order: Callable[[IntArray], AnyArray],
) -> IntArray:
    """Give each client's K cores to the K services that pay it most.

    A client serves at most K services (eq. 2), those with the highest payments. That each payment is at least the bid
    (eq. 5) and within its service's budget (eq. 4) has been checked before.

    Args:
        services: [offers] index of the service that offers.
        clients: [offers] index of the client that it wants.
        payments: [offers] what it would pay, micro-units.
        cores: K, or [C] how many cores each client has.
        tie_order: returns, for clients [n], a random number for each service [n, M]; of equal payments, that of the
            service with the lower number goes first. Called only for clients for whose last core equal payments
            compete.

    Returns:
        [offers] The core that serves the offer, 0 for the highest payment; NO_CORE for an offer that was outbid.
    """
    if not len(clients):
        return np.empty(0, dtype=np.int64)
    if isinstance(cores, np.ndarray) and np.count_nonzero((own := cores[clients]) == own[0]) == len(own):
        cores = int(own[0])  # as many for each of these clients
    columns = services, clients, payments
    if (
        _native is not None
        and not isinstance(cores, np.ndarray)
        and all(column.dtype == np.int64 for column in columns)
    ):
        core = np.empty(len(clients), dtype=np.int64)
        if _native.highest(*map(np.ascontiguousarray, columns), cores, core):
            tied = np.flatnonzero(core == TIED)
            core[tied] = _ranked(services[tied], clients[tied], payments[tied], cores, tie_order)
        return core
    core = np.zeros(len(clients), dtype=np.int64)
    contested = np.flatnonzero(np.bincount(clients)[clients] > 1)  # who offers alone gets the first core
    if len(contested):
        core[contested] = _ranked(services[contested], clients[contested], payments[contested], cores, tie_order)
    return core


def _ranked(
    services: IntArray,
    clients: IntArray,
    payments: MicroArray,
    cores: int | IntArray,
    tie_order: Callable[[IntArray], AnyArray],
) -> IntArray:
    """Return what ``allocate`` does, for at least one offer."""
    order = np.lexsort((services, -payments, clients))
    by_client, by_payment = clients[order], payments[order]
    rank = np.arange(len(order)) - np.searchsorted(by_client, by_client)  # 0 for each client's highest payment
    each = cores[by_client] if isinstance(cores, np.ndarray) else cores
    # A tie matters only where it straddles the last core: position K pays what position K - 1 pays.
    outbid = np.flatnonzero(rank == each)
    tied = by_client[outbid[by_payment[outbid] == by_payment[outbid - 1]]]
    if len(tied):
        places = np.flatnonzero(np.isin(by_client, tied))
        group = order[places]
        draw = tie_order(tied)[np.searchsorted(tied, clients[group]), services[group]]
        order[places] = group[np.lexsort((draw, -payments[group], clients[group]))]
    core = np.full(len(order), NO_CORE, dtype=np.int64)
    served = rank < each
    core[order[served]] = rank[served]
    return core


def free_core(place: int, taken: Collection[int]) -> int:
    """Return the core at a place among those that are not taken."""
    for core in sorted(taken):
        place += core <= place
    return place


def turns_of(
    key: UInt32Array,  # the run's stream "turns"
    round_: int,
    serves: BoolArray,  # [M, C] whether a client can serve a service
    gone: Collection[int],  # clients that cannot be had
) -> list[int]:
    """Return the clients in the order in which they come in a round, where they come one after another."""
    clients = np.array([it for it in np.flatnonzero(serves.any(axis=0)).tolist() if it not in gone], dtype=np.int64)
    return [int(it) for it in clients[uniforms(key, round_, 0, clients)[0].argsort(kind="stable")]]


def tie_order_of(
    # the run's stream "ties" (``fl.arithmetic.draws``), or one [..., 2] for each client, of markets in lockstep
    key: UInt32Array,
    round_: int | IntArray,  # n, from 1, or one for each client
    services: int,  # M
    client: int | IntArray,  # its index, or the indices [...] of many
) -> FloatArray:
    """Return the random numbers [..., M] that break a client's ties in a round: the lower one goes first."""
    rounds, clients = np.asarray(round_)[..., None], np.asarray(client)[..., None]
    order: FloatArray = uniforms(key[..., None, :], rounds, np.arange(services), clients)[0]
    return order
