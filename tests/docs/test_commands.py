"""Every command, scenario and program of the README and of docs/ works as it is written there.

The commands of a page run in one folder and in its order, as a reader would type them. Long ones are cut short: fewer
rounds, seeds and episodes, and the surrogate where images would have to be downloaded. What needs a terminal is parsed
only.
"""

import io
import json
import re
import runpy
import subprocess
import textwrap
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import flmarket
from fl.training import fused
from flmarket.analysis.figures import drawing
from flmarket.core.installation import command
from scenarios.file.problems import ScenarioError
from scenarios.loader import load, parse
from support import shell
from support.benchmarks import printed
from support.pages import ROOT, blocks, commands, of, scripts, understands
from support.pages import parse as parsed

START = ROOT / "docs/start.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_TEST = {
    "docs/auction-based-fl.md",
    "docs/data.md",
    "docs/tutorials/changing.md",
    "docs/extending.md",
    *(f"docs/extending/{name}.md" for name in ("policy", "model", "dataset", "mechanism", "behaviour")),
    *(f"docs/extending/{name}.md" for name in ("cost", "response", "aggregator", "trigger", "measure")),
}
"""Beside this file, a test for each runs all of it."""

SHORT = {
    "run": "--seeds 1 --rounds 2 --jobs 1",
    "train": "--episodes 1 --evaluate-every 1 --seeds 1 --workers 0 --set rounds=8",
    "fork": "--round 2",
    "suite": "--markets alone --seed 7101",
    "certify": "--markets 1 --tries 10",
    "league": "--seeds 1 --rounds 2",
}
SCREENS = {"tui", "replay", "demo"}
LONG = {"calibrate"}  # hours of training; tests/flmarket/cli/commands/test_calibrate.py runs small ones


ALL = [(of(page), words) for page in PAGES for words in commands(page.read_text()) if of(page) not in OWN_TEST]


def test_there_are_commands_to_run() -> None:
    """The test reads the pages right."""
    pages = {page for page, _ in ALL}
    assert pages >= {"docs/start.md", "docs/mahdrl.md", "docs/surrogate.md", "docs/tui.md"}
    assert len(ALL) > 30
    assert {words[1] for _, words in ALL} >= {"run", "train", "report", "verify", "export", "validate", "tui", "replay"}


@pytest.mark.parametrize(("page", "words"), ALL, ids=lambda it: it if isinstance(it, str) else " ".join(it))
def test_every_command_is_one(page: str, words: list[str]) -> None:
    """Names and options are those that there are."""
    parsed(words)


@pytest.fixture
def own_policy() -> str:
    """The policy of the first page's program, as a plug-in file."""
    policy = next(block for block in blocks(START.read_text(), "python") if "BigSpender" in block)
    own = re.search(r"import flmarket\n.*?(?=\nscenario = )", policy, re.S)
    assert own is not None
    return own[0]


def runnable() -> dict[str, list[list[str]]]:
    """Return the commands of each page, cut short."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for page, words in ALL:
        if words[1] in SCREENS | LONG or any(word.startswith("examples/") for word in words):
            continue  # tests/examples plays what examples have trained
        if "training.validation" in " ".join(words):  # which only real training has
            words = ["quickstart" if word == "paper" else word for word in words]
        plays = words[1:3] != ["suite", "--leaderboard"]  # which shows what has been played
        cut = SHORT.get(words[1], "").split() if plays else []
        cut += ["--quiet"] if words[1] in SHORT else []
        if "--seed" in words and "--seeds" in cut:  # which is one seed already
            at = cut.index("--seeds")
            del cut[at : at + 2]
        short = [*words, *cut]
        if words[1] in ("run", "train") and not {"quickstart", "surrogate"} & set(words):
            short += ["--set", "training.backend=surrogate"]
        if short not in found[page]:
            found[page].append(short)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("page", "commands"), runnable().items(), ids=lambda it: it if isinstance(it, str) else "")
def test_every_command_does_what_it_says(
    page: str, commands: list[list[str]], own_policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order: later commands use what earlier ones left."""
    monkeypatch.setattr(drawing, "FORMATS", ("svg",))  # the others take long
    (tmp_path / "big_spender.py").write_text(own_policy)
    if "my-market.toml" in (ROOT / page).read_text():
        (tmp_path / "my-market.toml").write_text((ROOT / "scenarios/builtin/quickstart.toml").read_text())
    if "rules.toml" in (ROOT / page).read_text():
        sweep = blocks((ROOT / page).read_text(), "toml")[0]
        (tmp_path / "rules.toml").write_text((ROOT / "scenarios/builtin/quickstart.toml").read_text() + sweep)
    if "--plugin critical_price.py" in (ROOT / page).read_text():
        (tmp_path / "critical_price.py").write_text(blocks((ROOT / page).read_text(), "python")[0])
    for words in commands:
        run(words, tmp_path)


