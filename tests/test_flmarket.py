"""The face: what a notebook or a script does with ``import flmarket``."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import flmarket
from flmarket.core.installation import install_command

OWN = " (for one of your own, load its plug-in file)"

ROOT = Path(__file__).parents[1]
QUICK = {"training.backend": "surrogate", "rounds": 5}


class BigSpender(flmarket.Policy):
    """The dearest clients first."""

    def act(self, observation: flmarket.Observation) -> flmarket.Offer:
        order = (-observation.own_bids).argsort()
        return flmarket.fill_budget(order, observation.own_bids, observation.budget, available=observation.available)


class Failing(flmarket.Policy):
    def act(self, observation: flmarket.Observation) -> flmarket.Offer:
        raise ZeroDivisionError("on purpose")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> flmarket.Results:
    scenario = flmarket.load("quickstart", QUICK)
    out = tmp_path_factory.mktemp("face") / "runs"
    return flmarket.run(scenario, ["random", "hqfa", BigSpender], seeds=2, out=out, progress=False)


def test_importing_it_is_light() -> None:
    heavy = {"torch", "pandas", "textual", "pydantic"}
    code = f"import sys, flmarket; print({{m.partition('.')[0] for m in sys.modules}} & {heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


def test_everything_it_names_is_there_and_documented() -> None:
    for name in flmarket.__all__:
        assert getattr(flmarket, name).__doc__, name
    assert set(flmarket.__all__) <= set(dir(flmarket))
    with pytest.raises(AttributeError, match="module 'flmarket' has no attribute 'launch'"):
        flmarket.launch  # noqa: B018


def test_nothing_below_imports_it() -> None:
    """It lies between the packages and the command line; its core lies below all of them."""
    for package in ("fl", "des", "learning", "scenarios"):
        for path in (ROOT / package).rglob("*.py"):
            lines = path.read_text().replace("flmarket.core", "core").splitlines()
            assert not [line for line in lines if line.lstrip().startswith(("import flmarket", "from flmarket"))], path


def test_a_scenario_is_loaded_with_values_of_pythons_own() -> None:
    changes = {"clients.cores": np.int64(3), "services.digits.budget": 7.5, "clients.data_size": np.array([50, 100])}
    scenario = flmarket.load("quickstart", changes)
    assert scenario.clients.cores == 3
    assert scenario.service("digits").budget == 7.5
    assert scenario.clients.data_size == (50, 100)
    with pytest.raises(flmarket.InputError, match="a scenario cannot hold a value of type object"):
        flmarket.load("quickstart", {"clients.cores": object()})
    with pytest.raises(flmarket.InputError, match=r"^clients\.core = 3: unknown key; did you mean 'cores'\?"):
        flmarket.load("quickstart", {"clients.core": 3})


def test_runs_are_data_frames(results: flmarket.Results) -> None:
    assert len(results) == len(results.paths) == 6
    assert list(results.rounds.columns[:6]) == ["scenario", "policy", "seed", "round", "sim_time", "service"]
    assert len(results.rounds) == 6 * 5 * 3
    assert set(results.rounds["policy"]) == {"random", "hqfa", "big-spender"}
    assert set(results.offers["outcome"]) <= {"served", "outbid"}
    served = results.offers[results.offers["outcome"] == "served"]
    assert served["payment"].sum() == pytest.approx(results.rounds["spent"].sum())
    assert results.events["event"].iloc[0] == "refresh"


def test_a_summary_has_a_row_for_each_policy_and_service(results: flmarket.Results) -> None:
    summary = results.summary()
    assert len(summary) == 3 * 4
    row = summary.loc[("quickstart", "hqfa", "digits")]
    last = results.rounds.query("policy == 'hqfa' and service == 'digits' and round == 5")["accuracy"]
    assert row["final accuracy"] == pytest.approx(100 * last.mean())
    assert row["seeds"] == 2
    ends = results.summary(intervals=True)
    assert ends[summary.columns].equals(summary)
    assert ends[["AUC low", "AUC high"]].isna().all(axis=None)  # of two seeds


def test_rounds_to_a_target_that_no_run_met_are_missing(tmp_path: Path) -> None:
    targets = {f"services.{name}.target_accuracy": 0.99 for name in ("digits", "strokes")}
    scenario = flmarket.load("quickstart", QUICK | targets | {"services.scribbles.target_accuracy": 0.12})
    found = flmarket.run(scenario, "random", out=tmp_path, progress=False).summary().droplevel(["scenario", "policy"])
    assert found["target met"].to_dict() == pytest.approx(
        {"digits": 0, "strokes": 0, "scribbles": 100, "market": 100 / 3}
    )
    rounds = found["rounds to target"]
    assert rounds[["digits", "strokes"]].isna().all()  # "never" in a report
    assert rounds["scribbles"] <= 5
    assert rounds["market"] == (5 + 5 + rounds["scribbles"]) / 3  # a lower bound


def test_policies_are_compared_seed_by_seed(results: flmarket.Results) -> None:
    compared = results.compare(baseline="random")
    assert set(compared.index.get_level_values("policy")) == {"hqfa", "big-spender"}
    last = results.rounds[results.rounds["round"] == 5]
    final = last.pivot_table(index=["service", "seed"], columns="policy", values="accuracy")
    expected = 100 * (final["hqfa"] - final["random"]).groupby("service").mean()
    own = compared.xs(("quickstart", "hqfa", "final accuracy"), level=("scenario", "policy", "measure"))["difference"]
    pd.testing.assert_series_equal(own.drop("market").sort_index(), expected.sort_index(), check_names=False)
    with pytest.raises(flmarket.InputError) as caught:
        results.compare(baseline="lcfa")
    assert str(caught.value) == "baseline 'lcfa': no run has that policy; choose from big-spender, hqfa, random"


def test_a_plot_shows_itself_and_can_be_saved(results: flmarket.Results, tmp_path: Path) -> None:
    figure = results.plot("accuracy")
    assert [axes.get_title() for axes in figure.axes] == ["digits", "strokes", "scribbles"]
    assert {line.get_label() for line in figure.axes[0].lines} >= {"random", "hqfa", "big-spender"}
    assert figure._repr_png_().startswith(b"\x89PNG")
    figure.savefig(tmp_path / "curves.svg")
    with pytest.raises(flmarket.InputError, match=r"unknown quantity 'acuracy'; did you mean 'accuracy'\?"):
        results.plot("acuracy")


def test_curves_are_drawn_on_axes_of_a_figure_of_ones_own(results: flmarket.Results) -> None:
    """In the figure's own style, without a legend that would cover what else it has."""
    figure = Figure()
    axes = figure.subplots(2, 2)
    assert results.plot("reward", ax=axes.flat[:3]) is figure
    assert [panel.get_title() for panel in axes.flat] == ["digits", "strokes", "scribbles", ""]
    assert not figure.legends
    with pytest.raises(
        flmarket.InputError, match=r"ax: 3 panels \(digits, strokes, scribbles\) need as many axes, not 1"
    ):
        results.plot("reward", ax=axes[0, 0])


