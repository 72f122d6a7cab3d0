"""The market as a SimPy simulation: clients, services, the round, allocation and money.

It knows no policy and imports no torch: what a round's training yields comes from the federation that it is given.
"""