def run(words: list[str], place: Path) -> None:
    output = None
    if ">" in words:
        output = place / words[words.index(">") + 1]
        words = words[: words.index(">")]
    words = [str(next(place.glob(word.replace("...", "*")))) if "..." in word else word for word in words]
    done = shell.flmarket(*words[1:], cwd=place)
    assert done.returncode == 0, " ".join(words) + "\n" + done.stdout + done.stderr
    if output is not None:
        output.write_text(done.stdout)


@pytest.mark.parametrize("page", [page for page in PAGES if of(page) not in OWN_TEST], ids=of)
def test_every_scenario_is_valid(page: Path) -> None:
    """Blocks of TOML that are whole scenarios."""
    for block in blocks(page.read_text(), "toml"):
        if "[[services]]" in block and "rounds" in block:
            try:
                parse(block, of(page))
            except ScenarioError as error:
                pytest.fail(str(error))


def test_the_scenario_of_the_first_page_runs_on_the_surrogate_as_it_stands(tmp_path: Path) -> None:
    """No [training]: each data set is trained as its curve was measured."""
    [text] = [block for block in blocks(START.read_text(), "toml") if "[[services]]" in block]
    assert "[training" not in text
    (tmp_path / "market.toml").write_text(text)
    run(["flmarket", "run", "market.toml", "--set", "training.backend=surrogate"], tmp_path)
    runs = [json.loads(path.read_text()) for path in tmp_path.glob("runs/two-services-*/*/*/meta.json")]
    assert sorted(meta["sweep"]["clients.cores"] for meta in runs) == [1, 2]
    for meta in runs:
        trained = {name: (keys["local_epochs"], keys["learning_rate"]) for name, keys in meta["training"].items()}
        assert trained == {"mnist": (1, 0.04), "fashion-mnist": (2, 0.025)}
        assert {origin for keys in meta["training"].values() for origin in keys["from"].values()} == {"fits"}


@pytest.mark.slow
def test_the_program_of_the_first_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = blocks(START.read_text(), "python")
    short = program.replace("seeds=3, jobs=2", "seeds=1, rounds=2, progress=False")
    assert short != program
    exec(compile(short, "start.md", "exec"), {"__name__": "start"})  # noqa: S102 - our own page


@pytest.mark.slow
def test_the_program_of_the_readme_ends_in_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = blocks((ROOT / "README.md").read_text(), "python")
    short = program.replace("seeds=3", "seeds=1, rounds=2, progress=False")
    assert short != program
    exec(compile(short, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 - our own page
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000


def test_the_policy_of_the_first_page_copes_with_clients_that_are_offline(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    program = next(block for block in blocks(START.read_text(), "python") if "BigSpender" in block)
    exec(program.partition("scenario =")[0], names)  # noqa: S102 - our own page
    shock = {"round": 1, "key": "clients.offline", "value": list(range(6))}
    scenario = flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 2, "interventions": [shock]})
    played = flmarket.run(scenario, names["BigSpender"], out=tmp_path, progress=False)
    assert played.offers["client"].min() >= 6


def test_the_program_of_the_page_on_what_ifs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = flmarket.load("scarce", {"training.backend": "surrogate", "rounds": 2})
    [run] = flmarket.run(scenario, "hqfa", seeds=1, out="runs", progress=False).paths
    [program] = blocks((ROOT / "docs/what-if.md").read_text(), "python")
    assert 'flmarket.fork("runs/scarce-.../hqfa/seed-0000", 20, changes' in program
    short = program.replace("scarce-...", run.parents[1].name).replace(", 20, changes", ", 2, changes")
    exec(compile(short, "what-if.md", "exec"), {"__name__": "what-if"})  # noqa: S102
    assert len(list(tmp_path.glob("runs/scarce-*/hqfa/seed-0000/meta.json"))) == 3


def test_the_program_of_the_page_on_reading_logs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 2})
    [run] = flmarket.run(scenario, seeds=1, out="runs", progress=False).paths
    [program] = blocks((ROOT / "docs/reading.md").read_text(), "python")
    assert "runs/quickstart-.../as-configured/seed-0000/rounds.csv" in program
    names: dict[str, object] = {"__name__": "reading"}
    exec(compile(program.replace("quickstart-...", run.parents[1].name), "reading.md", "exec"), names)  # noqa: S102
    assert len(names["rounds"]) == 2 * 3  # type: ignore[arg-type]


def test_the_programs_of_the_page_on_training_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, of_any_size = blocks((ROOT / "docs/training.md").read_text(), "python")
    short = program.replace("seeds=5", "seeds=1, rounds=2, progress=False")
    assert short != program
    (tmp_path / "training.py").write_text(short)
    runpy.run_path("training.py", run_name="__main__")
    [meta] = tmp_path.glob("runs/paper-*/good-half/seed-0000/meta.json")
    assert len(set(json.loads(meta.read_text())["agents"].values())) == 1
    (tmp_path / "sized.py").write_text(of_any_size)
    flmarket.load_plugin("sized.py")
    played = flmarket.run("quickstart", "everybody", rounds=1, out=tmp_path / "sized", progress=False)
    assert set(played.offers.service) == {"digits", "strokes", "scribbles"}


