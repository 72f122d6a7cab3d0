"""Submission files: what is refused, and what is kept where several processes write one."""

from dataclasses import replace
from pathlib import Path

import pytest

from flmarket.benchmark.suite.submission import Submission, continued, entry, keep, read, read_all
from flmarket.core.errors import InputError
from scenarios.suite.frozen import RESIDENT, Suite


@pytest.fixture
def played(small: Suite) -> Submission:
    """One run."""
    return entry("lcfa", small).with_results({small.cells((RESIDENT,), ("pair",), (1,))[0]: 0.25})


def test_a_submission_is_read_as_it_was_written(small: Suite, played: Submission, tmp_path: Path) -> None:
    played.write(tmp_path / "lcfa.json", small)
    assert read_all([tmp_path, tmp_path / "lcfa.json"], small) == [played]
    assert '"pair/resident/all": {"1": 0.25}' in (tmp_path / "lcfa.json").read_text()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no submissions; `flmarket suite POLICY --out FOLDER` makes them"):
        read_all([tmp_path / "empty"], small)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"format": 1', '"format": 2', "was played in another version of the suite than 1"),
        ('"digest": "', '"digest": "0', "was played in another version of the suite than 1"),
        ('"method": "lcfa"', '"method": null', "is not a submission to version 1 of the suite"),
        ('"policy": "lcfa",', "", "is not a submission"),
        ("pair/resident", "pear/resident", "is not a submission"),
        ('"1": 0.25', '"4": 0.25', "is not a submission"),
        ("0.25", "7", "is not a submission"),
        ("0.25", "NaN", "is not a submission"),
        ("0.25}", "0.2", "is not a submission"),  # truncated
        ('"results": {', '"results": [', "is not a submission"),
        ("{", "[" * 100_000, "is not a submission"),
    ],
)
def test_a_file_that_cannot_be_compared_is_refused(
    old: str, new: str, message: str, small: Suite, played: Submission, tmp_path: Path
) -> None:
    text = played.text(small)
    assert old in text
    (tmp_path / "lcfa.json").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=rf"lcfa\.json: {message}"):
        read(tmp_path / "lcfa.json", small)


def test_results_of_another_process_are_kept_but_not_those_of_something_else(
    small: Suite, played: Submission, tmp_path: Path
) -> None:
    path, other = tmp_path / "lcfa.json", small.cells((RESIDENT,), ("pair",), (2,))[0]
    keep(path, played, small)
    keep(path, replace(played, results={other: 0.5}), small)
    assert read(path, small).results == {**played.results, other: 0.5}
    for key, value in {"method": "mine", "agent": "0" * 64, "flmarket": "0.1", "policy": "hqfa"}.items():
        with pytest.raises(
            InputError, match=r"was played by another policy, .*; start over with the option fresh, or choose"
        ):
            continued(path, replace(played, **{key: value}), small)
