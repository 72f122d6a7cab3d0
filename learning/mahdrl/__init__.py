"""MAHDRL: multi-agent hybrid deep reinforcement learning of which clients to hire and what to pay them.

`mahdrl` reads in this order: ``agent`` sees (``market_model``) and decides (``planner``), and ``learner`` updates its
networks towards ``advantages``. `mahdrl-paper`, our reading of Algorithm 1, is in ``paper``. ``learning.training``
plays the episodes of both. Neither imports the other, which import-linter checks; the rest serves both.
"""
