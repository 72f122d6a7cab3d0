"""Independent PPO: all services of a market learn at once, with one shared network, from what each sees itself.

    pip install 'flmarket[rl]'
    python examples/ippo.py                          # `paper` on the surrogate; about a minute on one core
    python examples/ippo.py --updates 200 --seed 1 --out ippo.safetensors
    flmarket suite ippo:ippo.safetensors --plugin examples/ippo.py --jobs 2

It trains on markets in lockstep (`flmarket.vector_env`) and then plays markets that it was not trained on, beside
`random` in the same markets. As a plug-in, this file is the policy that plays what was trained, in markets of any size.
`examples/mappo.py` is the same with a critic that sees all services.

Sources: Schulman et al., "Proximal policy optimization algorithms", arXiv:1707.06347, 2017; de Witt et al., "Is
independent learning all you need in the StarCraft multi-agent challenge?", arXiv:2011.09533, 2020. In the manner of
CleanRL (Huang et al., JMLR 23, 2022): one file, read from top to bottom.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal

import flmarket
from learning.environments.spaces import FlatCodec
from learning.evaluation import evaluate, everywhere
from learning.lockstep.vector_env import VectorMarketEnv
from learning.statistics import area_under_curve
from learning.statistics.intervals import paired_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario

MARKETS = 16  # in lockstep; each plays one episode between two updates
HELD_OUT = 10_000  # the first seed of markets that are never trained on
GAMMA, LAMBDA = 0.95, 0.9
EPOCHS, MINIBATCH, CLIP = 4, 1024, 0.2
RATE, ENTROPY, VALUE, LARGEST_STEP = 3e-3, 0.001, 0.5, 0.5
HIDDEN = 32

Rows = Callable[[Tensor], Tensor]
"""From observations [B * M, F] to what the critic sees of them [B * M, G]."""


class Actor(nn.Module):
    """Decides for every client by the same network: whether to want it, and what to pay.

    Sharing one network among clients, as among services, makes the agent indifferent to their numbering, and gives it
    twenty times as much to learn from.
    """

    def __init__(self, services: int, clients: int) -> None:
        super().__init__()
        self.services, self.clients = services, clients
        self.network = nn.Sequential(nn.Linear(11, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
        self.head = nn.Linear(HIDDEN, 2)
        nn.init.orthogonal_(self.head.weight, 0.01)  # begins by wanting three in five, near their bids
        with torch.no_grad():
            self.head.bias.copy_(torch.tensor([0.5, -0.9]))
        self.log_deviation = nn.Parameter(torch.tensor(-1.5))

    def forward(self, seen: Tensor) -> tuple[Bernoulli, Normal, Tensor]:
        """Return who is wanted [n, C], payments [n, C] from -1 for the bid, and who is available [n, C]."""
        c, m = self.clients, self.services
        dqi, bids = seen[:, :c], seen[:, c : (1 + m) * c].reshape(-1, m, c)
        start = (1 + m) * c
        available, rest = seen[:, start : start + c], seen[:, start + c : start + c + 4]  # budget, cores, and so on
        own, rivals = bids[:, 0], bids[:, 1:] if m > 1 else torch.zeros_like(bids)
        relative = [
            (it - it.mean(dim=1, keepdim=True)) / (it.std(dim=1, keepdim=True, correction=0) + 1e-3)
            for it in (dqi, own)
        ]
        by_client = torch.stack([dqi, own, *relative, rivals.amax(dim=1), rivals.mean(dim=1), available], dim=-1)
        both = torch.cat([by_client, rest[:, None, :].expand(-1, c, -1)], dim=-1)
        wanted, payment = self.head(self.network(both)).unbind(dim=-1)
        return Bernoulli(logits=wanted), Normal(payment, self.log_deviation.exp()), available

    def log_probability(self, seen: Tensor, wanted: Tensor, payment: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log probability of actions [n], and the entropy of whom they want [n]; absent clients left out."""
        choice, price, available = self(seen)
        logs = choice.log_prob(wanted) + wanted * price.log_prob(payment)  # nobody is paid who is not wanted
        return (logs * available).sum(dim=1), (choice.entropy() * available).sum(dim=1)

    @torch.no_grad()
    def likeliest(self, seen: Tensor) -> np.ndarray:
        """Return actions [n, 2 C] without exploration: the likelier choice, and the mean payment."""
        choice, price, available = self(seen)
        return encode((choice.probs > 0.5) * available, price.mean)


