"""A witness: a market in which a party gains by misreporting, as a scenario that ``flmarket run`` plays.

It has two runs: all report the truth; and one party misreports. Services are of the policy ``worth`` with the values
that they report. Data sets all have the same size, so that a client's EMD makes its bid, and the list of EMDs is laid
out such that the run's seed draws for each round, service and client the EMD of its bid.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from os.path import relpath
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from des.clients.data_sources import draw_pairs
from des.log_records import RoundReport
from des.mechanism import MECHANISMS
from des.money import MICRO, Micro, MicroArray, text
from fl.arithmetic.draws import draw_key
from flmarket.benchmark.certify.certificate import AttackPlan
from flmarket.benchmark.certify.players import Bench
from flmarket.benchmark.certify.sampling import IMAGES, MOST_BID, TICK, SampledMarket
from flmarket.benchmark.certify.search import Gain
from flmarket.core.files import asked_for
from learning.play_round import play
from scenarios.build import Shelf, build
from scenarios.loader import parse, points

EMD_OF_TICK = 2 / IMAGES  # the smallest step of the EMD of a data set of ``IMAGES`` images

PER_EMD = round(TICK / MICRO / EMD_OF_TICK, 6)
PER_SAMPLE = round(MOST_BID / MICRO / IMAGES, 6)
"""A client asks ``PER_SAMPLE * D - PER_EMD * EMD``: the most for an EMD of 0."""

LONGEST = 100  # EMDs, or sizes, that a scenario can list


class NoScenarioError(Exception):
    """A market cannot be shown as a scenario; the message says why."""


def write_witness(plan: AttackPlan, gain: Gain, folder: Path, plugins: Sequence[Path] = ()) -> str:
    """Write the market of a gain as a scenario file into a folder; return a line about it.

    ``plugins`` are the files that ``flmarket run`` needs to play it. The command in the scenario's first lines is for
    its folder, wherever that is moved with them; the one in the line is for here.
    """
    path = folder / f"{plan.mechanism}-{gain.side}.toml"
    try:
        scenario = witness(plan, gain, [Path(relpath(plugin.resolve(), folder.resolve())) for plugin in plugins])
    except NoScenarioError as error:
        return f"{words(gain, plan.rounds)} (not written as a scenario: {error})"
    with asked_for(path) as file:
        file.write(scenario)
    return f"{path}: {words(gain, plan.rounds)}\n  {_command(str(path), gain, plugins)}"


def _command(file: str, gain: Gain, plugins: Sequence[Path]) -> str:
    loaded = [word for path in plugins for word in ("--plugin", str(path))]
    return shlex.join(["flmarket", "run", file, "--seed", str(gain.market.seed), *loaded])


def words(gain: Gain, rounds: int = 1) -> str:
    """Return who misreports what, and what it has of it."""
    when = (" in odd rounds", " in even rounds") if rounds > 1 else ("",)
    length = len(gain.truth) // len(when)
    names = 2 if gain.side == "sybils" else 1
    lies = [
        (place % length, _short(true), _short(lie) + when[place // length])
        for place, (true, lie) in enumerate(zip(gain.truth, gain.report, strict=True))
        if true != lie
    ]
    if gain.side == "services":
        misreports = ", ".join(f"{lie} for client {place}, who is worth {true} to it" for place, true, lie in lies)
        who = f"service-{gain.party + 1} reports {misreports}"
    else:
        asks = [
            (gain.party + place % names, f"{lie} of service-{place // names + 1}, whose work costs it {true}")
            for place, true, lie in lies
        ]
        who = "; ".join(f"client {name} asks {', '.join(ask for by, ask in asks if by == name)}" for name in dict(asks))
    if gain.side == "sybils":
        who = (
            f"client {gain.party} comes as clients {gain.party} and {gain.party + 1}, each with half of its data"
            + (who and "; ")
            + who
        )
    span = "the round" if rounds == 1 else f"{rounds} rounds"
    return f"{who}: it has {text(gain.misreporting)} of {span} instead of {text(gain.truthful)}"


def witness(plan: AttackPlan, gain: Gain, plugins: Sequence[Path] = ()) -> str:
    """Return the text of the scenario that shows a gain; what comes of it when it is played is the gain itself.

    ``plugins`` are as the command in its first lines has them. Over several rounds a mechanism may go by accuracies,
    which are the played market's own: there it may come to another gain, and the text has that.
    """
    text = _written(plan, gain, plugins)
    played = _replayed(text, gain)
    if played == [gain.truthful, gain.misreporting]:
        return text
    there = replace(gain, truthful=played[0], misreporting=played[1])
    if plan.rounds == 1 or not there.found:
        raise NoScenarioError("the policy worth offers something else than the players of this market")
    return _written(plan, there, plugins)


def _written(plan: AttackPlan, gain: Gain, plugins: Sequence[Path]) -> str:
    """Return the text of the scenario, before it is played."""
    market = gain.market
    bench = Bench(MECHANISMS.create(plan.mechanism, **plan.options), market, plan.rounds)
    honest = gain.honest or market
    length = len(gain.report) // bench.parts
    parts = [gain.report[place : place + length] for place in range(0, len(gain.report), length)]
    lies = [bench.reports(gain.side, gain.party, part) for part in parts]
    values = [honest.values, lies[0][0]]
    played = [bench.play(values[0], honest.costs), bench.play(*lies[0])]
    if plan.rounds > 1 and (bench.posted or (lies[0][0] != lies[1][0]).any()):
        raise NoScenarioError("its services offer otherwise in even rounds")
    if bench.posted:  # the policy does not know that no client is paid more: it is given what services offer
        values = [np.maximum(it.offered, 0) for it in played]
    bids = [
        np.stack([each[number % len(each)] for number in range(plan.rounds)])
        for each in ([honest.costs], [bids for _, bids in lies])
    ]
    return _comments(plan, gain, plugins) + tomlkit.dumps(_scenario(plan, gain, values, bids))


def _comments(plan: AttackPlan, gain: Gain, plugins: Sequence[Path]) -> str:
    market, name = gain.market, f"{plan.mechanism}-{gain.side}.toml"
    amounts = (
        f"#   service-{m + 1}  {_row(values)}   {_row(costs)}"
        for m, (values, costs) in enumerate(zip(market.values.tolist(), market.costs.tolist(), strict=True))
    )
    lines = [
        f"# {plan.mechanism}: a market in which one of the {gain.side} gains by misreporting.",
        "#",
        f"#     {_command(name, gain, plugins)}",
        "#",
        "# The first run plays the truth, the second the misreport:",
        f"# {words(gain, plan.rounds)}.",
        "#",
        f"# true values of the clients, and what their work costs them{' as two' * (gain.side == 'sybils')}:",
        *amounts,
        "# The EMDs stand for bids, and what is learned means nothing.",
    ]
    return "\n".join(lines) + "\n\n"


def _scenario(plan: AttackPlan, gain: Gain, values: list[MicroArray], bids: list[MicroArray]) -> dict[str, Any]:
    """Return the scenario; values [M, C] and bids [rounds, M, C] are what is reported in each of two runs."""
    market, (services, clients) = gain.market, gain.market.values.shape
    sizes, emds = _layout(market, *bids)
    runs: list[dict[str, Any]] = [{}, {}]
    for run, emd, worth in zip(runs, emds, values, strict=True):
        if emds[0] != emds[1]:
            run["clients.emd"] = emd
        for m in range(services):
            if (values[0][m] != values[1][m]).any():
                run[f"services.service-{m + 1}.policy_options.values"] = (worth[m] / MICRO).tolist()
    return {
        "name": f"{plan.mechanism}-{gain.side}",
        "description": words(gain, plan.rounds),
        "rounds": plan.rounds,
        "dqi": "published",
        "clients": {
            "count": clients,
            "cores": market.cores,
            "data_size": [IMAGES] * sizes,
            "emd": emds[0],
            "cost": {"per_sample": PER_SAMPLE, "per_emd": PER_EMD},
        },
        "market": {"mechanism": plan.mechanism, "options": dict(plan.options)},
        "training": {"backend": "surrogate"},
        "services": [
            {
                "name": f"service-{m + 1}",
                "dataset": "mnist",
                "budget": int(budget) / MICRO,
                "target_accuracy": 1.0,
                "reward_base": 2,
                "policy": "worth",
                "policy_options": {"values": (values[0][m] / MICRO).tolist()},
            }
            for m, budget in enumerate(market.budgets)
        ],
        "runs": runs,
    }


def _layout(market: SampledMarket, costs: MicroArray, asked: MicroArray) -> tuple[int, list[list[float]]]:
    """Return how often the size must be listed, and the list of EMDs for the costs and that for the bids ``asked``.

    Both are [rounds, M, C]. The lists are the shortest in which all bids have a place; pairs of a service and a client
    that do not ask the same in both runs need places of their own. In places that are not drawn the EMD is 0.
    """
    key, (rounds, services, clients) = draw_key(market.seed, "quality"), asked.shape
    wanted = list(zip(costs.ravel().tolist(), asked.ravel().tolist(), strict=True))
    for sizes, emds in product(range(1, LONGEST + 1), repeat=2):
        places = draw_pairs(key, np.arange(1, rounds + 1), services, clients, sizes * emds) % emds
        bids: dict[int, tuple[Micro, Micro]] = {}
        if all(bids.setdefault(place, bid) == bid for place, bid in zip(places.ravel().tolist(), wanted, strict=True)):
            placed = [bids.get(place, (MOST_BID, MOST_BID)) for place in range(emds)]
            return sizes, [[round((MOST_BID - it[run]) // TICK * EMD_OF_TICK, 4) for it in placed] for run in (0, 1)]
    raise NoScenarioError(f"no list of {LONGEST} EMDs gives every client its bids")


def _replayed(scenario: str, gain: Gain) -> list[Micro]:
    """Return what the party has of each run of a scenario, by the same truth."""
    profits = []
    names = (gain.party, gain.party + 1) if gain.side == "sybils" else (gain.party,)
    for point, market in zip(
        points(parse(scenario, "witness")), (gain.honest or gain.market, gain.market), strict=True
    ):
        setup = build(point.scenario, gain.market.seed, Shelf())
        reports: list[RoundReport] = []
        play(setup.market, setup.policies, [reports.append])
        setup.market.close()
        has = 0
        for offer in (it for report in reports for it in report.offers):
            m = int(offer.service.removeprefix("service-")) - 1
            if offer.paid is not None and (m if gain.side == "services" else offer.client) in names:
                worth = int(market.values[m, offer.client]) - offer.paid
                has += worth if gain.side == "services" else offer.paid - int(market.costs[m, offer.client])
        profits.append(has)
    return profits


def _short(amount: Micro) -> str:
    return f"{amount / MICRO:.6f}".rstrip("0").rstrip(".")


def _row(amounts: list[Micro]) -> str:
    return " ".join(f"{amount / MICRO:8.6f}" for amount in amounts)
