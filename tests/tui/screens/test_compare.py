"""Compare: runs side by side, and those that differ in their seed alone: means, intervals, paired differences."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from textual.widgets import Button, Input, SelectionList

from learning.statistics.intervals import paired_interval
from scenarios.logs.reading import StoredRounds
from scenarios.logs.run_state import RunState
from scenarios.running.steering import Start
from support.screens import Play, notes, painted, rendered, screen_of, showing, text_of, until
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.export_dialog import ExportDialog
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import PickRunsDialog
from tui.state.compared_runs import (
    band_series,
    caveats,
    common_rounds,
    compare,
    difference_series,
    groups,
    mean_series,
    name_of,
    original,
    parting,
)
from tui.state.watched_run import Session
from tui.style.colors import sign, tint
from tui.style.formats import told_apart
from tui.widgets.comparison import DELTA, CompareTable
from tui.widgets.plot import DASH, PLAYHEAD, Plot


def status(screen: CompareScreen) -> str:
    return rendered(screen, "#compare-status")


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
    async with showing(app, CompareScreen([session, session], app)) as (_, screen):
        table = screen.query_one(CompareTable)
        assert {str(table.cells(row)[6]) for row in range(table.count)} == {words}


async def test_every_key(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text, rounds=5, state=RunState.PAUSED)
    async with showing(app, CompareScreen(sessions, app)) as (pilot, screen):
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
        assert notes(app) == ["None of these runs is played by this app, so there is nothing to pause."]
        await pilot.press("down", "enter")
        assert isinstance(app.screen, MarketScreen)
        assert app.screen.session is sessions[1]


@pytest.mark.slow
async def test_the_dialog_lists_every_run_to_compare(
    app: MarketApp, play_small: Play, scenario_text: str, small: Path
) -> None:
    for seed in range(250):
        place = small / "runs" / "other-00000000" / "as-configured" / f"seed-{seed:04d}"
        place.mkdir(parents=True)
        (place / "scenario.toml").touch()
    empty, [one, other], fork = Session("empty"), two(play_small, scenario_text), play_small()
    async with showing(app, PickRunsDialog(empty, app.runs, app.out)) as (pilot, dialog):
        assert dialog.query_one(SelectionList).option_count == 250
        await pilot.press("escape")
        fork.origin = one
        app.runs.sessions += [one, other, fork]
        app.push_screen(MarketScreen(one, app))
        await pilot.pause()
        await pilot.press("c")
        dialog = await screen_of(pilot, PickRunsDialog)
        dialog.query_one("#go", Button).press()
        await pilot.pause()
        assert "mark at least one run with space" in rendered(dialog, ".problem")
        dialog.query_one(SelectionList).select("open:1")
        dialog.query_one("#go", Button).press()
        assert (await screen_of(pilot, CompareScreen)).sessions == [one, other]
        # A fork is compared with its original by two keys.
        app.push_screen(MarketScreen(fork, app))
        await pilot.pause()
        await pilot.press("c")
        await screen_of(pilot, PickRunsDialog)
        await pilot.press("enter")
        await until(pilot, lambda: getattr(app.screen, "sessions", []) == [fork, one], "the comparison")


def test_a_run_without_rounds_keeps_nobody_back_and_one_that_has_ended_counts(
    play_small: Play, scenario_text: str
) -> None:
    assert common_rounds([play_small(rounds=0, state=RunState.WAITING), play_small()]) == [0, 12]
    assert common_rounds([play_small(rounds=0, state=RunState.FAILED), play_small(rounds=4)]) == [0, 4]
    assert common_rounds([]) == []
    whole, part = two(play_small, scenario_text, rounds=5, state=RunState.INTERRUPTED)
    assert common_rounds([whole, part]) == [5, 5]
    assert caveats([whole, part]) == ["as-configured: interrupted after round 5"]
    part.state = RunState.FAILED
    assert common_rounds([whole, part]) == [5, 5]
    assert caveats([whole, part]) == ["as-configured: failed after round 5"]
    easy = play_small(scenario_text.replace("= 0.95", "= 0.3").replace("= 0.9\n", "= 0.3\n"))
    last = len(easy.history)
    assert last < 12
    assert common_rounds([easy, play_small()]) == [last, 12]
    easy.state = RunState.INTERRUPTED
    assert common_rounds([easy, play_small()]) == [last, last]
    # An interrupted run is compared at its last round.
    # A run whose services have all left counts with its last round.


def forked(play: Play, text: str, rounds: int | None = None) -> tuple[Session, Session]:
    """A fork and its original, which has so many rounds."""
    intervention = '[[interventions]]\nround = 4\nkey = "clients.offline"\nvalue = [3, 7]\n'
    fork, original = play(text + intervention), play(text, rounds=rounds)
    fork.hash8, fork.hurry = "11111111", 3
    return fork, original


def test_a_fork_has_its_interventions_name_and_its_original_beside_it(play_small: Play, scenario_text: str) -> None:
    sessions = forked(play_small, scenario_text)
    names = [name_of(session, sessions) for session in sessions]
    assert names == ["clients.offline = [3, 7] from round 4", "as-configured"]
    assert caveats(sessions) == ["the same market until the intervention in round 4"]
    assert original(sessions) == 1
    sessions[0].hurry = 0  # opened again from its directory
    assert original(sessions) == 1
    assert original([play_small(), play_small(seed=2)]) == 0
    # It begins with the service so that its value is seen.
    intervention = '[[interventions]]\nround = 4\nkey = "services.alpha.budget"\nvalue = 7\n'
    sessions = play_small(scenario_text + intervention), play_small(scenario_text)
    sessions[0].hash8 = "11111111"
    assert name_of(sessions[0], sessions) == "alpha.budget = 7 from round 4"
    # A fork s name begins with the service so that its value is seen.


async def test_an_original_is_the_baseline_and_forks_are_told_apart(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    async with showing(app, CompareScreen(forked(play_small, scenario_text), app), (160, 48)) as (pilot, screen):
        words = status(screen)
        assert "2 as-configured · round 12 ✔ complete (baseline)" in words
        assert "the same market until the intervention in round 4" in words
        assert "clients.offline = [3, 7] from round 4" in str(screen.query_one(CompareTable).cell(0, "run"))
        await pilot.press("b")
        assert "from round 4 · round 12 ✔ complete (baseline)" in status(screen)
        # In a small terminal forks are told apart and each run has its state.
        await pilot.press("b")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "1 clients.offline = [3…  2 as-configured (baseline)  · all: round 12 ✔ complete" in status(screen)
        assert re.search(r"1 +clients.offline.*… +alpha", painted(app))


async def test_a_fork_of_a_paused_original_says_why_nothing_differs_and_which_key_resumes_it(
    app: MarketApp, play_small: Play, scenario_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, paused = forked(play_small, scenario_text, 3)
    fork.state = RunState.RUNNING
    paused.state = RunState.PAUSED
    sent: list[tuple[Session, str]] = []
    async with showing(app, CompareScreen([fork, paused], app), (160, 48)) as (pilot, screen):
        assert status(screen).startswith(" All the same so far: the runs part in round 4\n")  # it is not of this app
        monkeypatch.setattr(app.runs, "steerable", lambda session: True)
        monkeypatch.setattr(app.runs, "send", lambda *command: sent.append(command))
        screen.draw()
        assert status(screen).startswith(
            " All the same so far: the runs part in round 4, before which as-configured is paused (space: resume)\n"
        )
        await pilot.press("space")
        assert sent == [(paused, "resume")]  # and the fork goes on
        await pilot.press("l")  # each at its latest round
        assert "All the same" not in status(screen)
        await pilot.press("space")
        assert sent[1:] == [(fork, "pause")]


def test_names_are_cut_where_they_agree() -> None:
    forks = [f"services.alpha.budget = {value} from round 4" for value in (7, 12, 125)]
    assert told_apart([*forks, "as-configured"], 24) == [
        "services…7 from round 4",
        "services…12 from round 4",
        "services…125 from round…",
        "as-configured",
    ]
    assert told_apart(forks, 60) == forks
    assert told_apart(["mahdrl-paper · 3 seeds", "hqfa · 3 seeds"], 16) == ["mahdrl-paper · …", "hqfa · 3 seeds"]
    versions = [f"agent-{'x' * 30}-{n}" for n in "ab"]
    assert [name[-1] for name in told_apart(versions, 20)] == ["a", "b"]


@pytest.mark.parametrize("policies", [3, 4, 9])
async def test_the_header_keeps_every_name(app: MarketApp, play_small: Play, policies: int) -> None:
    sessions = [play_small() for _ in range(policies)]
    names = [f"policy-{letter}" for letter in "abcdefghi"[:policies]]
    for session, name in zip(sessions, names, strict=True):
        session.policy = name
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        assert all(f" {n} {name} " in status(screen) for n, name in enumerate(names, start=1)), status(screen)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert all(f" {n} {name} " in status(screen) for n, name in enumerate(names, start=1)), status(screen)
        assert all(cell_len(line) <= 80 for line in status(screen).splitlines())
        assert status(screen).count("round 12 ✔") == (policies if policies < 9 else 1)  # said once of all
        sessions[0].move(RunState.INTERRUPTED)
        screen.draw()
        assert " 1 policy-a · round 12 ■ " in status(screen) or " 1 policy-a ■ (baseline) " in status(screen)
        assert policies < 9 or "· all: round 12" in status(screen)


async def test_a_small_terminal_has_the_whole_finding_and_each_name_state_and_difference(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    names, policies = ("mahdrl-paper", "mahdrl-mine", "linear-bidder", "stackelberg"), ("random", "hqfa", "lcfa")
    sessions = []
    for place, name in enumerate(names):
        for seed in range(place % 2, 4 + place % 2):
            sessions.append(play_small(scenario_text.replace('"random"', f'"{policies[place % 3]}"'), seed=seed))
            sessions[-1].policy = name
    async with showing(app, CompareScreen(sessions, app), (80, 24)) as (pilot, screen):
        await pilot.press("tab", "tab")
        shown = " ".join(painted(app).split())
        assert re.search(
            r"mahdrl-mine is ahead of mahdrl-paper by \S+ \[\S+ \S+\] points of AUC on gamma \(3 common seeds\) ", shown
        )
        assert "different seeds: part of the difference is chance" in shown
        assert all(f" {n} {name} · round 12 ✔ " in shown for n, name in enumerate(names, start=1))
        table = screen.query_one(CompareTable)
        for row in range(8):  # that are seen
            cells = [str(table.cell(row, DELTA * delta + "AUC")) for delta in (False, True)]
            assert " ".join([cells[0].split()[0], *cells[1:]]).strip() in shown, shown  # a mean's own interval has gone


async def test_the_axis_fits_the_later_half_and_intervals_are_uprights_at_the_end(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 3)
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        await pilot.press("tab", "tab")
        values, differences = screen.query(Plot)
        uprights, curves = ([it for it in values.curves if bool(it.sign) is named] for named in (False, True))
        for runs, upright, curve in zip((range(3), range(3, 6)), uprights, curves, strict=True):
            mean = mean_series([sessions[run] for run in runs], [12] * 3, "gamma", "test_accuracy")[1]
            _, low, high = band_series([sessions[run] for run in runs], [12] * 3, "gamma", "test_accuracy")
            assert list(upright.ys) == pytest.approx([100 * low[-1], 100 * high[-1]])
            assert upright.xs[0] == upright.xs[1] < 12
            assert curve.xs[-1] == 12
            assert list(curve.ys) == pytest.approx([100 * y for y in mean[-len(curve.ys) :]])
        assert uprights[0].xs[0] < uprights[1].xs[0]  # both are seen
        assert min(curve.xs[0] for curve in curves) > 1  # the first rounds are below the axis
        means = [mean_series([sessions[run] for run in runs], [12] * 3, "gamma", "test_accuracy")[1][5:]
                 for runs in (range(3), range(3, 6))]  # fmt: skip
        low, high = min(map(min, means)), max(map(max, means))
        [floor] = values._heights
        assert floor == pytest.approx(100 * (low - 0.1 * (high - low)))
        assert all(curve.ys.min() >= floor for curve in curves)
        # A target that is far above would make them flat.
        assert not values._levels
        assert str(values.border_title).startswith("gamma: test accuracy %, target 95 above (")
        await pilot.press("tab")
        assert [y for y, *_ in values._levels] == [50]  # that of alpha is near
        assert "target" not in str(values.border_title)
        await pilot.press("tab", "tab")
        # Where the terminal is wide, differences stand at the right.
        assert differences.region.y > values.region.y
        await pilot.resize_terminal(160, 24)
        await pilot.pause()
        assert differences.display
        assert differences.region.y == values.region.y
        assert differences.region.x > values.region.x


async def test_the_axis_of_differences_fits_the_later_half_too(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 3)
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        for service in screen.services:
            differences = screen.query(Plot).last()
            found = difference_series(sessions, [12] * 6, [3, 4, 5], [0, 1, 2], service, "test_accuracy")[1]
            low, high = min([0.0, *found[5:]]), max([0.0, *found[5:]])
            slack = (high - low) / 2
            outside = [n for n, y in enumerate(found, start=1) if not low - slack <= y <= high + slack]
            [curve] = [it for it in differences.curves if it.sign == "2"]
            begin = max(outside, default=0)
            assert list(curve.ys) == pytest.approx([100 * y for y in found[begin:]])
            assert curve.xs[0] == begin + 1
            assert begin or service != "alpha"  # all later differences are 0
            await pilot.press("tab")


async def test_a_fork_parts_from_its_original_at_a_mark_that_says_what_changed(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    change = '[[interventions]]\nround = 8\nkey = "services.gamma.budget"\nvalue = 2\n'
    whole, original = play_small(scenario_text + change), play_small(scenario_text)
    fork = play_small(scenario_text + change, rounds=5, state=RunState.RUNNING)
    fork.hash8 = "11111111"
    async with showing(app, CompareScreen([fork, original], app), (120, 40)) as (pilot, screen):
        # Until then the fork is played again, and the mark stands to the right of the curves.
        for plot in screen.query(Plot):
            assert PLAYHEAD + " round 8: gamma.budget = 2" in text_of(plot)
        for logged in list(whole.history)[5:10]:
            fork.add(logged.text)
            await pilot.pause(0.3)
            values = screen.query(Plot).first()
            ours, theirs = (dict(zip(it.xs, it.ys, strict=True)) for it in values.curves)
            at = len(fork.history)
            assert max(ours) == max(theirs) == at
            assert {7.0, float(at)} <= ours.keys() or at < 7  # the round before is seen, whatever follows
            assert all((ours[n] == theirs[n]) == (n < 8) for n in ours)
            shown = text_of(values)
            assert "round 8: gamma.budget = 2" in shown
            column = {line.index(PLAYHEAD, 6) for line in shown.splitlines()[1:-3] if PLAYHEAD in line[6:-1]}
            assert len(column) == 1
        assert not screen.query(Plot).last().curves[0].ys[0]
        assert screen.query(Plot).last().curves[0].ys[-1]


async def test_a_fork_that_has_not_begun_is_compared_with_its_original(app: MarketApp, play_small: Play) -> None:
    fork, run = Session("fork of small"), play_small()
    fork.origin = run
    async with showing(app, CompareScreen([fork, run], app), (120, 40)) as (_, screen):
        assert "2 as-configured · round 12 ✔ complete (baseline)" in status(screen)
        assert status(screen).startswith(" fork of small has no round yet")


async def test_runs_that_have_not_been_read_yet_are_waited_for(app: MarketApp) -> None:
    """Nothing is known of their services, as where Batch opens Compare and the files are still to be read."""
    async with showing(app, CompareScreen([Session("one"), Session("other")], app), (120, 40)) as (_, screen):
        assert screen.services == []
        assert "ahead" not in status(screen)


async def test_what_becomes_known_of_runs_while_they_are_drawn_waits_for_the_next_time(
    app: MarketApp, play_small: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are read in threads: two that have just been each for itself may now be two seeds of one."""
    sessions = [play_small(seed=seed) for seed in range(2)]
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (_, screen):
        known = [session.scenario for session in sessions]
        for session in sessions:
            session.scenario = None

        def read_meanwhile(*shown: Any) -> Any:
            for session, scenario in zip(sessions, known, strict=True):
                session.scenario = scenario
            return compare(*shown)

        with monkeypatch.context() as patch:
            patch.setattr("tui.screens.compare.compare", read_meanwhile)
            screen.draw()
        screen.draw()
        assert "means over 2 seeds" in status(screen)


