"""``flmarket train``: resumed after a kill it gives the same bytes; what does not fit is refused; agents play."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pandas as pd
import pytest

from des.observation import Offer
from flmarket.core.errors import InputError, RunError
from learning.mahdrl import learner as mahdrl
from learning.policy import POLICIES
from learning.training import agent_files
from learning.training.agent_files import CheckpointError, place, shipped
from learning.training.loop import Learner, Plan, train
from scenarios.build import Shelf, agents_of
from scenarios.loader import load
from scenarios.random_markets import draw, drawn
from scenarios.running.batch import play_batch
from scenarios.running.run_options import RunOptions, TrainOptions
from scenarios.train import AgentTraining, learned_rivals, new_learner, open_market, plan_training, run
from support.shell import CLI, flmarket
from support.terminal import wait_for


def small(*overrides, **changes):
    scenario = load("paper", ["training.backend=surrogate", "rounds=8", *overrides])
    plan = Plan(episodes=6, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    return AgentTraining(**{"scenarios": (scenario,), "policy": "mahdrl", "options": {}, "plan": plan} | changes)


def files(out):
    described = json.loads(out.with_suffix(".json").read_text())
    del described["about"]  # the git revision, which may change while tests run
    return out.read_bytes(), out.with_suffix(".csv").read_bytes(), described


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "agent.safetensors"
    run(small(), 0, out, Shelf())
    return out


@pytest.fixture
def out(trained, tmp_path):
    """An agent that was trained before, with its states: a copy, to be changed."""
    copytree(trained.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / trained.name


def command(policy, out):
    words = ["train", "paper", "--backend", "surrogate", "--set", "rounds=5", "--policy", policy, "--episodes", "24"]
    return [*words, "--evaluate-every", "3", "--out", str(out), "-q"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mahdrl", "mahdrl-paper"])
def test_resumed_after_a_kill_it_gives_the_same_bytes(tmp_path, policy):
    whole, killed = tmp_path / "whole.safetensors", tmp_path / "killed.safetensors"
    assert flmarket(*command(policy, whole)).returncode == 0
    process = subprocess.Popen([*CLI, *command(policy, killed)])
    states = killed.with_suffix(".training")
    wait_for(lambda: any(states.glob("*.json")))
    process.kill()
    process.wait()
    assert not killed.exists(), "killed too late to show anything"
    assert flmarket(*command(policy, killed), "--resume").returncode == 0
    assert files(killed) == files(whole)


def at_once_and_in_two_parts(training, folder):
    """A training as a whole, and the same after a shorter one: their agents."""
    whole, short = folder / "whole.safetensors", folder / "short.safetensors"
    run(training, 3, whole, Shelf())
    run(replace(training, plan=replace(training.plan, episodes=4)), 3, short, Shelf())
    run(training, 3, short, Shelf(), resume=True)
    return whole, short


def test_a_longer_training_goes_on_where_a_short_one_ended(tmp_path):
    whole, short = at_once_and_in_two_parts(small(), tmp_path)
    assert files(short) == files(whole)
    assert recorded(short) == recorded(whole)


@pytest.mark.slow
def test_credit_in_hindsight_and_what_is_known_resume_to_the_same_bytes(tmp_path):
    options = {"hindsight": True, "context": True, "curve": True}
    whole, short = at_once_and_in_two_parts(small(options=options), tmp_path)
    assert files(short) == files(whole)
    plain = tmp_path / "plain.safetensors"
    run(small(options={"context": True}), 3, plain, Shelf())
    assert plain.read_bytes() != whole.read_bytes()


@pytest.mark.parametrize(
    ("options", "overrides", "problem"),
    [
        (
            {"hindsight": True},
            ["training.backend=real"],
            "needs learning curves, and this trains models; choose the",
        ),
        ({"hindsight": True, "horizon": 10}, [], "credit comes from learning curves alone; leave out horizon"),
        ({"curve": True}, [], "the hyper-parameter curve needs context"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, overrides, problem):
    with pytest.raises(InputError, match=problem):
        new_learner(small(*overrides, options=options), 0)


def test_another_training_is_not_resumed(out):
    with pytest.raises(InputError, match="already exists; continue with the option resume, or choose another file"):
        run(small(), 0, out, Shelf())
    with pytest.raises(InputError, match=r"trained with plan.seed = 0, not 4"):
        run(small(), 4, out, Shelf(), resume=True)
    with pytest.raises(InputError, match=r"trained with provenance.scenario_hash"):
        run(small("clients.count=21"), 0, out, Shelf(), resume=True)


def test_a_damaged_state_is_not_resumed(out):
    last = max(out.with_suffix(".training").glob("*.safetensors"))
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(InputError, match="truncated, corrupt"):
        run(small(), 0, out, Shelf(), resume=True)


def test_taking_turns_against_rivals(tmp_path):
    rows = []
    training = small(rotate=True, rivals=("hqfa", "lcfa"))
    run(training, 0, tmp_path / "agent.safetensors", Shelf(), report=rows.append)
    assert [row.episode for row in rows if row.phase == "train"] == [1, 2, 3, 4, 5, 6]
    assert all((row.phase == "evaluate") == (row.epsilon == 0.0 and not row.losses) for row in rows[1:])


def test_only_who_is_seated_learns_and_the_rivals_are_drawn():
    training, rivals = small(rotate=True, rivals=("hqfa", "lcfa")), set()
    for episode in range(20):
        with open_market(training, 0, ("mnist",), episode, 1, Shelf(), 1) as seated:
            assert seated.learners == ("mnist",)
            assert seated.rivals.keys() == {"fashion-mnist", "emnist"}
            rivals |= {type(policy).__name__ for policy in seated.rivals.values()}
    assert len(rivals) == 2, "both rivals come up"


@pytest.mark.slow
def test_it_may_meet_what_it_was_before(tmp_path, monkeypatch):
    """An agent with two critics; stopped and resumed, it meets the same earlier selves."""
    monkeypatch.setattr(mahdrl, "EVERY", 1)
    training = small(rotate=True, rivals=("hqfa", "itself"), options={"members": 2})
    new, _ = new_learner(training, 0)
    with open_market(training, 0, ("mnist",), 1, 1, Shelf(), 1, new.earlier) as seated:
        assert "Player" not in {type(policy).__name__ for policy in seated.rivals.values()}, "there is none yet"
    new.begin(1)
    new.end()
    met = set()
    for episode in range(2, 12):
        with open_market(training, 0, ("mnist",), episode, 1, Shelf(), 1, new.earlier) as seated:
            met |= {type(policy).__name__ for policy in seated.rivals.values()}
    assert met == {"Player", "HighQualityFirst"}
    with open_market(training, 0, ("mnist",), 0, 1, Shelf(), 1, new.earlier) as seated:
        evaluated = {type(policy).__name__ for policy in seated.rivals.values()}
    assert evaluated == {"HighQualityFirst"}, "not in evaluations"
    whole, stopped = at_once_and_in_two_parts(training, tmp_path)
    assert files(stopped) == files(whole)
    assert learned_rivals(training) == {}


@pytest.mark.parametrize(
    ("rivals", "changes", "problem"),
    [
        (["itself"], {}, "rival 'itself': at first there is no earlier self; name another rival, too"),
        (["itself", "hqfa"], {"policy": "mahdrl-paper"}, "rival 'itself': only mahdrl keeps what it was"),
    ],
)
def test_itself_as_a_rival_is_refused_where_there_is_no_earlier_self(tmp_path, rivals, changes, problem):
    options = TrainOptions(rotate=True, rivals=rivals, **changes)
    with pytest.raises(InputError, match=problem):
        run(plan_training(small().scenarios, options), 0, tmp_path / "a", Shelf())


class Watcher(Learner):
    """A learner that notes whom it plays for, and how."""

    def __init__(self):
        self.played = []

    def act(self, observations, epsilon):
        self.played.append((tuple(observations), epsilon))
        return {name: Offer.none() for name in observations}

    def agent(self):
        return {"weights": np.zeros((1, 1), np.float32)}

    state = agent


def test_training_explores_and_evaluations_do_not(tmp_path):
    watcher, seeds = Watcher(), {}
    training = small(rotate=True)
    plan = Plan(episodes=4, epsilon_episodes=4, evaluate_every=4, evaluation_seeds=(5, 6), seats=(("mnist", "emnist"),))

    def opened(market_index, episode, seed, seats):
        seeds.setdefault(episode, []).append(seed)
        return open_market(training, market_index, seats, episode, seed, Shelf(), 1)

    rows = []
    train(watcher, opened, plan, tmp_path / "agent.safetensors", {}, {}, report=rows.append)
    episodes = watcher.played[::8]  # one entry for each of eight rounds
    assert [names for names, _ in episodes[:4]] == [("emnist",), ("mnist",)] * 2
    np.testing.assert_allclose([epsilon for _, epsilon in episodes[:4]], [1.0, 0.7625, 0.525, 0.2875])
    assert episodes[4:] == [(("mnist",), 0.0), (("emnist",), 0.0)] * 2
    assert seeds[0] == [5, 5, 6, 6], "each evaluation market, from each seat"
    played = [seed for episode in range(1, 5) for seed in seeds[episode]]
    assert len(set(played)) == 4, "each episode has a market of its own"
    assert min(played) >= 2**31, "and never one that is evaluated on"
    assert 0.0 < rows[0].reward < 1.0


def test_without_being_asked_to_resume_a_training_starts_anew(tmp_path):
    training, rows = small(rotate=True), []
    plan = Plan(episodes=1, epsilon_episodes=1, evaluate_every=1, evaluation_seeds=(5,), seats=(("mnist",),))

    def opened(market_index, episode, seed, seats):
        return open_market(training, market_index, seats, episode, seed, Shelf(), 1)

    for _ in range(2):
        train(Watcher(), opened, plan, tmp_path / "agent.safetensors", {}, {}, report=rows.append)
    assert [(row.episode, row.phase) for row in rows] == [(1, "train"), (1, "evaluate")] * 2


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mahdrl", "mahdrl-paper"])
@pytest.mark.parametrize("change", ["target_accuracy=0.01", "budget=0.5"], ids=["all leave at once", "all are poor"])
def test_a_training_in_an_extreme_market_ends(tmp_path, change, policy):
    changes = [f"services.{name}.{change}" for name in ("mnist", "fashion-mnist", "emnist")]
    run(small("clients.count=1", *changes, policy=policy), 0, tmp_path / "agent.safetensors", Shelf())


@pytest.mark.parametrize("options", [{"learning_rate": 1e30}, {"learning_rate": 1e8}])
def test_a_training_that_grows_beyond_all_bounds_fails(tmp_path, options):
    out = tmp_path / "agent.safetensors"
    with pytest.raises(RunError, match="training diverged; lower the learning rate"), np.errstate(all="ignore"):
        run(small(options=options), 0, out, Shelf())
    assert not out.exists()


def test_a_log_that_does_not_reach_the_last_state_is_not_continued(out):
    log = out.with_suffix(".csv")
    content = log.read_bytes()[: log.read_bytes().index(b"\n5,")]
    log.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"agent\.csv: has no row of episode 6, after which the last state was"):
        run(small(), 0, out, Shelf(), resume=True)
    assert log.read_bytes() == content


def test_rivals_that_nobody_would_play_are_refused(tmp_path):
    with pytest.raises(InputError, match="all services learn, so there are no rivals; add the option rotate"):
        run(small(rivals=("hqfa",)), 0, tmp_path / "agent.safetensors", Shelf())


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "results.csv").write_text("mine")
    with pytest.raises(
        InputError, match=r"results\.csv: already exists; continue with the option resume, or choose another file"
    ):
        run(small(), 0, tmp_path / "results.safetensors", Shelf())
    assert (tmp_path / "results.csv").read_text() == "mine"


def test_an_agent_without_states_is_not_trained_over(out):
    rmtree(out.with_suffix(".training"))
    before = out.read_bytes()
    with pytest.raises(
        CheckpointError,
        match=r"agent\.safetensors: already exists, but .* has no state to resume from; choose another file",
    ):
        run(small(), 0, out, Shelf(), resume=True)
    assert out.read_bytes() == before


def test_a_training_can_be_made_longer_but_not_shorter(out):
    longer = replace(small().plan, episodes=8, epsilon_episodes=4)  # as the command line would choose for 8
    run(small(plan=longer), 0, out, Shelf(), resume=True)
    described = json.loads(out.with_suffix(".json").read_text())
    assert (described["plan"]["episodes"], described["plan"]["epsilon_episodes"]) == (8, 3)
    with pytest.raises(
        CheckpointError, match="8 episodes have been played already, more than 6; raise the number of episodes"
    ):
        run(small(), 0, out, Shelf(), resume=True)


@pytest.mark.parametrize("out", [".", "..", "", "/"])
def test_a_folder_is_no_agent(out):
    with pytest.raises(InputError, match="must name a file"):
        place(Path(out), 0, [0])


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        run(small(), 0, tmp_path / ("x" * 300 + ".safetensors"), Shelf())


def test_what_is_not_asked_for_is_trained_as_the_shipped_agents_were():
    """Other defaults would make other agents of the same command."""
    default = Plan(
        episodes=200,
        seed=0,
        epsilon=(1.0, 0.05),
        epsilon_episodes=100,
        evaluate_every=25,
        evaluation_seeds=(900_001, 900_002, 900_003),
        seats=((),),
        together=1,
    )
    assert Plan() == default
    assert plan_training([load("paper")]).plan == default
    # Exploration ends half-way.
    assert plan_training([load("paper")], TrainOptions(episodes=30)).plan.epsilon_episodes == 15


def test_the_markets_of_a_training_follow_from_its_seed():
    """Other ones would make another agent of the same command."""
    assert [Plan(seed=seed).market_seed(episode) for seed, episode in ((0, 1), (0, 2), (1, 1))] == [
        538993023785078215,
        2510970874349195595,
        498730562159144482,
    ]


def test_the_digest_of_an_agent_is_part_of_what_a_run_depends_on(out):
    scenario = load("paper", ["services.mnist.policy=mahdrl"])
    (shipped,) = agents_of(scenario).values()
    own = load("paper", ["services.mnist.policy=mahdrl", f"services.mnist.checkpoint={out}"])
    assert list(agents_of(own)) == ["agent/mnist"]
    assert agents_of(own)["agent/mnist"] != shipped
    assert agents_of(load("paper")) == {}


def test_a_sweep_is_no_single_market_to_train_on(tmp_path):
    swept = small().scenarios[0].model_copy(update={"sweep": {"clients.cores": (1, 2)}})
    listed = small().scenarios[0].model_copy(update={"runs": ({"clients.cores": 1}, {"clients.cores": 2})})
    for several in (swept, listed):
        with pytest.raises(
            InputError, match=r"each scenario of a training is one market, but .* varies clients\.cores"
        ):
            run(small(scenarios=(several,)), 0, tmp_path / "agent.safetensors", Shelf())


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (["iterated"], "takes offers in 3 steps"),
        (["posted-price", "market.options.price_per_sample=0.03"], "posts prices of its own"),
    ],
)
def test_a_mechanism_that_learners_cannot_play_is_refused_before_anything_is_written(tmp_path, mechanism, reason):
    name, *options = mechanism
    with pytest.raises(InputError) as caught:
        run(small(f"market.mechanism={name}", *options), 0, tmp_path / "agent.safetensors", Shelf())
    assert str(caught.value) == (
        f"mechanism {name!r} {reason}; training plays one offer a round, priced from the bids; choose another "
        "one for market.mechanism"
    )
    assert list(tmp_path.iterdir()) == []


def test_who_learns_in_an_episode():
    names = ("a", "b", "c", "d")
    seats = (names,)
    alone = Plan(seats=seats)
    assert [alone.learners(episode) for episode in (1, 2, 3, 4)] == [("b",), ("c",), ("d",), ("a",)]
    several = [Plan(seats=seats * 2).learners(episode) for episode in range(1, 200)]
    assert {len(learners) for learners in several} == {1}
    assert several[4:] != several[:-4], "in several markets they are drawn, not in turn"
    assert Plan().learners(1) == (), "nobody named: all learn"
    pairs = [Plan(seats=seats, together=2).learners(episode) for episode in range(200)]
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert len(set(pairs)) == 6, "every pair comes up"
    assert set(Plan(seats=seats, together=9).learners(1)) == set(names)
    drawn = [len(Plan(seats=seats, together=0).learners(episode)) for episode in range(1, 200)]
    assert set(drawn) == {1, 2, 3, 4}, "any number of services may learn"


def test_all_markets_are_played_before_any_is_again():
    plan = Plan(seats=((), (), ()), evaluation_seeds=(5, 6))
    played = [plan.market_index(episode) for episode in range(1, 31)]
    turns = [tuple(played[at : at + 3]) for at in range(0, 30, 3)]
    assert all(set(turn) == {0, 1, 2} for turn in turns)
    assert len(set(turns)) > 1, "in an order drawn anew"
    assert list(plan.evaluations()) == [(0, 5, ()), (1, 6, ()), (2, 5, ())]


def test_an_evaluation_of_many_markets_plays_some_of_them_and_seats_in_turn():
    plan = Plan(seats=tuple((f"a{m}", f"b{m}") for m in range(40)), evaluation_seeds=(5,))
    found = list(plan.evaluations())
    assert [market for market, _, _ in found] == list(range(0, 40, 3))
    assert [seats for _, _, seats in found[:3]] == [("a0",), ("b3",), ("a6",)]


def markets(*overrides, **changes):
    """A training in three markets of different sizes; two of them have services of the same names."""
    other = load("paper", ["training.backend=surrogate", "rounds=6", "clients.count=9", "clients.cores=1"])
    one = drawn(0, 3)[2].model_copy(update={"rounds": 5})
    options = {"context": True, "budget": True, "replay": 100}
    training = small(*overrides, options=options, **changes)
    return replace(training, scenarios=(*training.scenarios, other, one))


@pytest.mark.slow
def test_one_agent_learns_in_several_markets_and_resumes_to_the_same_bytes(tmp_path):
    whole, short = tmp_path / "whole.safetensors", tmp_path / "short.safetensors"
    population = {"rotate": True, "rivals": ("hqfa", "dearest")}
    plan = Plan(episodes=12, epsilon_episodes=6, evaluate_every=4, evaluation_seeds=(900_001,), together=0)
    rows = []
    run(markets(plan=plan, **population), 3, whole, Shelf(), report=rows.append)
    run(markets(plan=replace(plan, episodes=8), **population), 3, short, Shelf())
    run(markets(plan=plan, **population), 3, short, Shelf(), resume=True)
    assert files(short) == files(whole)
    assert all(row.losses for row in rows if row.phase == "train" and row.episode > 9)
    described = json.loads(whole.with_suffix(".json").read_text())
    assert described["scenario"] == "3 markets"
    assert [name for name, _ in described["scenarios"]] == ["paper", "paper", "drawn-0-2"]
    run(markets(plan=replace(plan, episodes=13), **population), 3, short, Shelf(), resume=True)
    assert short.read_bytes() != whole.read_bytes()


@pytest.mark.slow
def test_an_agent_of_several_markets_plays_any_other(tmp_path):
    out = tmp_path / "agent.safetensors"
    run(markets(), 3, out, Shelf())
    for scenario in (load("scarce", ["training.backend=surrogate", "rounds=4"]), draw(1, 5)):
        scenario = scenario.model_copy(update={"rounds": 4})
        result = play_batch([scenario], [f"mahdrl:{out}"], [1], RunOptions(out=tmp_path / "runs"), progress=False)
        assert len(result.complete) == 1


def test_mahdrl_paper_is_trained_in_one_market():
    several = markets().scenarios
    with pytest.raises(InputError, match="policy 'mahdrl-paper' can only be trained in one market; with several"):
        plan_training(several, TrainOptions(policy="mahdrl-paper"))


def test_the_agents_that_were_met_are_part_of_what_was_trained_on():
    assert learned_rivals(small()) == {}, "all learn"
    assert learned_rivals(small(rotate=True, rivals=("hqfa",))) == {}
    met = learned_rivals(small(rotate=True, rivals=("hqfa", "mahdrl-paper")))
    assert met == {"mahdrl-paper": agent_files.digest(shipped("mahdrl-paper"))}


def test_a_checkpoint_that_nobody_plays_while_training_is_not_read():
    gone = small("services.mnist.policy=mahdrl", "services.mnist.checkpoint=gone.safetensors")
    assert learned_rivals(gone) == {}, "mnist learns in every episode"
    with pytest.raises(CheckpointError, match=r"gone\.safetensors: cannot be read"):
        learned_rivals(replace(gone, rotate=True))


@pytest.mark.slow
def test_two_trainings_into_one_file_are_refused(tmp_path):
    out = tmp_path / "agent.safetensors"
    process = subprocess.Popen([*CLI, *command("mahdrl", out), "--episodes", "100000"])
    try:
        wait_for(out.with_suffix(".training").exists)  # once it holds the log
        before = out.with_suffix(".csv").read_bytes()
        second = flmarket(*command("mahdrl", out), "--resume")
        log = out.with_suffix(".csv")
        assert second.returncode == 2
        assert second.stderr == (
            f"{log}: another process is training into it; wait for its end, or choose another file\n"
        )
        assert log.read_bytes().startswith(before)
    finally:
        process.kill()
        process.wait()


def test_a_rival_may_have_a_checkpoint_of_its_own(tmp_path, write_agent):
    """As with `--policy NAME:CHECKPOINT`."""
    agent = write_agent(tmp_path / "mine.safetensors", another=True)
    training = small(rotate=True, rivals=(f"mahdrl:{agent}",))
    with open_market(training, 0, ("mnist",), 0, 1, Shelf(), 1) as seated:
        assert {type(policy).__name__ for policy in seated.rivals.values()} == {"Mahdrl"}
    assert learned_rivals(training) == {f"mahdrl:{agent}": POLICIES.load("mahdrl").agent_digest(str(agent))}
    assert learned_rivals(training) != learned_rivals(small(rotate=True, rivals=("mahdrl",)))
    for rival, problem in (
        (f"lcfa:{agent}", f"rival 'lcfa:{agent}': policy 'lcfa' takes no checkpoint"),
        ("mahdrl:", "rival 'mahdrl:': the path of a checkpoint must follow the colon: NAME:CHECKPOINT"),
    ):
        with pytest.raises(InputError) as caught:
            plan_training(training.scenarios, TrainOptions(rotate=True, rivals=[rival]))
        assert str(caught.value) == problem


def recorded(out):
    return {path.name: path.read_bytes() for path in (out.with_suffix(".training") / "record").iterdir()}


def test_a_training_records_its_plan_baselines_and_preferences_for_those_who_watch(trained):
    found = recorded(trained)
    described = json.loads(found["plan.json"])
    assert described["plan"] == json.loads(trained.with_suffix(".json").read_text())["plan"]
    assert described["provenance"]["scenario"] == "paper"
    levels = [line.split(",")[0] for line in found["baselines.csv"].decode().splitlines()]
    assert levels == ["policy", "hqfa", "random", "lcfa"]
    rows = [line.split(",")[:2] for line in found["preferences.csv"].decode().splitlines()[1:]]
    assert rows == [[str(episode), name] for episode in (2, 4, 6) for name in ("mnist", "fashion-mnist", "emnist")]


def test_baselines_are_those_of_the_evaluations_markets(trained, tmp_path):
    """A market in which HQFA plays in every seat, as a run of it would."""
    level = recorded(trained)["baselines.csv"].decode().splitlines()[1].split(",")
    result = play_batch(small().scenarios, ["hqfa"], [900_001], RunOptions(out=tmp_path / "runs"), progress=False)
    table = pd.read_csv(result.complete[0].directory.path / "rounds.csv")
    assert level[0] == "hqfa"
    assert float(level[2]) == pytest.approx(table["accuracy"].mean(), abs=1e-5)


def test_turns_record_the_best_heuristic_and_real_training_none(tmp_path):
    run(small(rotate=True), 3, tmp_path / "turns.safetensors", Shelf())
    assert recorded(tmp_path / "turns.safetensors")["baselines.csv"].count(b"\n") == 2
    real = load("quickstart", ["rounds=1", "clients.count=3", "training.eval_samples=50"])
    plan = Plan(episodes=1, epsilon_episodes=1, evaluate_every=1, evaluation_seeds=(900_001,))
    run(small(scenarios=(real,), plan=plan), 3, tmp_path / "real.safetensors", Shelf())
    assert "baselines.csv" not in recorded(tmp_path / "real.safetensors")
