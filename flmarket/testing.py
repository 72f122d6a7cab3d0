"""For your own tests: the contracts of plug-ins, and one round that is cleared by hand.

    from flmarket.testing import check_policy

    def test_my_policy_keeps_its_contracts():
        check_policy(MyPolicy, share=0.2)

Each function ``check_*`` takes a class and its options as keyword arguments (that of measures takes what the decorator
returned), plays small markets on the surrogate, mostly in less than a second, and raises an AssertionError that says
which contract is broken, in which market and how. flmarket's own plug-ins are tested by the same functions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from des.allocation import NO_CORE, tie_order_of
from des.behaviour import Behaviour
from des.cost import Cost, costs
from des.log_records import RoundReport
from des.mechanism import Book, Mechanism, Menu, RoundView, clearing_of
from des.money import MICRO, to_micro
from des.response import Awards, BestResponse, Response, Terms
from fl.arithmetic.draws import draw_key
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array, FloatArray, read_only
from fl.training.aggregator import Aggregator, Updates, aggregate, checkpoint_arrays, proximal_weight
from fl.training.trigger import Gathered, Trigger
from flmarket.analysis.results.run_results import RunResult, read_runs
from flmarket.benchmark.by_hand import clear_round
from flmarket.benchmark.certify.players import Bench
from flmarket.benchmark.certify.sampling import AMPLE, IMAGES, SampledMarket
from flmarket.core.errors import InputError, RunError
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import subclass_problem
from learning.play_round import play
from learning.policies.worth import Worth
from learning.policy import Policy, PolicyContext
from learning.seats import context
from learning.statistics.measure import Measure
from scenarios.build import Seats, Setup, Shelf, build_federation, build_market, build_policy
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.running.batch import play_batch
from scenarios.running.checkpoint import Checkpoint, DamagedError
from scenarios.running.run_options import RunOptions

T = TypeVar("T", Policy, Behaviour)

__all__ = [
    "MenuDeviation",
    "check_aggregator",
    "check_behaviour",
    "check_cost",
    "check_measure",
    "check_mechanism",
    "check_menu",
    "check_policy",
    "check_response",
    "check_trigger",
    "clear_round",
    "menu_deviations",
]

_SERVICES = "mnist", "fashion-mnist", "emnist"
_SMALL = ["training.backend=surrogate", "rounds=6", "clients.count=6"]
_ONE_SERVICE = "a market of one service"
_MARKETS: Mapping[str, list[str]] = {
    "the paper's market": [],
    "a market of one client": ["clients.count=1"],
    _ONE_SERVICE: [],
    "a market without money": [f"services.{name}.budget=0" for name in _SERVICES],
    "a market that all leave after a round": [f"services.{name}.target_accuracy=0.01" for name in _SERVICES],
    "a market of clients with one core": ["clients.cores=1"],
    "a market with secrets": ["clients.cost.noise=0.6", "market.bids=own", "market.dqi=rank", "market.dqi_noise=0.2"],
    "a market whose clients go offline": [
        "interventions=[{round=2, key='clients.offline', value=[0, 1]}, {round=3, key='clients.offline', "
        "value=[0, 1, 2, 3, 4, 5]}, {round=4, key='clients.offline', value=[]}]"
    ],
    "a market with budgets for the whole run": ["services.mnist.total_budget=50", "services.emnist.arrival=3"],
    "a market with posted prices": ["market.mechanism=posted-price", "market.options.price_per_sample=0.02"],
    "a market whose services offer again": ["market.mechanism=iterated", "clients.cores=1"],
    "a market whose mechanism keeps budgets": ["market.mechanism=proportional-share"],
    "a market whose clients come one after another": ["market.impressions=sequential", "clients.count=3", "rounds=4"],
}
"""The paper's market with fewer clients and rounds, and what is different in others."""
_MISREPORTS = ["clients.behaviour.kind=misreport", "clients.behaviour.options.size=0.5"]


def check_policy(policy: type[Policy], **options: Any) -> None:
    """Check that a policy keeps its contracts in small markets of many kinds, in which all services play it.

    Its offers keep constraints (4) and (5) and name clients that are available; asked the same again, it makes the same
    offer; the same market, played again, goes alike; and if runs with it can be resumed, a new object that has taken
    back what ``state()`` returned plays on alike.
    """
    _require(not (problem := subclass_problem(policy, Policy)), str(problem))

    def create(known: PolicyContext) -> Policy:
        return _answering_twice(policy(known, **options), "act")

    for kind in _MARKETS:
        _check_market(f"policy {policy.__name__}, {kind}", partial(_setup, kind, create, label=policy.__name__))


