"""What `mahdrl` minimises: the error of its critic, and its surprise at which offers won."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from fl.errors import RunError
from learning.mahdrl.brain import PLAIN, Networks
from learning.mahdrl.rivalry import exactly, features

UNSURE = 1e-6
"""A learned chance is cut this far from 0 and 1, so that no offer is infinitely surprising."""


def set_values(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor], networks: Networks = PLAIN) -> Tensor:
    """Return V(S) = mean of q over S + kappa(|S|) of the served sets of a batch, [A, B].

    Args:
        quality, count: [A, P] parameters of the two networks.
        batch: ``clients`` [A, B, k, features], ``served`` [A, B, k] and ``situation`` [A, B, inputs].
        networks: their sizes.
    """
    clients, served = batch["clients"], batch["served"]
    q = networks.quality.forward(quality, clients.flatten(1, 2))[..., 0].view(served.shape)
    number = served.sum(dim=2)
    nobody, slope, curvature = networks.count.forward(count, batch["situation"]).unbind(dim=2)
    log_count = number.clip(min=1).log()
    some = (q * served).sum(dim=2) / number.clip(min=1) + (slope + curvature * log_count) * log_count
    return torch.where(number > 0, some, nobody)


def critic_loss(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor], networks: Networks = PLAIN) -> Tensor:
    """Return the mean squared error of V(S) against the advantages, summed over agents: eq. (10)."""
    error = batch["advantage"][..., 0] - set_values(quality, count, batch, networks)
    return error.square().mean(dim=1).sum()


def win_loss(win: Tensor, batch: Mapping[str, Tensor], most: int, networks: Networks = PLAIN) -> Tensor:
    """Return the cross-entropy of which contested offers won, mean over offers, summed over agents.

    Args:
        win: [A, P] parameters of the network.
        batch: ``rivals`` [A, B, k, R, 2], ``active`` [A, B, R], ``offered`` and ``won`` [A, B, k], ``contested``
            [A, B, 1], K as ``cores`` [A, B, 1], and ``rivalry`` [A, B, inputs]. An offer that won teaches as much of
            the rivals if its client did not deliver.
        most: the largest K.
        networks: their sizes.

    Raises:
        RunError: training diverged: the parameters are not finite.
    """
    won, rivals, counts = batch["won"], batch["rivals"], batch["offered"] * batch["contested"]
    beside = batch["rivalry"][:, :, None, None].expand(*rivals.shape[:-1], -1)
    seen = torch.cat([features(rivals, torch), beside], -1)
    outbid = networks.win.forward(win, seen.flatten(1, 3))[..., 0].view(rivals.shape[:-1]).sigmoid()
    numbers = torch.stack(exactly(most, outbid * batch["active"][:, :, None]))
    within = torch.arange(most)[:, None, None, None] < batch["cores"][..., 0][None, :, :, None]
    chance = (numbers * within).sum(0).clip(UNSURE, 1.0 - UNSURE)
    if not bool(chance.isfinite().all()):
        raise RunError("training diverged; lower the learning rate")
    losses = binary_cross_entropy(chance, won, weight=counts, reduction="none")
    return (losses.sum(dim=(1, 2)) / counts.sum(dim=(1, 2)).clip(min=1)).sum()
