"""`mahdrl-paper`: Algorithm 1 of the paper and its equations (7) to (12).

Read ``algorithm`` first, from top to bottom: it follows the lines of Algorithm 1.

    settings       hyper-parameters, and switches for departures
    actor_critic   mu_theta and Q_omega
    equations      (7) to (12), each a function
    transitions    when a transition is complete, and what of it is stored
    policy         plays a trained agent in a market
"""
