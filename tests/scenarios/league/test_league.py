"""Games of a league: who plays whom, once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fl.errors import InputError
from learning.evaluation import evaluate, everywhere, lineup
from learning.intervals import mean_interval
from scenarios.build import Shelf
from scenarios.league import playing
from scenarios.league.crossplay import cells
from scenarios.league.league import Game, League
from scenarios.league.playing import play_games
from scenarios.league.record import Record
from scenarios.loader import load

MakeLeague = Callable[..., League]


def played(league: League, folder: Path, *, jobs: int = 1) -> Record:
    record = Record(folder, league, league.identity(Shelf()))
    play_games(league, league.games(), record, Shelf(), jobs=jobs)
    return record


def test_every_policy_visits_every_seat_among_every_other_one(small_league: MakeLeague) -> None:
    games = list(small_league("hqfa", "lcfa", seeds=[4]).games())
    seats = ["mnist", "fashion-mnist", "emnist"]
    assert games == [
        Game("hqfa", "hqfa", "", 4),
        *(Game("lcfa", "hqfa", seat, 4) for seat in seats),
        Game("lcfa", "lcfa", "", 4),
        *(Game("hqfa", "lcfa", seat, 4) for seat in seats),
    ]


def test_payoffs_and_gains_are_those_of_the_runs(small_league: MakeLeague, tmp_path: Path) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0, 1, 2, 3])
    auc = played(league, tmp_path).auc
    factory, services = league.factory(Shelf()), league.services
    entrants = {"all": everywhere("lcfa")} | {
        seat: lineup({**dict.fromkeys(services, "lcfa"), seat: "hqfa"}) for seat in services
    }
    expected = evaluate(factory, entrants, league.seeds).auc()
    visits = np.array([expected[1 + m, :, m] for m in range(len(services))]).T
    found = {(it.visitor, it.resident): it for it in cells(league, auc, league.policies, league.policies)}
    assert found["hqfa", "lcfa"].payoff == mean_interval(visits.mean(axis=1))
    gain = mean_interval(visits.mean(axis=1) - expected[0].mean(axis=1))
    assert found["hqfa", "lcfa"].gain.estimate == pytest.approx(gain.estimate)
    assert found["hqfa", "lcfa"].gain.low == pytest.approx(gain.low)
    assert found["lcfa", "lcfa"].gain.estimate == 0


def test_what_has_been_played_is_not_played_again(
    small_league: MakeLeague, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    league = small_league("hqfa", "lcfa")
    whole = played(league, tmp_path / "a").auc
    games = tmp_path / "a" / "games.csv"
    lines = games.read_text().splitlines(keepends=True)
    games.write_text("".join(lines[:8]) + lines[8][:-5])  # killed in the middle of a line
    again: list[Game] = []
    true = playing._play
    monkeypatch.setattr(playing, "_play", lambda *args, **how: again.append(args[1]) or true(*args, **how))
    assert played(league, tmp_path / "a").auc == whole
    assert 0 < len(again) < len(list(league.games()))
    assert sorted(games.read_text().splitlines()) == sorted("".join(lines).splitlines())
    again.clear()
    played(small_league("hqfa", "lcfa", "random"), tmp_path / "a")
    assert {game for game in again if "random" not in game} == set()


def test_a_folder_of_another_league_is_refused(small_league: MakeLeague, tmp_path: Path) -> None:
    played(small_league("hqfa", "lcfa", seeds=[0]), tmp_path / "a")
    with pytest.raises(InputError, match=r"holds games of another league: market is not the same; choose another"):
        played(small_league("hqfa", "lcfa", seeds=[0], rounds=7), tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "games.csv").write_text("round,game\n")
    with pytest.raises(
        InputError, match=r"games\.csv: without league\.json it does not say which league's it is; choo"
    ):
        played(small_league("hqfa", "lcfa", seeds=[0]), tmp_path / "b")


@pytest.mark.parametrize(
    ("auc", "problem"),
    [
        ("nan", r"games\.csv:2: 'nan' is no accuracy"),
        ("7.5", r"games\.csv:2: '7.5' is no accuracy"),
        ("much", r"games\.csv:2: 'much' is no accuracy; remove the line"),
        (None, r"games\.csv:\d+: an earlier line says otherwise; remove the line"),
    ],
)
def test_games_that_nobody_can_have_played_are_refused(
    auc: str | None, problem: str, small_league: MakeLeague, tmp_path: Path
) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0])
    played(league, tmp_path)
    games = tmp_path / "games.csv"
    head, first, *rest = games.read_text().splitlines()
    changed = f"{first.rpartition(',')[0]},{auc or 0.125}"
    lines = [head, changed, *rest] if auc else [head, first, *rest, changed]
    games.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=problem):
        played(league, tmp_path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("hqfa,lcfa,mnits,0,0.5", "'mnits' is no seat of this league; did you mean 'mnist'"),
        ("hqfb,lcfa,mnist,0,0.5", "'hqfb' is no policy of this league; did you mean 'hqfa'"),
        ("hqfa,lcfa,mnist,x,0.5", "'x' is no seed"),
        ("hqfa,lcfa,mnist,0.5", "has 4 values, not 5"),
        ("x" * 200_000, "has 1 values, not 5"),
    ],
)
def test_games_that_this_league_cannot_have_are_refused(
    line: str, problem: str, small_league: MakeLeague, tmp_path: Path
) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0])
    played(league, tmp_path)
    with (tmp_path / "games.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=rf"games\.csv:\d+: {problem}"):
        played(league, tmp_path)


def test_a_description_nested_too_deeply_is_refused(small_league: MakeLeague, tmp_path: Path) -> None:
    (tmp_path / "league.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"league\.json: cannot be read"):
        played(small_league("hqfa", "lcfa", seeds=[0]), tmp_path)


def test_games_of_an_unknown_market_are_refused(small_league: MakeLeague, tmp_path: Path) -> None:
    league = small_league("hqfa", "lcfa", seeds=[0])
    played(league, tmp_path)
    (tmp_path / "league.json").write_text("{}")
    with pytest.raises(InputError, match=r"league\.json: has no 'flmarket', so it does not say what its games are of"):
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
