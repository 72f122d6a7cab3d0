"""Let all services of a market play as one group of agents in TorchRL, with one network that nobody has trained.

pip install 'flmarket[rl]' torchrl
python examples/torchrl_group.py
"""

from tensordict.nn import TensorDictModule
from torch.nn import Sequential, Tanh
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import MarlGroupMapType
from torchrl.modules import MultiAgentMLP

import flmarket

scenario = flmarket.load("paper", {"training.backend": "surrogate"})
market = flmarket.parallel_env(scenario, flat=True, padded=True)  # TorchRL wants the same agents in every step
env = PettingZooWrapper(market, group_map=MarlGroupMapType.ALL_IN_ONE_GROUP, seed=0)
services, width = env.observation_spec["agents", "observation"].shape
actions = env.action_spec["agents", "action"].shape[-1]
network = MultiAgentMLP(width, actions, services, centralized=False, share_params=True, depth=2, num_cells=64)
policy = TensorDictModule(Sequential(network, Tanh()), [("agents", "observation")], [("agents", "action")])
played = env.rollout(scenario.rounds, policy)["next", "agents"]
accuracies = ", ".join(f"{accuracy:.3f}" for accuracy in played["info", "accuracy"][-1].tolist())
print(f"{services} services after {len(played)} rounds: accuracies {accuracies}")
