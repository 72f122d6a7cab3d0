"""Best responses: the rule plays the market itself, and what is found holds on other seeds."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from des.market import Market
from des.money import MICRO, to_micro
from des.records import Observation, Offer
from fl.errors import InputError
from learning.evaluation import evaluate
from learning.policy import Policy, PolicyContext
from learning.seats import seat
from scenarios.build import Shelf
from scenarios.league.exploits import Responses, require_lockstep
from scenarios.league.league import League
from scenarios.league.response import Response, Search, respond, training_seeds, visit
from scenarios.league.rule import NAMES, STARTS, WIDTH, Seen, Weights, offers
from scenarios.league.standing import play_league
from support.tiers import slow

MakeLeague = Callable[..., League]


class Rule(Policy):
    """The rule, as a policy that plays in any market."""

    def __init__(self, context: PolicyContext, weights: Weights) -> None:
        super().__init__(context)
        self.weights = weights

    def act(self, observation: Observation) -> Offer:
        seen = Seen(
            dqi=observation.dqi[None],
            bids=to_micro(observation.bids)[None],
            seats=np.array([observation.services.index(observation.service)]),
            available=observation.available[None],
            clients=np.ones((1, observation.clients), dtype=np.bool_),
            budget=np.array([int(to_micro(observation.budget))]),
            cores=np.array([observation.cores]),
            time=np.array([(observation.round - 1) / observation.rounds]),
        )
        _, client, payment = offers(self.weights, seen)
        return Offer(client, payment / MICRO)


@pytest.mark.parametrize(
    "settings", [{}, {"market.bids": "own", "clients.cores": 1}, *slow({"market.mechanism": "vcg"})]
)
def test_what_the_rule_gets_in_lockstep_is_what_it_gets_as_a_policy(
    small_league: MakeLeague, settings: dict[str, object]
) -> None:
    league = small_league("hqfa", "oracle", seeds=[7, 8], **settings)
    rng = np.random.default_rng(0)
    points = np.array([[getattr(STARTS["outbid"], name) for name in NAMES], rng.normal(size=WIDTH) / 2])
    for resident in ("hqfa", "oracle"):
        found = visit(league, resident, points, league.seeds, league.factory(Shelf()))
        for p, point in enumerate(points):
            for m, service in enumerate(league.services):

                def seats(
                    market: Market, service: str = service, resident: str = resident, point: np.ndarray = point
                ) -> Mapping[str, Policy]:
                    policies = seat(market, dict.fromkeys(league.services, resident))
                    market.seat(service, "rule", privileged=False)
                    return {**policies, service: Rule(policies[service].context, Weights.of(point))}

                alone = evaluate(league.factory(Shelf()), {"rule": seats}, league.seeds).auc()
                assert found[p, :, m].tolist() == alone[0, :, m].tolist()


@pytest.mark.slow
def test_a_response_to_weak_residents_gains_on_seeds_that_it_has_not_seen(
    small_league: MakeLeague, tmp_path: Path
) -> None:
    league = small_league("lcfa", "hqfa", seeds=[0, 1, 2, 3], beside=["oracle"])
    search = Search(generations=2, population=6, markets=1)
    standing = play_league(league, tmp_path, Shelf(), exploited=["lcfa"], search=search)
    (found,) = standing.exploits
    assert found.gain.low > 0
    assert found.gain.estimate >= found.visitor.gain.estimate - 0.02
    assert found.payoff.estimate == pytest.approx(found.own.estimate + found.gain.estimate)
    (again,) = play_league(league, tmp_path, Shelf(), exploited=["lcfa"], search=search).exploits
    assert again == found


def test_the_same_seed_finds_the_same_response_and_another_one_another(small_league: MakeLeague) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0])
    factory = league.factory(Shelf())
    told: list[str] = []
    search = Search(generations=2, population=4, markets=1)
    one = respond(league, "hqfa", factory, search, told.append)
    assert respond(league, "hqfa", factory, search) == one
    assert respond(league, "hqfa", factory, Search(2, 4, 1, seed=1)) != one
    assert [line.partition(",")[0] for line in told] == ["hqfa: generation 1 of 2", "hqfa: generation 2 of 2"]
    everything = [seed for number in range(5) for seed in training_seeds(search, "hqfa", number)]
    assert len(set(everything)) == 5
    assert min(everything) > 10**9  # no seed of a command is so large


def test_responses_are_kept_and_read(tmp_path: Path) -> None:
    search = Search(1, 2, 3, 4)
    found = Response(tuple(0.1 * number for number in range(WIDTH)), 0.7)
    assert Responses(tmp_path).get("hqfa", search, lambda: found) == found
    again = Responses(tmp_path)
    assert again.get("hqfa", search, lambda: pytest.fail("it is known")) == found
    other = Response((1.0,) * WIDTH, 0.5)
    assert again.get("hqfa", Search(1, 2, 3, 5), lambda: other) == other
    (tmp_path / "responses.csv").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"responses\.csv:1: is not a league's"):
        Responses(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.rpartition(",")[0],  # a weight is missing
        lambda line: f"{line},5",
        lambda line: f"{line.rpartition(',')[0]},nan",
        lambda line: f"{line.rpartition(',')[0]},1e300",
        lambda line: line.replace("hqfa,1,", "hqfa,one,"),
        lambda line: "x" * 200_000,
    ],
)
def test_responses_that_no_search_can_have_found_are_refused(change: Callable[[str], str], tmp_path: Path) -> None:
    Responses(tmp_path).get("hqfa", Search(1, 2, 3, 4), lambda: Response((0.5,) * WIDTH, 0.7))
    head, line = (tmp_path / "responses.csv").read_text().splitlines()
    (tmp_path / "responses.csv").write_text(f"{head}\n{change(line)}\n")
    with pytest.raises(InputError, match=r"responses\.csv:2: is no best response: .*; remove the line"):
        Responses(tmp_path)


def test_responses_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    Responses(tmp_path).get("hqfa", Search(1, 2, 3, 4), lambda: Response((0.5,) * WIDTH, 0.7))
    with (tmp_path / "responses.csv").open("a") as file:
        file.write("hqfa,1,2,3,4,0.7" + ",0.25" * WIDTH + "\n")
    with pytest.raises(InputError, match=r"responses\.csv:3: an earlier line says otherwise; remove the line"):
        Responses(tmp_path)


def test_what_another_process_found_meanwhile_is_kept(tmp_path: Path) -> None:
    one, other = Responses(tmp_path), Responses(tmp_path)
    found = Response((0.5,) * WIDTH, 0.7)
    one.get("hqfa", Search(), lambda: found)
    other.get("lcfa", Search(), lambda: found)
    assert Responses(tmp_path).get("hqfa", Search(), lambda: pytest.fail("it was lost")) == found


def test_where_nothing_can_be_searched_for(small_league: MakeLeague) -> None:
    with pytest.raises(
        InputError, match=r"takes offers in \d steps a round .*; leave it out: the cross-play is played"
    ):
        require_lockstep(small_league("hqfa", "lcfa", **{"market.mechanism": "iterated"}), Shelf())
    with pytest.raises(InputError, match=r'add --set training\.backend="surrogate", or leave --exploit out'):
        require_lockstep(small_league("hqfa", "lcfa", **{"training.backend": "real"}), Shelf())
