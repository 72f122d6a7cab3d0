"""EMD-FLIM and a second public auction, their rules written anew from reading, against ``proportional-share``.

``python papers/emd-flim/check.py`` prints the numbers of README.md.
"""

from collections.abc import Iterator
from math import exp, nan
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import flmarket
from flmarket.testing import clear_round

Prices = list[float]  # of each client; NaN for those that do not serve

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "services.server.dataset": "digits", "training.local_epochs": 1, "clients.data_size": [20]}
"""Settings with which the scenario plays in a second, and without a download."""

CLAIMS = [
    {"rule": "last-bid", "shape": {"services": 1}, "by": "the public code states no result; the text is not read"},
    {"rule": "last-bid", "by": "the public code states no result; the text is not read"},
    {"rule": "emd-greedy", "by": "a rival in the public code"},
]
"""How papers/certificates.md comes by its verdicts, by the fields of ``Claim`` (tools/certificates.py)."""

CLOSE = 1e-4  # money; ours is in whole micro-units


def proportional_share(bids: list[float], values: list[float], budget: float) -> Prices:
    """Return what flmarket's mechanism pays where one service names all clients."""
    return clear_round("proportional-share", bids, values, budget).tolist()


def emd_flim(bids: list[float], emd: list[float], budget: float, *, as_coded: bool = False) -> Prices:
    """Return what EMD-FLIM pays.

    The lowest bids per e^-EMD win, as long as the last one's is below the budget per e^-EMD of all winners. A winner
    gets, per e^-EMD, the lower of that and of the first loser's bid; where nobody loses, of the last winner's.

    As coded, the e^-EMD stand in the inverse of that order (``restore_with_index``, where they are to be sorted), so
    that clients count, and are paid, by one another's.
    """
    delta, clients = [exp(-each) for each in emd], range(len(bids))
    order = sorted(clients, key=lambda i: bids[i] / delta[i])
    ranked = [delta[i] for i in (sorted(clients, key=order.__getitem__) if as_coded else order)]
    per = [bids[i] / delta[i] for i in order]
    winning = [k for k in clients if per[k] < budget / sum(ranked[: k + 1])]
    prices = [nan] * len(bids)
    if winning:
        count = winning[-1] + 1
        price = min(budget / sum(ranked[:count]), per[min(count, len(bids) - 1)])
        for place, i in enumerate(order[:count]):
            prices[i] = ranked[place] * price
    return prices


def markets(count: int, seed: int = 1) -> Iterator[tuple[list[float], list[float], float]]:
    """Yield bids, EMDs and a budget, as in the public code; N and R are ours."""
    random = Random(seed)
    for _ in range(count):
        clients = random.randint(2, 20)
        emd = [random.uniform(0, 1) for _ in range(clients)]
        yield [random.uniform(4, 6) * exp(-each) for each in emd], emd, random.uniform(5, 60)


def compared(count: int = 2000) -> dict[str, int]:
    """Return how often the two agree in random markets."""
    names = "markets", "same winners", "somebody loses", "same prices there", "over the budget"
    found = dict.fromkeys((*names, "as coded, other winners", "as coded, pays below a bid"), 0)
    for bids, emd, budget in markets(count):
        theirs, coded = emd_flim(bids, emd, budget), emd_flim(bids, emd, budget, as_coded=True)
        ours = proportional_share(bids, [1000 * exp(-each) for each in emd], budget)
        loses = bool(np.isnan(theirs).any())
        found["markets"] += 1
        found["same winners"] += bool((np.isnan(theirs) == np.isnan(ours)).all())
        found["somebody loses"] += loses
        found["same prices there"] += loses and _close(theirs, ours)
        found["over the budget"] += float(np.nansum(ours)) > budget
        found["as coded, other winners"] += bool((np.isnan(theirs) != np.isnan(coded)).any())
        found["as coded, pays below a bid"] += _below(coded, bids)
    return found


def _close(one: Prices, two: Prices) -> bool:
    return np.allclose(one, two, rtol=0, atol=CLOSE, equal_nan=True)


def intensity_auction(bids: list[float], intensity: list[int], budget: float) -> Prices:
    """Return what the second public auction pays.

    The highest intensities per bid win, as long as the last one's bid is at most its share of the budget. Winner i gets
    the highest, over the winners j of the auction without i, of the lower of two: what i asks as dear as j does, and
    i's share of the budget together with those before j. The first loser of that auction is left out.
    """
    order = sorted(range(len(bids)), key=lambda i: -intensity[i] / bids[i])

    def winners(among: list[int]) -> list[int]:
        won, total = [], 0
        for i in among:
            if bids[i] > budget * intensity[i] / (total + intensity[i]):
                break
            won.append(i)
            total += intensity[i]
        return won

    prices = [nan] * len(bids)
    for i in winners(order):
        best, total = 0.0, 0
        for j in winners([each for each in order if each != i]):
            share = budget * intensity[i] / (total + intensity[i])
            best, total = max(best, min(intensity[i] * bids[j] / intensity[j], share)), total + intensity[j]
        prices[i] = best
    return prices


