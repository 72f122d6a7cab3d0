"""Certificates of mechanisms: whether a party can gain by misreporting, searched for in small sampled markets."""
