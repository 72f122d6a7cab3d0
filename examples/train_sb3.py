"""Train one service of a scenario with PPO from stable-baselines3; its rivals play the policies of the scenario file.

    pip install 'flmarket[rl]'
    python examples/train_sb3.py                                   # the first service of quickstart, real training
    python examples/train_sb3.py --scenario paper --service mnist --steps 20000

A step is a round, with all of its local training. 2,000 rounds are few: what PPO learns here is a start, not a result.
"""

import argparse

from gymnasium import Env
from stable_baselines3 import PPO

import flmarket

HELD_OUT = 10_000
"""Seed of a market that is never trained on."""


def main() -> None:
    """Train, and compare the trained agent with the untrained one in a market that is new to both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="quickstart", help="name of a built-in scenario, or a file")
    parser.add_argument("--service", help="the service that learns (default: the first one)")
    parser.add_argument("--steps", type=int, default=2_000, help="rounds to train for (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    scenario = flmarket.load(arguments.scenario)
    service = arguments.service or scenario.services[0].name
    env = flmarket.service_env(scenario, service, seed=arguments.seed)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=min(256, arguments.steps),
        batch_size=min(64, arguments.steps),
        gamma=0.95,  # as in the environment, which discounts the rewards that remain when a service leaves
        policy_kwargs={"log_std_init": -1.0},  # actions are clipped to [-1, 1]; wider noise would mostly hit the ends
        seed=arguments.seed,
        device="cpu",
    )
    before = held_out_return(model, env)
    model.learn(arguments.steps)
    after = held_out_return(model, env)
    env.close()
    print(f"{service}: return on a held-out market {before:.1f} before, {after:.1f} after {arguments.steps} rounds")


def held_out_return(model: PPO, env: Env) -> float:
    """Return the sum of rewards of one episode, without exploration."""
    observation, _ = env.reset(seed=HELD_OUT)
    total, ended = 0.0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += reward
        ended = terminated or truncated
    return total


if __name__ == "__main__":
    main()