def check_mechanism(mechanism: type[Mechanism], **options: Any) -> None:
    """Check that a mechanism keeps its contracts.

    It clears small books, also without an offer, by the market's rules (eqs. 2, 4 and 5); equal books are cleared
    equally, and clients that are numbered otherwise fare alike. Small markets, played again, go alike, also from what
    ``state()`` returned on.
    """
    _require(not (problem := subclass_problem(mechanism, Mechanism)), str(problem))
    who = f"mechanism {mechanism.__name__}"
    for seed in range(40):
        rng = stream(seed, "testing")
        book = _book(rng, seed, mechanism)
        with _contracts(f"{who}, a book of {len(book.clients)} offers"):
            once, again, other = (
                _prices(mechanism(**options), it) for it in (book, book, _numbered(book, rng.permutation(_CLIENTS)))
            )
            _require(once == again, "equal books are cleared in two ways")
            _require(
                once == other,
                "numbering clients otherwise changes who is served, or at what price; book.tie_order breaks ties",
            )
    for kind, changes in _MARKETS.items():
        refused = {"market.mechanism": True, "services.mnist.total_budget": mechanism.platform_budget}
        refused["market.impressions"] = not mechanism.by_client
        if not any(refused.get(change.partition("=")[0]) for change in changes):
            create = partial(mechanism, **options)
            _check_market(f"{who}, {kind}", partial(_setup, kind, mechanism=create))


def check_behaviour(behaviour: type[Behaviour], **options: Any) -> None:
    """Check that a client behaviour keeps its contracts.

    Bids are whole numbers of at least 0 within ``bid_range()``, and the same when asked again; reports are data that
    there can be. Small markets, played again, go alike, also from what ``state()`` returned on.
    """
    _require(not (problem := subclass_problem(behaviour, Behaviour)), str(problem))

    def create() -> Behaviour:
        return _answering_twice(behaviour(**options), "bids")

    for kind in _MARKETS:
        _check_market(f"behaviour {behaviour.__name__}, {kind}", partial(_setup, kind, behaviour=create))


def check_cost(cost: type[Cost], **options: Any) -> None:
    """Check that a cost keeps its contracts.

    Each cost is a finite number that follows from the same element of the work alone, is the same when asked again, and
    goes one way as data size, EMD, speed or type rises; speed plays no part where ``uses_speed`` is False.
    """
    _require(not (problem := subclass_problem(cost, Cost)), str(problem))
    with _contracts(f"cost {cost.__name__}"):
        made = cost(**options)
        values = {"data size": (1, 10, 300, 9_000), "EMD": (0.0, 0.4, 1.0, 1.8), "speed": (0.5, 1.0, 4.0)}
        work = np.meshgrid(*values.values(), (0.0, 1.0, 5.0), indexing="ij")
        amounts = costs(made, *work)
        _require((amounts == costs(made, *work)).all(), "amounts(), asked the same again, returns something else")
        parts = costs(made, *(array[1:3] for array in work))
        _require((amounts[1:3] == parts).all(), "amounts() depends on more than the same element of the work")
        for axis, name in enumerate((*values, "type")):
            steps = np.diff(amounts, axis=axis)
            both = (steps > 0).any(axis) & (steps < 0).any(axis)
            _require(not both.any(), f"a cost rises and falls as the {name} rises; it must go one way")
            _require(
                name != "speed" or made.uses_speed or not steps.any(), "uses_speed is False, but speed plays a part"
            )


