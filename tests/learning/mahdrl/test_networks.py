"""Flat, stacked networks and Adam against torch's own."""

import numpy as np
import torch
from torch import nn

from fl.arithmetic.elementary import sigmoid
from fl.arithmetic.streams import stream
from learning.mahdrl.adam import Adam
from learning.mahdrl.networks import Mlp

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


def test_it_computes_what_torchs_layers_compute():
    parameters = NETWORK.initial(stream(1, "test"), agents=4)
    x = stream(2, "test").normal(size=(4, 7, 3)).astype(np.float32)
    stacked = NETWORK.forward(parameters, x)
    assert stacked.shape == (4, 7, 2)
    for agent in range(4):
        alone = torch_twin(parameters[agent])(torch.from_numpy(x[agent])).detach().numpy()
        np.testing.assert_allclose(stacked[agent], alone, rtol=1e-5, atol=1e-6)


def test_numpy_and_torch_agree():
    parameters = NETWORK.initial(stream(1, "test"), agents=2)
    x = stream(2, "test").normal(size=(2, 7, 3)).astype(np.float32)
    on_torch = NETWORK.forward(torch.from_numpy(parameters), torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(NETWORK.forward(parameters, x), on_torch, rtol=1e-5, atol=1e-6)


def test_it_has_as_many_parameters_as_it_says():
    assert NETWORK.parameters == 3 * 5 + 5 + 5 * 2 + 2
    assert NETWORK.initial(stream(0, "test"), agents=3).shape == (3, NETWORK.parameters)


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


def test_sigmoid_knows_extremes():
    np.testing.assert_allclose(sigmoid(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])