async def test_a_run_whose_files_are_removed_is_gone_and_the_other_one_is_still_compared(
    app: MarketApp, play_small: Play, tmp_path: Path
) -> None:
    """A round that is in memory no more is asked for again, as its place in the files is known."""
    kept, removed = play_small(), play_small()
    removed.directory = tmp_path / "small-0a0b0c0d" / "hqfa" / "seed-0001"
    removed.history.stored = StoredRounds(removed.directory)
    for logged in removed.history:
        removed.history.stored.add_text(logged.text)
    async with showing(app, CompareScreen([kept, removed], app)) as (pilot, screen):
        await until(pilot, lambda: screen.query_one(CompareTable).count == 6)
        removed.history._newest.rounds.clear()
        removed.changed()
        await until(pilot, lambda: removed.state is RunState.GONE)
        await until(pilot, lambda: screen.query_one(CompareTable).count == 3)
        assert "✘ gone" in status(screen)


def test_a_mark_says_what_changed_first(play_small: Play, scenario_text: str) -> None:
    def fork(*changes: tuple[int, str, str]) -> Session:
        tables = (f'[[interventions]]\nround = {n}\nkey = "{key}"\nvalue = {value}\n' for n, key, value in changes)
        found = play_small(scenario_text + "".join(tables))
        found.hash8 = str(hash(changes))
        return found

    plain, budget = play_small(), "services.gamma.budget"
    early, late = (4, budget, "2"), (6, "clients.offline", "[3]")
    assert parting([fork(early), plain]) == (4, "gamma.budget = 2")
    assert parting([fork(early, late), fork(early)]) == (6, "clients.offline = [3]")
    assert parting([plain, fork(early), fork((4, budget, "4"))]) == (4, "gamma.budget")
    assert parting([plain, play_small(seed=2)]) is None


