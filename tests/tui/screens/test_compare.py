"""Compare: runs side by side."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, SelectionList, Static

from scenarios.logs.run_state import RunState
from scenarios.running.steering import Start
from support.screens import painted, until, watching
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.export_dialog import ExportDialog
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog
from tui.state.compared_runs import caveats, common_rounds, compare, groups, name_of, original
from tui.state.watched_run import Session
from tui.widgets.comparison import CompareTable
from tui.widgets.plot import Plot

Play = Callable[..., Session]


@asynccontextmanager
async def comparing(
    app: MarketApp, sessions: Sequence[Session], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[None], CompareScreen]]:
    async with app.run_test(size=size) as pilot:
        screen = CompareScreen(sessions, app)
        app.push_screen(screen)
        await pilot.pause()
        yield pilot, screen


def status(screen: CompareScreen) -> str:
    return str(screen.query_one("#compare-status", Static).render())


def two(play: Play, text: str, *, rounds: int | None = None, state: RunState = RunState.COMPLETE) -> list[Session]:
    return [play(text), play(text.replace('"lcfa"', '"d-first"'), rounds=rounds, state=state)]


def test_differences_from_the_baseline(play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text)
    sessions[1].policy = "d-first"
    shown = groups(sessions)
    rows = compare(sessions, [12, 12], shown, 0)
    assert [(row.service, row.group) for row in rows] == [(s, r) for s in ("alpha", "beta", "gamma") for r in (0, 1)]
    base, other = rows[2], rows[3]
    assert base.differences == {}
    assert other.policy == "d-first"
    for measure in ("final accuracy", "spent"):
        one, two_ = (row.means[measure].interval.estimate for row in (base, other))
        assert other.differences[measure].interval.estimate == two_ - one
        [back] = [row.differences[measure] for row in compare(sessions, [12, 12], shown, 1)[2:3]]
        assert back.interval.estimate == one - two_
    spent = sum(logged.services[1].spent for logged in sessions[0].history) / 1e6
    assert base.means["spent"].interval.estimate == pytest.approx(spent)
    assert {row.group for row in compare(sessions, [12, 0], shown, 0)} == {0}  # one has no round yet


def test_names_what_makes_a_comparison_unfair(play_small: Play, scenario_text: str) -> None:
    one, other = two(play_small, scenario_text)
    assert caveats([one, other]) == []
    other.seed, other.hash8 = 2, "11111111"
    assert caveats([one, other]) == [
        "different markets (settings, sweep values or interventions)",
        "different seeds: part of the difference is chance",
    ]
    one.version, other.version = "0.1.0", "0.2.0"
    assert caveats([one, other])[-1] == "played by flmarket 0.1.0 and 0.2.0: part of the difference may come from that"
    one.kernels, other.kernels = {"alpha": "fused"}, {"alpha": "reference"}
    assert caveats([one, other])[-1] == "trained in different arithmetic: part of the difference comes from that"


@pytest.mark.parametrize(
    ("rounds", "state", "words"), [(None, RunState.COMPLETE, "never"), (5, RunState.PAUSED, "not yet")]
)
async def test_a_target_that_was_missed_is_never_met_once_the_run_is_complete(
    app: MarketApp, play_small: Play, scenario_text: str, rounds: int | None, state: RunState, words: str
) -> None:
    far = re.sub(r"target_accuracy = [0-9.]+", "target_accuracy = 0.999", scenario_text)
    session = play_small(far, rounds=rounds, state=state)
    async with comparing(app, [session, session]) as (_, screen):
        table = screen.query_one(CompareTable)
        assert {str(table.cells(row)[6]) for row in range(table.count)} == {words}


async def test_every_key(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text, rounds=5, state=RunState.PAUSED)
    async with comparing(app, sessions) as (pilot, screen):
        table = screen.query_one(CompareTable)
        assert table.count == 6
        assert "round 5" in status(screen)
        await pilot.press("l")  # each at its own latest
        assert "round 12" in status(screen)
        await pilot.press("v", "tab", "tab")
        assert (screen.metric, screen.service) == ("reward", 2)
        await pilot.press("b")
        assert "round 5 ⏸ paused (baseline)" in status(screen)
        await pilot.press("space")  # none of them is a process of ours
        assert [note.message for note in app._notifications] == [
            "None of these runs is played by this app, so there is nothing to pause."
        ]
        await pilot.press("down", "enter")
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.session is sessions[1]


async def test_an_open_run_is_compared_with_another(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    one, other = two(play_small, scenario_text)
    async with app.run_test(size=(120, 40)) as pilot:
        app.runs.sessions += [one, other]
        app.push_screen(MarketScreen(one, app))
        await pilot.pause()
        await pilot.press("c")
        dialog = app.screen
        dialog.query_one("#go", Button).press()
        await pilot.pause()
        assert "mark at least one run with space" in str(dialog.query_one(".problem", Static).render())
        dialog.query_one(SelectionList).select("open:1")
        dialog.query_one("#go", Button).press()
        await pilot.pause()
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.sessions == [one, other]


def test_an_interrupted_run_is_compared_at_its_last_round(play_small: Play, scenario_text: str) -> None:
    whole, part = two(play_small, scenario_text, rounds=5, state=RunState.INTERRUPTED)
    assert common_rounds([whole, part]) == [5, 5]
    assert caveats([whole, part]) == ["as-configured: interrupted after round 5"]
    part.state = RunState.FAILED
    assert common_rounds([whole, part]) == [5, 5]
    assert caveats([whole, part]) == ["as-configured: failed after round 5"]


def test_a_run_whose_services_have_all_left_counts_with_its_last_round(play_small: Play, scenario_text: str) -> None:
    easy = play_small(scenario_text.replace("= 0.95", "= 0.3").replace("= 0.9\n", "= 0.3\n"))
    last = len(easy.history)
    assert last < 12
    assert common_rounds([easy, play_small()]) == [last, 12]
    easy.state = RunState.INTERRUPTED
    assert common_rounds([easy, play_small()]) == [last, last]


def test_a_run_without_rounds_keeps_nobody_back(play_small: Play) -> None:
    assert common_rounds([play_small(rounds=0, state=RunState.WAITING), play_small()]) == [0, 12]
    assert common_rounds([play_small(rounds=0, state=RunState.FAILED), play_small(rounds=4)]) == [0, 4]
    assert common_rounds([]) == []


def forked(play: Play, text: str) -> tuple[Session, Session]:
    """A fork and its original."""
    intervention = '[[interventions]]\nround = 4\nkey = "clients.offline"\nvalue = [3, 7]\n'
    fork, original = play(text + intervention), play(text)
    fork.hash8, fork.hurry = "11111111", 3
    return fork, original


def test_a_fork_has_the_name_of_its_intervention_and_its_original_beside_it(
    play_small: Play, scenario_text: str
) -> None:
    sessions = forked(play_small, scenario_text)
    names = [name_of(session, sessions) for session in sessions]
    assert names == ["clients.offline = [3, 7] from round 4", "as-configured"]
    assert caveats(sessions) == ["the same market until the intervention in round 4"]
    assert original(sessions) == 1
    sessions[0].hurry = 0  # opened again from its directory
    assert original(sessions) == 1
    assert original([play_small(), play_small(seed=2)]) == 0


def test_a_fork_s_name_begins_with_the_service_so_that_its_value_is_seen(play_small: Play, scenario_text: str) -> None:
    intervention = '[[interventions]]\nround = 4\nkey = "services.alpha.budget"\nvalue = 7\n'
    sessions = play_small(scenario_text + intervention), play_small(scenario_text)
    sessions[0].hash8 = "11111111"
    assert name_of(sessions[0], sessions) == "alpha.budget = 7 from round 4"


async def test_the_original_is_the_baseline_until_another_is_chosen(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    async with comparing(app, forked(play_small, scenario_text), (160, 48)) as (pilot, screen):
        words = status(screen)
        assert "2 as-configured · round 12 ✔ complete (baseline)" in words
        assert "the same market until the intervention in round 4" in words
        assert "clients.offline = [3, 7] from round 4" in str(screen.query_one(CompareTable).cell(0, "run"))
        await pilot.press("b")
        assert "from round 4 · round 12 ✔ complete (baseline)" in status(screen)


async def test_in_a_small_terminal_forks_are_told_apart_and_each_run_has_its_state(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    async with comparing(app, forked(play_small, scenario_text), (80, 24)) as (_, screen):
        assert "1 round 12 ✔  2 round 12 ✔ (baseline)" in status(screen)
        assert re.search(r"1 +clients.offline.*… +alpha", painted(app))


async def test_the_plot_has_the_target_of_the_service(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    async with comparing(app, two(play_small, scenario_text)) as (pilot, screen):
        assert [level[:2] for level in screen.query_one(Plot)._levels] == [(50.0, "50")]
        await pilot.press("v")
        assert not screen.query_one(Plot)._levels


async def test_differences_have_a_plot_of_their_own_where_there_is_room(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    async with comparing(app, two(play_small, scenario_text), (120, 40)) as (pilot, screen):
        values, differences = screen.query(Plot)
        await pilot.press("tab", "tab")
        assert differences.display
        of = [curve.ys for curve in values._curves]
        base, other = (curve.ys for curve in differences._curves)
        assert not base.any()
        assert other.any()
        assert list(other) == pytest.approx(list(of[1] - of[0]))
        await pilot.press("b")
        assert "difference from 2 " in str(differences.border_title)
        assert list(differences._curves[0].ys) == pytest.approx(list(of[0] - of[1]))
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not differences.display
        assert re.search(r"accuracy % +Δ ", painted(app))


@pytest.mark.parametrize("size", [(80, 24), *slow(((120, 36),), ((200, 60),))])
async def test_means_over_seeds(app: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int]) -> None:
    sessions = [play_small(text, seed=seed) for text in (scenario_text,) for seed in range(3)]
    other = scenario_text.replace('"random"', '"d-first"')
    for seed in range(3):
        sessions.append(play_small(other, seed=seed))
        sessions[-1].policy = "d-first"
    async with comparing(app, sessions, size) as (pilot, screen):
        table = screen.query_one(CompareTable)
        assert table.count == 6
        words = status(screen)
        assert "means over 3 seeds, with 95 % intervals" in words
        first = "1 round 12 ✔" if size[0] == 80 else "1 as-configured · 3 seeds · round 12 ✔ complete"
        assert f"{first} (baseline)" in words
        assert "different seeds" not in words
        cell = str(table.cell(5, "final accuracy"))
        assert re.fullmatch(r"\d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\]", cell)
        await pilot.press("s")
        assert table.count == 18
        assert "different seeds" in status(screen)
        await pilot.press("s", "enter")  # a row of means opens into its runs
        assert table.count == 18
        await pilot.press("enter")
        assert isinstance(app.screen, MarketScreen)


async def test_runs_that_wait_join_their_group_when_they_begin(app: MarketApp, play_small: Play) -> None:
    sessions = [play_small(rounds=4, state=RunState.RUNNING, seed=seed) for seed in range(2)]
    later = Session("small · as-configured · seed 2")
    later.move(RunState.WAITING)
    async with comparing(app, [*sessions, later], (160, 48)) as (pilot, screen):
        words = status(screen)
        assert "means over 2 seeds, no intervals for fewer than 3 seeds; 1 run to begin" in words
        assert screen.query_one(CompareTable).count == 3
        await pilot.press("b")  # there is one group alone
        assert screen.baseline == 0
        await pilot.press("s")
        assert "3 small · as-configured · seed 2 · round 0 … waiting" in str(
            screen.query_one("#compare-status", Static).render()
        )


async def test_a_picture_is_saved_where_the_user_says(
    app: MarketApp, play_small: Play, scenario_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))  # which has no Downloads
    async with comparing(app, two(play_small, scenario_text)) as (pilot, _):
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ExportDialog), "the dialog")
        path = app.screen.query_one("#path", Input)
        assert path.value == "comparison.svg"
        path.value = str(tmp_path / path.value)
        await pilot.press("enter")
        await until(pilot, (tmp_path / "comparison.svg").exists, "the picture")
    text = (tmp_path / "comparison.svg").read_text()
    assert "accuracy" in text
    assert "Cancel" not in text  # it is of the comparison, not of the dialog


async def test_another_policy_now_is_the_open_run_of_it(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        text, out = (small / "small.toml").read_text(), str(small / "runs")
        own = app.runs.start(Start(text, "small.toml", out, paused=True), "own")
        other = app.runs.start(Start(text, "small.toml", out, "hqfa", paused=True), "hqfa")
        await until(pilot, lambda: own.state is other.state is RunState.PAUSED, "both runners")
        app.push_screen(MarketScreen(own, app))
        await pilot.pause()
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PickRunsDialog), "the dialog")
        app.screen.query_one(SelectionList).select("policy:hqfa")
        app.screen.query_one("#go", Button).press()
        await until(pilot, lambda: isinstance(app.screen, CompareScreen), "the comparison")
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.sessions == [own, other]
        assert app.runs.sessions == [own, other]


async def test_the_dialog_lists_every_run(app: MarketApp, play_small: Play, small: Path) -> None:
    for seed in range(250):
        place = small / "runs" / "other-00000000" / "as-configured" / f"seed-{seed:04d}"
        place.mkdir(parents=True)
        (place / "scenario.toml").touch()
    async with app.run_test(size=(120, 40)) as pilot:
        session = play_small(rounds=0, state=RunState.WAITING)
        session.directory = session.scenario = None
        app.push_screen(PickRunsDialog(session, app.runs, app.out))
        await pilot.pause()
        assert app.screen.query_one(SelectionList).option_count == 250


async def test_a_fork_is_compared_with_its_original_by_two_keys(app: MarketApp, play_small: Play) -> None:
    session, fork = play_small(), play_small()
    fork.origin = session
    app.runs.sessions += [session, fork]
    async with watching(app, fork) as (pilot, _):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PickRunsDialog), "the dialog")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen), "the comparison")
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.sessions == [fork, session]
