"""The speed of the market screen: the computing time of a shown round, and the delay from a key to its picture.

    python benchmarks/tui_screens.py --repeat 7

The app is the real one, on surrogate markets, without a terminal: what a terminal takes to draw is not part of it.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from measure import Report
from textual.pilot import Pilot

from flmarket.cli.launch import collect_rarely
from scenarios.logs.run_state import RunState
from scenarios.running.steering import Start
from tui.app import MarketApp
from tui.screens.market import MarketScreen
from tui.state.watched_run import Session
from tui.style.redraw import painted

SIZE = (160, 48)
SIZES = ((20, 3), (60, 12), (300, 3))
"""Clients and services."""

ROUNDS = 40
"""Rounds that are shown in one repetition."""


def market(clients: int, services: int, rounds: int) -> str:
    """Return the text of a scenario whose services keep competing to the end."""
    kinds = ("mnist", "fashion-mnist", "emnist-digits")
    policies = ("hqfa", "lcfa", "random", "pacing")
    head = (
        f'name = "size-{clients}-{services}"\nrounds = {rounds}\n'
        f"[clients]\ncount = {clients}\ncores = 2\ndata_size = [100, 200, 300, 400]\nemd = [0.0, 0.5, 1.0, 1.5]\n"
        "cost = { per_sample = 0.014, per_emd = 0.9 }\n"
        '[training]\nbackend = "surrogate"\n'
    )
    return head + "".join(
        f'[[services]]\nname = "service-{m}"\ndataset = "{kinds[m % 3]}"\nbudget = 20\ntarget_accuracy = 1.0\n'
        f'reward_base = 60\npolicy = "{policies[m % 4]}"\n'
        for m in range(services)
    )


def written(folder: Path, text: str) -> Path:
    """Play a market headlessly; return its run directory."""
    scenario = folder / "scenario.toml"
    scenario.write_text(text, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "flmarket.cli.main", "run", str(scenario), "--out", str(folder / "runs")]
    subprocess.run(command, check=True, capture_output=True)
    [run] = (folder / "runs").glob("*/*/seed-*")
    return run


async def shown(
    app: MarketApp, session: Callable[[], Session], use: Callable[[Pilot[None], MarketScreen], Awaitable[None]]
) -> None:
    """Open a session on the market screen, and use it."""
    async with app.run_test(size=SIZE) as pilot:
        screen = MarketScreen(session(), app)
        app.push_screen(screen)
        await painted(screen)
        await use(pilot, screen)


def rounds(run: Path, repeat: int) -> list[float]:
    """Return the CPU milliseconds of a shown round."""
    app = MarketApp()
    found: list[float] = []

    async def use(_: Pilot[None], screen: MarketScreen) -> None:
        await loaded(screen.session)
        for _ in range(repeat):
            screen.action_seek(-1_000_000_000)
            await painted(screen)
            start = time.process_time()
            for _ in range(ROUNDS):
                screen.action_seek(1)
                await painted(screen)
            found.append(1000 * (time.process_time() - start) / ROUNDS)

    asyncio.run(shown(app, lambda: app.runs.open(run), use))
    return found


async def loaded(session: Session) -> None:
    """Wait until a run is read."""
    while not session.over:
        await asyncio.sleep(0.005)
    if session.state is not RunState.COMPLETE:
        raise RuntimeError(f"the run is {session.state}: {session.error}")


def keys(clients: int, services: int, presses: int) -> list[float]:
    """Return the milliseconds from a key to its picture while a runner plays at full speed."""
    text = market(clients, services, 100_000)
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        app = MarketApp(out=Path(folder) / "runs", folder=Path(folder))
        start = Start(text, "benchmark", str(Path(folder) / "runs"))

        async def use(_: Pilot[None], screen: MarketScreen) -> None:
            session = screen.session
            while len(session.history) < 20:
                await asyncio.sleep(0.02)
            for press in range(presses):
                await asyncio.sleep(0.03 + 0.011 * (press % 7))
                key = ("down", "v", "up", "3", "down", "4", "down", "b")[press % 8]
                began = time.perf_counter()
                done = asyncio.Event()
                app.simulate_key(key)
                # After the key in the app's queue, then in the screen's.
                app.call_later(lambda done=done: screen.call_after_refresh(done.set))
                await done.wait()
                found.append(1000 * (time.perf_counter() - began))

        asyncio.run(shown(app, lambda: app.runs.start(start, "benchmark"), use))
    return found


def large(run: Path) -> dict[str, list[float]]:
    """Return the milliseconds of opening a large market, and of seeking, scrolling and changing panels in it."""
    app = MarketApp()
    found: dict[str, list[float]] = {"seek": [], "scroll": [], "panel": []}
    began = time.perf_counter()
    opened: list[float] = []

    async def use(pilot: Pilot[None], screen: MarketScreen) -> None:
        await loaded(screen.session)
        await painted(screen)
        opened.append(time.perf_counter() - began)

        async def timed(name: str, act: Callable[[], object]) -> None:
            start = time.perf_counter()
            act()
            await painted(screen)
            found[name].append(1000 * (time.perf_counter() - start))

        for _ in range(len(screen.session.history) - 1):
            await timed("seek", lambda: screen.action_seek(-1))
        for number in (3, 4, 5, 6, 1):
            await timed("panel", lambda number=number: screen.action_panel(number))
            for key in ("pagedown", "pagedown", "ctrl+end", "ctrl+home"):
                start = time.perf_counter()
                await pilot.press(key)
                found["scroll"].append(1000 * (time.perf_counter() - start))

    asyncio.run(shown(app, lambda: app.runs.open(run), use))
    return {"open": [1000 * opened[0]]} | found


def live(clients: int, services: int, budget: int, steps: int, seconds: float) -> dict[str, list[float]]:
    """Return the milliseconds from a live round's arrival to its picture: step by step, then at full speed.

    At full speed not each round is shown: what counts is for how long a newer one was there.
    """
    text = market(clients, services, 100_000).replace("budget = 20", f"budget = {budget}")
    found: dict[str, list[float]] = {"a step": [], "a newer round waits at full speed": []}
    with tempfile.TemporaryDirectory() as folder:
        app = MarketApp(out=Path(folder) / "runs", folder=Path(folder))
        start = Start(text, "benchmark", str(Path(folder) / "runs"), paused=True)

        async def use(_: Pilot[None], screen: MarketScreen) -> None:
            session, arrivals = screen.session, dict[int, float]()
            add = session.add

            def add_and_note(lines: Mapping[str, str]) -> None:
                add(lines)
                arrivals[len(session.history)] = time.perf_counter()

            session.add = add_and_note  # type: ignore[method-assign]

            async def picture_after(number: int) -> float:
                while screen.head.round <= number:
                    await asyncio.sleep(0.005)
                await painted(screen)
                return time.perf_counter()

            while session.state is not RunState.PAUSED:
                await asyncio.sleep(0.02)
            for number in range(steps + 1):
                screen.action_step()
                found["a step"].append(1000 * (await picture_after(number) - arrivals[number + 1]))
            del found["a step"][0]  # which lays out the panels
            app.runs.play_at(session, None)
            screen.action_play()
            last, end = 0.0, time.perf_counter() + seconds
            while last < end:
                before, last = screen.head.round, await picture_after(screen.head.round)
                found["a newer round waits at full speed"].append(1000 * (last - arrivals[before + 1]))

        asyncio.run(shown(app, lambda: app.runs.start(start, "benchmark"), use))
    return found


def load(run: Path) -> float:
    """Return the seconds from a run's directory to its last round on the screen."""
    app = MarketApp()
    took: list[float] = []

    async def use(_: Pilot[None], screen: MarketScreen) -> None:
        start = time.perf_counter()
        session = app.runs.open(run)
        app.show_market(session)
        await loaded(session)
        await painted(screen)
        took.append(time.perf_counter() - start)

    asyncio.run(shown(app, lambda: Session("nothing yet"), use))
    return took[0]


