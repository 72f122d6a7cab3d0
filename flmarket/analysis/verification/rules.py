"""The rules that every run's logs obey: constraints, sums, and agreement between the tables.

The clients' data and bids are drawn again, and offers are cleared again, by what defines them in ``des``; sums,
statuses and the timeline are worked out from the logs. Columns name the rule that checks them; docs/logs.md has each
docstring.
"""

from collections.abc import Callable, Iterator, Mapping

from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding
from flmarket.analysis.verification.offer_rules import cores, interests, payments, world
from flmarket.analysis.verification.row_rules import accuracies, progress, scenario, shape, totals
from flmarket.analysis.verification.time_rules import timeline

Rule = Callable[[Logs], Iterator[Finding]]

RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        shape, scenario, world, interests, payments, cores, totals, progress, accuracies, timeline
    )
}  # fmt: skip
"""All rules, by the name by which columns refer to them. Where ``shape`` finds something, the others are not asked."""
