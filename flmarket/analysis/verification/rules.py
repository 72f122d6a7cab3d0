"""The rules that every run's logs obey: constraints, sums, and agreement between the tables.

Written against the paper and the logs alone: no rule shares code with the market, so a defect there cannot hide here.
Only the clients' data and bids are drawn again by what defines them (``des.clients.population``), and other mechanisms
than the paper's clear their rounds again. Columns name the rule that checks them; docs/logs.md has each docstring.
"""

from collections.abc import Callable, Iterator, Mapping

from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding
from flmarket.analysis.verification.offer_rules import bids, cores, interests, payments, world
from flmarket.analysis.verification.row_rules import accuracies, progress, scenario, shape, totals
from flmarket.analysis.verification.time_rules import timeline

RULES: Mapping[str, Callable[[Logs], Iterator[Finding]]] = {
    rule.__name__: rule
    for rule in (
        shape, scenario, world, bids, interests, payments, cores, totals, progress, accuracies, timeline
    )
}  # fmt: skip
"""All rules, by the name by which columns refer to them. Where ``shape`` finds something, the others are not asked."""