def check_response(response: type[Response], **options: Any) -> None:
    """Check that a response keeps its contracts.

    Quantities are 0 to 1, off a menu where there is one, and the same when asked again, in whatever order awards come;
    nothing costs nothing, and more costs no less. A best response is one: of many awards, no other quantity or entry of
    the menu, nor none, leaves the client more than 1e-6 of money more.
    """
    _require(not (problem := subclass_problem(response, Response)), str(problem))
    with _contracts(f"response {response.__name__}"):
        made, menu = response(**options), Menu(np.array([0.25, 1.0]), np.array([100_000, 400_000]))
        for shown in (None, menu):
            awards, other = _awards(1, shown), _awards(-1, shown)
            answers, again = (Terms(made).answers(it, to_micro(it.price)) for it in (awards, other))
            same = all((one == two[::-1]).all() for one, two in zip(answers, again, strict=True))
            _require(same, "awards in another order are answered otherwise")
            if isinstance(made, BestResponse):
                _check_best(made, shown)
        costs = [made.cost(awards, np.full(len(awards.price), quantity)) for quantity in (0.0, 0.5, 1.0)]
        _require((costs[0] == 0).all(), "cost(): nothing must cost nothing")
        _require((np.diff(costs, axis=0) >= 0).all(), "cost(): more of the work must not cost less")


