"""Partitions: every image has one owner at most, clients own as many images as is said, and mixes are as is said."""

import numpy as np
import pytest

from fl.data.emd import counted_emd
from fl.data.partition import Dirichlet, Division, Iid, Listed, Partition, Shards
from fl.data.registry import load
from fl.data.validation_split import split

CLIENTS = 40


def labels_of(division: Division, seed: int = 0, dataset: str = "strokes", clients: int = CLIENTS) -> np.ndarray:
    """Return how many images of each label each client owns, [C, L]."""
    pools = Partition(dataset, division, clients).pools(seed)
    owner = np.repeat(np.arange(clients), pools.sizes)
    counts = np.zeros((clients, pools.labels), dtype=int)
    np.add.at(counts, (owner, pools.label), 1)
    return counts


@pytest.mark.parametrize("division", [Iid(), Shards(3), Dirichlet(0.001), Dirichlet(0.3), Dirichlet(1000.0)], ids=str)
def test_no_image_has_two_owners_or_is_held_out(division: Division) -> None:
    partition = Partition("strokes", division, CLIENTS, validation=0.1)
    pools = partition.pools(7)
    assert len(np.unique(pools.images)) == len(pools.images)
    data = load("strokes")
    assert not np.isin(pools.images, split(data.by_label, "strokes", 0.1, 7).held_out).any()
    assert (pools.label == data.train_labels[pools.images]).all()
    assert set(pools.sizes.tolist()) == set(partition.sizes)
    assert len(pools.images) > 10_800 - 2 * CLIENTS * 3  # what does not divide belongs to nobody


def test_a_seed_divides_in_its_own_way_and_always_in_the_same_one() -> None:
    one, other = Partition("strokes", Iid(), CLIENTS), Partition("strokes", Iid(), CLIENTS)
    assert (one.pools(1).images == other.pools(1).images).all()
    assert (one.pools(1).images != one.pools(2).images).any()


def test_iid_clients_have_all_labels() -> None:
    counts = labels_of(Iid())
    assert counts.min() > 10  # of 30 in the mean
    assert counts.sum(axis=1).tolist() == [300] * CLIENTS


def test_clients_of_two_shards_have_labels_of_two_shards() -> None:
    counts = labels_of(Shards(2))
    assert ((counts > 0).sum(axis=1) <= 3).all()  # 80 shards of 150: one shard in eight holds two labels
    assert (counts.sum(axis=1) == 300).all()


def test_the_concentration_decides_how_unlike_clients_are() -> None:
    largest = [labels_of(Dirichlet(a)).max(axis=1).mean() / 300 for a in (0.05, 0.5, 5.0, 500.0)]
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > 0.6
    assert largest[-1] < 0.13


def test_late_clients_are_as_lopsided_as_early_ones() -> None:
    """Groups are numbered one after another: leftovers for the last clients would be leftovers for a group."""
    found = [counted_emd(labels_of(Dirichlet(0.5), seed, clients=50).T) for seed in range(20)]
    early, late = (np.array([emds[part].mean() for emds in found]) for part in (slice(10), slice(-10, None)))
    assert abs(early.mean() - late.mean()) < 0.05  # 0.92 and 1.14 where clients choose in the order of their numbers
    assert 4 <= (early < late).sum() <= 16


@pytest.mark.parametrize("clients", [7, 33, 50])
def test_shards_leave_out_as_much_of_each_label(clients: int) -> None:
    has = np.array([len(pool) for pool in load("digits").by_label])
    kept = labels_of(Shards(2), dataset="digits", clients=clients).sum(axis=0)
    share = kept.sum() / has.sum()
    assert share < 1
    assert (np.abs(kept - share * has) <= 1).all()


def test_a_list_is_taken_as_it_is() -> None:
    own = tuple(np.array([3 * client, 3 * client + 1]) for client in range(CLIENTS))
    pools = Partition("strokes", Listed(own, "digest"), CLIENTS).pools(0)
    assert pools.images.tolist() == np.concatenate(own).tolist()
    assert pools.starts.tolist() == list(range(0, 2 * CLIENTS + 1, 2))