def test_what_is_complete_is_read_and_not_played_again(results: flmarket.Results) -> None:
    before = {path: (path / "meta.json").stat().st_mtime_ns for path in results.paths}
    out = results.paths[0].parents[2]
    again = flmarket.run(flmarket.load("quickstart", QUICK), ["random", BigSpender], seeds=[1], out=out, progress=False)
    assert set(again.paths) < set(results.paths)
    assert {path: (path / "meta.json").stat().st_mtime_ns for path in results.paths} == before
    assert len(flmarket.read(out)) == 6


def test_one_failed_run_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = flmarket.load("quickstart", QUICK)
    with pytest.raises(flmarket.BatchFailed, match=r"1 of 2 runs failed: quickstart \(failing\) seed 0") as error:
        flmarket.run(scenario, [Failing, "random"], out=tmp_path, progress=False)
    assert len(flmarket.read(*error.value.complete)) == 1
    [log] = tmp_path.glob("*/failing/*/run.log")
    reason = "policy 'failing' of service 'digits' failed to act in round 1: ZeroDivisionError: on purpose"
    assert str(error.value).startswith(f"1 of 2 runs failed: quickstart (failing) seed 0 ({log}): {reason} (")
    assert capsys.readouterr().err == ""
    with pytest.raises(
        flmarket.BatchFailed, match=r"\); the first: policy 'failing' of service 'digits' failed to act"
    ):
        flmarket.run(scenario, Failing, 2, out=tmp_path)
    assert f"quickstart (failing) seed 0: failed: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"scenario": "quickstrat"}, "did you mean"),
        ({"scenario": "quickstart", "policies": "bets"}, "unknown policy 'bets'"),
        ({"scenario": "quickstart", "policies": [dict]}, "not a subclass of flmarket.Policy"),
        (
            {"scenario": "quickstart", "policies": ["random", BigSpender(None)]},  # type: ignore[arg-type]
            "^got an object of BigSpender; give the class BigSpender itself$",
        ),
        (
            {"scenario": "quickstart", "policies": BigSpender(None)},  # type: ignore[arg-type]
            "^got an object of BigSpender; give the class BigSpender itself$",
        ),
        ({"scenario": "quickstart", "ray_address": "x"}, "^only the engine ray takes the address of a Ray cluster$"),
        ({"scenario": "quickstart", "engine": "rya"}, "engine = 'rya': must be 'local' or 'ray'"),
        ({"scenario": "quickstart", "decision_timeout": 1e20}, "must be less than or equal to 1000000$"),
        ({"scenario": "quickstart", "jobs": 0}, "^jobs = 0: must be greater than or equal to 1$"),
        ({"scenario": "quickstart", "workers": -1}, "^workers = -1: must be greater than or equal to 0$"),
        ({"scenario": "quickstart", "fresh": "edited"}, "^fresh = 'edited': must be a valid boolean$"),
        ({"scenario": []}, "no scenario is given; name at least one"),
        ({"scenario": "quickstart", "seeds": 0}, "no seed is given; name at least one"),
        ({"scenario": "quickstart", "seeds": []}, "no seed is given; name at least one"),
        ({"scenario": "quickstart", "seeds": [1, -2]}, "seeds: -2 is negative; a seed is an integer of at least 0"),
        (
            {"scenario": "quickstart", "seeds": [0, 10**5000]},
            "seeds: one is too large; a seed is an integer from 0 to 9223372036854775807",
        ),
        ({"scenario": "quickstart", "seeds": 2**70}, "seeds: these are more than 1,000,000; name fewer"),
        ({"scenario": None}, "scenario = 'None': must be a file, the name of a built-in one, or what flmarket.load"),
        ({"scenario": ["quickstart", 3]}, "scenario = '3': must be a file, the name of a built-in one, or what"),
        ({"scenario": "quickstart", "seeds": "3"}, "seeds = '3': must be integers of at least 0, or how many of them"),
        (
            {"scenario": "quickstart", "seeds": 2.5},
            r"seeds = 2\.5: must be integers of at least 0, or how many of them",
        ),
    ],
)
def test_mistakes_are_named_before_anything_runs(arguments: dict[str, object], problem: str, tmp_path: Path) -> None:
    with pytest.raises(flmarket.InputError, match=problem):
        flmarket.run(**arguments, out=tmp_path / "runs")  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: flmarket.run(), "run(): missing a required argument: 'scenario'"),  # type: ignore[call-arg]
        (lambda: flmarket.run("quickstart", "random", 1, 2), "run(): too many positional arguments"),  # type: ignore[call-arg]
    ],
)
def test_a_wrong_call_names_the_function(call: Callable[[], object], problem: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            lambda: flmarket.load("quickstart", "rounds=3"),  # type: ignore[arg-type]
            "overrides = 'rounds=3': must be a mapping such as {'rounds': 3}",
        ),
        (
            lambda: flmarket.load("quickstart", {3: 4}),  # type: ignore[dict-item]
            "3 = 4: is not a dotted key such as clients.cores",
        ),
        (
            lambda: flmarket.load("quickstart", [("rounds", 3)]),  # type: ignore[arg-type]
            "('rounds', 3): is not a dotted key such as clients.cores",
        ),
        (
            lambda: flmarket.parallel_env(3),  # type: ignore[arg-type]
            "scenario = '3': must be a file, the name of a built-in one, or what flmarket.load returns",
        ),
        (
            lambda: flmarket.load("quickstart", {"services.digits.target": 0.9}),
            "services.digits.target = 0.9: unknown key; did you mean 'target_accuracy'?",
        ),
        (flmarket.read, "no directory is given; name at least one, such as read('runs')"),
        (
            lambda: flmarket.run("quickstart", f"mahdrl:{__file__}"),
            f"{__file__}: is not an agent (.safetensors); train one with flmarket train",
        ),
    ],
)
def test_mistakes_say_what_to_do(call: Callable[[], object], problem: str) -> None:
    with pytest.raises(flmarket.InputError) as caught:
        call()
    assert str(caught.value) == problem


