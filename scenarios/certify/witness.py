"""A witness: a market in which somebody gains by misreporting, as a scenario that ``flmarket run`` plays.

The scenario has two runs of one round each: all report the truth; and one party misreports. Services are of the policy
``worth`` with the values that they report. Data sets all have the same size, so that a client's EMD makes its bid, and
the list of EMDs is laid out such that the run's seed draws for each service and client the EMD of its bid. What the
models learn from such data means nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.holdings import draw_pairs
from des.mechanisms import create
from des.money import MICRO, Micro, MicroArray, text
from des.rows import RoundReport
from fl.arrays import IntArray
from fl.draws import draw_key
from learning.play import play_round
from scenarios.build import Shelf, build
from scenarios.certify.certificate import Certificate
from scenarios.certify.players import Bench, Played
from scenarios.certify.sampling import IMAGES, MOST_BID, TICK, SampledMarket
from scenarios.certify.search import Gain, Side, truly
from scenarios.file.toml_text import value_text
from scenarios.loader import parse, points

EMD_OF_TICK = 2 / IMAGES  # the smallest step of the EMD of a data set of ``IMAGES`` images

PER_EMD = round(TICK / MICRO / EMD_OF_TICK, 6)
PER_SAMPLE = round(MOST_BID / MICRO / IMAGES, 6)
"""A client asks ``PER_SAMPLE * D - PER_EMD * EMD``: the most for an EMD of 0."""

LONGEST = 100  # EMDs, or sizes, that a scenario can list


class NoScenarioError(Exception):
    """A market cannot be shown as a scenario; the message says why."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A market that shows a gain."""

    scenario: str  # the text of the scenario file
    words: str  # who misreports what, and what it has of it
    seed: int  # of the run that plays the market


def witness(certificate: Certificate, side: Side) -> Witness:
    """Return the market with the largest gain on one side.

    The scenario is played by the market itself, and what comes of it compared.
    """
    found, plan = certificate.found[side], certificate.plan
    if found.market is None or found.gain is None:
        raise ValueError(f"none of the {side} gains")
    market, gain = found.market, found.gain
    bench = Bench(create(plan.mechanism, plan.options), market)
    honest = bench.play()
    lying, _ = truly(bench, side == "services", gain.party, gain.report)
    scenario = _scenario(certificate, market, gain, (honest, lying), posted=bench.posted)
    _replay(scenario, market.seed, (honest, lying))
    return Witness(scenario, words(gain), market.seed)


def words(gain: Gain) -> str:
    """Return who misreports what, and what it has of it."""
    if gain.side == "services":
        lies = [
            f"{_short(lie)} for client {place}, who is worth {_short(true)} to it" for place, true, lie in _lies(gain)
        ]
        who = f"service-{gain.party + 1} reports {', '.join(lies)}"
    else:
        lies = [
            f"{_short(lie)} of service-{place + 1}, whose work costs it {_short(true)}"
            for place, true, lie in _lies(gain)
        ]
        who = f"client {gain.party} asks {', '.join(lies)}"
    return f"{who}: it has {text(gain.misreporting)} of the round instead of {text(gain.truthful)}"


def _lies(gain: Gain) -> Iterator[tuple[int, Micro, Micro]]:
    """Yield the places of a report that are not true, with the truth and what is reported."""
    for place, (true, lie) in enumerate(zip(gain.truth, gain.report, strict=True)):
        if true != lie:
            yield place, true, lie


def _short(amount: Micro) -> str:
    return f"{amount / MICRO:.6f}".rstrip("0").rstrip(".")