@flmarket.policy("ippo")
class Ippo(flmarket.Policy):
    """Decides as the trained actor of a file: the likelier choice, and the mean payment."""

    def __init__(self, context: flmarket.PolicyContext, *, checkpoint: str) -> None:
        super().__init__(context)
        self.codec = FlatCodec(context.bounds(), payment_limit=2.0)  # sees what `vector_env` would show in this market
        self.actor = Actor(context.services, context.clients)
        tensors = load_file(checkpoint)
        own = {key.removeprefix("actor."): value for key, value in tensors.items() if key.startswith("actor.")}
        self.actor.load_state_dict(own)

    def act(self, observation: flmarket.Observation) -> flmarket.Offer:
        seen = torch.from_numpy(self.codec.encode(observation))[None]
        return self.codec.decode(self.actor.likeliest(seen)[0], observation)


def critic_of(features: int) -> nn.Module:
    """Return a network that estimates what is still to come."""
    return nn.Sequential(nn.Linear(features, 2 * HIDDEN), nn.Tanh(), nn.Linear(2 * HIDDEN, 1))


def train(
    scenario: Scenario, rows: Rows, features: int, *, updates: int, seed: int
) -> tuple[Actor, nn.Module, list[float]]:
    """Return the trained actor, its critic, and the loss of each update. The same seed gives the same numbers.

    Args:
        scenario: on the surrogate.
        rows: what the critic sees; see ``Rows``.
        features: G, its width.
        updates: episodes of every market, and updates.
        seed: of networks, actions and markets.
    """
    torch.manual_seed(seed)
    env = flmarket.vector_env(scenario, markets=MARKETS, seed=seed * 1_000_000)
    actor, critic = Actor(len(scenario.services), scenario.clients.count), critic_of(features)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=RATE, eps=1e-5)
    seen, infos = env.reset(seed=seed * 1_000_000)
    losses = []
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = RATE * (1 - update / updates)
        batch = []
        for _ in range(scenario.rounds + 1):  # one more: the step that begins a market anew
            now, acting, before = torch.from_numpy(seen), infos["acting"], env.markets.curves.accuracy.ravel().copy()
            with torch.no_grad():
                choice, price, available = actor(now)
                wanted, payment = choice.sample() * available, price.sample()
                log, value = actor.log_probability(now, wanted, payment)[0], critic(rows(now))[:, 0]
            seen, *_, infos = env.step(encode(wanted, payment))
            # What a round adds to -log(1 - accuracy); the market's reward, Omega^accuracy, mostly shows earlier rounds.
            reward = torch.from_numpy(np.where(acting, log_error(before) - log_error(infos["accuracy"]), 0.0)).float()
            ends = torch.from_numpy(acting & ~infos["acting"])  # a service may leave before its market ends
            batch.append((now, rows(now), wanted, payment, log, value, reward, ends, torch.from_numpy(acting)))
        now, critics, wanted, payment, log, value, reward, ends, acting = (
            torch.stack(part) for part in zip(*batch, strict=True)
        )
        with torch.no_grad():
            last = critic(rows(torch.from_numpy(seen)))[:, 0]
        advantage = generalised(reward, value, last, ends, acting)
        target, flat = (
            (advantage + value)[acting],
            (advantage[acting] - advantage[acting].mean()) / advantage[acting].std(),
        )
        data = (now[acting], critics[acting], wanted[acting], payment[acting], log[acting], flat, target)
        for _ in range(EPOCHS):
            for part in torch.randperm(len(flat)).split(MINIBATCH):
                loss = ppo_loss(actor, critic, *(values[part] for values in data))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], LARGEST_STEP)
                optimizer.step()
        losses.append(loss.item())
    return actor, critic, losses


def ppo_loss(
    actor: Actor, critic: nn.Module, seen: Tensor, rows: Tensor, wanted: Tensor, payment: Tensor, before: Tensor,
    advantage: Tensor, target: Tensor,
) -> Tensor:  # fmt: skip
    """Return PPO's clipped loss of the actor, the critic's squared error, and the bonus for entropy."""
    log, entropy = actor.log_probability(seen, wanted, payment)
    ratio = (log - before).exp()
    gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    error = (critic(rows)[:, 0] - target).square()
    return (-gain + VALUE * error - ENTROPY * entropy).mean()


