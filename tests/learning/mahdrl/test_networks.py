"""Flat, stacked networks and Adam against torch's own, and the ring buffers."""

import numpy as np
import pytest
import torch
from torch import nn

from fl.arithmetic.streams import stream
from learning.mahdrl.stacked_networks import Adam, Mlp, Replay

NETWORK = Mlp((3, 5, 2))


def torch_twin(parameters):
    module = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    values = torch.from_numpy(parameters)
    with torch.no_grad():
        module[0].weight.copy_(values[:15].view(3, 5).T)
        module[0].bias.copy_(values[15:20])
        module[2].weight.copy_(values[20:30].view(5, 2).T)
        module[2].bias.copy_(values[30:])
    return module


def test_each_agents_network_computes_what_torchs_layers_compute_in_both_libraries():
    parameters = NETWORK.initial(stream(1, "test"), agents=4)
    assert parameters.shape == (4, NETWORK.parameters) == (4, 3 * 5 + 5 + 5 * 2 + 2)
    x = stream(2, "test").normal(size=(4, 7, 3)).astype(np.float32)
    alone = [torch_twin(own)(torch.from_numpy(rows)).detach().numpy() for own, rows in zip(parameters, x, strict=True)]
    on_torch = NETWORK.forward(torch.from_numpy(parameters), torch.from_numpy(x)).numpy()
    for stacked in (NETWORK.forward(parameters, x), on_torch):
        np.testing.assert_allclose(stacked, alone, rtol=1e-5, atol=1e-6)


@pytest.mark.slow  # torch imports its compiler with an optimiser, which takes seconds
def test_adam_takes_torchs_steps():
    start = stream(3, "test").normal(size=(2, 6)).astype(np.float32)
    own, twin = torch.from_numpy(start.copy()), torch.from_numpy(start.copy()).requires_grad_()
    adam, reference = Adam(own, 1e-2), torch.optim.Adam([twin], lr=1e-2)
    for step in range(20):
        gradient = torch.from_numpy(stream(4, "test", step).normal(size=(2, 6)).astype(np.float32))
        adam.step(gradient)
        twin.grad = gradient.clone()
        reference.step()
    torch.testing.assert_close(own, twin.detach(), rtol=1e-5, atol=1e-6)


def filled(count, capacity=4):
    replay = Replay(2, capacity, {"state": (3,), "reward": ()})
    for number in range(count):
        for agent in range(2):
            replay.add(agent, state=[number] * 3, reward=10 * agent + number)
    return replay


def test_the_oldest_transition_makes_room():
    assert sorted(filled(6).fields["reward"][1].tolist()) == [12, 13, 14, 15]


def test_only_what_is_held_is_drawn_and_its_fields_stay_together():
    batch = filled(2).sample(stream(0, "test"), 200)
    assert batch["state"].shape == (2, 200, 3)
    assert [set(rewards) for rewards in batch["reward"].tolist()] == [{0.0, 1.0}, {10.0, 11.0}]
    np.testing.assert_array_equal(batch["state"][0, :, 0], batch["reward"][0])


def test_a_short_field_is_padded_with_zeros():
    replay = Replay(1, 1, {"state": (3,)})
    replay.add(0, state=[7, 7, 7])
    replay.add(0, state=[5])
    assert replay.fields["state"][0, 0].tolist() == [5, 0, 0]


def test_a_restored_buffer_draws_the_same():
    replay, other = filled(3), Replay(2, 4, {"state": (3,), "reward": ()})
    other.restore(replay.state())
    mine, others = (one.sample(stream(1, "test"), 9) for one in (replay, other))
    for name, values in mine.items():
        np.testing.assert_array_equal(values, others[name])