@pytest.mark.slow
async def test_of_many_curves_the_chosen_the_baseline_and_the_best_five_have_colours(
    app: MarketApp, play_small: Play
) -> None:
    sessions = [play_small(seed=seed) for seed in range(14)]
    for seed, session in enumerate(sessions):
        session.policy = f"policy-{seed}"
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        ends = [session.history[12].services[0].test_accuracy for session in sessions]
        best = sorted(range(14), key=lambda place: -ends[place])
        chosen = max(set(best[5:]) - {0})  # neither one of the best nor the baseline
        await pilot.press(*["down"] * chosen)
        await pilot.pause(0.3)
        curves = screen.query(Plot).first().curves
        assert {curve.sign for curve in curves if curve.sign} == {sign(place) for place in (*best[:5], 0, chosen)}
        grey = [curve.style for curve in curves if not curve.sign and len(curve.xs) > 2]
        assert len(grey) == 14 - len({*best[:5], 0, chosen})
        assert {*grey} == {str(tint(app, "foreground", dim=True))}
        assert "in colour: the chosen and the five most accurate, and the baseline" in painted(app)


async def test_a_run_that_is_far_behind_has_a_curve_in_the_plot(app: MarketApp, play_small: Play) -> None:
    sessions = [play_small(), play_small(rounds=3, state=RunState.PAUSED)]
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        await pilot.press("l", "tab", "tab")
        assert [(curve.sign, curve.xs[-1]) for curve in screen.query(Plot).first().curves] == [("1", 12), ("2", 3)]


