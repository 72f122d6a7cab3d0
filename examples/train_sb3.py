"""Train one service of a scenario with PPO from stable-baselines3; its rivals play the policies of the scenario file.

    pip install 'flmarket[rl]'
    python examples/train_sb3.py                          # the first service of `paper`; three minutes of one core
    python examples/train_sb3.py --scenario scarce --service mnist --steps 20000
    flmarket suite sb3 --plugin examples/sb3_agent.py --markets like-paper,starved

The market is on the surrogate, and a step is a round. `examples/sb3_agent.py` is what was trained as a policy, for
markets of as many services and clients.
"""

import argparse
from pathlib import Path

import torch
from gymnasium import Env
from gymnasium.wrappers import NormalizeReward
from stable_baselines3 import PPO

import flmarket

HELD_OUT = 10_000  # seed of a market that is never trained on
GAMMA = 0.95  # as in the environment, which discounts the rewards that remain when a service leaves


def main() -> None:
    """Train, and compare the trained agent with the untrained one in a market that is new to both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="paper", help="name of a built-in scenario, or a file")
    parser.add_argument("--service", help="the service that learns (default: the first one)")
    parser.add_argument("--steps", type=int, default=50_000, help="rounds to train for (default: 50000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("sb3.zip"), help="where the agent goes (default: sb3.zip)")
    arguments = parser.parse_args()

    scenario = flmarket.load(arguments.scenario, {"training.backend": "surrogate"})
    service = arguments.service or scenario.services[0].name
    env = flmarket.service_env(scenario, service, seed=arguments.seed)
    model = PPO(
        "MlpPolicy",
        NormalizeReward(env, gamma=GAMMA),  # errors of the critic in the hundreds would drown the actor's gradients
        n_steps=min(2048, arguments.steps),
        batch_size=min(256, arguments.steps),
        gamma=GAMMA,
        policy_kwargs={"log_std_init": -1.0},  # actions are clipped to [-1, 1]; wider noise would mostly hit the ends
        seed=arguments.seed,
        device="cpu",
    )
    clients = scenario.clients.count
    with torch.no_grad():  # begins by wanting most clients, near their bids
        model.policy.action_net.bias[:clients], model.policy.action_net.bias[clients:] = 0.5, -0.9
    before = held_out_auc(model, env, scenario.rounds)
    model.learn(arguments.steps)
    after = held_out_auc(model, env, scenario.rounds)
    env.close()
    model.save(arguments.out)
    print(f"{service}: AUC in a held-out market {before:.4f} before, {after:.4f} after {arguments.steps} rounds")


def held_out_auc(model: PPO, env: Env, rounds: int) -> float:
    """Return the mean accuracy over the rounds of one episode, without exploration; who has left keeps its accuracy.

    A sum of rewards would be higher for who stays in the market for longer.
    """
    observation, _ = env.reset(seed=HELD_OUT)
    accuracies, ended = [], False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, terminated, truncated, info = env.step(action)
        accuracies.append(info["accuracy"])
        ended = terminated or truncated
    return (sum(accuracies) + (rounds - len(accuracies)) * accuracies[-1]) / rounds


if __name__ == "__main__":
    main()