@pytest.mark.parametrize("call", ["run('quickstart')", "train('quickstart', 'agent')"])
def test_a_plugin_file_cannot_play_while_it_is_loaded(call: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import flmarket\n\nflmarket.{call}\n")
    with pytest.raises(flmarket.InputError) as caught:
        flmarket.load_plugin(file)
    what = call.partition("(")[0]
    assert str(caught.value) == (
        f"{file}:3: a plug-in file must not call flmarket.{what} when it is loaded; put the call below "
        '`if __name__ == "__main__":`'
    )


def test_an_agent_is_trained_and_played(tmp_path: Path) -> None:
    scenario = flmarket.load("quickstart", QUICK)
    agent = flmarket.train(scenario, tmp_path / "mine", episodes=1, evaluate_every=1, workers=0)
    assert agent == tmp_path / "mine.safetensors"
    results = flmarket.run(scenario, f"mahdrl:{agent}", out=tmp_path / "runs", progress=False)
    assert len(results) == 1


def test_forks_of_a_run(results: flmarket.Results, tmp_path: Path) -> None:
    """Each beside its original, which is only read; a class of the notebook can take a seat, too."""
    [run] = [it.directory.path for it in results.runs if it.policy == "random" and it.seed == 0]
    wishes = [{"services.digits.budget": 3, "clients.cores": 3}, {"services.strokes.policy": BigSpender}]
    less, spender = flmarket.fork(run, 3, wishes, out=tmp_path, progress=False)
    table = less.differences.set_index(["name", "measure"])
    spent = [pd.read_csv(path / "rounds.csv").query("service == 'digits'").spent.sum() for path in (run, less.path)]
    assert table.loc[("digits", "spent"), ["original", "fork"]].tolist() == pytest.approx(spent)
    assert table.loc[("digits", "spent"), "first_round"] >= 3
    assert str(less).startswith(f"services.digits.budget=3, clients.cores=3: {less.path}\nround 3: ")
    played = pd.read_csv(spender.path / "rounds.csv").query("service == 'strokes'").policy
    assert played.tolist() == ["random"] * 2 + ["big-spender"] * 3
    again = flmarket.run(flmarket.load(spender.path / "scenario.toml"), "random", out=tmp_path, progress=False)
    assert again.runs[0].directory.path == spender.path
    with pytest.raises(flmarket.InputError, match=r"^round 6: .* has rounds 1 to 5; choose one$"):
        flmarket.fork(run, 6, {"clients.cores": 1})
    for wrong in (1.5, 2.0, "2"):
        with pytest.raises(flmarket.InputError, match=rf"^round {re.escape(str(wrong))}: .* has rounds 1 to 5; choose"):
            flmarket.fork(run, wrong, {"clients.cores": 1})  # type: ignore[arg-type]
    [same] = flmarket.fork(run, np.int64(3), wishes[0], out=tmp_path, progress=False)  # type: ignore[arg-type]
    assert same.path == less.path
    with pytest.raises(flmarket.InputError, match=r"^changes: must be a mapping .*, not 'clients.cores=1'$"):
        flmarket.fork(run, 2, ["clients.cores=1"])  # type: ignore[list-item]
    for wrong in ("clients.cores=1", 1):
        with pytest.raises(flmarket.InputError, match=f"^changes: must be a mapping such as .*, not {wrong!r}$"):
            flmarket.fork(run, 2, wrong)  # type: ignore[arg-type]
    with pytest.raises(flmarket.InputError, match="not a run directory"):
        flmarket.fork(tmp_path / "nowhere", 1, {"clients.cores": 1})


def test_environments() -> None:
    scenario = flmarket.load("quickstart", QUICK)
    market = flmarket.parallel_env(scenario)
    assert set(market.reset(seed=3)[0]) == {"digits", "strokes", "scribbles"}
    one = flmarket.service_env(scenario, "digits")
    observation, _ = one.reset(seed=3)
    assert observation in one.observation_space
    with pytest.raises(flmarket.InputError, match=r"^unknown service 'digit'; did you mean 'digits'\?$"):
        flmarket.service_env(scenario, "digit")
    many = flmarket.vector_env(scenario, markets=4)
    observations, _ = many.reset(seed=3)
    assert observations in many.observation_space
    assert len(observations) == 4 * 3


def greedy(seen: np.ndarray) -> np.ndarray:
    """Everybody, at the bid."""
    clients = (len(seen) - 4) // 5
    return np.concatenate([np.full(clients, REACH), np.full(clients, -1.0)])


REACH = 1.0


@pytest.mark.slow
def test_an_agent_s_policy_is_played_anywhere_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = flmarket.load("quickstart", QUICK)

    def agent() -> type[flmarket.Policy]:
        return flmarket.policy_from(greedy, spaces=flmarket.spaces(scenario, "digits"), name="greedy-agent")

    first = agent()
    here = flmarket.run(scenario, [first, "random"], out=tmp_path / "here", progress=False)
    there = flmarket.run(scenario, [first, "random"], out=tmp_path / "there", jobs=2, progress=False)
    tables = [(results.paths[0] / "offers.csv").read_bytes() for results in (here, there)]
    assert tables[0] == tables[1]
    known = first.agent_digest(None)
    for results in (here, there):
        meta = json.loads((results.paths[0] / "meta.json").read_text())
        assert meta["plugins"] == {"policy greedy-agent": {"file": __name__, "sha256": known}}
        assert meta["agents"] == dict.fromkeys(["agent/digits", "agent/strokes", "agent/scribbles"], known)
    assert len(flmarket.run(scenario, agent(), out=tmp_path / "here", progress=False)) == 1  # not again
    monkeypatch.setitem(globals(), "REACH", -1.0)
    with pytest.raises(flmarket.InputError, match="belongs to a run with another learned agent"):
        flmarket.run(scenario, agent(), out=tmp_path / "here", progress=False)


def test_spaces_say_what_is_wrong() -> None:
    with pytest.raises(flmarket.InputError, match="unknown service 'digit'; did you mean 'digits'"):
        flmarket.spaces("quickstart", "digit")
    with pytest.raises(flmarket.InputError, match=r"^spaces are those of one market, but scenario 'mechanisms' varies"):
        flmarket.spaces("mechanisms", "mnist")
    with pytest.raises(ValueError, match="payment_limit must be a finite number above 1"):
        flmarket.spaces("quickstart", "digits", payment_limit=1)


def test_all_lists_of_names_agree() -> None:
    """Those that are imported when used, those that type checkers read, and those that are public."""
    [block] = [node for node in ast.parse(Path(flmarket.__file__).read_text()).body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert {name.name: node.module for node in imports for name in node.names} == flmarket._ELSEWHERE
    assert set(flmarket.__all__) == set(flmarket._ELSEWHERE)
    assert Path(flmarket.__file__).with_name("py.typed").exists()


def test_two_classes_of_one_name_cannot_play_side_by_side(tmp_path: Path) -> None:
    def make(markup: float) -> type[flmarket.Policy]:
        class Markup(BigSpender):
            extra = markup

        return Markup

    scenario = flmarket.load("quickstart", QUICK)
    with pytest.raises(flmarket.InputError) as caught:
        flmarket.run(scenario, [make(0.1), make(0.9)], out=tmp_path / "runs", progress=False)
    assert str(caught.value) == (
        "two policies are called 'markup'; give one of them another name with @flmarket.policy(NAME)"
    )
    assert not (tmp_path / "runs").exists()
    same = make(0.1)
    assert len(flmarket.run(scenario, [same, same], [0, 0], out=tmp_path / "1", progress=False)) == 1
    assert len(flmarket.run(scenario, make(0.9), out=tmp_path / "2", progress=False)) == 1  # the cell is run again
    with pytest.raises(flmarket.InputError, match="start over with the option fresh-changed, or choose another folder"):
        flmarket.run(scenario, make(0.5), out=tmp_path / "2", progress=False)
    assert len(flmarket.run(scenario, make(0.9), out=tmp_path / "2", progress=False)) == 1


@pytest.mark.slow
def test_a_class_of_a_module_beside_the_script_plays_in_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders_of_mine.py").write_text("def dearest(bids):\n    return (-bids).argsort()\n")
    (tmp_path / "spender_of_mine.py").write_text(
        "import flmarket\nimport orders_of_mine\n\n\nclass Spender(flmarket.Policy):\n    def act(self, seen):\n"
        "        order = orders_of_mine.dearest(seen.own_bids)\n"
        "        return flmarket.fill_budget(order, seen.own_bids, seen.budget, available=seen.available)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spender = importlib.import_module("spender_of_mine").Spender
    scenario, out = flmarket.load("quickstart", QUICK), tmp_path / "runs"
    first = flmarket.run(scenario, spender, 2, jobs=2, out=out, progress=False)
    assert len(first) == 2
    assert flmarket.run(scenario, spender, 2, out=out, progress=False).paths == first.paths  # not played again


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"policy": "hqfa"}, "policy = 'hqfa': must be 'mahdrl' or 'mahdrl-paper'"),
        ({"rivals": ["hqfaa"]}, "unknown policy 'hqfaa'; did you mean 'hqfa'?" + OWN),
        ({"rivals": "hqfa"}, "rivals = 'hqfa': 'str' instances are not allowed as a Sequence value"),
        ({"episodes": 0}, "episodes = 0: must be greater than or equal to 1"),
        ({"evaluate_every": 0}, "evaluate_every = 0: must be greater than or equal to 1"),
        ({"together": -1}, "together = -1: must be greater than or equal to 0"),
    ],
)
def test_mistakes_in_a_training_are_named_before_anything_is_written(
    arguments: dict[str, object], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(flmarket.InputError) as caught:
        flmarket.train("quickstart", tmp_path / "agent", **arguments)  # type: ignore[arg-type]
    assert str(caught.value) == problem
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["pettingzoo", "gymnasium"])
def test_an_environment_without_its_extra_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        "learning.environments.parallel_env",
        "learning.environments.service_env",
        "learning.environments.spaces",
    ):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "learning.lockstep.vector_env", raising=False)
    makers = (flmarket.parallel_env, flmarket.service_env, flmarket.vector_env)
    for make, name in zip(makers, ("parallel_env", "service_env", "vector_env"), strict=True):
        with pytest.raises(flmarket.InputError) as caught:
            make("quickstart", *(["digits"] if name == "service_env" else []))  # type: ignore[operator]
        assert str(caught.value) == (
            f"flmarket.{name} needs PettingZoo and Gymnasium: {install_command('flmarket[rl]')}"
        )
    spaces = flmarket.spaces("quickstart", "digits")  # needs neither
    if missing == "gymnasium":
        with pytest.raises(flmarket.InputError, match=r"^a Gymnasium space needs Gymnasium: "):
            spaces.action_space  # noqa: B018