def _check_best(response: BestResponse, menu: Menu | None) -> None:
    rng, count = stream(0, "testing"), 1_000
    price, cost, emd, unit = map(read_only, rng.uniform(0.0, [[5.0], [5.0], [1.8], [5.0]], (4, count)))
    places = np.arange(count)
    awards = Awards(1, places % 2, places // 2, price, cost, rng.integers(1, 500, count), emd, unit, menu)
    given = response.respond(awards)

    def kept(quantity: FloatArray) -> FloatArray:
        paid = price * quantity
        if menu is not None:
            paid = ((to_micro(quantity)[:, None] == to_micro(menu.quantity)) * menu.payment).sum(axis=1) / MICRO
        utility: FloatArray = paid - response.cost(awards, quantity)
        return utility

    for other in np.linspace(0, 1, 101) if menu is None else (0.0, *menu.quantity):
        gain = kept(np.full(count, other)) - kept(given)
        most = gain.argmax()
        _require(
            gain[most] <= 1e-6,
            f"respond() is not the best response: at a price of {price[most]:.3f} and a cost of {cost[most]:.3f}, "
            f"{other:g} leaves the client {gain[most]:.6f} more than {given[most]:g}",
        )


def _awards(step: Literal[1, -1], menu: Menu | None) -> Awards:
    """Return awards of many prices, costs and data, forwards or backwards."""
    price, cost, emd, unit = (
        read_only(array.ravel()[::step])
        for array in np.meshgrid((0.0, 0.4, 1.0, 3.0), (0.0, 0.5, 1.0), (0.0, 1.1), (1.0, 3.0), indexing="ij")
    )
    places = np.arange(len(price))[::step]
    return Awards(1, places % 2, places // 2, price, cost, 40 + 7 * places, emd, unit, menu)


class MenuDeviation(NamedTuple):
    """A type of clients that keeps more of another contract than of its own, or more if it takes none."""

    type: int  # its place among the types
    contract: int | None  # the place on the menu of the contract that it takes instead; None if it takes none
    gain: float  # money


def check_menu(mechanism: Mechanism, response: Response, types: Sequence[float]) -> None:
    """Check that a mechanism's menu of contracts is incentive compatible and individually rational by private type.

    The contract at place i of the menu is meant for the clients to whom all of the work costs ``types[i]``, money, and
    who bid that. What a contract costs them follows from the response.
    """
    with _contracts(f"menu of {type(mechanism).__name__}"):
        for place, contract, gain in menu_deviations(mechanism, response, types)[:1]:
            broken = "individually rational" if contract is None else "incentive compatible"
            other = "without a contract" if contract is None else f"of the contract at place {contract}"
            who = f"to whom all of the work costs {types[place]:g}"
            raise AssertionError(f"it is not {broken}: those {who} keep {gain:.6f} more {other} than of their own")


def menu_deviations(mechanism: Mechanism, response: Response, types: Sequence[float]) -> list[MenuDeviation]:
    """Return all deviations from a menu, as ``check_menu`` takes it, the largest gain first.

    A type may take any contract, or none, and bid as any other type where that changes the menu. Gains of up to a
    micro-unit are rounding.
    """
    menus = [_menu(mechanism, cost, len(types)) for cost in types]
    quantity = np.array([menu.quantity for menu in menus])  # [bid, contract]
    payment = np.array([np.atleast_2d(menu.payment)[0] for menu in menus]) / MICRO
    found = []
    for place, cost in enumerate(types):
        first, ones = np.zeros(quantity.size, dtype=np.int64), np.ones(quantity.size)
        numbers = ones * AMPLE / MICRO, ones * cost, first + IMAGES, ones * 0, ones * cost / IMAGES
        kept = payment - response.cost(Awards(1, first, first, *numbers), quantity.ravel()).reshape(quantity.shape)
        gains = [(None, -kept[place, place]), *enumerate(kept.max(axis=0) - kept[place, place])]
        found += [MenuDeviation(place, taken, float(gain)) for taken, gain in gains if gain > 1 / MICRO]
    return sorted(found, key=lambda it: -it.gain)


def _menu(mechanism: Mechanism, cost: float, contracts: int) -> Menu:
    """Return the menu that a mechanism posts to a client whose work costs so much, alone in a market."""
    market = SampledMarket(0, np.array([[AMPLE]]), to_micro(np.array([[cost]])), np.array([AMPLE]), cores=1)
    played = Bench(mechanism, market).play()
    if played.menu is None or not played.served.all() or len(played.menu.quantity) != contracts:
        raise AssertionError(f"who bids {cost:g} must be shown {contracts} contracts, one for each type")
    return played.menu


def check_aggregator(aggregator: type[Aggregator], **options: Any) -> None:
    """Check that an aggregator keeps its contracts.

    Of the updates of one to seven clients, which it leaves as they are, it makes a model of finite numbers; equal
    updates give equal models, and clients that are numbered otherwise the same one up to rounding. A new object that
    has taken back what ``state()`` returned goes on as the old one would have.
    """
    _require(not (problem := subclass_problem(aggregator, Aggregator)), str(problem))
    sizes = (5, 1, 7, 2, 3, 6, 4)
    with _contracts(f"aggregator {aggregator.__name__}"):
        proximal_weight(aggregator(**options))
        whole = _models(aggregator(**options), sizes)
        _require(all(np.isfinite(model).all() for model in whole), "the new model of finite ones is not finite")
        _require(
            _plain(whole) == _plain(_models(aggregator(**options), sizes)),
            "equal updates give different models; keep memory in the object, not in its class or module",
        )
        others = _models(aggregator(**options), sizes, numbered=True)
        _require(
            all(np.allclose(*pair, rtol=1e-5, atol=1e-6) for pair in zip(whole, others, strict=True)),
            "numbering clients otherwise changes the model",
        )
        first, second = aggregator(**options), aggregator(**options)
        half = _models(first, sizes[:4])
        second.restore(checkpoint_arrays(first))
        _require(
            _plain(half + _models(second, sizes, half)) == _plain(whole),
            "a new object that has restored what state() returned does not go on as the old one would have",
        )


def check_trigger(trigger: type[Trigger], **options: Any) -> None:
    """Check that a trigger keeps its contracts.

    It answers every question alike, however often it is asked: whether a model is due and clients are wanted, true or
    false, and how much of an update counts, from 0 to 1. Sooner or later a model is due. The model that it makes of an
    update is of finite float32 numbers.
    """
    _require(not (problem := subclass_problem(trigger, Trigger)), str(problem))
    with _contracts(f"trigger {trigger.__name__}"):
        made, other = trigger(**options), trigger(**options)
        moments = [Gathered(a, w, c) for a in (1, 3, 999) for w in (0, 7) for c in (False, True)]
        due = [[it.due(moment) for moment in moments] for it in (made, other, made)]
        starts = [Gathered(a, w, closing=False, late=late) for a, w, late in ((0, 0, 0), (0, 7, 7), (3, 7, 1))]
        wanted = [[it.recruits(start) for start in starts] for it in (made, other, made)]
        for answers in (*due, *wanted):
            _require(all(isinstance(it, bool) for it in answers), "due and recruits must return True or False")
        same = due[0] == due[1] == due[2] and wanted[0] == wanted[1] == wanted[2]
        _require(same, "it answers differently when asked again")
        _require(any(due[0]), "no model is ever due")
        _require(made.share(0) > 0, "a fresh update counts nothing, so that no model is ever made")
        _require(wanted[0][0], "no client is wanted though nobody is at work, so that nobody ever is")
        old, begun, model = (np.arange(3, dtype=np.float32) * by for by in (1, 2, 4))
        for staleness in (*range(12), 99, 1000):
            share = made.share(staleness)
            _require(0 <= share <= 1, f"{share} of an update of staleness {staleness} is not from 0 to 1")
            now = made.brought_up(model, old if staleness == 0 else begun, old, staleness)
            right = now.dtype == np.float32 and now.shape == model.shape and bool(np.isfinite(now).all())
            _require(right, f"the model of an update of staleness {staleness} is not of finite float32 numbers")


def check_measure(measure: Measure) -> None:
    """Check that a measure keeps its contracts.

    Of a run of each kind of small market it returns what its decorator says, finite numbers within its limits, or None;
    and the same when it is asked again, after the other runs.
    """
    _require(isinstance(measure, Measure), f"{measure!r} is no measure; put @flmarket.measure(NAME) on a function")
    low, high = measure.limits
    with TemporaryDirectory(prefix="flmarket-") as folder:
        scenarios = {kind: _scenario(kind) for kind in _MARKETS}
        scenarios["a market whose clients misreport"] = load("paper", [*_SMALL, *_MISREPORTS])
        found: dict[str, tuple[RunResult, Mapping[str, float]]] = {}
        for kind, scenario in scenarios.items():
            complete = play_batch([scenario], ["worth"], [0], RunOptions(out=folder), progress=False).complete
            [run] = read_runs(it.directory for it in complete)
            with _contracts(f"measure {measure.name!r}, {kind}"):
                found[kind] = run, dict(measure.values(run))
                for value in found[kind][1].values():
                    _require(low <= value <= high, f"{value} is not within {low} to {high}")
        for kind, (run, values) in reversed(found.items()):
            with _contracts(f"measure {measure.name!r}, {kind}"):
                _require(measure.values(run) == values, "asked the same again, it returns something else")


def _models(
    aggregator: Aggregator, sizes: Sequence[int], earlier: Sequence[Float32Array] = (), *, numbered: bool = False
) -> list[Float32Array]:
    """Return the models that come of rounds with so many clients, after the rounds of the earlier ones."""
    models: list[Float32Array] = []
    old = earlier[-1] if earlier else np.zeros(9, dtype=np.float32)
    for round_, clients in enumerate(sizes[len(earlier) :], len(earlier)):
        rng = stream(round_, "testing")
        order = rng.permutation(clients) if numbered else np.arange(clients)
        weights = (1 + 10 * np.arange(clients))[order].tolist()
        changes = stream(round_, "updates").normal(size=(clients, len(old)))[order]
        old = aggregate(aggregator, Updates((old + changes).astype(np.float32), weights, old), f"round {round_ + 1}")
        models.append(old)
    return models


def _require(holds: object, broken: str) -> None:
    if not holds:
        raise AssertionError(broken)


@contextmanager
def _contracts(where: str) -> Iterator[None]:
    """Let any error be an AssertionError that says where it happened."""
    try:
        yield
    except (AssertionError, InputError, RunError) as error:
        raise AssertionError(f"{where}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{where}: {blame(error)}") from error


def _answering_twice(player: T, name: str) -> T:
    """Return an object whose method is asked everything twice, and must give the same answer."""
    method = getattr(player, name)

    def twice(*given: object) -> object:
        answer, again = method(*given), method(*given)
        _require(_plain(answer) == _plain(again), f"{name}(), asked the same again, returns something else")
        return answer

    setattr(player, name, twice)
    return player


def _plain(answer: Any) -> str:
    parts = [getattr(answer, it.name) for it in fields(answer)] if is_dataclass(answer) else [answer]
    return repr([np.asarray(part).tolist() for part in parts])


def _scenario(kind: str) -> Scenario:
    scenario = load("paper", [*_SMALL, *_MARKETS[kind]])
    return scenario.model_copy(update={"services": scenario.services[:1]}) if kind == _ONE_SERVICE else scenario


def _setup(
    kind: str,  # of market
    create: Callable[[PolicyContext], Policy] = Worth,
    *,
    label: str = "worth",  # the policy's name in messages
    mechanism: Callable[[], Mechanism] | None = None,
    behaviour: Callable[[], Behaviour] | None = None,
) -> Setup:
    scenario = _scenario(kind)
    federation = build_federation(scenario, 0, Shelf())
    market = build_market(
        scenario, 0, federation, mechanism() if mechanism else None, behaviour() if behaviour else None
    )
    policies = {service.name: create(context(market, service.name)) for service in scenario.services}
    for service, policy in policies.items():
        market.seat(service, label, privileged=policy.privileged)
    return Setup(market, policies, federation, Seats(scenario, market, policies, build_policy))


def _check_market(where: str, setup: Callable[[], Setup]) -> None:
    """Play a market, then half of it again, then the other half from what is remembered by then."""
    with _contracts(where):
        whole = _rounds(setup())
        first, second = setup(), setup()
        half = _rounds(first, last=3)
        _require(
            half == whole[: len(half)],
            "the same market, played again, goes otherwise; draw from observation.rng() or keys of the seed alone, and "
            "keep memory in the object, not in its class or module",
        )
        if all(policy.resumable for policy in first.policies.values()):
            try:
                Checkpoint.take(first, {}, {}, 0.0).apply(second)
            except DamagedError as error:
                raise AssertionError(f"restore() does not take what state() returned: {error}") from error
            _require(
                half + _rounds(second) == whole,
                "a new object that has restored what state() returned does not play on as the old one would have",
            )


def _rounds(setup: Setup, last: int | None = None) -> list[object]:
    """Return what came of each round; all bids must be within their range."""
    rounds: list[object] = []
    clients = setup.market.population

    def note(report: RoundReport) -> None:
        rounds.append((report.offers, report.services, report.events, report.clients))

    def check_bids(round_: int) -> None:
        low, high = clients.bid_range
        bids = clients.draw(round_).bid
        _require(
            ((bids >= low[:, None]) & (bids <= high[:, None])).all(),
            f"round {round_}: bids of {bids.min() / MICRO} to {bids.max() / MICRO} are not all within bid_range(), "
            f"{low.min() / MICRO} to {high.max() / MICRO}",
        )

    play(setup.market, setup.policies, [note], prepare=check_bids, last=last)
    return rounds


_CLIENTS = 4  # in a book


def _book(rng: np.random.Generator, seed: int, mechanism: type[Mechanism]) -> Book:
    """Return a book of few different amounts, so that ties are common; that of seed 0 is empty."""
    services = int(rng.integers(1, 4))
    m, c = np.divmod(rng.permutation(services * _CLIENTS)[: min(seed, int(rng.integers(1, 10)))], _CLIENTS)
    bids, more = rng.integers(0, 5, (2, len(m))) * MICRO // 2
    spent = np.bincount(m, bids + more, services).astype(np.int64)
    budgets = rng.integers(0, 20, services) * MICRO if mechanism.keeps_budgets else spent
    ties = partial(tie_order_of, draw_key(seed, "ties"), 1, services)
    size, emd = rng.integers(1, 500, (services, _CLIENTS)), rng.uniform(0.0, 1.8, (services, _CLIENTS))
    accuracy, target = rng.uniform(0.0, 1.0, (2, services))
    delivered, late = rng.integers(0, 9, (2, services, _CLIENTS))
    record = read_only(np.array([delivered + late, delivered])) if mechanism.counts_deliveries else None
    left = np.where(accuracy < target, budgets, np.inf)
    arrival, serves = rng.integers(1, 4, services).astype(np.float64), rng.random((services, _CLIENTS)) < 0.7
    serves[m, c] = True
    view = replace(
        RoundView(1, 10, *map(read_only, (size, emd, emd / 2, accuracy, target, left))),
        record=record,
        arrival=read_only(arrival),
        demand=read_only(np.bincount(m, minlength=services)),
        serves=read_only(serves),
    )
    return Book(m, c, bids + more, bids, bids, budgets, int(rng.integers(1, 4)), ties, lambda: view)


def _numbered(book: Book, number: Any) -> Book:
    """Return a book whose clients have other numbers, and the same draws."""
    old, seen = np.argsort(number), book.round
    columns = {name: read_only(getattr(seen, name)[:, old]) for name in ("data_size", "emd", "dqi", "serves")}
    view = replace(seen, **columns, record=None if seen.record is None else read_only(seen.record[..., old]))
    return replace(
        book, clients=number[book.clients], tie_order=lambda clients: book.tie_order(old[clients]), view=lambda: view
    )


def _prices(mechanism: Mechanism, book: Book) -> list[int | None]:
    """Return what each offer pays, None if it is refused."""
    clearing = clearing_of(mechanism, book, 1)
    cleared = zip(clearing.core.tolist(), clearing.price.tolist(), strict=True)
    return [None if core == NO_CORE else price for core, price in cleared]
