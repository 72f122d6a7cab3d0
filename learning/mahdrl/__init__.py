"""MAHDRL: multi-agent hybrid deep reinforcement learning of which clients to hire and what to pay them.

There are two agents: `mahdrl-paper`, our reading of Algorithm 1 (``paper``), and `mahdrl`, one network for all clients
and services (``learner``, ``agent``, ``policy``, ``planning``, ``settings``). Neither imports anything of the other,
which import-linter checks; the other modules serve both.
"""
