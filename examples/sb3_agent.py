"""Plays the agent that `train_sb3.py` has trained on `paper`: a plug-in file, for the folder of its `sb3.zip`.

    python examples/train_sb3.py
    flmarket run paper --plugin examples/sb3_agent.py --policy sb3 --policy random --set training.backend=surrogate
    flmarket suite sb3 --plugin examples/sb3_agent.py --markets like-paper,starved

It plays markets of as many services and clients as `paper` has.
"""

import numpy as np
from stable_baselines3 import PPO

import flmarket

network = PPO.load("sb3.zip", device="cpu").policy


def act(seen: np.ndarray) -> np.ndarray:
    """Return the mean of the actions, cut to the space."""
    return network.predict(seen, deterministic=True)[0]


flmarket.policy_from(act, spaces=flmarket.spaces("paper", "mnist"), name="sb3")
