"""Policies: how a service chooses clients and payments. With them, what trains policies and what judges them."""