def test_the_program_of_the_page_on_the_environment_runs() -> None:
    page = (ROOT / "docs/decisions/environment.md").read_text()
    [program] = re.findall(r"^    import flmarket\n(?:    .*\n|\n)+", page, re.M)
    names: dict[str, object] = {"__name__": "environment"}
    exec(compile(textwrap.dedent(program), "environment.md", "exec"), names)  # noqa: S102 - our own page
    names["env"].reset(seed=0)  # type: ignore[attr-defined]


SCRIPTS = [(of(page), words) for page in PAGES for words in scripts(page) if words[0].startswith("benchmarks/")]


def test_there_are_scripts_to_run() -> None:
    shared = {"contest.py", "measure.py", "plain.py"}
    programs = {f"benchmarks/{path.name}" for path in (ROOT / "benchmarks").glob("*.py") if path.name not in shared}
    assert {words[0] for _, words in SCRIPTS} == programs


@pytest.mark.parametrize(("page", "words"), SCRIPTS, ids=lambda it: it if isinstance(it, str) else " ".join(it))
def test_every_script_takes_its_arguments(page: str, words: list[str]) -> None:
    """The script itself reads them, with everything imported that it needs; it takes too long to run."""
    understands(words)


@pytest.mark.parametrize("script", sorted({words[0] for _, words in SCRIPTS} | {"examples/train_sb3.py"}))
def test_every_script_explains_itself(script: str) -> None:
    if script.startswith("examples"):
        pytest.importorskip("stable_baselines3")
    assert f"usage: {Path(script).name}" in printed(script, "--help")


def test_the_programs_of_the_page_on_the_dqi_print_its_tables() -> None:
    page = (ROOT / "docs/decisions/dqi.md").read_text()
    programs = re.findall(r"`python -c \"(.*)\"`", page)
    assert len(programs) == 2  # with the published parameters, and with those of Jiao et al.
    with redirect_stdout(io.StringIO()) as output:
        for program in programs:
            exec(program, {})  # noqa: S102 - our own page
    found = [f"{float(value):.4f}" for value in re.findall(r"\d\.\d+", output.getvalue())]
    shown = re.findall(r"^\| D = \d+ \|(.*)\|$", page, re.M)
    assert found == [f"0{value.strip()}" for row in shown for value in row.split("|")]


def test_what_make_is_asked_for_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)", page.read_text(), re.M):
            assert set(filter(None, target)) <= targets, (page, target)


BUILTIN = [path.stem for path in (ROOT / "scenarios/builtin").glob("*.toml")]


def named_scenarios(text: str) -> set[str]:
    """Return the scenarios that a page names: to commands, to functions, or as `paper-cores` in a sentence."""
    word = r"[a-z][\w-]*(?![\w./-])"
    families = "|".join(sorted({name.partition("-")[0] for name in BUILTIN}))
    return {
        *re.findall(rf"flmarket (?:run|train|tui|validate|calibrate \w+) ({word})", text),
        *re.findall(rf"flmarket\.(?:load|parallel_env|service_env)\(\"({word})\"", text),
        *re.findall(rf"`((?:{families})(?:-[a-z-]+)?)`", text),
    }


def test_names_of_scenarios_are_found_in_a_page() -> None:
    page = (
        "    flmarket run paper-shock --seeds 3\n    flmarket run my-market.toml\n    flmarket calibrate dqi quickest\n"
        'In `paper-war`, `paper` and `--policy hqfa`: `flmarket.load("slowstart", {})`.\n'
    )
    assert named_scenarios(page) == {"paper-shock", "quickest", "paper-war", "paper", "slowstart"}


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_built_in_scenarios_that_a_page_names_are_there(page: Path) -> None:
    for name in sorted(named_scenarios(page.read_text())):
        load(name)


def test_every_built_in_scenario_is_named_in_some_page() -> None:
    assert set(BUILTIN) == set.union(*(named_scenarios(page.read_text()) for page in PAGES))


@pytest.mark.slow
def test_the_first_page_shows_what_make_run_prints(tmp_path: Path) -> None:
    """The table, row by row, on every machine that has the compiled kernel."""
    if not fused.available():
        pytest.skip("the page's table was made with the compiled kernel, which is not here")
    text = START.read_text()
    assert "flmarket run quickstart --fresh" in (ROOT / "Makefile").read_text()
    done = subprocess.run(
        command("flmarket.cli.main", "run", "quickstart", "--quiet"), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shown = next(block for block in blocks(text, "") if "quickstart (as-configured)" in block)
    printed = [re.sub(r" +", " ", line.strip()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        assert re.sub(r" +", " ", line.strip()) in printed
