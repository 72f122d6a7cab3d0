"""Certificates of mechanisms: whether anybody gains by misreporting, attacked by search in small sampled markets."""
