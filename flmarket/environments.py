"""Importing this registers the environments of services with Gymnasium (extra ``rl``).

    env = gymnasium.make("flmarket.environments:flmarket/Service-v0", scenario="paper", service="mnist")

All keywords are those of ``flmarket.service_env``.
"""

import gymnasium

gymnasium.register("flmarket/Service-v0", entry_point="flmarket:service_env")
