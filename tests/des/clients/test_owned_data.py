"""Clients that own images: what they hold in a round is theirs, and EMD, DQI and bid are those of what they hold."""

from typing import Any

import numpy as np
import pytest

from des.behaviour import BEHAVIOURS
from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from des.costs.linear import Linear
from des.money import MICRO
from fl.data.dqi import PUBLISHED, dqi
from fl.data.partition import Dirichlet, Partition, Shards
from fl.data.registry import load
from support.clients import changed
from support.emd import emd

CLIENTS = 12
OWNED = (Partition("strokes", Dirichlet(0.3), CLIENTS), Partition("digits", Shards(2), CLIENTS))
SPEC = PopulationSpec(2, (Group(CLIENTS, (20, 50, 80), (), Linear(per_sample=0.05, per_emd=0.3)),), partitions=OWNED)


def population(**changes: Any) -> Population:
    return Population(changed(SPEC, **changes), [10, 10], [PUBLISHED] * 2, 3)


def test_a_job_has_the_images_that_decided_the_emd() -> None:
    world = population().draw(2)
    for m, partition in enumerate(OWNED):
        pools, labels = partition.pools(3), load(partition.dataset).train_labels
        for client, job in enumerate(world.held.jobs("any", m, range(CLIENTS))):
            assert job.images is not None
            own = pools.images[pools.starts[client] : pools.starts[client + 1]]
            assert np.isin(job.images, own).all()
            assert len(np.unique(job.images)) == job.size == world.data_size[m, client]
            counts = np.bincount(labels[job.images], minlength=10).tolist()
            assert emd(counts) == pytest.approx(world.emd[m, client], abs=1e-12)
    assert world.dqi == pytest.approx(dqi(world.data_size, world.emd, PUBLISHED), rel=1e-11)
    assert (world.bid == np.rint((0.05 * world.data_size - 0.3 * world.emd) * MICRO)).all()


def test_rounds_draw_other_images_whatever_was_drawn_before() -> None:
    people = population()
    third, first = people.draw(3), people.draw(1)
    again = population().draw(3)
    assert (third.emd == again.emd).all()
    assert (third.emd != first.emd).any()
    [job], [same] = third.held.jobs("any", 1, [5]), again.held.jobs("any", 1, [5])
    assert (job.images == same.images).all()


def test_without_sizes_clients_hold_all_that_they_own_in_every_round() -> None:
    people = population(everything=True, data_sizes=(119, 118, 1000))
    world, later = people.draw(1), people.draw(9)
    assert world.data_size[:, 0].tolist() == [1000, 2 * (1438 // 24)]
    assert (world.emd == later.emd).all()
    [job] = later.held.jobs("any", 1, [4])
    pools = OWNED[1].pools(3)
    assert (job.images == pools.images[pools.starts[4] : pools.starts[5]]).all()


def test_who_misreports_trains_on_what_it_owns() -> None:
    honest, lying = population(), population(behaviour=BEHAVIOURS.create("misreport", size=0.5))
    one, other = honest.draw(1), lying.draw(1)
    assert (other.data_size > one.data_size).all()
    for job, same in zip(one.held.jobs("any", 0, range(4)), other.held.jobs("any", 0, range(4)), strict=True):
        assert (job.images == same.images).all()
