"""MAPPO: as `examples/ippo.py`, but what a decision was worth is judged by a critic that sees all services.

    pip install 'flmarket[rl]'
    python examples/mappo.py                          # `paper` on the surrogate; about a minute on one core
    python examples/mappo.py --updates 200 --seed 1 --out mappo.safetensors

Training is centralised and playing is not: the actor still sees what its service sees. The critic sees the observations
of all services of the market side by side, its own service's first, and so also what they keep from each other:
accuracies, budgets and DQI.

Source: Yu et al., "The surprising effectiveness of PPO in cooperative multi-agent games", NeurIPS 2022. There, agents
have one reward together; here they compete, and each has its own.
"""

import torch
from ippo import arguments, report, save, train
from torch import Tensor

import flmarket


def main() -> None:
    """Train, and compare with random choice in markets that are new to both."""
    chosen = arguments(__doc__)
    torch.set_num_threads(1)  # sums in one order, and such small networks gain nothing from more
    scenario = flmarket.load(chosen.scenario, {"training.backend": "surrogate"})
    services = len(scenario.services)
    width = flmarket.vector_env(scenario, markets=1).single_observation_space.shape[0]

    def side_by_side(seen: Tensor) -> Tensor:
        """Return what all services of a row's market see [B * M, M * F]: its own, then its rivals' in turn."""
        markets = seen.reshape(-1, services, seen.shape[1])
        turned = [torch.roll(markets, -shift, dims=1) for shift in range(services)]
        return torch.cat(turned, dim=2).reshape(len(seen), -1)

    actor, critic, losses = train(scenario, side_by_side, services * width, updates=chosen.updates, seed=chosen.seed)
    print(f"{services} services, {scenario.clients.count} clients; loss of the last update {losses[-1]:.6f}")
    report("mappo", actor, scenario, chosen.markets)
    save(chosen.out, actor, critic)


if __name__ == "__main__":
    main()