async def test_plots_have_targets_and_differences_and_are_saved(
    app: MarketApp, play_small: Play, scenario_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))  # which has no Downloads
    async with showing(app, CompareScreen(two(play_small, scenario_text), app)) as (pilot, screen):
        # The plot has the target of the service.
        [target] = [line for line in text_of(screen.query_one(Plot)).splitlines() if DASH in line]
        assert target.rstrip("│ ").endswith(" 50")
        await pilot.press("v")
        assert DASH not in text_of(screen.query_one(Plot))
        # A picture is saved where the user says.
        await pilot.press("v", "v", "v", "x")
        await screen_of(pilot, ExportDialog)
        path = app.screen.query_one("#path", Input)
        assert path.value == "comparison.svg"
        path.value = str(tmp_path / path.value)
        await pilot.press("enter")
        await until(pilot, (tmp_path / "comparison.svg").exists, "the picture")
        # Differences have a plot of their own where there is room.
        values, differences = screen.query(Plot)
        await pilot.press("tab", "tab")
        assert differences.display
        of = [curve.ys for curve in values.curves]
        base, other = (curve.ys for curve in differences.curves)
        assert not base.any()
        assert other.any()
        both = min(map(len, of))  # rounds that are above the beginning of the axis
        assert list(other[-both:]) == pytest.approx(list(of[1][-both:] - of[0][-both:]))
        await pilot.press("b")
        assert "difference from 2 " in str(differences.border_title)
        assert list(differences.curves[0].ys[-both:]) == pytest.approx(list(of[0][-both:] - of[1][-both:]))
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not differences.display
        assert re.search(r"AUC % +Δ ", painted(app))
    text = (tmp_path / "comparison.svg").read_text()
    assert "accuracy" in text
    assert "Cancel" not in text  # it is of the comparison, not of the dialog


