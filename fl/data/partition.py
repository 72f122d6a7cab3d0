"""Partitions of a data set: the training images that each client owns for a whole run.

Sources: shards by McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017;
label mixes by Hsu, Qi and Brown, 2019 (``fl.data.dirichlet``): clients of equal size, each with a mix of its own, as
far as images are left when its turn comes. Turns are drawn: the last ones get what nobody wanted, so that in the order
of their numbers the last clients, which are often a group, would be the most lopsided.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fl.arithmetic.draws import draw_key, uniforms
from fl.arrays import IntArray, UInt32Array
from fl.data.dataset import Source
from fl.data.dirichlet import label_mixes
from fl.data.emd import apportioned
from fl.data.registry import data_root, info, source
from fl.data.validation_split import held_out, split


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The images that clients own, read-only: client c's are those from ``starts[c]`` to ``starts[c + 1]``."""

    images: IntArray  # indices into the training split
    label: IntArray  # of each image
    starts: IntArray  # [C + 1]
    labels: int  # L

    @property
    def sizes(self) -> IntArray:
        """The images that each client owns, [C]."""
        return np.diff(self.starts)


class Division(ABC):
    """A rule by which images are divided among clients."""

    @abstractmethod
    def sizes(self, images: int, clients: int) -> Sequence[int]:
        """Return how many images each client gets: one number if all get as many."""

    @abstractmethod
    def divide(self, by_label: Sequence[IntArray], clients: int, key: UInt32Array) -> Sequence[IntArray]:
        """Return the images of each client, indices into the training split."""


@dataclass(frozen=True, slots=True)
class Iid(Division):
    """Every client gets as many images, drawn from all."""

    def sizes(self, images: int, clients: int) -> Sequence[int]:
        return [images // clients]

    def divide(self, by_label: Sequence[IntArray], clients: int, key: UInt32Array) -> Sequence[IntArray]:
        everything = np.concatenate(by_label)
        [size] = self.sizes(len(everything), clients)
        return list(_shuffled(everything, key, 0)[: clients * size].reshape(clients, size))


@dataclass(frozen=True, slots=True)
class Shards(Division):
    """Images in the order of their labels are cut into shards, of which every client gets as many.

    Images that are too few for one more in each shard are left out at even distances, not those of the last label.
    """

    each: int  # shards of a client

    def sizes(self, images: int, clients: int) -> Sequence[int]:
        return [self.each * (images // (self.each * clients))]

    def divide(self, by_label: Sequence[IntArray], clients: int, key: UInt32Array) -> Sequence[IntArray]:
        ordered = np.concatenate([_shuffled(pool, key, 1 + label) for label, pool in enumerate(by_label)])
        [size] = self.sizes(len(ordered), clients)
        used = ordered[np.arange(size * clients) * len(ordered) // (size * clients)]
        shards = used.reshape(self.each * clients, -1)
        return list(shards[_shuffled(np.arange(len(shards)), key, 0)].reshape(clients, size))


@dataclass(frozen=True, slots=True)
class Dirichlet(Division):
    """Every client gets as many images, with a label mix of its own as far as images of its labels are left."""

    concentration: float

    def sizes(self, images: int, clients: int) -> Sequence[int]:
        return [images // clients]

    def divide(self, by_label: Sequence[IntArray], clients: int, key: UInt32Array) -> Sequence[IntArray]:
        left = np.array([len(pool) for pool in by_label])
        [size] = self.sizes(int(left.sum()), clients)
        # A share may be 0 to a float, and yet all that is left to a late client.
        mixes = np.maximum(label_mixes(key, self.concentration, len(by_label), 0, 0, np.arange(clients)), 1e-12)
        counts = np.empty((clients, len(by_label)), dtype=np.int64)
        for client in _shuffled(np.arange(clients), key, 0).tolist():
            counts[client] = apportioned(size, mixes[:, client], left)
            left -= counts[client]
        ends = counts.cumsum(axis=0)
        pools = [_shuffled(pool, key, 1 + label) for label, pool in enumerate(by_label)]
        return [
            np.concatenate([pool[end - n : end] for pool, n, end in zip(pools, wanted, until, strict=True)])
            for wanted, until in zip(counts, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Listed(Division):
    """Every client gets the images that a file lists."""

    images: tuple[IntArray, ...]  # of each client
    sha256: str  # of the file

    def sizes(self, images: int, clients: int) -> Sequence[int]:
        return [len(indices) for indices in self.images]

    def divide(self, by_label: Sequence[IntArray], clients: int, key: UInt32Array) -> Sequence[IntArray]:
        return self.images


@dataclass(frozen=True, slots=True)
class Partition:
    """A data set, divided among the clients of a market."""

    dataset: str  # its name
    division: Division
    clients: int  # C
    validation: float = 0.0  # the share of its training images that no client owns

    @property
    def sizes(self) -> Sequence[int]:
        """The images of each client, whatever the seed; one number if all have as many."""
        images = info(self.dataset).train_size
        return self.division.sizes(images - held_out(images, self.validation), self.clients)

    def pools(self, seed: int) -> Pools:
        """Return what each client owns under a run's seed. Errors as in ``registry.load``."""
        return _pools(self, seed, source(self.dataset))


@lru_cache(maxsize=8)
def _pools(partition: Partition, seed: int, images_from: Source) -> Pools:
    by_label = split(_by_label(images_from), partition.dataset, partition.validation, seed).by_label
    images = partition.division.divide(by_label, partition.clients, draw_key(seed, "partition", partition.dataset))
    label_of = np.empty(1 + max(int(pool.max(initial=0)) for pool in by_label), dtype=np.int64)
    for label, pool in enumerate(by_label):
        label_of[pool] = label
    everything = np.concatenate(images)
    starts = np.cumsum([0, *map(len, images)])
    pools = Pools(everything, label_of[everything], starts, len(by_label))
    for array in (pools.images, pools.label, pools.starts):
        array.setflags(write=False)
    return pools


@lru_cache(maxsize=8)
def _by_label(images_from: Source) -> tuple[IntArray, ...]:
    # Without the images, which are large and not needed.
    return images_from.load(data_root(), download=True).by_label


def _shuffled(items: IntArray, key: UInt32Array, which: int) -> IntArray:
    """Return items in a random order; ``which`` is the second word of the draw's counter, after that of label mixes."""
    return items[np.argsort(uniforms(key, 0, 1 + which, 0, np.arange(len(items)))[0], kind="stable")]
