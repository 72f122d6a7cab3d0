"""Every command, scenario and program of the README and of docs/ works as it is written there.

Commands run in one folder, in the order of each page, as a reader would type them. Long ones are cut short: fewer
rounds, seeds and episodes, and the surrogate where images would have to be downloaded. What needs a terminal is parsed
only.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from fl import fused
from fl.installation import command
from scenarios.file.problems import ScenarioError
from scenarios.loader import load, parse
from tui.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_TEST = {"docs/extending.md"}  # tests/docs/test_extending.py runs all of it

SHORT = {
    "run": ["--seeds", "1", "--rounds", "2", "--jobs", "1", "--quiet"],
    "train": ["--episodes", "1", "--evaluate-every", "1", "--seeds", "1", "--workers", "0", "--quiet"],
}
SCREENS = {"tui", "replay"}
LONG = {"calibrate"}  # hours of training; tests/tui/commands/test_calibrate.py runs small ones


def blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks of some languages."""
    return [body for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if language in languages]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each line that is a flmarket command: in a fenced block, or indented by four spaces."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif found := re.match(r"(?:\$ )?(flmarket .*)" if fenced else r" {4}(flmarket .*)", line):
            yield shlex.split(re.sub(r"\s{2,}\S.*$", "", found[1]), comments=True)  # what follows is an explanation


def of(page: Path) -> str:
    return str(page.relative_to(ROOT))


ALL = [(of(page), words) for page in PAGES for words in commands(page.read_text()) if of(page) not in OWN_TEST]


def context(words: list[str]) -> click.Context:
    """Parse a command line, without running it."""
    found: click.Command | None = typer.main.get_command(app)
    assert found is not None
    parsed = found.make_context("flmarket", list(words))
    while isinstance(found, click.Group):
        name, found, rest = found.resolve_command(parsed, [*parsed._protected_args, *parsed.args])
        assert found is not None
        parsed = found.make_context(name, rest, parent=parsed)
    return parsed


def test_there_are_commands_to_run() -> None:
    """The test reads the pages right."""
    pages = {page for page, _ in ALL}
    assert pages >= {"README.md", "docs/mahdrl.md", "docs/reproduction.md", "docs/surrogate.md", "docs/tui.md"}
    assert len(ALL) > 30
    assert {words[1] for _, words in ALL} >= {"run", "train", "report", "verify", "export", "validate", "tui", "replay"}


@pytest.mark.parametrize(("page", "words"), ALL, ids=lambda it: it if isinstance(it, str) else " ".join(it))
def test_every_command_is_one(page: str, words: list[str]) -> None:
    """Names and options are those that there are."""
    if ">" in words:
        words = words[: words.index(">")]
    context(words[1:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    policy = next(block for block in blocks((ROOT / "README.md").read_text(), "python") if "BigSpender" in block)
    own = re.search(r"import flmarket\n.*?(?=\nscenario = )", policy, re.S)
    assert own is not None
    registered = own[0].replace("class BigSpender", '@flmarket.policy("big-spender")\nclass BigSpender')
    (folder / "big_spender.py").write_text(registered)
    return folder


def runnable() -> list[tuple[str, str, list[str]]]:
    found = []
    for page, words in ALL:
        if words[1] in SCREENS | LONG:
            continue
        short = [*words, *SHORT.get(words[1], [])]
        if words[1] in SHORT and not {"quickstart", "surrogate"} & set(words):
            short += ["--set", "training.backend=surrogate"]
        if (page, " ".join(words), short) not in found:
            found.append((page, " ".join(words), short))
    return found


@pytest.mark.parametrize(
    ("page", "name", "words"), runnable(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_does_what_it_says(page: str, name: str, words: list[str], folder: Path) -> None:
    """In order: later commands use what earlier ones left."""
    place = folder / page.replace("/", "-")
    place.mkdir(exist_ok=True)
    if not (place / "big_spender.py").exists():
        (place / "big_spender.py").write_bytes((folder / "big_spender.py").read_bytes())
        if "my-market.toml" in (ROOT / page).read_text():
            (place / "my-market.toml").write_text((ROOT / "scenarios/builtin/quickstart.toml").read_text())
    output = None
    if ">" in words:
        output = place / words[words.index(">") + 1]
        words = words[: words.index(">")]
    words = [str(next(place.glob(word.replace("...", "*")))) if "..." in word else word for word in words]
    done = subprocess.run(command("tui.cli", *words[1:]), cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
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


def test_the_programs_of_the_readme_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / "README.md"
    place.mkdir(exist_ok=True)
    monkeypatch.chdir(place)
    names: dict[str, object] = {"__name__": "readme"}
    programs = blocks((ROOT / "README.md").read_text(), "python")
    assert len(programs) == 2
    for program in programs:
        short = program.replace("seeds=3, jobs=2", "seeds=1, rounds=2, progress=False")
        assert short != program or "read_csv" in program
        if "read_csv" in short:
            [table] = place.glob("runs/quickstart-*/as-configured/seed-0000/rounds.csv")
            short = short.replace("runs/quickstart-.../as-configured/seed-0000/rounds.csv", str(table))
        exec(compile(short, "README.md", "exec"), names)  # noqa: S102 - our own page


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links, to files that are there."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_what_make_is_asked_for_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)", page.read_text(), re.M):
            assert set(filter(None, target)) <= targets, (page, target)


def test_built_in_scenarios_that_pages_name_are_there() -> None:
    for name in ("quickstart", "paper", "paper-fitted", "paper-budget", "paper-cores", "scarce"):
        load(name)


def test_the_readme_shows_what_make_run_prints(tmp_path: Path) -> None:
    """The table, row by row; results are the same bytes under the same kernel only, and the README's is AVX-512's."""
    if not fused.available() or fused.kernel_name() != "fused-avx512":
        pytest.skip("the README's table was made with the kernel fused-avx512")
    text = (ROOT / "README.md").read_text()
    assert "flmarket run quickstart --fresh" in (ROOT / "Makefile").read_text()
    done = subprocess.run(
        command("tui.cli", "run", "quickstart", "--quiet"), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shown = next(block for block in blocks(text, "") if "quickstart (as-configured)" in block)
    printed = [re.sub(r" +", " ", line.strip()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        assert re.sub(r" +", " ", line.strip()) in printed
