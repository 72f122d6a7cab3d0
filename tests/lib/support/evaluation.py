"""Differences between the entrants of an evaluation."""

from learning.evaluation import EvaluationResults
from learning.statistics.intervals import Interval, paired_interval


def compare(results: EvaluationResults, first: str, second: str, service: str | None = None) -> Interval:
    """Return how much more AUC one entrant has than another, paired by seed: of one service, or the mean over all."""
    auc = results.auc()
    scores = auc.mean(axis=-1) if service is None else auc[..., results.services.index(service)]
    return paired_interval(*(scores[results.entrants.index(name)] for name in (first, second)))