def _scenario(
    certificate: Certificate, market: SampledMarket, gain: Gain, played: tuple[Played, Played], *, posted: bool
) -> str:
    plan, (services, clients) = certificate.plan, market.values.shape
    costs, asked, truth, reported = market.costs, market.costs.copy(), market.values, market.values.copy()
    if gain.side == "clients":
        asked[:, gain.party] = gain.report
    else:
        reported[gain.party] = gain.report
    if posted:  # the policy does not know that nobody is paid more: it is given what services offer
        truth, reported = (np.maximum(it.offered, 0) for it in played)
    layout = _layout(market, asked)
    changed: list[dict[str, Any]] = [{}, {}]
    for at, (bids, values) in enumerate(((costs, truth), (asked, reported))):
        if (costs != asked).any():
            changed[at]["clients.emd"] = layout.listed(bids)
        for m in range(services):
            if (truth[m] != reported[m]).any():
                changed[at][f"services.service-{m + 1}.policy_options.values"] = _money(values[m])
    lines = [
        f"# {plan.mechanism}: a market in which one of the {gain.side} gains by misreporting.",
        "#",
        f"#     flmarket run {file_name(plan.mechanism, gain.side)} --seed {market.seed}",
        "#",
        "# The first run plays the truth, the second the misreport:",
        f"# {words(gain)}.",
        "#",
        "# true values of the clients, and what their work costs them:",
        *(f"#   service-{m + 1}  {_row(market.values[m])}   {_row(costs[m])}" for m in range(services)),
        *(line for name, it in zip(("truth", "misreport"), played, strict=True) for line in _served(name, it)),
        "# The EMDs stand for bids, and what is learned means nothing.",
        "",
        f"name = {value_text(file_name(plan.mechanism, gain.side).removesuffix('.toml'))}",
        f"description = {value_text(words(gain))}",
        "rounds = 1",
        'dqi = "published"',
        "",
        "[clients]",
        f"count = {clients}",
        f"cores = {market.cores}",
        f"data_size = {value_text([IMAGES] * layout.sizes)}",
        f"emd = {value_text(layout.listed(costs))}",
        f"cost = {{ per_sample = {PER_SAMPLE!r}, per_emd = {PER_EMD!r} }}",
        "",
        "[market]",
        f"mechanism = {value_text(plan.mechanism)}",
        f"options = {value_text(plan.options)}",
        "",
        "[training]",
        'backend = "surrogate"',
    ]
    for m in range(services):
        lines += [
            "",
            "[[services]]",
            f'name = "service-{m + 1}"',
            'dataset = "mnist"',
            f"budget = {_short(int(market.budgets[m]))}",
            "target_accuracy = 1.0",
            "reward_base = 2",
            'policy = "worth"',
            f"policy_options = {{ values = {value_text(_money(truth[m]))} }}",
        ]
    for change in changed:
        lines += ["", "[[runs]]", *(f'"{key}" = {value_text(value)}' for key, value in change.items())]
    return "\n".join(lines) + "\n"


def file_name(mechanism: str, side: Side) -> str:
    """Return what the file of a witness is called."""
    return f"{mechanism}-{side}.toml"


def _row(amounts: MicroArray) -> str:
    return " ".join(f"{amount / MICRO:8.6f}" for amount in amounts.tolist())


def _served(name: str, played: Played) -> list[str]:
    lines = [f"# {name}:"]
    for m, c in np.argwhere(played.served).tolist():
        lines.append(
            f"#   service-{m + 1} offers client {c} {text(int(played.offered[m, c]))} "
            f"and pays {text(int(played.price[m, c]))}"
        )
    return lines if len(lines) > 1 else [f"# {name}: nobody is served"]


def _money(amounts: MicroArray) -> list[float]:
    return [amount / MICRO for amount in amounts.tolist()]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the bids stand in a scenario's lists, of which the draw takes a pair."""

    sizes: int  # how often the data size is listed
    emds: int  # how many EMDs are listed
    places: IntArray  # [M, C] which of them each client draws for each service

    def listed(self, bids: MicroArray) -> list[float]:
        """Return the EMDs by which clients make these bids, with 0 in the places that nobody draws."""
        emds = [0.0] * self.emds
        for place, bid in zip(self.places.ravel().tolist(), bids.ravel().tolist(), strict=True):
            emds[place] = round((MOST_BID - bid) // TICK * EMD_OF_TICK, 4)
        return emds


def _layout(market: SampledMarket, asked: MicroArray) -> _Layout:
    """Return the shortest lists in which both the costs and the bids of a misreport, ``asked`` [M, C], have a place.

    Pairs of a service and a client that do not ask the same in both runs need places of their own.
    """
    key, (services, clients) = draw_key(market.seed, "quality"), asked.shape
    wanted = np.stack([market.costs, asked], axis=-1).reshape(-1, 2).tolist()
    for sizes in range(1, LONGEST + 1):
        for emds in range(1, LONGEST + 1):
            places = draw_pairs(key, np.array(1), services, clients, sizes * emds) % emds
            bids: dict[int, list[Micro]] = {}
            pairs = zip(places.ravel().tolist(), wanted, strict=True)
            if all(bids.setdefault(place, bid) == bid for place, bid in pairs):
                return _Layout(sizes, emds, places)
    raise NoScenarioError(f"no list of {LONGEST} EMDs gives every client its bids")


def _replay(scenario: str, seed: int, expected: tuple[Played, Played]) -> None:
    """Play both runs of a scenario as ``flmarket run`` does, and compare."""
    runs = points(parse(scenario, "witness"))
    for played, point in zip(expected, runs, strict=True):
        setup = build(point.scenario, seed, Shelf())
        report = play_round(setup.market, setup.policies)
        setup.market.close()
        if outcome(report) != _outcome(played):
            raise NoScenarioError("the policy worth offers something else than the players of this market")


Outcome = Mapping[tuple[int, int], tuple[Micro, Micro | None]]
"""What was offered, and what was paid if it served, by service and client."""


def outcome(report: RoundReport) -> Outcome:
    """Return what came of a round of a market."""
    names = [service.service for service in report.services]
    return {(names.index(offer.service), offer.client): (offer.payment, offer.paid) for offer in report.offers}


def _outcome(played: Played) -> Outcome:
    return {
        (m, c): (int(played.offered[m, c]), int(played.price[m, c]) if played.served[m, c] else None)
        for m, c in np.argwhere(played.offered >= 0).tolist()
    }
