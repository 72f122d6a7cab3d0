"""The science is what it was: values of logs, numbers of reports and verdicts are those of revision 354198b.

Those of keys that it did not have, of groups of clients and of ``[data]``, are of when their cases were added.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from torch.backends.cpu import get_cpu_capability

from fl.training import fused
from golden.commands import ASKED
from golden.science import agent, judged, logs, recorded, said
from golden.science_cases import CASES, TRAININGS, Case
from golden.values import holds
from scenarios.file.differences import flattened
from scenarios.file.schema import Service
from support.shell import flmarket

ROOT = Path(__file__).parents[1]

needs_kernel = pytest.mark.skipif(not fused.available(), reason="no compiled kernel: plain torch promises no bytes")
TRAINED = {
    name for name, case in CASES.items() if case.scenario == "quickstart" and "training.eval_samples" in case.changes
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs_kernel] if name in TRAINED else []) for name in CASES]
)
def test_logs_hold_the_values_that_they_held(name: str, tmp_path: Path) -> None:
    found = logs(name, tmp_path)
    assert len(found) == len(recorded()["logs"][name])
    for run in recorded()["logs"][name]:
        assert any(holds(run, other) for other in found), f"{name}: values differ"


@pytest.mark.skipif(
    get_cpu_capability() != "AVX512" or "AuthenticAMD" not in Path("/proc/cpuinfo").read_text(),
    reason="they were trained with torch's code for AVX-512 on an AMD processor; MKL has other code for others",
)
@pytest.mark.parametrize("name", TRAININGS)
def test_trainings_make_the_agents_that_they_made(name: str, tmp_path: Path) -> None:
    assert agent(name, tmp_path) == recorded()["agents"][name]


def printed(*arguments: str) -> str:
    return flmarket(*arguments).stdout


@pytest.mark.slow
@pytest.mark.parametrize("names", [ASKED.keys() - {"bounds"}, {"bounds"}], ids=["quick", "bounds"])
def test_commands_say_the_numbers_that_they_said(
    names: Collection[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(printed, names) == {name: recorded()["commands"][name] for name in names}


@pytest.mark.slow
def test_verify_finds_the_damage_that_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said(printed, names=())  # plays the runs
    assert judged() == recorded()["verdicts"]


NO_LOG_CHANGES = {"name", "description", "device"}
"""Keys that stand in no log, or change nothing in one; services are those of the built-in scenarios."""
TABLES = {
    "[clients]": "clients.", "[[clients.groups]]": "clients.groups.", "[data]": "data.", "[market]": "market.",
    "[training]": "training.", "[timeline]": "timeline.",
    "[[services]]": "services.*.", "[[streams]]": "streams.*.", "[[interventions]]": "interventions.",
}  # fmt: skip


def keys_of_the_page() -> Iterator[str]:
    """Yield every key of docs/scenario.md that changes a log, with its table."""
    page = (ROOT / "docs/scenario.md").read_text().partition("<!-- reference: begin -->")[2]
    for title, part in re.findall(r"\n### (.*?)\n(.*?)(?=\n### |<!-- reference: end)", page, re.DOTALL):
        before = TABLES.get(title.strip("`"), "")
        for key in re.findall(r"^\| `(.*?)` \|", part, re.MULTILINE):
            shared = before == "streams.*." and key.partition(".")[0] in Service.model_fields  # what each service has
            if key not in {*NO_LOG_CHANGES, "services"} and not shared:
                yield before + key


def keys_of(case: Case) -> Iterator[str]:
    """Yield the keys that a case sets, as the page spells them."""
    for key, value in case.changes.items():
        yield re.sub(r"^(services|streams)\.[^.]+\.", r"\1.*.", key)
        yield from (key[: at.start()] for at in re.finditer(r"\.", key))
        if key == "interventions":
            yield from (f"interventions.{name}" for change in value for name in change)
        tables = value if key == "clients.groups" else [value] if isinstance(value, Mapping) else []
        for name in (f"{key}.{below}" for table in tables for below in flattened(table)):
            yield from (name, *(name[: at.start()] for at in re.finditer(r"\.", name)))


def test_every_key_stands_in_at_least_two_cases() -> None:
    seen = Counter(key for case in CASES.values() for key in set(keys_of(case)))
    assert [key for key in keys_of_the_page() if seen[key] < 2] == []
