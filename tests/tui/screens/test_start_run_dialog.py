"""The dialog before a run."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select, SelectionList, Static

import tui.screens.run_dialogs
from flmarket.core.declared import declared
from flmarket.core.plugins import summary
from learning.policy import POLICIES
from scenarios.loader import builtin_text, dumps, parse, settled
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.run_options import parse_seeds
from scenarios.running.steering import Start
from support.runs import RECORDED
from support.screens import Runner, painted, play_headlessly, rendered, screen_of, start_of, until
from support.tiers import slow
from tui.app import MarketApp
from tui.screens.compare import CompareScreen
from tui.screens.dialog import Box, MarkList, Tick
from tui.screens.help import HelpScreen
from tui.screens.market import MarketScreen
from tui.screens.run_dialogs import WHOLE, ChosenRuns, StartRunDialog
from tui.state.known_runs import policies_of
from tui.widgets.comparison import CompareTable
from tui.widgets.key_bar import KeyBar


@asynccontextmanager
async def asking(
    app: MarketApp, text: str, size: tuple[int, int] = (100, 40)
) -> AsyncIterator[tuple[Pilot[None], StartRunDialog, list[ChosenRuns | None]]]:
    """The dialog before a run of a scenario, and what is chosen in it."""
    chosen: list[ChosenRuns | None] = []
    async with app.run_test(size=size) as pilot:
        dialog = StartRunDialog(parse(text), text, "small.toml", app.out)
        app.push_screen(dialog, chosen.append)
        await pilot.pause()
        yield pilot, dialog, chosen


def problem(dialog: StartRunDialog) -> str:
    """What the dialog says against what is chosen, or about it."""
    return " ".join(rendered(dialog, "#run-problem").split())


@pytest.mark.parametrize("swept", ["", '[sweep]\n"clients.cores" = [1, 2]\n'])
async def test_the_policies_have_all_rows_that_title_and_buttons_leave(app: MarketApp, swept: str) -> None:
    async with asking(app, builtin_text("quickstart") + swept) as (pilot, dialog, _):
        box, policies, go = dialog.query_one(Box), dialog.query_one(SelectionList), dialog.query_one("#go")
        for size in ((80, 24), (120, 40), (140, 42), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert (box.scroll_y, box.max_scroll_y) == (0, 0)
            for widget in (box.query(Static).first(), policies, go, dialog.query_one("#cancel")):
                assert box.region.contains_region(widget.region)
            assert policies.region.height == policies.option_count or box.region.height == size[1] - 1
            assert go.region.y == policies.region.bottom + 1  # the line between is for problems
            assert box.region.bottom == go.region.bottom + 2  # no empty rows below the buttons


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_explains_the_dialog_the_footer_lists_its_keys(app: MarketApp, scenario_text: str, key: str) -> None:
    async with asking(app, scenario_text, (100, 30)) as (pilot, *_):
        keys = {found.binding.description for found in app.screen.active_bindings.values() if found.binding.show}
        assert {"Cancel", "Help"} <= keys
        assert app.screen.query_one(KeyBar).region.bottom == 30
        await pilot.press(key)
        await pilot.pause()
        shown = " ".join(str(widget.render()) for widget in app.screen.query(Static))
        assert isinstance(app.screen, HelpScreen)
        assert "The seed decides all that is random" in shown
        assert all(option.sentence in shown for option in declared(Start))


async def test_a_policy_that_cannot_be_run_is_named(
    app: MarketApp, one_service: str, install_package: Callable[..., None]
) -> None:
    install_package("acme_broken", "import no_such_module", "flmarket.policies", broken="acme_broken:Mine")
    text = one_service + '[sweep]\n"services.alpha.policy" = ["random", "hqfa"]\n'
    async with asking(app, text) as (pilot, dialog, _):
        go = dialog.query_one("#go", Button)
        for policy, words in (
            ("lcfa", "services.alpha.policy: is swept by this scenario"),
            (
                "broken",
                "policy 'broken' (acme_broken:Mine of acme_broken 1.5): cannot be imported: ModuleNotFoundError",
            ),
        ):
            assert not go.disabled
            dialog.query_one(SelectionList).select(policy)
            await pilot.pause()
            assert go.disabled
            assert words in problem(dialog)
            dialog.query_one(SelectionList).deselect(policy)
            await pilot.pause()
        assert not go.disabled


def recorded_run(scenario_text: str, out: Path, status: str = "complete") -> Path:
    """Leave what the dialog and the home screen look at in the directory of a run that has ended."""
    place = out / "small-00000000" / "as-configured" / "seed-0000"
    place.mkdir(parents=True)
    (place / "scenario.toml").write_text(dumps(settled(parse(scenario_text))))
    for table in TABLES.values():
        table.path(place).write_text(table.header)
    (place / "run.log").touch()
    RunDirectory(place).finish({**RECORDED, "status": status, "policy": "as-configured", "seed": 0, "hash": "00000000"})
    return place


@pytest.mark.slow
async def test_enter_twice_on_a_scenario_opens_its_complete_run_as_it_is(app: MarketApp, scenario_text: str) -> None:
    place = recorded_run(scenario_text, app.out)
    before = (place / "meta.json").stat().st_mtime_ns
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: getattr(app.screen, "entries", None))
        await pilot.press("slash", *"small.toml", "enter", "enter")
        await screen_of(pilot, StartRunDialog)
        await until(pilot, lambda: "enter Open complete run" in painted(app))
        assert app.focused is app.screen.query_one("#policies")
        assert str(app.screen.query_one("#go", Button).label) == "Run again"
        await pilot.press("enter")
        await screen_of(pilot, MarketScreen)
        await until(pilot, lambda: app.runs.sessions[0].directory, "what the run's directory holds")
        assert [session.directory for session in app.runs.sessions] == [place]
    assert (place / "meta.json").stat().st_mtime_ns == before


async def test_a_run_that_cannot_be_read_is_named_another_seed_can_be_run(app: MarketApp, scenario_text: str) -> None:
    place = recorded_run(scenario_text, app.out)
    (place / "meta.json").write_text("[]")
    async with asking(app, scenario_text) as (pilot, dialog, _):
        assert dialog.query_one("#go", Button).disabled
        assert f"{place}/meta.json:isdamaged:" in problem(dialog).replace(" ", "")
        await pilot.press(*"7..7")
        await pilot.pause()
        assert not dialog.query_one("#go", Button).disabled


@pytest.mark.parametrize("size", [(80, 18), (120, 40)])
async def test_the_policies_have_the_focus_and_digits_go_to_the_seed(
    app: MarketApp, scenario_text: str, size: tuple[int, int]
) -> None:
    async with asking(app, scenario_text, size) as (pilot, dialog, chosen):
        seeds = dialog.query_one("#seed", Input)
        assert app.focused is dialog.query_one("#policies")
        assert (seeds.value, Start(scenario_text, "small.toml", "runs").seed) == ("1", 0)
        ticks = [(tick.id, str(tick.label), tick.value) for tick in dialog.query(Tick)]
        assert ticks == [("paused", "start paused", False), ("fresh", "start over", False)]
        assert ticks == [(option.name, option.label, option.default) for option in declared(Start)]
        # No other part looks as if it had the focus.
        assert "seeds 1" in painted(app)
        assert "▌[x] as configured" in painted(app)
        await pilot.press("shift+tab", "shift+tab")
        await pilot.pause()
        assert app.focused is seeds
        assert "▌[x]" not in painted(app)
        # Seeds may be typed quicker than the focus moves.
        dialog.query_one("#policies").focus()
        await pilot.pause()
        for character in "3..4":
            app.post_message(Key(character, character))
        await until(pilot, lambda: seeds.value == "3..4", "all of them")
        await pilot.press(*",6")
        assert seeds.value == "3..4,6"
        # Enter right after what is no seed runs nothing.
        seeds.value = "7f"
        dialog.post_message(Input.Submitted(seeds, seeds.value))
        await pilot.pause()
        assert app.screen is dialog
        assert not chosen
        assert "'7f' is neither a seed" in rendered(dialog, ".problem")


@pytest.mark.parametrize(
    ("status", "keys", "starts"),
    [
        ("complete", [*"17..17"], [(17, False)]),
        ("complete", ["tab"], [(0, True)]),  # run again
        ("complete", ["7", "backspace", "1"], []),
        ("failed", [], [(0, False)]),
        ("failed", ["shift+tab", "space", "tab"], [(0, True)]),
    ],
)
async def test_a_complete_run_is_opened_and_one_that_failed_resumes_unless_it_is_to_start_over(
    app: MarketApp, scenario_text: str, status: str, keys: list[str], starts: list[tuple[int, bool]]
) -> None:
    place = recorded_run(scenario_text, app.out, status)
    async with asking(app, scenario_text) as (pilot, _, chosen):
        for key in (*keys, "enter"):
            await pilot.press(key)
            await pilot.pause()
    [choice] = chosen
    assert [(start.seed, start.fresh) for start, _ in choice.starts] == starts
    assert choice.replay == (() if starts else (place,))
    assert bool(choice.note) == (status == "failed" and not starts[0][1])


@pytest.mark.parametrize(
    ("text", "seeds", "words"),
    [
        ("3", [0, 1, 2], "seeds 0-2; 10 is"),
        ("1", [0], "seed 0; 10 is"),
        ("3..3", [3], "seed 3; 10 is"),
        ("0,3,7..9", [0, 3, 7, 8, 9], "seeds 0, 3, 7-9; 10 is"),
        ("0", [], "10 is seeds 0 to 9 | 0,3,7 | 0..9"),
    ],
)
async def test_seeds_are_those_of_the_shell_and_the_line_below_says_which(
    app: MarketApp, scenario_text: str, text: str, seeds: list[int], words: str
) -> None:
    async with asking(app, scenario_text, (80, 24)) as (pilot, dialog, chosen):
        await pilot.press(*text)
        await pilot.pause()
        assert rendered(dialog, "#seed-hint").startswith(words)
        assert ("0 asks for no run" in problem(dialog)) == (not seeds)
        await pilot.press("enter")
    if seeds:
        assert [start.seed for start, _ in chosen[0].starts] == seeds == parse_seeds(text)
    else:
        assert not chosen


async def test_the_line_of_keys_says_f1_where_a_question_mark_is_typed(app: MarketApp, scenario_text: str) -> None:
    async with asking(app, scenario_text) as (pilot, dialog, _):
        await pilot.pause()
        assert "? Help" in painted(app)
        await pilot.press("1", "question_mark", "j")
        await pilot.pause()
        assert dialog.query_one("#seed", Input).value == "1?j"
        assert "F1 Help" in painted(app)
        assert "? Help" not in painted(app)


@pytest.mark.parametrize("size", [(80, 24), *slow(((120, 36),), ((200, 60),))])
async def test_several_seeds_run_with_each_policy(app: MarketApp, scenario_text: str, size: tuple[int, int]) -> None:
    async with asking(app, scenario_text, size) as (pilot, dialog, chosen):
        await pilot.press(*"0..2")  # typed at once
        assert dialog.query_one("#seed", Input).value == "0..2"
        dialog.query_one(SelectionList).select("hqfa")
        await pilot.pause()
        await pilot.press("enter")
    assert [(start.policy, start.seed) for start, _ in chosen[0].starts] == [
        (policy, seed) for policy in (None, "hqfa") for seed in (0, 1, 2)
    ]


async def test_the_dialog_says_how_many_runs_play_at_a_time_and_refuses_too_many(
    app: MarketApp, scenario_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.screens.run_dialogs, "usable_cores", lambda: 2)
    async with asking(app, scenario_text, (120, 36)) as (pilot, dialog, _):
        go = dialog.query_one("#go", Button)
        for text, words, disabled in (
            ("0, 1", "", False),
            ("0..4", "5 runs: 2 at a time, as many as there are cores; the others wait.", False),
            ("0..99", "100 runs: 2 at a time, as many as there are cores; the others wait.", False),
            ("0..100", "101 runs, 2 at a time; complete ones stay, the others are played.", False),
            ("0..10000", "10,001 runs are too many; choose at most 10,000, or use flmarket run", True),
            ("0..", "seeds '0..': '0..' is neither a seed of at most nine digits (3) nor a range (0..9)", True),
        ):
            dialog.query_one("#seed", Input).value = text
            await pilot.pause()
            assert problem(dialog) == words
            assert go.disabled is disabled


@pytest.mark.parametrize(("point", "seeds", "count"), [(WHOLE, "0..2", 12), (1, "0..50", 102), (1, "0..1", 0)])
async def test_a_whole_sweep_and_many_runs_are_a_batch_one_point_is_watched(
    app: MarketApp, scenario_text: str, point: int, seeds: str, count: int
) -> None:
    swept = scenario_text + '[sweep]\n"clients.cores" = [1, 2]\n'
    async with asking(app, swept, (120, 36)) as (pilot, dialog, chosen):
        assert dialog.query_one("#point", Select).value == WHOLE  # as in the shell
        dialog.query_one("#point", Select).value = point
        dialog.query_one("#seed", Input).value = seeds
        dialog.query_one(SelectionList).select("hqfa")
        await pilot.pause()
        assert str(dialog.query_one("#go", Button).label) == (f"Run {count}" if count else "Run")
        assert (f"{count} runs, " in problem(dialog)) == (count > 0)
        assert dialog.query_one("#paused").display == (not count)
        await pilot.press("enter")
    starts = [] if count else [(policy, 1, seed) for policy in (None, "hqfa") for seed in (0, 1)]
    assert [(start.policy, start.point, start.seed) for start, _ in chosen[0].starts] == starts
    assert (chosen[0].batch is not None) == (count > 0)


async def test_the_backend_is_chosen(app: MarketApp, scenario_text: str) -> None:
    async with asking(app, scenario_text, (120, 36)) as (pilot, dialog, chosen):
        backend = dialog.query_one("#backend", Select)
        assert [str(name) for name, _ in backend._options] == ["real (the scenario's)", "surrogate", "noiseless"]
        backend.value = "surrogate"
        await pilot.pause()
        await pilot.press("enter")
    [(start, _)] = chosen[0].starts
    assert parse(start.scenario).training.backend == "surrogate"
    assert parse(start.scenario) == parse(scenario_text, overrides=["training.backend=surrogate"])


async def test_of_several_runs_the_complete_ones_are_opened_others_played(app: MarketApp, scenario_text: str) -> None:
    place = recorded_run(scenario_text, app.out)
    async with asking(app, scenario_text, (120, 36)) as (pilot, dialog, chosen):
        dialog.query_one("#seed", Input).value = "0..2"
        await pilot.pause()
        assert str(dialog.query_one("#replay", Button).label) == "Open 1, run 2"
        assert problem(dialog) == "1 of 3 runs are complete: open them and run the others, or run all again."
        dialog.query_one("#seed", Input).focus()
        await pilot.press("enter")
    assert chosen[0].replay == (place,)
    assert [(start.seed, start.fresh) for start, _ in chosen[0].starts] == [(1, False), (2, False)]


@pytest.mark.slow
async def test_seeds_are_run_and_compared_by_their_means(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(160, 48)) as pilot:
        app.ask_and_run((small / "small.toml").read_text(), "small.toml")
        await screen_of(pilot, StartRunDialog)
        await pilot.press(*"0..2", "enter")
        screen = await screen_of(pilot, CompareScreen)
        await until(pilot, lambda: all(run.state is RunState.COMPLETE for run in screen.sessions), "all runs")
        await until(pilot, lambda: "means over 3 seeds" in rendered(screen, "#compare-status"))
        assert [run.seed for run in screen.sessions] == [0, 1, 2]
        table = screen.query_one(CompareTable)
        await until(pilot, lambda: "[" in str(table.cell(0, "final accuracy")), "the intervals")
        assert table.count == 3


def test_policies_that_most_look_for_come_first_and_none_is_left_out(scenario_text: str) -> None:
    listed = policies_of(parse(scenario_text.replace('"lcfa"', '"worth"')))
    assert listed[:6] == ["random", "lcfa", "hqfa", "mahdrl-paper", "worth", "bwk"]  # the paper's, then the scenario's
    assert sorted(listed) == sorted(POLICIES.names())


async def test_the_list_says_what_each_policy_is(app: MarketApp, scenario_text: str) -> None:
    async with asking(app, scenario_text, (120, 36)) as (pilot, dialog, _):
        policies = dialog.query_one(MarkList)
        await until(pilot, lambda: all(worker.is_finished for worker in app.workers))
        lines = [str(option.prompt) for option in policies.options]
        assert lines[0] == "as configured: each service uses its own"
        for name, line in zip(policies_of(parse(scenario_text)), lines[1:], strict=True):
            assert line.startswith(f"{name} ")
            assert summary(POLICIES.load(name)) in line
        await pilot.press("slash", *"bandit", "enter")
        assert "bandit" in lines[policies.highlighted or 0]


@pytest.mark.slow
def test_policies_are_told_apart_without_loading_torch() -> None:
    told = "from tui.style.sentences import plugin_words; from learning.policy import POLICIES; import sys; "
    told += "print([name for name in POLICIES.names() if not plugin_words('policy', name)[0]], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    assert done.stdout == "[] False\n"


@pytest.mark.slow
async def test_r_on_a_run_proposes_that_run_again(app: MarketApp, small: Path, fake_runner: Runner) -> None:
    for policy in ("hqfa", None):
        play_headlessly(start_of(small, policy=policy, seed=3), fake_runner("formula"))
    async with app.run_test(size=(100, 40)) as pilot:
        for policy in ("hqfa", "as-configured"):
            await until(pilot, lambda: getattr(app.screen, "entries", None))
            await pilot.press("slash", *f"small {policy}", "enter", "r")
            await screen_of(pilot, StartRunDialog)
            assert app.screen.query_one(SelectionList).selected == [policy]
            assert app.screen.query_one("#seed", Input).value == "3..3"
            assert app.screen.query_one("#replay", Button).display  # it is complete
            await pilot.press("escape", "escape")