def second_compared(count: int = 1000, budget: float = 70.052) -> dict[str, int]:
    """Return what the second auction pays in random markets, drawn as in its public code, and what ours does."""
    random = Random(3)
    names = "markets", "same winners", "theirs pays below a bid", "ours pays below a bid", "over the budget"
    found = dict.fromkeys(names, 0)
    for _ in range(count):
        clients = random.choice([10, 20, 50, 100])
        intensity = [random.randint(50, 99) for _ in range(clients)]
        bids = [random.uniform(2, 5) for _ in range(clients)]
        theirs = intensity_auction(bids, intensity, budget)
        ours = proportional_share(bids, [1000.0 * each for each in intensity], budget)
        found["markets"] += 1
        found["same winners"] += bool((np.isnan(theirs) == np.isnan(ours)).all())
        found["theirs pays below a bid"] += _below(theirs, bids)
        found["ours pays below a bid"] += _below(ours, bids)
        found["over the budget"] += float(np.nansum(ours)) > budget
    return found


def _below(prices: Prices, bids: list[float]) -> bool:
    return bool((np.array(prices) < np.array(bids) - 1e-6).any())


def check_an_example_by_hand() -> None:
    """e^-EMD is 1, 1/2 and 1/4, and bids per unit of it are 4, 5 and 6.

    With R = 9, two win: 5 < 9 / 1.5 = 6, but 6 > 9 / 1.75. They get 6 a unit, which both the share of the budget and
    the first loser's bid allow. With R = 8, two win: 5 < 5.333; they get that share.
    """
    emd, bids = [0.0, np.log(2), np.log(4)], [4.0, 2.5, 1.5]
    for budget, prices in ((9.0, [6.0, 3.0, nan]), (8.0, [16 / 3, 8 / 3, nan])):
        assert _close(emd_flim(bids, emd, budget), prices)
        assert _close(proportional_share(bids, [1000.0, 500.0, 250.0], budget), prices)


def check_as_coded_clients_are_paid_by_one_anothers_data() -> None:
    """Three clients with e^-EMD 1/2, 1/4 and 1 ask 2.5, 1.5 and 4 of 9: per unit 5, 6 and 4, so that the order is the
    third, the first, the second, and the first two of them win, at 6 a unit: 6 and 3.

    The code counts the second's 1/4 for the third, and the third's 1 for the first: it pays 1.5, below the bid, and 6.
    """
    emd, bids = [np.log(2), np.log(4), 0.0], [2.5, 1.5, 4.0]
    assert _close(emd_flim(bids, emd, 9.0), [3.0, nan, 6.0])
    assert _close(emd_flim(bids, emd, 9.0, as_coded=True), [6.0, nan, 1.5])


def check_winners_and_prices_are_those_of_emd_flim() -> None:
    found = compared()
    assert found["same winners"] == found["markets"] == 2000
    assert found["same prices there"] == found["somebody loses"] > 1000
    assert found["over the budget"] == 0


def check_where_all_win_the_public_code_pays_the_last_one_what_it_asks_and_ours_does_not() -> None:
    """Two clients of EMD 0 ask 4 and 5 of a budget of 20. The second earns more by asking 6 there, and no more here."""
    assert emd_flim([4.0, 5.0], [0.0, 0.0], 20.0) == [5.0, 5.0]
    assert emd_flim([4.0, 6.0], [0.0, 0.0], 20.0) == [6.0, 6.0]
    for asked in (5.0, 6.0):
        assert proportional_share([4.0, asked], [1000.0, 1000.0], 20.0) == [10.0, 10.0]


def check_the_scenario_draws_and_pays_as_the_public_code_does() -> None:
    """Its plug-in ``last-bid`` pays what EMD-FLIM pays, in every round, of the money that is left."""
    flmarket.load_plugin(HERE / "plugins.py")
    with TemporaryDirectory() as out:
        played = flmarket.run(flmarket.load(HERE / "scenario.toml", SHORT), out=out, progress=False).offers
    left = 100.0
    for _, offers in played.groupby("round"):
        assert (offers.bid * np.exp(offers.emd)).between(4 - 1e-5, 6 + 1e-5).all()
        prices = emd_flim(offers.bid.tolist(), offers.emd.tolist(), left)
        assert _close(prices, [paid if paid > 0 else nan for paid in offers.paid])
        left -= offers.paid.sum()
    assert left < 10


def check_the_second_auction_pays_below_bids_and_ours_never() -> None:
    found = second_compared()
    assert found["same winners"] == found["markets"] == 1000
    assert found["theirs pays below a bid"] > 400
    assert found["ours pays below a bid"] == found["over the budget"] == 0


if __name__ == "__main__":
    for name, counts in (("EMD-FLIM", compared()), ("the second auction", second_compared())):
        print(name, counts)
