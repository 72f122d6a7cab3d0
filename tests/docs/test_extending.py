"""The examples of docs/extending/ and docs/extending.md, in order: their files are written, and their commands run."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import flmarket
from flmarket.cli.main import main
from flmarket.core import plugins
from scenarios.file.schema import REGISTRIES

DOCS = Path(__file__).parents[2] / "docs"
KINDS = "policy", "model", "dataset", "mechanism", "behaviour", "cost", "response", "aggregator", "trigger", "measure"
PAGES = [DOCS / f"extending/{name}.md" for name in KINDS]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Run = Callable[[str], str]


def blocks(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the files of a part of the page by their names, which their first lines say, and its commands."""
    files, commands = {}, []
    for language, content in BLOCK.findall(text):
        if language == "console":
            commands += [line.removeprefix("$ ") for line in content.splitlines()]
        else:
            files[content.partition("\n")[0].removeprefix("# ")] = content
    return files, commands


TOGETHER, _, PACKAGE = (DOCS / "extending.md").read_text(encoding="utf-8").partition("## As a package")
BY_FILE = blocks("".join(page.read_text(encoding="utf-8") for page in PAGES) + TOGETHER)
BY_PACKAGE = blocks(PACKAGE)
TESTS = {name: BY_FILE[0].pop(name) for name in [*BY_FILE[0]] if name.startswith("test_")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's files; what its commands write comes to lie beside them."""
    folder = tmp_path_factory.mktemp("extending")
    for name, content in (BY_FILE[0] | BY_PACKAGE[0] | TESTS).items():
        (folder / name).write_text(content)
    return folder


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of the page in the folder and returns what it prints; it must succeed."""

    def run(command: str) -> str:
        for registry in REGISTRIES:  # as in a new process
            registry._registered.clear()
        plugins._declared.cache_clear()
        program, *words = shlex.split(command)
        assert program == "flmarket"
        arguments: list[str] = []
        for word in words:
            arguments += sorted(map(str, Path().glob(word))) if "*" in word else [word]
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert not ended.value.code, f"$ {command}\n{printed.err}"
        return printed.out

    monkeypatch.chdir(folder)
    return run


@pytest.mark.slow
def test_every_command_runs_with_plugins_from_files(run: Run) -> None:
    plugins_of_ones_own = {
        "markup.py",
        "one_client.py",
        "tiny.py",
        "bars.py",
        "next_price.py",
        "patient.py",
        "hourly.py",
        "cubic.py",
        "contracts.py",
        "half_way.py",
        "half_of_them.py",
        "on_delivery.py",
        "image_price.py",
        "best_gain.py",
        "paced_bidder.py",
        "reputation.py",
        "one_budget.py",
        "on_record.py",
    }
    assert set(BY_FILE[0]) == plugins_of_ones_own | {"bars.toml"}
    printed = "".join(map(run, BY_FILE[1]))
    assert "Noisy bars: horizontal, vertical or diagonal, in colour." in printed
    assert "valid: 2 rounds" in printed
    assert "same bytes again" in printed

    assert "image-price" in printed
    assert "social welfare" in printed

    [alone] = Path("runs").glob("quickstart-*/one-client")
    assert set(pd.read_csv(alone / "seed-0000" / "rounds.csv")["wanted"]) == {1}
    [surrogate] = Path("runs").glob("quickstart-*/markup")
    offers = pd.read_csv(surrogate / "seed-0000" / "offers.csv")
    assert (offers["payment"] > offers["bid"]).all()
    offers = pd.concat(map(pd.read_csv, Path("runs").glob("bars-*/as-configured/*/offers.csv")))
    served = offers[offers["outcome"] == "served"]
    assert (served["paid"] < served["payment"]).any()  # next-price
    files = Path("runs").glob("quickstart-*/as-configured/*/clients.csv")
    clients = pd.concat([pd.read_csv(it) for it in files if "patient" in it.with_name("scenario.toml").read_text()])
    markups = (clients["bid"] / clients["cost"] - 1).groupby(clients["round"]).min()
    assert markups[1] == pytest.approx(0.5, abs=1e-5)
    assert markups[5] < 0.45  # patient


@pytest.mark.parametrize("name", TESTS)
def test_the_pages_tests_pass_without_pytest(folder: Path, name: str) -> None:
    tests = "[test() for key, test in vars(it).items() if key.startswith('test_')]"
    code = f"import sys, {name[:-3]} as it; {tests}; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def test_the_policy_copes_with_clients_that_are_offline(run: Run) -> None:
    shock = "interventions=[{round=1, key='clients.offline', value=[0, 1, 2, 3, 4, 5]}]"
    run(
        "flmarket run quickstart --plugin markup.py --policy markup --set training.backend=surrogate --rounds 2 "
        f'--out offline --set "{shock}"'
    )
    [offers] = Path("offline").rglob("offers.csv")
    assert pd.read_csv(offers)["client"].min() >= 6


@pytest.mark.slow
def test_the_same_files_work_as_an_installed_package(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads(BY_PACKAGE[0]["pyproject.toml"])["project"]
    info = tmp_path / f"my_plugins-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in entries.items()) for group, entries in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name in BY_FILE[0]:
        if name.endswith(".py"):
            (tmp_path / name).write_text(BY_FILE[0][name])
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    listing, table = map(run, BY_PACKAGE[1])
    (line,) = (line for line in listing.splitlines() if line.startswith("│ markup "))
    assert "my-plugins 1.0" in line
    assert "generous" in table
    monkeypatch.undo()  # as if it was not installed
    monkeypatch.chdir(folder)
    run(
        "flmarket run bars.toml --out files" + "".join(f" --plugin {name}" for name in BY_FILE[0] if name[-3:] == ".py")
    )
    [installed], [file] = (Path(out).rglob("rounds.csv") for out in ("installed", "files"))
    assert installed.read_bytes() == file.read_bytes()


def test_the_page_of_mechanisms_names_all_that_a_class_can_say() -> None:
    page = (DOCS / "extending/mechanism.md").read_text(encoding="utf-8")
    said = [name for name, kind in vars(flmarket.Mechanism)["__annotations__"].items() if "ClassVar" in str(kind)]
    assert "by_client" in said
    assert [
        name for name in said if not re.search(rf"`{name} = True`|^- `{name}`|^    {name} = ", page, re.MULTILINE)
    ] == []
