"""MAHDRL: multi-agent hybrid deep reinforcement learning of which clients to hire and what to pay them.

There are two agents. They share everything but how they learn and decide:

    paper/            `mahdrl-paper`: our reading of Algorithm 1 and eqs. (7) to (12); read ``paper.algorithm``

    learner           `mahdrl`: one network for all clients and services; how it learns, and what it minimises
    agent             its networks, and how it decides with them
    policy            plays a trained agent in a market
    planning          the best set of clients and prices
    settings          its hyper-parameters

    training          trains either; ``training_files`` and ``preferences`` are its log, saved states and record
    agent_file        the files of agents and saved states
    advantages        what a decision is credited with
    features          what networks see
    win_probability   the chance to be served, and rivals as networks see them
    networks, adam, replay

Neither agent imports anything of the other; import-linter checks that.
"""
