"""A market as a queue: services that want one update each are the customers, and the core of a client is the server.

Customers come as a Poisson process, and offer until they have the core: it is never free while anybody waits. Who has
waited longer pays more. Then Lindley's recursion gives each wait, and Pollaczek and Khinchine's formula their mean, but
for the fact that offers are made as a period begins. S is the time of the work, lambda the rate, rho = lambda E[S], and
d the length of a period. Of the work u that is there as a period begins, and x that comes then, max(0, u + x - d) is
left for the next one. In the long run the squares of both have the same mean, so that

    E[u] = lambda E[S^2] / (2 (1 - rho)) + (d^2 (1 - rho)^2 - E[i^2]) / (2 d (1 - rho))

where i is how long the core is idle in a period: E[i] = d (1 - rho), and 0 <= i <= d. Who comes with others waits for
rho d / 2 of their work, too. So the mean wait is that of the formula, and at most rho d / 2 more.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from des.market import Market
from des.money import MICRO
from des.observation import Offer
from des.timeline import Durations
from fl.surrogate.learning_curves import SurrogateFederation
from fl.training.trigger import TRIGGERS
from support.curves import CURVE

FLAT = replace(CURVE, step_0=-60.0)  # nobody learns anything, so that nobody meets its target and leaves

SERVICES = 16
SLOT = 0.5  # d
SPREAD = 0.6  # of the logarithm of S, whose median is 1 second


def queue(make_market: Callable[..., Market], rate: float, periods: int, seed: int) -> np.ndarray:
    """Return when each customer comes, how long it waits, and how long its work takes, [customers, 3]; seconds."""
    names = [f"s{m}" for m in range(SERVICES)]
    market = make_market(
        names,
        timeline=Durations(0.01, 0.0, period=SLOT, jitter=SPREAD),  # 100 images
        federation=SurrogateFederation(dict.fromkeys(names, FLAT), 0),
        triggers=[TRIGGERS.create("fedasync") for _ in names],
        rounds=periods,
        seed=seed,
        count=1,
    )
    rng = np.random.default_rng(seed)
    idle, waiting, found = names.copy(), dict[str, float](), []
    for _ in range(periods):
        seen, now = market.open_round(), market.now / MICRO
        for _ in range(rng.poisson(rate * SLOT)):
            waiting[idle.pop(0)] = now
        offers = {name: Offer(np.array([0]), np.array([15.0 - 0.1 * place])) for place, name in enumerate(waiting)}
        report = market.close_round({name: offers.get(name, Offer.none()) for name in seen})
        for it in sorted((it for it in report.offers if it.start is not None), key=lambda it: it.start or 0):
            start, end = (it.start or 0) / MICRO, (it.end or 0) / MICRO
            came = waiting.pop(it.service)
            found.append((came, start - came, end - start))
            idle.append(it.service)
    return np.array(found)


@pytest.mark.slow
def test_services_wait_for_a_core_as_pollaczek_and_khinchine_say(make_market: Callable[..., Market]) -> None:
    rate = 0.42
    mean, square = np.exp(SPREAD**2 / 2), np.exp(2 * SPREAD**2)  # E[S] and E[S^2] of a log-normal S
    rho = rate * mean
    means, served = [], []
    for seed in range(6):
        came, waited, worked = queue(make_market, rate, 2000, seed).T
        # nobody waits longer or shorter than for those that came before: the core is not idle meanwhile
        for n in range(1, len(came)):
            assert waited[n] == pytest.approx(max(0.0, came[n - 1] + waited[n - 1] + worked[n - 1] - came[n]), abs=1e-5)
        means.append(waited[20:].mean())  # the queue is empty at first
        served.append(worked.sum() / (came[-1] + waited[-1] + worked[-1]))
    formula, error = rate * square / (2 * (1 - rho)), np.std(means, ddof=1) / np.sqrt(len(means))
    assert error < 0.15 * formula
    assert formula - 3 * error < np.mean(means) < formula + rho * SLOT / 2 + 3 * error
    assert np.mean(served) == pytest.approx(rho, abs=3 * np.std(served, ddof=1) / np.sqrt(len(served)))