ROUNDS_LOADED = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    # "round": CPU time of one shown round, for markets of several sizes; "keys": from a key to its picture, while a
    # runner on another core sends rounds at full speed; "large": opening a round, scrolling and seeking in a market of
    # 10,000 clients and 50 services; "live": from a live round of it to its picture; "load": a run of 20,000
    # rounds, from its directory to the first picture.
    parts = ("round", "keys", "large", "live", "load")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="repetitions (default 7)")
    parser.add_argument("--presses", type=int, default=200, help="keys pressed (default 200)")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts to run (default all)")
    parser.add_argument("--no-save", action="store_true", help="write nothing to benchmarks/results/")
    given = parser.parse_args(arguments)
    collect_rarely()  # as `flmarket tui` does
    report = Report(save=not given.no_save)
    with tempfile.TemporaryDirectory() as folder:

        def run_of(clients: int, services: int, played: int) -> Path:
            place = Path(folder) / f"{clients}-{services}-{played}"
            place.mkdir(exist_ok=True)
            return written(place, market(clients, services, played))

        for report.part in given.only:
            if report.part == "large":
                for name, found in large(run_of(10_000, 50, 6)).items():
                    report.figure(f"screen of 10,000 clients and 50 services: {name}", "ms", found)
            elif report.part == "live":
                for budget in (20, 1_000):
                    for name, found in live(10_000, 50, budget, steps=6, seconds=15).items():
                        what = f"live market of 10,000 clients and 50 services with a budget of {budget:,}: {name}"
                        report.figure(what, "ms", found)
            elif report.part == "load":
                seconds = load(run_of(20, 3, ROUNDS_LOADED))
                report.figure(f"a run of {ROUNDS_LOADED:,} rounds, from its folder to the screen", "s", [seconds])
            else:
                for c, m in SIZES:
                    if report.part == "round":
                        shown_rounds = rounds(run_of(c, m, ROUNDS + 1), given.repeat)
                        report.figure(f"a shown round, {c} x {m}", "ms of CPU", shown_rounds)
                    else:
                        what = f"from a key to its picture while a runner plays, {c} x {m}"
                        report.figure(what, "ms", keys(c, m, given.presses))
    report.close()


if __name__ == "__main__":
    main()
