"""What `mahdrl` minimises: the error of its critic, and its surprise at which offers won."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from fl.errors import RunError
from learning.mahdrl.brain import PLAIN, Networks
from learning.mahdrl.rivalry import exactly, features

UNSURE = 1e-6  # A learned chance is cut this far from 0 and 1, so that no offer is infinitely surprising


def set_values(
    quality: Tensor,  # [A, P] parameters of that network
    count: Tensor,  # [A, P] parameters of that network
    # ``clients`` [A, B, k, features], ``served`` [A, B, k] and ``situation`` [A, B, inputs]
    batch: Mapping[str, Tensor],
    networks: Networks = PLAIN,  # their sizes
) -> Tensor:
    """Return V(S) = mean of q over S + kappa(|S|) of the served sets of a batch, [A, B]."""
    served = batch["served"]
    rows = _Rows(served.flatten(1))
    q = rows.spread(networks.quality.forward(quality, rows.of(batch["clients"].flatten(1, 2)))[..., 0]).view(
        served.shape
    )
    number = served.sum(dim=2)
    nobody, slope, curvature = networks.count.forward(count, batch["situation"]).unbind(dim=2)
    log_count = number.clip(min=1).log()
    some = (q * served).sum(dim=2) / number.clip(min=1) + (slope + curvature * log_count) * log_count
    return torch.where(number > 0, some, nobody)


def critic_loss(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor], networks: Networks = PLAIN) -> Tensor:
    """Return the mean squared error of V(S) against the advantages, summed over agents: eq. (10)."""
    error = batch["advantage"][..., 0] - set_values(quality, count, batch, networks)
    return error.square().mean(dim=1).sum()


def win_loss(
    win: Tensor,  # [A, P] parameters of the network
    # ``rivals`` [A, B, k, R, 2], ``active`` [A, B, R], ``offered`` and ``won`` [A, B, k], ``contested`` [A, B, 1], K as
    # ``cores`` [A, B, 1], and ``rivalry`` [A, B, inputs]. An offer that won teaches as much of the rivals if its client
    # did not deliver
    batch: Mapping[str, Tensor],
    most: int,  # the largest K
    networks: Networks = PLAIN,  # their sizes
) -> Tensor:
    """Return the cross-entropy of which contested offers won, mean over offers, summed over agents."""
    won, rivals, counts = batch["won"], batch["rivals"], batch["offered"] * batch["contested"]
    rows = _Rows(counts.flatten(1))
    standing = rows.of(rivals.flatten(1, 2))  # [A, n, R, 2]
    active, beside, cores = (
        rows.of(batch[name][:, :, None].expand(-1, -1, won.shape[2], -1).flatten(1, 2))
        for name in ("active", "rivalry", "cores")
    )
    seen = torch.cat([features(standing, torch), beside[:, :, None].expand(-1, -1, standing.shape[2], -1)], -1)
    outbid = networks.win.forward(win, seen.flatten(1, 2))[..., 0].view(standing.shape[:-1]).sigmoid()
    numbers = torch.stack(exactly(most, outbid * active))
    within = torch.arange(most)[:, None, None] < cores[..., 0]
    chance = (numbers * within).sum(0).clip(UNSURE, 1.0 - UNSURE)
    if not bool(chance.isfinite().all()):
        raise RunError("training diverged; lower the learning rate")
    losses = binary_cross_entropy(chance, rows.of(won.flatten(1)), weight=rows.of(counts.flatten(1)), reduction="none")
    return (losses.sum(dim=1) / counts.sum(dim=(1, 2)).clip(min=1)).sum()


class _Rows:
    """Those rows of a padded batch that count: most are padding, which networks need not look at."""

    def __init__(self, counts: Tensor) -> None:
        """Find the rows of which ``counts`` [A, rows] is above 0."""
        self._counts = (counts > 0).to(torch.uint8)
        most = max(1, int(self._counts.sum(dim=1).max()))
        # [A, n] their places among all; where an agent has fewer than another, places that do not count follow
        self.index = self._counts.argsort(dim=1, descending=True, stable=True)[:, :most]

    def of(self, values: Tensor) -> Tensor:
        """Return them [A, n, ...] of values [A, rows, ...]."""
        agents = torch.arange(len(self.index))[:, None]
        return values[agents, self.index]

    def spread(self, values: Tensor) -> Tensor:
        """Return values [A, n] at their places among all rows, [A, rows], and 0 elsewhere."""
        return torch.zeros(self._counts.shape).scatter(1, self.index, values)
