"""The three figures of papers on mechanisms: utility over a bid, payments against costs, money paid against budgets."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from des.mechanism import MECHANISMS
from des.money import MICRO
from fl.arrays import FloatArray
from flmarket.analysis.figures.drawing import Figure, colour, style
from flmarket.benchmark.certify.certificate import AttackPlan, Certificate
from flmarket.benchmark.certify.players import Bench
from flmarket.benchmark.certify.sampling import LEAST_BID, MOST_BID, TICK, SampledMarket, sample

FACTORS = np.linspace(0.25, 2.5, 91)  # what a client's bids are, as multiples of its costs

MOST_WINNERS = 24  # whose bars can be told apart


def certificate_figures(certificate: Certificate) -> list[Figure]:
    """Return the figures. All parties tell the truth but the client of the first one, which tries other bids."""
    plan, gaining = certificate.plan, certificate.gaining("clients")
    markets = [sample(plan.shape, plan.seed, number) for number in range(plan.markets)]
    shown = gaining[0].market if gaining else markets[0]  # where a client was found to gain most
    played = [Bench(MECHANISMS.create(plan.mechanism, **plan.options), it).play() for it in markets]
    winners = {
        "paid": np.concatenate([it.price[it.served] for it in played])[:MOST_WINNERS],
        "cost": np.concatenate([it.costs[of.served] for it, of in zip(markets, played, strict=True)])[:MOST_WINNERS],
    }
    money = {"paid": np.array([it.price.sum() for it in played])}
    if plan.shape.budgets:  # others never bind, and would be all that is seen
        money["budgets"] = np.array([it.budgets.sum() for it in markets])
    name, drawn = plan.mechanism, partial(_draw_utilities, plan, shown)
    return [
        Figure(f"{name}-utility", f"{name}: utility of the clients of market {shown.seed} over their bids", drawn),
        Figure(f"{name}-rationality", f"{name}: payments and costs", partial(_draw_bars, winners, "winner")),
        Figure(f"{name}-budgets", f"{name}: money paid and budgets", partial(_draw_bars, money, "market")),
    ]


def utilities(plan: AttackPlan, market: SampledMarket) -> FloatArray:
    """Return [C, FACTORS] what each client has of the plan's rounds, in money, if it multiplies all of its bids."""
    bench = Bench(MECHANISMS.create(plan.mechanism, **plan.options), market, plan.rounds)
    curves = np.zeros((market.costs.shape[1], len(FACTORS)))
    for client, place in np.ndindex(curves.shape):
        bids = np.clip(market.costs[:, client] * FACTORS[place] // TICK * TICK, LEAST_BID, MOST_BID)
        curves[client, place] = bench.truly("clients", client, (*map(int, bids),) * bench.parts)[1] / MICRO
    return curves


def _draw_utilities(plan: AttackPlan, market: SampledMarket) -> Any:
    figure, axes = _panel("bid / cost", "utility, money")
    for client, curve in enumerate(utilities(plan, market)):
        axes.plot(FACTORS, curve, label=f"client {client}", **style(client if client < 7 else None))
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _draw_bars(values: Mapping[str, Any], each: str) -> Any:
    figure, axes = _panel(each, "money")
    for place, (label, amounts) in enumerate(values.items()):
        axes.bar(np.arange(len(amounts)) + 0.4 * place, amounts / MICRO, 0.4, label=label, color=colour(place))
    axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _panel(along: str, up: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(3.5, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=along, ylabel=up)
    return figure, axes
