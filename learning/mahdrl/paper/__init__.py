"""`mahdrl-paper`: our reading of Algorithm 1 of the paper and its equations (7) to (12).

Read ``algorithm`` first, from top to bottom: it follows the lines of Algorithm 1. docs/decisions/algorithm1.md lists
what is ours, and what that is worth.

    settings       hyper-parameters, and switches for departures
    actor_critic   mu_theta and Q_omega
    equations      (7) to (12), each a function
    serial         the other reading of serial selection: a sub-MDP in each slot; ``serial_learner`` learns with it
    rewards        the reward that line 11 stores
    transitions    when a transition is complete, and what of it is stored
    policy         plays a trained agent in a market
"""