def test_no_cluster_is_asked_for_when_nothing_is_to_be_played(
    results: flmarket.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    scenario, out = flmarket.load("quickstart", QUICK), results.paths[0].parents[2]
    assert len(flmarket.run(scenario, "random", 2, engine="ray", out=out, progress=False)) == 2
    with pytest.raises(
        flmarket.InputError, match=r"^the engine ray needs Ray: .*python\S* -m pip install 'flmarket\[ray\]'$"
    ):
        flmarket.run(scenario, "random", 2, engine="ray", out=out, fresh=True, progress=False)


def test_summaries_and_comparisons_show_all_of_their_columns_as_text(results: flmarket.Results) -> None:
    summary = results.summary()
    for table in (summary, results.compare("random")):
        assert all(column in repr(table) for column in table.columns)
        assert "..." not in repr(table)
    assert max(map(len, repr(summary).splitlines())) <= 120
    assert "..." not in repr(summary.iloc[:2].round(2))


def test_variants_of_a_class_are_subclasses_and_options_are_set_by_service(tmp_path: Path) -> None:
    """As docs/extending.md says."""

    class Markup(flmarket.Policy):
        def __init__(self, context: flmarket.PolicyContext, *, share: float = 0.1) -> None:
            super().__init__(context)
            self.share = share

        def act(self, observation: flmarket.Observation) -> flmarket.Offer:
            payments = observation.own_bids * (1 + self.share)
            return flmarket.fill_budget(
                payments.argsort(), payments, observation.budget, available=observation.available
            )

    class Generous(Markup):
        def __init__(self, context: flmarket.PolicyContext) -> None:
            super().__init__(context, share=0.5)

    played = flmarket.run(flmarket.load("quickstart", QUICK), [Markup, Generous], out=tmp_path / "1", progress=False)
    markup = played.offers["payment"] / played.offers["bid"] - 1
    assert markup.groupby(played.offers["policy"]).mean().to_dict() == pytest.approx(
        {"generous": 0.5, "markup": 0.1}, 1e-4
    )

    flmarket.policy("markup")(Markup)
    options = {"services.digits.policy": "markup", "services.digits.policy_options.share": 0.3}
    played = flmarket.run(flmarket.load("quickstart", QUICK | options), out=tmp_path / "2", progress=False)
    digits = played.offers.query("service == 'digits'")
    assert (digits["payment"] / digits["bid"] - 1).mean() == pytest.approx(0.3, 1e-4)


def test_an_interrupted_batch_says_how_it_continues(tmp_path: Path) -> None:
    class Interrupting(flmarket.Policy):
        def act(self, observation: flmarket.Observation) -> flmarket.Offer:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        flmarket.run(flmarket.load("quickstart", QUICK), Interrupting, out=tmp_path, progress=False)
    assert caught.value.__notes__ == ["the same call continues each interrupted run from its last checkpoint"]


def test_a_run_of_which_one_service_keeps_its_policy_is_found_again_and_forked(
    two_services: str, tmp_path: Path
) -> None:
    (tmp_path / "market.toml").write_text(two_services)
    chosen = flmarket.load(tmp_path / "market.toml", {"services.alpha.policy": "hqfa"})
    options = {"policies": "random", "out": tmp_path / "runs", "progress": False}
    [run] = flmarket.run(chosen, **options).runs
    assert [service.policy for service in run.setting.scenario.services] == ["hqfa", "random"]
    assert run.policy == "random+as-configured"
    assert flmarket.run(chosen, **options).paths == [run.directory.path]  # not played again
    [fork] = flmarket.fork(run.directory.path, 2, {"clients.cores": 3}, progress=False)
    assert [service.policy for service in fork.run.scenario.services] == ["hqfa", "random"]
