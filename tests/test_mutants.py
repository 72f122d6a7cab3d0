"""``make mutants``: what is mutated, which tests are run for it, and how a mutant is judged."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from mutants.chosen import CHOSEN
from mutants.places import excluded, modules, nearest
from mutants.trial import Outcome, Record, attempt, copy_of, outcome

ROOT = Path(__file__).parents[1]

HALF = dedent(
    '''\
    """Half of a number."""

    def half(number: int | None, count: int = 2) -> float | None:
        """Return number / 2."""
        if number is None:
            raise ValueError(f"{1 + 1} halves of nothing" + "!")
        return number / count  # = number * 0.5
    '''
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and its test, which does not look at small numbers."""
    (tmp_path / "fl").mkdir()
    (tmp_path / "fl" / "half.py").write_text(HALF)
    tests = tmp_path / "tests" / "fl"
    tests.mkdir(parents=True)
    (tests / "test_half.py").write_text("from fl.half import half\n\ndef test_half():\n    assert half(4) == 2\n")
    (tests / "test_other.py").write_text("def test_other(): ...\n")
    return tmp_path


def test_what_decides_a_run_is_mutated_but_not_its_calibration() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in modules(ROOT)}
    assert {
        "des/market.py",
        "des/costs/energy.py",
        "des/responses/moral_hazard.py",
        "fl/training/aggregators/krum.py",
        "fl/surrogate/learning_curves.py",
        "learning/mahdrl/planner.py",
        "learning/mahdrl/paper.py",
    } < found
    assert {
        "learning/statistics/__init__.py",
        "flmarket/analysis/results/measures.py",
        "flmarket/analysis/verification/offer_rules.py",
    } < found
    assert not {path for path in found if "calibrate" in path or path.startswith("tui")}


def test_some_modules_alone_may_be_mutated() -> None:
    found = [path.relative_to(ROOT).as_posix() for path in modules(ROOT, ["des/mech*.py", "tui/app.py", "des/cost.py"])]
    assert found == ["des/cost.py", "des/mechanism.py"]


def test_the_mutants_that_are_chosen_are_of_the_code_and_the_tests_of_today() -> None:
    for mutant in CHOSEN:
        ast.parse(mutant.source(ROOT))
        assert all((ROOT / test).is_file() for test in mutant.tests)


def test_annotations_and_messages_are_left_out() -> None:
    spans = {
        "\n".join(HALF.splitlines()[begin[0] - 1 : end[0]])[begin[1] :][: end[1] - begin[1]]
        for begin, end in excluded(HALF)
        if begin[0] == end[0]
    }
    assert spans == {
        "int | None", "int", "float | None", 'raise ValueError(f"{1 + 1} halves of nothing" + "!")',
        'f"{1 + 1} halves of nothing"',
    }  # fmt: skip


def test_the_nearest_tests_know_the_module(project: Path) -> None:
    assert nearest(project, Path("fl/half.py")) == [Path("tests/fl/test_half.py")]
    assert nearest(project, Path("fl/third.py")) == [Path("tests/fl")]
    (project / "tests" / "fl" / "test_other.py").write_text("from fl import half, third\n")
    assert nearest(project, Path("fl/half.py")) == [Path("tests/fl/test_half.py"), Path("tests/fl/test_other.py")]
    assert nearest(project, Path("fl/third.py")) == [Path("tests/fl/test_other.py")]
    (project / "tests" / "test_face.py").write_text("import fl.fourth\n")
    assert nearest(project, Path("fl/fourth.py")) == [Path("tests/test_face.py")]
    (project / "tests" / "fl" / "conftest.py").write_text("from fl.half import half\n")
    assert nearest(project, Path("fl/half.py")) == [Path("tests/fl")]


@pytest.mark.slow
def test_a_mutant_is_tried_on_a_copy(project: Path) -> None:
    module = Path("fl/half.py")
    with copy_of(project) as copy:
        slow = copy / "tests" / "fl" / "test_slow.py"
        slow.write_text("import fl.half, pytest\n\n@pytest.mark.slow\ndef test_slow():\n    assert False\n")
        assert nearest(copy, module) == [Path("tests/fl/test_half.py"), Path("tests/fl/test_slow.py")]
        assert attempt(copy, module, HALF.replace("number / count", "number * count"), 60) is Outcome.FAILED
        assert attempt(copy, module, HALF.replace("number / count", "number - count"), 60) is Outcome.PASSED
        assert attempt(copy, module, "while True: ...", 3) is Outcome.LATE
        assert (copy / module).read_text() == HALF
        assert outcome(copy, [slow.relative_to(copy)], 60) is Outcome.PASSED
    assert not copy.exists()


def test_mutants_found_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "found"
    Record(path).add(("fl/half.py:7:18 Div_Mul 0", "-a\n+b"))
    with path.open("a") as file:
        file.write('["fl/half')  # killed while writing
    assert ("fl/half.py:7:18 Div_Mul 0", "-a\n+b") in Record(path)
    assert ("fl/half.py:7:18 Div_Mul 0", "-a\n+c") not in Record(path)


def test_the_sample_is_of_tokens_and_begins_alike(project: Path) -> None:
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed (make mutants)")
    from mutants.sample import mutants_of, sample

    found = list(mutants_of(project, Path("fl/half.py")))
    assert {(mutant.line, mutant.column) for mutant in found} == {(3, 42), (5, 7), (5, 14), (7, 18)}
    drawn = sample(project, 4, seed=0)
    assert sorted((mutant.line, mutant.column) for mutant in drawn) == [(3, 42), (5, 7), (5, 14), (7, 18)]
    assert sample(project, 2, seed=0) == drawn[:2]
    [division] = [mutant for mutant in drawn if mutant.line == 7]
    assert division.diff(project).splitlines()[0] == "-    return number / count  # = number * 0.5"


def test_a_mutant_that_cosmic_ray_cannot_make_is_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed (make mutants)")
    from mutants.sample import sample

    (tmp_path / "fl").mkdir()
    dotted = "import os\n\ntry:\n    found = 1\nexcept (os.error, ValueError):\n    pass\n"
    (tmp_path / "fl" / "dotted.py").write_text(dotted)
    for seed in range(5):
        drawn = sample(tmp_path, 10, seed)
        assert {mutant.line for mutant in drawn} <= {4, 5}
        assert 4 in {mutant.line for mutant in drawn}