@pytest.mark.parametrize("size", [(80, 24), *slow(((120, 36),), ((200, 60),))])
async def test_means_over_seeds(app: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int]) -> None:
    sessions = [play_small(text, seed=seed) for text in (scenario_text,) for seed in range(3)]
    other = scenario_text.replace('"random"', '"d-first"')
    for seed in range(3):
        sessions.append(play_small(other, seed=seed))
        sessions[-1].policy = "d-first"
    async with showing(app, CompareScreen(sessions, app), size) as (pilot, screen):
        table = screen.query_one(CompareTable)
        assert table.count == 6
        words = status(screen)
        assert "means over 3 seeds, with 95 % intervals" in words
        assert f"1 as-configured · round 12 ✔{' complete' * (size[0] > 80)} (baseline)" in words
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


async def test_the_first_line_says_who_is_ahead_by_the_difference_in_the_table(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 3)
    async with showing(app, CompareScreen(sessions, app), (160, 48)) as (pilot, screen):
        table = screen.query_one(CompareTable)
        for service, row in (("alpha", 1), ("beta", 3), ("gamma", 5)):
            first, *_ = status(screen).splitlines()
            shown = str(table.cell(row, DELTA + "AUC"))
            difference, interval = shown.split(" ", 1)
            if difference == "+0.00":
                assert first.strip().startswith(f"d-first and as-configured have the same AUC on {service}")
            elif "[-" in interval and ", -" not in interval:
                found = f"d-first and as-configured are not clearly apart on {service}: {shown} points of AUC"
                assert first.strip().startswith(found)
            else:
                ahead = difference[0] == "+"
                names = ("d-first", "as-configured") if ahead else ("as-configured", "d-first")
                assert first.strip().startswith(f"{names[0]} is ahead of {names[1]} by {difference[1:]} [")
                assert f"] points of AUC on {service}" in first
            # Where all runs of both met the target, it says how much sooner.
            met = table._shown[row].differences["rounds to target"].bound == ""
            assert (" the target " in first) == met
            await pilot.press("tab")


