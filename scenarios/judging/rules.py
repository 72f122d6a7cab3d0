"""What must hold in every run's logs: constraints, sums, and that the tables agree with each other.

Written against the paper and the logs alone: no rule shares code with the market, so a defect there cannot hide here.
Only the clients' data and bids are drawn again by what defines them (``des.population`` and ``des.behaviour``; clients
that learn do so again, from what the logs say they were paid), and surrogate accuracies are computed again from their
learning curves (``fl.surrogate``); other mechanisms than the paper's clear their rounds again (``clearing_rules``).
Each column of the logs names the rule that checks it (``scenarios.logs.columns``); the first sentence of a rule's
docstring stands in docs/logs.md.
"""

from collections.abc import Callable, Iterator, Mapping

from scenarios.judging.client_rules import interests
from scenarios.judging.evidence import Logs
from scenarios.judging.offer_rules import bids, cores, payments, world
from scenarios.judging.row_rules import progress, scenario, shape, totals
from scenarios.judging.time_rules import clock, timeline

RULES: Mapping[str, Callable[[Logs], Iterator[str]]] = {
    rule.__name__: rule
    for rule in (shape, scenario, world, bids, interests, payments, cores, totals, progress, timeline, clock)
}
"""All rules, by the name by which columns refer to them."""
