"""MAHDRL: multi-agent hybrid deep reinforcement learning for a service's clients and payments.

Two agents, sharing the parts below them:

    paper      `mahdrl-paper`: Algorithm 1 and eqs. (7)-(12) to the letter, with switches towards what works
    learner    `mahdrl`: one network for all clients and services, a set-valued critic, a planner

    features, rivalry, networks, replay, credit, planning, checkpoint        the parts, each readable alone
    policy     what plays a trained agent in a market                        training    what trains one
    board      what shows a training to TensorBoard
"""
