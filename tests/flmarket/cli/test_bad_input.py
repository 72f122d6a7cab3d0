"""Whatever is wrong with what was typed, every command says it, with status 2, and leaves nothing behind."""

from pathlib import Path

import pytest

from support.shell import Done, flmarket

SEEDS = "seed 3 is not one of the suite's: 7101, 7102, 7103, 7104, 7105"
ROUND_1 = "--round 1 --service"
TURNS = "together is the number of services that learn in the same turn; add the option rotate"
NOTHING_TO_TRAIN_IN = "nothing to train in: name a scenario, or draw markets with --draw N"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("help", "flmarket --help"),
        ("quickstart", "flmarket run quickstart"),
        ("mine.toml", "flmarket run mine.toml"),
        ("run", "Missing argument"),
        ("run papre", "paper"),
        ("run quickstart --policy hqfaa", "did you mean 'hqfa'?"),
        ("run quickstart --policy random,hqfa", "policy 'random,hqfa': name each by itself"),
        ("run quickstart --seed 7,8", "--seeds takes several, such as 7,8"),
        ("run quickstart --seeds 3..1", "runs backwards"),
        ("run quickstart --rounds 0", "rounds=0: must be greater than or equal to 1, not 0"),
        ("run quickstart --set clients.cores", "clients.cores"),
        ("run quickstart --workers -1", "workers"),
        ("run quickstart --jobs 0", "jobs"),
        ("run quickstart --quiet --backend surrogate --out /dev/null/runs", "be written: Not a directory"),
        ("run quickstart --ray-address x", "only the engine ray takes the address of a Ray cluster"),
        ("run quickstart --fresh --fresh-changed", "choose one of the options fresh, which starts all runs over, and"),
        ("run quickstart --engine ray --decision-timeout 5", "the engine ray takes no decision timeout: a task cannot"),
        ("train --out agent", NOTHING_TO_TRAIN_IN),
        ("train paper --out agent --together 2", TURNS),
        ("train --draw 2 --set rounds=3 --out agent", "--set changes the scenarios that are named; markets drawn with"),
        ("train paper --draw-seed 3 --out agent", "--draw-seed 3: says which markets are drawn; add --draw N"),
        ("train --draw 2 --backend real --out agent", "backend 'real': drawn markets have learning curves; choose sur"),
        ("train --draw 2 --backend nosuch --out agent", "backend 'nosuch': drawn markets have learning curves; choose"),
        ("scenarios show papre", "paper"),
        ("verify nowhere", "nowhere"),
        ("report nowhere", "nowhere"),
        ("report runs --baseline hqfa", "no run has that policy; choose from lcfa, random"),
        ("export nowhere --csv x.csv", "nowhere"),
        ("export runs", "choose one file to write: either --csv FILE or --parquet FILE"),
        ("explain nowhere --round 1 --service x", "nowhere: no such directory"),
        ("explain {run} --round 99 --service alpha", "unknown round 99; the run has rounds 1 to 4"),
        (f"explain {{run}} {ROUND_1} nobody", "unknown service 'nobody'"),
        (f"explain nowhere {ROUND_1} x --csv lost/t.csv", "lost/t.csv: cannot be written: No such"),
        ("replay nowhere", "nowhere: no such directory"),
        ("replay {run} --round 99", "unknown round 99; the run has rounds 1 to 4"),
        ("replay {run} --round 0", "--round"),
        ("replay {run} --round ten", "--round"),
        ("replay {run} --save clip.gif", "whose files end in .cast"),
        ("suite", "name a policy to play, or submissions to compare with --leaderboard"),
        ("suite --leaderboard . --seed 3", SEEDS),
        ("suite --leaderboard nowhere.json", "nowhere.json: cannot be read: No such file or directory"),
        ("suite hqfb", "unknown policy 'hqfb'; did you mean 'hqfa'?"),
        ("suite hqfa --markets stirred", "unknown market of the suite 'stirred'; did you mean 'starved'?"),
        ("suite hqfa --seed 3", SEEDS),
        ("suite hqfa --seeds 6", "--seeds 6: a count is 1 to 5; a seed of its own is --seed 7101"),
        ("suite hqfa lcfa --out one.json", "--out one.json: is one file for several policies; name a folder"),
        ("suite hqfa --markets alone --mode visitor", "nothing to play: a market with one service has no visitors"),
        ("suite mine.py:It", "policy 'mine.py:It': load the plug-in file mine.py first, then name It alone"),
        ("suite mahdrl: --seed 7101", "the path of a checkpoint must follow the colon"),
        ("league paper", "a league needs at least two policies; give --policy for each"),
        ("league paper --policy hqfa --policy hqfa", "a league needs at least two policies"),
        ("league paper --policy hqfa --policy lcfb", "unknown policy 'lcfb'; did you mean 'lcfa'?"),
        ("league paper --policy hqfa --policy lcfa --seeds no", "seeds 'no'"),
        (
            "league paper-cores --policy hqfa --policy lcfa",
            "a league is played in one market, but scenario 'paper-cores' varies clients.cores",
        ),
        ("certify vgc", "unknown mechanism 'vgc'; did you mean 'vcg'? (for one of your own, load its plug-in file)"),
        ("certify vcg --option sid=1", "mechanism 'vcg' takes no option 'sid'; did you mean 'side'?"),
        ("certify vcg --option side", "--option side: must be KEY=VALUE"),
        ("certify vcg --option side=[1", "--option side=[1: the value is not valid TOML"),
        ("certify vcg --option side=services --option side=clients", "--option side: is given twice; leave one out"),
        ("certify posted-price", "mechanism 'posted-price' needs the option 'price_per_sample'"),
        ("certify iterated --option steps=0", "mechanism 'iterated': steps must be a whole number from 1 to 1000"),
    ],
)
def test_it_is_said_with_status_2_and_nothing_is_left_behind(
    typed: str, problem: str, batch: Path, tmp_path: Path
) -> None:
    (tmp_path / "runs").symlink_to(batch / "runs")
    run = min(tmp_path.glob("runs/*/lcfa/seed-0000"))
    done = flmarket(*typed.format(run=run).split(), cwd=tmp_path, env={"COLUMNS": "200"})
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    usage = done.stderr.startswith("Usage: ")  # which says more than the one line
    assert usage or done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_run_without_a_round_has_none_to_replay(quick_run: tuple[Path, Done], tmp_path: Path) -> None:
    [scenario] = quick_run[0].rglob("scenario.toml")
    (tmp_path / "scenario.toml").write_bytes(scenario.read_bytes())
    done = flmarket("replay", str(tmp_path), "--round", "1")
    assert (done.returncode, "unknown round 1; the run has no round" in done.stderr) == (2, True)