def generalised(reward: Tensor, value: Tensor, last: Tensor, ends: Tensor, acting: Tensor) -> Tensor:
    """Return generalised advantage estimates [T, n], 0 where a row does not act; ``last`` [n] is the last value."""
    advantage, carried = torch.zeros_like(reward), torch.zeros_like(last)
    for t in reversed(range(len(reward))):
        after = value[t + 1] if t + 1 < len(value) else last
        goes_on = (~ends[t]).float()
        carried = acting[t] * (reward[t] + GAMMA * goes_on * after - value[t] + GAMMA * LAMBDA * goes_on * carried)
        advantage[t] = carried
    return advantage


def encode(wanted: Tensor, payment: Tensor) -> np.ndarray:
    """Return actions [n, 2 C] as the environment takes them."""
    return torch.cat([2 * wanted - 1, payment.clamp(-1, 1)], dim=1).numpy()


def log_error(accuracy: np.ndarray) -> np.ndarray:
    """Return log(1 - accuracy), errors cut to 1e-4."""
    return np.log(np.maximum(1 - accuracy, 1e-4))


def held_out_auc(actor: Actor, env: VectorMarketEnv, rounds: int) -> np.ndarray:
    """Return the mean AUC of the services in each held-out market [B], without exploration."""
    seen, _ = env.reset(seed=HELD_OUT)
    count, curves = len(env.markets.round), []
    over = np.zeros(count, dtype=bool)
    accuracy = env.markets.curves.accuracy.copy()
    for _ in range(rounds):
        seen, _, _, _, infos = env.step(actor.likeliest(torch.from_numpy(seen)))
        accuracy = np.where(
            over[:, None], accuracy, infos["accuracy"].reshape(count, -1)
        )  # a market that is over begins anew
        over |= env.markets.finished
        curves.append(accuracy)
    return area_under_curve(np.array(curves).swapaxes(0, 1), np.ones(accuracy.shape[1], dtype=np.int64)).mean(axis=-1)


def report(name: str, actor: Actor, scenario: Scenario, markets: int) -> None:
    """Print the AUC on held-out markets, and the difference from ``random`` in the same ones, with its interval."""
    own = held_out_auc(actor, flmarket.vector_env(scenario, markets=markets, seed=HELD_OUT), scenario.rounds)
    seeds = range(HELD_OUT, HELD_OUT + markets)
    base = evaluate(market_factory(scenario), {"random": everywhere("random")}, seeds).auc()[0].mean(axis=-1)
    gain = paired_interval(own, base)
    half = f" ± {gain.high - gain.estimate:.4f}" if markets > 2 else ""
    print(
        f"{name}: AUC {own.mean():.4f}, random {base.mean():.4f}, difference {gain.estimate:+.4f}{half}; n = {markets}"
    )


def arguments(description: str) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="paper", help="a built-in scenario, or a file; played on the surrogate")
    parser.add_argument("--updates", type=int, default=100, help="updates, of an episode each (default: 100)")
    parser.add_argument("--markets", type=int, default=20, help="held-out markets to report on (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the networks' tensors to this file, as safetensors")
    return parser.parse_args()


def save(path: Path | None, actor: Actor, critic: nn.Module) -> None:
    """Write the networks' tensors, if a file is named."""
    if path is not None:
        nets = {"actor": actor, "critic": critic}
        save_file(
            {f"{name}.{key}": value for name, net in nets.items() for key, value in net.state_dict().items()}, path
        )


def main() -> None:
    """Train, and compare with random choice in markets that are new to both."""
    chosen = arguments(__doc__)
    torch.set_num_threads(1)  # sums in one order, and such small networks gain nothing from more
    scenario = flmarket.load(chosen.scenario, {"training.backend": "surrogate"})
    services, clients = len(scenario.services), scenario.clients.count
    width = flmarket.vector_env(scenario, markets=1).single_observation_space.shape[0]
    actor, critic, losses = train(scenario, lambda seen: seen, width, updates=chosen.updates, seed=chosen.seed)
    print(f"{services} services, {clients} clients; loss of the last update {losses[-1]:.6f}")
    report("ippo", actor, scenario, chosen.markets)
    save(chosen.out, actor, critic)


if __name__ == "__main__":
    main()
