"""MAHDRL: multi-agent hybrid deep reinforcement learning of which clients to hire and what to pay them.

There are two agents. They share everything but how they learn and decide:

    paper/       `mahdrl-paper`: our reading of Algorithm 1 and eqs. (7) to (12); read ``paper.algorithm``

    learner      `mahdrl`: one network for all clients and services; how it learns
    losses         what it minimises
    brain          its networks, and how it decides with them
    planning       the best set of clients and prices
    rivalry        the chance to be served
    policy         plays a trained agent in a market

    training     trains either; ``training_log``, ``states`` and ``board`` are its log, its saved states and TensorBoard
    trained      reads a trained agent
    checkpoint   the files of agents and saved states
    networks, adam, replay, credit, features, ranges, shape    parts that both agents use

Neither agent imports anything of the other; import-linter checks that.
"""
