"""Games of a league: who plays whom, once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flmarket.benchmark.league import record
from flmarket.benchmark.league.league import Game, League, Standing
from flmarket.benchmark.league.record import play_league
from flmarket.core.errors import InputError
from learning.evaluation import evaluate, everywhere, lineup
from learning.statistics.intervals import mean_interval
from scenarios.build import Shelf
from scenarios.loader import load

MakeLeague = Callable[..., League]


def played(league: League, folder: Path) -> Standing:
    return play_league(league, folder)


def test_every_policy_visits_every_seat_among_every_other_one(small_league: MakeLeague) -> None:
    games = list(small_league("hqfa", "lcfa", seeds=[4]).games())
    seats = ["mnist", "fashion-mnist", "emnist"]
    assert games == [
        Game("hqfa", "hqfa", "", 4),
        *(Game("lcfa", "hqfa", seat, 4) for seat in seats),
        Game("lcfa", "lcfa", "", 4),
        *(Game("hqfa", "lcfa", seat, 4) for seat in seats),
    ]


@pytest.mark.slow
def test_payoffs_and_gains_are_those_of_the_runs(small_league: MakeLeague, tmp_path: Path) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0, 1, 2, 3])
    cells = played(league, tmp_path).cells
    services = league.services
    entrants = {"all": everywhere("lcfa")} | {
        seat: lineup({**dict.fromkeys(services, "lcfa"), seat: "hqfa"}) for seat in services
    }
    expected = evaluate(league.factory(Shelf()), entrants, league.seeds).auc()
    visits = np.array([expected[1 + m, :, m] for m in range(len(services))]).T
    assert cells["hqfa", "lcfa"].payoff == mean_interval(visits.mean(axis=1))
    gain = mean_interval(visits.mean(axis=1) - expected[0].mean(axis=1))
    assert cells["hqfa", "lcfa"].gain.estimate == pytest.approx(gain.estimate)
    assert cells["hqfa", "lcfa"].gain.low == pytest.approx(gain.low)
    assert cells["lcfa", "lcfa"].gain.estimate == 0


@pytest.mark.slow
def test_games_that_the_folder_holds_are_not_played_again(
    small_league: MakeLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    league = small_league("hqfa", "lcfa")
    whole = played(league, tmp_path)
    games = tmp_path / "games.csv"
    text = games.read_text()
    lines = text.splitlines(keepends=True)
    games.write_text("".join(lines[:8]) + lines[8][:-5])  # killed in the middle of a line
    again: list[Game] = []
    true = record._play
    monkeypatch.setattr(record, "_play", lambda *args: again.append(args[2]) or true(*args))
    assert played(league, tmp_path).cells == whole.cells
    assert 0 < len(again) < len(list(league.games()))
    assert games.read_text() == text
    again.clear()
    played(small_league("hqfa", "lcfa", "random"), tmp_path)
    assert {game for game in again if "random" not in game} == set()


def test_a_folder_of_another_league_is_refused(small_league: MakeLeague, tmp_path: Path) -> None:
    played(small_league("hqfa", "lcfa", seeds=[0]), tmp_path)
    with pytest.raises(InputError, match=r"holds games of another league: market differs; choose another folder"):
        played(small_league("hqfa", "lcfa", seeds=[0], rounds=7), tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("games.csv", "round,game\n1,2\n", "cannot be read as the games of a league"),
        ("games.csv", "visitor,resident,seat,seed,auc\na,b,mnist,0,much\n", "cannot be read as the games of a league"),
        ("league.json", "[" * 9, "cannot be read"),
        ("league.json", "3", "cannot be read"),
        ("league.json", None, "cannot be read: .*No such file"),
    ],
)
def test_a_file_of_something_else_is_named(
    name: str, content: str | None, problem: str, small_league: MakeLeague, tmp_path: Path
) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0])
    played(league, tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=rf"{name}: {problem}.*; choose another folder"):
        played(league, tmp_path)


def test_what_cannot_be_a_league() -> None:
    surrogate = {"training.backend": "surrogate"}
    with pytest.raises(InputError, match=r"varies clients\.cores; give one value"):
        League.of(load("paper-cores", surrogate), ["hqfa", "lcfa"], [0])
    change = {"round": 3, "key": "market.mechanism", "value": "vcg"}
    with pytest.raises(InputError, match=r"a league cannot follow a change of market\.mechanism in round 3"):
        League.of(load("paper", {**surrogate, "interventions": [change]}), ["hqfa", "lcfa"], [0])
    scenario = load("paper", surrogate)
    alone = scenario.model_copy(update={"services": scenario.services[:1]})
    with pytest.raises(InputError, match="a league needs rivals, but scenario 'paper' has one service"):
        League.of(alone, ["hqfa", "lcfa"], [0])
