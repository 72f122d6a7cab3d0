"""The campaign of ``make attack``: the tool works, and what goes wrong is found and kept."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from attack import damage, kills, plugins, texts
from attack.campaign import Campaign, Record, run, table, try_one
from attack.shell import Done, differences


def sometimes(random: random.Random, folder: Path) -> Iterator[str]:
    (folder / "file").touch()
    if random.random() < 0.5:
        yield "wrong"


CAMPAIGN = Campaign("sometimes", "half of the attempts go wrong", 40, sometimes)


@pytest.mark.slow
@pytest.mark.parametrize("campaign", [*texts.CAMPAIGNS, *damage.CAMPAIGNS], ids=lambda campaign: campaign.name)
def test_an_attempt_finds_nothing_wrong(campaign: Campaign) -> None:
    assert try_one(campaign, seed=1, number=0)[0] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("campaign", "number"), [*((kills.CAMPAIGNS[0], n) for n in range(4)), *((it, 0) for it in kills.CAMPAIGNS[1:])]
)
def test_what_is_killed_at_random_instants_ends_with_the_same_bytes(campaign: Campaign, number: int) -> None:
    assert try_one(campaign, seed=1, number=number)[0] == []


@pytest.mark.slow
def test_an_attempt_of_mistaken_policies_finds_nothing_wrong() -> None:
    assert try_one(plugins.CAMPAIGNS[0], seed=1, number=0)[0] == []


def test_attempts_depend_on_seed_and_number_alone_and_continue(tmp_path: Path) -> None:
    whole, parts = Record(tmp_path / "whole"), tmp_path / "parts"
    found: list[str] = []
    run([CAMPAIGN], whole, seed=3, minutes=1, report=found.append)
    assert 10 < len(found) == whole.wrong["sometimes"] < 30
    short = Campaign("sometimes", "the same", 15, sometimes)
    run([short], Record(parts), seed=3, minutes=1, report=lambda _: None)
    with parts.open("a") as file:
        file.write('{"campaign": "somet')  # killed while writing
    record = Record(parts)
    assert record.tried["sometimes"] == 15
    run([CAMPAIGN], record, seed=3, minutes=1, report=lambda _: None)
    outcomes = [
        [json.loads(line)["wrong"] for line in path.read_text().splitlines()] for path in (tmp_path / "whole", parts)
    ]
    assert outcomes[0] == outcomes[1]
    assert f"| `sometimes` | half of the attempts go wrong | 40 | {len(found)} |" in table([CAMPAIGN], record)


def test_an_exception_of_an_attempt_is_what_went_wrong() -> None:
    def fails(random: random.Random, folder: Path) -> Iterator[str]:
        raise ValueError("no")
        yield

    [problem], _ = try_one(Campaign("fails", "", 1, fails), 0, 0)
    assert "ValueError: no" in problem


@pytest.mark.parametrize(
    ("done", "problem"),
    [
        (Done(["run"], 1, "", "run failed"), None),
        (Done(["run"], -11, "", ""), "ended with status -11"),
        (Done(["run"], 1, "", "Traceback (most recent call last):"), "shows a traceback"),
        (Done(["run"], 0, "\x1b[2J", ""), "prints an escape"),
        (Done(["run"], 2, "", ""), "no word"),
    ],
)
def test_what_no_command_may_do(done: Done, problem: str | None) -> None:
    found = "\n".join(done.wrong())
    assert found == "" if problem is None else problem in found


def test_other_missing_and_new_files_are_told_apart() -> None:
    assert list(differences({"a": b"1", "b": b"2"}, {"a": b"0", "c": b"3"})) == [
        "a has other bytes", "b is missing", "c is new",
    ]  # fmt: skip