async def test_with_unequal_seeds_the_difference_says_over_how_many_it_is(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 3)[1:]
    async with showing(app, CompareScreen(sessions, app), (200, 60)) as (pilot, screen):
        table = screen.query_one(CompareTable)
        assert str(table.cell(1, DELTA + "AUC")).endswith(" (2 common seeds)")
        assert status(screen).splitlines()[0].rstrip().endswith(" (2 common seeds)")
        assert "different seeds" in status(screen)
        # One run that has begun, and one of another seed that has not.
        later = Session("small · d-first · seed 2")
        later.seed, later.policy = 2, "d-first"
        later.move(RunState.WAITING)
        app.push_screen(screen := CompareScreen([sessions[0], later], app))
        await pilot.pause()
        assert "round 12" in status(screen)
        assert "same seed" not in status(screen)


async def test_the_one_seed_of_two_policies_is_said(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    sessions = two(play_small, scenario_text)
    async with showing(app, CompareScreen(sessions, app), (160, 48)) as (_, screen):
        assert "only the policies differ" not in status(screen)  # both are as-configured
        sessions[1].policy = "d-first"
        screen.draw()
        assert "same market, same seed; only the policies differ" in status(screen)


async def test_a_difference_has_a_colour_where_its_interval_is_without_0(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    async with showing(app, CompareScreen(batch(play_small, scenario_text, 3), app), (200, 60)) as (_, screen):
        table = screen.query_one(CompareTable)
        row = table._shown[5]
        [spent] = [it for name, it in row.differences.items() if name == "spent"]
        grey = tint(app, "foreground")
        for low, high, estimate, color in (
            (1.0, 3.0, 2.0, tint(app, "success")),
            (-3.0, -1.0, -2.0, tint(app, "error")),
            (-1.0, 5.0, 2.0, grey),
            (math.nan, math.nan, 2.0, grey),
        ):
            it = replace(spent, measure=row.differences["final accuracy"].measure,
                         interval=replace(spent.interval, estimate=estimate, low=low, high=high))  # fmt: skip
            assert table._color(it) == color


async def test_runs_that_wait_join_their_group_when_they_begin(app: MarketApp, play_small: Play) -> None:
    sessions = [play_small(rounds=4, state=RunState.RUNNING, seed=seed) for seed in range(2)]
    later = Session("small · as-configured · seed 2")
    later.move(RunState.WAITING)
    async with showing(app, CompareScreen([*sessions, later], app), (160, 48)) as (pilot, screen):
        words = status(screen)
        assert "means over 2 seeds, no intervals for fewer than 3 seeds; 1 run to begin" in words
        assert screen.query_one(CompareTable).count == 3
        await pilot.press("b")  # there is one group alone
        assert screen.baseline == 0
        await pilot.press("s")
        assert "3 small · as-configured · seed 2 · round 0 … waiting" in rendered(screen, "#compare-status")


async def test_a_group_of_which_one_run_was_interrupted_does_not_look_as_if_it_ran(
    app: MarketApp, play_small: Play
) -> None:
    sessions = [play_small(seed=0), play_small(seed=1, rounds=5, state=RunState.INTERRUPTED)]
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (_, screen):
        assert "■ 2 of 2 over" in status(screen)
        sessions[1].state = RunState.RUNNING
        screen.draw()
        assert "▶ 1 of 2 over" in status(screen)


@pytest.mark.slow
async def test_another_policy_now_is_the_open_run_of_it(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        text, out = (small / "small.toml").read_text(), str(small / "runs")
        own = app.runs.start(Start(text, "small.toml", out, paused=True), "own")
        other = app.runs.start(Start(text, "small.toml", out, "hqfa", paused=True), "hqfa")
        await until(pilot, lambda: own.state is other.state is RunState.PAUSED, "both runners")
        app.push_screen(MarketScreen(own, app))
        await pilot.pause()
        await pilot.press("c")
        await screen_of(pilot, PickRunsDialog)
        app.screen.query_one(SelectionList).select("policy:hqfa")
        app.screen.query_one("#go", Button).press()
        await screen_of(pilot, CompareScreen)
        assert app.screen.sessions == [own, other]
        assert app.runs.sessions == [own, other]


def batch(play: Play, text: str, seeds: int) -> list[Session]:
    """The scenario, and one in which gamma has another policy, each with some seeds."""
    found = [play(text, seed=seed) for seed in range(seeds)]
    for seed in range(seeds):
        other = play(text.replace('"random"', '"d-first"'), seed=seed)
        other.policy = "d-first"
        found.append(other)
    return found


def test_groups_are_runs_of_one_market_and_policy(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    assert [group.runs for group in groups(sessions)] == [(0, 1, 2), (3, 4, 5)]
    assert [group.name for group in groups(sessions)] == ["as-configured", "d-first"]
    assert [group.name for group in groups(sessions[2:])] == ["as-configured · seed 2", "d-first · 3 seeds"]
    sessions[0].hash8 = "11111111"
    assert [group.runs for group in groups(sessions)] == [(0,), (1, 2), (3, 4, 5)]


def test_means_intervals_and_paired_differences(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 4)
    rows = compare(sessions, [12] * 8, groups(sessions), 0)
    base, other = rows[4:]
    accuracy, difference = other.means["final accuracy"], other.differences["final accuracy"]
    assert (base.service, other.service, accuracy.seeds) == ("gamma", "gamma", 4)
    values = [np.array([100 * run.history[12].services[2].accuracy for run in sessions[k : k + 4]]) for k in (0, 4)]
    assert accuracy.interval == paired_interval(values[1], np.zeros(4))
    assert difference.interval == paired_interval(values[1], values[0])
    assert base.differences == {}
    interval = accuracy.interval
    assert accuracy.text == f"{values[1].mean():.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    assert other.means["rounds to target"].text == "never"
    met = rows[0].means["rounds to target"].to_target
    assert met.reached.all()  # alpha leaves early in all of them


def test_auc_is_that_of_reports_and_of_live_runs_over_the_rounds_that_both_have(
    play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 1)
    base, other = compare(sessions, [12, 12], groups(sessions), 0)[:2]
    early = [run.history.column("test_accuracy", 12)[:, 0] for run in sessions]
    assert base.means["AUC"].interval.estimate == pytest.approx(100 * early[0].mean())
    assert other.differences["AUC"].interval.estimate == pytest.approx(100 * (early[1] - early[0]).mean())
    base, other = compare(sessions, [5, 5], groups(sessions), 0)[:2]
    assert base.means["AUC"].interval.estimate == pytest.approx(100 * early[0][:5].mean())
    assert other.differences["AUC"].interval.estimate == pytest.approx(100 * (early[1] - early[0])[:5].mean())


def test_a_run_that_all_services_have_left_early_has_the_auc_of_the_report(
    play_small: Play, scenario_text: str
) -> None:
    text = re.sub(r"target_accuracy = [\d.]+", "target_accuracy = 0.15", scenario_text)
    session = play_small(text)
    last = len(session.history)
    assert last < 12
    [row, *_] = compare([session], [last], groups([session]), 0)
    curve = session.history.column("test_accuracy", last)[:, 0]
    whole = np.concatenate([curve, np.full(12 - last, curve[-1])])
    assert row.means["AUC"].interval.estimate == pytest.approx(100 * whole.mean())


async def test_the_finding_is_about_what_is_shown(app: MarketApp, play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    async with showing(app, CompareScreen(sessions, app), (200, 60)) as (pilot, screen):
        await pilot.press("tab", "tab")
        for measure in ("AUC", "normalised reward", "spent", "mean price", "AUC"):
            assert measure in status(screen).splitlines()[0]
            await pilot.press("v")


async def test_without_clients_there_is_no_price_to_compare(
    app: MarketApp, play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text.replace("budget = 10", "budget = 0.001"), 1)
    async with showing(app, CompareScreen(sessions, app), (120, 40)) as (pilot, screen):
        await pilot.press("v", "v", "v")
        assert "No client has served alpha in both: no mean price to compare" in status(screen)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_titles_end_in_an_ellipsis_where_columns_find_no_room(
    app: MarketApp, play_small: Play, scenario_text: str, size: tuple[int, int]
) -> None:
    async with showing(app, CompareScreen(batch(play_small, scenario_text, 3), app), size) as (_, screen):
        table = screen.query_one(CompareTable)
        [titles] = [line for line in painted(app).splitlines() if " #  run " in line]
        last = next(column.label for column in reversed(table.columns) if column.key in table._widths)
        assert titles.rstrip().endswith(last + " …" * (len(table._widths) < len(table.columns))), titles


def test_fewer_than_three_seeds_and_runs_in_progress_have_no_interval(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 2)
    rows = compare(sessions, [12] * 4, groups(sessions), 0)
    assert not any(mean.interval.known for row in rows for mean in row.means.values())
    sessions = batch(play_small, scenario_text, 3)
    sessions[0].state = RunState.RUNNING
    base, other, *_ = compare(sessions, [12] * 6, groups(sessions), 0)
    assert not base.means["final accuracy"].interval.known
    assert other.means["final accuracy"].interval.known
    assert not other.differences["final accuracy"].interval.known  # the baseline is in progress


def test_differences_are_of_the_seeds_that_both_have(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    del sessions[0]
    row = compare(sessions, [12] * 5, groups(sessions), 0)[5]
    accuracy = [100 * run.history[12].services[2].accuracy for run in sessions]
    assert row.means["final accuracy"].interval.estimate == pytest.approx(np.mean(accuracy[2:]))
    difference = row.differences["final accuracy"].interval.estimate
    assert difference == pytest.approx(np.mean(accuracy[3:]) - np.mean(accuracy[:2]))
    assert row.common == " (2 common seeds)"
    assert compare(sessions[:2] + sessions[3:], [12] * 4, groups(sessions[:2] + sessions[3:]), 0)[5].common == ""


def test_a_curve_of_differences_is_over_seeds_and_rounds_that_both_have(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    rounds = [12, 12, 12, 9, 12, 12]
    values = [[run.history[n].services[2].accuracy for n in range(1, 10)] for run in sessions]
    xs, ys = difference_series(sessions, rounds, [3, 4, 5], [1, 2], "gamma", "accuracy")
    assert xs == list(range(1, 13))
    xs, ys = difference_series(sessions, rounds, [3, 4], [0, 1, 2], "gamma", "accuracy")
    assert xs == list(range(1, 10))
    assert ys == pytest.approx((np.sum(values[3:5], axis=0) - np.sum(values[:2], axis=0)) / 2)
    assert difference_series(sessions, rounds, [3], [1, 2], "gamma", "accuracy") == ([], [])


def test_a_mean_curve_holds_the_accuracy_of_a_service_that_has_left(play_small: Play, scenario_text: str) -> None:
    one, other = play_small(scenario_text), play_small(scenario_text, seed=2)
    xs, ys = mean_series([one, other], [12, 5], "beta", "accuracy")
    assert xs == list(range(1, 13))
    own = [run.history for run in (one, other)]
    assert ys[2] == pytest.approx((own[0][3].services[1].accuracy + own[1][3].services[1].accuracy) / 2)
    assert ys[11] == pytest.approx((own[0][12].services[1].accuracy + own[1][5].services[1].accuracy) / 2)
    _, spent = mean_series([one, other], [12, 5], "beta", "spent")
    assert spent[11] == pytest.approx(own[0][12].services[1].spent / 2e6)
    assert mean_series([one], [0], "beta", "accuracy") == ([], [])


def test_the_band_of_a_mean_curve_is_the_interval_where_there_is_one(play_small: Play, scenario_text: str) -> None:
    sessions = [play_small(scenario_text, seed=seed) for seed in range(4)]
    xs, low, high = band_series(sessions, [12] * 4, "gamma", "accuracy")
    assert xs == list(range(1, 13))
    for number in (1, 7, 12):
        values = [session.history[number].services[2].accuracy for session in sessions]
        interval = paired_interval(values, np.zeros(4))
        assert (low[number - 1], high[number - 1]) == pytest.approx((interval.low, interval.high))
    sessions[3].state = RunState.RUNNING
    assert band_series(sessions, [12] * 4, "gamma", "accuracy") == ([], [], [])
    assert band_series(sessions[:2], [12] * 2, "gamma", "accuracy") == ([], [], [])
    sessions = [play_small(scenario_text, seed=seed) for seed in range(3)]
    xs, *_ = band_series(sessions, [12] * 3, "alpha", "mean_payment")  # it leaves early
    assert 0 < len(xs) < 12
    assert band_series(sessions, [0, 12, 12], "alpha", "accuracy") == ([], [], [])
    _, low, high = band_series(sessions, [1, 12, 12], "gamma", "test_accuracy")  # one is compared at its first round
    assert (low[-1], high[-1]) == (0.0, 1.0)
    _, low, high = band_series(sessions, [1, 12, 12], "gamma", "reward")
    assert low[-1] == 0.0
    assert high[-1] > 1.0
    # The band of a mean curve is the interval at each round in which there is one.
    # A band leaves out rounds in which a run has no value.
    # A band ends where no mean can be.
    # The band of a mean curve is the interval at each round.
