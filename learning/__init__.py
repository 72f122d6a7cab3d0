"""Policies: how a service chooses clients and payments, and what trains and judges policies."""
