"""Reading scenarios: files and built-ins, overrides, the text they resolve to, and their hash."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from scenarios.file.schema import Scenario
from scenarios.loader import (
    Problem,
    ScenarioError,
    builtin_names,
    builtin_path,
    builtin_text,
    digest,
    dumps,
    load,
    parse,
    settled,
    with_policy,
    with_values,
)
from support.scenarios import problems

OWN = " (for one of your own, load its plug-in file)"


@pytest.fixture
def scenario(market: str) -> Scenario:
    return parse(market)


@pytest.fixture
def with_set(market: str) -> Callable[..., Scenario]:
    """Parse the market with overrides."""
    return lambda *overrides: parse(market, "f", overrides)


class TestFiles:
    def test_a_path(self, tmp_path: Path, market: str, scenario: Scenario) -> None:
        file = tmp_path / "mine.toml"
        file.write_text(market, encoding="utf-8")
        assert load(file) == load(str(file)) == scenario

    def test_a_byte_order_mark_is_no_fault(self, tmp_path: Path, market: str) -> None:
        file = tmp_path / "mine.toml"
        file.write_text(market, encoding="utf-8-sig")
        assert load(file).name == "market"

    def test_problems_name_the_file_as_it_was_given(self, tmp_path: Path, market: str) -> None:
        file = tmp_path / "mine.toml"
        file.write_text(market.replace("rounds = 5", "rounds = 0"), encoding="utf-8")
        with pytest.raises(ScenarioError) as caught:
            load(file)
        assert caught.value.problems == (Problem(str(file), 2, "rounds", "must be greater than or equal to 1, not 0"),)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"rounds = 5\nname = '\xff'\n", ":2: is not UTF-8 text"),
            (b"#" * 1_000_001, ": cannot be read: it is larger than 1,000,000 bytes"),
            (b"\x00", ":1: is not valid TOML: invalid statement"),
        ],
    )
    def test_files_that_are_no_scenario(self, tmp_path: Path, content: bytes, problem: str) -> None:
        file = tmp_path / "mine.toml"
        file.write_bytes(content)
        with pytest.raises(ScenarioError) as caught:
            load(file)
        assert str(caught.value) == f"{file}{problem}"

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ScenarioError, match="is a folder, not a scenario file"):
            load(tmp_path)

    def test_what_never_ends(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for path in ("/dev/zero", tmp_path / "pipe"):
            with pytest.raises(ScenarioError, match="cannot be read: it is not a regular file"):
                load(path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_an_unreadable_file(self, tmp_path: Path) -> None:
        file = tmp_path / "mine.toml"
        file.touch(mode=0o000)
        with pytest.raises(ScenarioError, match="cannot be read: Permission denied"):
            load(file)

    def test_a_missing_file(self) -> None:
        with pytest.raises(ScenarioError) as caught:
            load("nowhere/mine.toml")
        assert str(caught.value) == "nowhere/mine.toml: no such file"

    @pytest.mark.parametrize("mistyped", ["my-markt.toml", "my-market.tml", "my-market"])
    def test_a_mistyped_file(self, mistyped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("my-market.toml").touch()
        with pytest.raises(ScenarioError, match=r"; did you mean 'my-market\.toml'\?$"):
            load(mistyped)

    def test_a_built_in_with_the_ending_of_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ScenarioError, match="no such file; did you mean 'quickstart'"):
            load("quickstart.toml")

    def test_a_mistyped_built_in(self) -> None:
        with pytest.raises(ScenarioError) as caught:
            load("papr")
        assert str(caught.value) == ("papr: no such file, and no built-in scenario of that name; did you mean 'paper'?")


class TestBuiltIns:
    def test_there_are_fifteen(self) -> None:
        others = ["quickstart", "scarce", "stragglers"]
        papers = ["paper", "paper-budget", "paper-cores", "paper-fitted", "phones-at-night"]
        first = ["afl", "changing", "crowd", "interests", "job-stream", "mechanisms"]
        assert builtin_names() == [*first, *papers, "private", *others]

    @pytest.mark.parametrize("name", builtin_names())
    def test_each_is_sound_and_says_what_it_is(self, name: str) -> None:
        scenario = load(name)
        assert scenario.name == name
        assert scenario.description
        assert builtin_text(name).startswith("# ")
        assert load(builtin_path(name)) == scenario
        assert parse(dumps(scenario)) == scenario

    def test_there_is_no_other(self) -> None:
        with pytest.raises(InputError):
            builtin_text("../../pyproject")

    def test_paper_is_the_paper(self) -> None:
        paper = load("paper")
        assert (paper.rounds, paper.dqi, paper.sweep) == (80, "published", {})
        assert (paper.clients.count, paper.clients.cores) == (20, 2)
        assert paper.clients.data_size == (100, 200, 300, 400)
        assert paper.clients.emd == (0.4, 0.6, 0.8, 1.0)
        assert (paper.clients.cost.per_sample, paper.clients.cost.per_emd) == (0.025, 1.0)
        assert [(s.name, s.dataset, s.budget, s.target_accuracy, s.reward_base) for s in paper.services] == [
            ("mnist", "mnist", 20.0, 0.97, 60.0),
            ("fashion-mnist", "fashion-mnist", 20.0, 0.85, 100.0),
            ("emnist", "emnist-digits", 20.0, 0.97, 30.0),
        ]
        trained = {name: paper.training_for(name) for name in ("mnist", "fashion-mnist", "emnist-digits")}
        assert {name: (t.local_epochs, t.batch_size, t.learning_rate, t.momentum) for name, t in trained.items()} == {
            "mnist": (1, 10, 0.04, 0.0),
            "fashion-mnist": (2, 10, 0.025, 0.0),
            "emnist-digits": (1, 10, 0.03, 0.0),
        }

    @pytest.mark.parametrize(
        ("name", "differs"), [("paper-fitted", {"dqi"}), ("paper-budget", {"sweep"}), ("paper-cores", {"sweep"})]
    )
    def test_variants_differ_from_the_paper_in_one_thing(self, name: str, differs: set[str]) -> None:
        paper, variant = load("paper").model_dump(), load(name).model_dump()
        assert {key for key in paper if paper[key] != variant[key]} == {"name", "description", *differs}


class TestOverrides:
    def test_values_are_toml_and_words_are_text(self, with_set: Callable[..., Scenario]) -> None:
        changed = with_set(
            "clients.cores=3",
            "clients.emd = [0.5]",
            "description=two words",
            'services.mnist.policy="lcfa"',
            "services.digits.policy=greedy",
            "services.digits.policy_options.margin=0.5",
            "clients.cost={per_sample=1, per_emd=0}",
            "timeline.deadline=5",
            "training.by_dataset.fashion-mnist.momentum=0.9",
        )
        assert changed.clients.cores == 3
        assert changed.clients.emd == (0.5,)
        assert changed.description == "two words"
        assert [service.policy for service in changed.services] == ["lcfa", "greedy"]
        assert changed.services[1].policy_options == {"margin": 0.5}
        assert changed.clients.cost.per_sample == 1.0
        assert changed.timeline.deadline == 5.0
        assert changed.training_for("fashion-mnist").momentum == 0.9

    def test_a_star_stands_for_every_service(self, with_set: Callable[..., Scenario]) -> None:
        assert {service.budget for service in with_set("services.*.budget=7").services} == {7.0}

    def test_each_service_gets_a_table_of_its_own(self, with_set: Callable[..., Scenario]) -> None:
        margin = "services.digits.policy_options.margin=0.5"
        changed = with_set("services.*.policy=greedy", "services.*.policy_options={}", margin).services
        assert [service.policy_options for service in changed] == [{}, {"margin": 0.5}]

    def test_the_last_one_wins(self, with_set: Callable[..., Scenario]) -> None:
        assert with_set("rounds=6", "rounds=7").rounds == 7

    def test_text_cannot_bring_in_another_key(self, with_set: Callable[..., Scenario]) -> None:
        assert with_set("description=1\nrounds = 99").rounds == 5

    def test_a_date_is_text(self, with_set: Callable[..., Scenario]) -> None:
        assert with_set("description=2026-11-21").description == "2026-11-21"

    @pytest.mark.parametrize(
        ("override", "problem"),
        [
            ("clients.cores=x", 'must be a valid integer, not "x"'),
            (
                "clients.cores=[1, 2]",
                "must be a valid integer, not a list; several values make a sweep: sweep.clients.cores=[...]",
            ),
            (
                "services.mnist.budget=[1]",
                "must be a valid number, not a list; several values make a sweep: sweep.services.NAME.budget=[...]",
            ),
            ("mnist.budget=10", "unknown key; did you mean 'services.mnist.budget'?"),
            ("clients.cores=0", "must be greater than or equal to 1, not 0"),
            ("clients.cores=[1", "the value is not valid TOML"),
            ("clients.cores", "must be KEY=VALUE"),
            ("clients..cores=1", '"clients..cores" is not a dotted key such as clients.cores'),
            ("clients.coers=1", "unknown key; did you mean 'cores'?"),
            ("client.cores=1", "client: unknown key; did you mean 'clients'?"),
            ("rounds.x=1", "rounds is not a table"),
            ("services=1", "must name a service and one of its keys: services.NAME.budget"),
            ("services.mnist=1", "must name a service and one of its keys: services.NAME.budget"),
            ("services.mnits.budget=1", "unknown service 'mnits'; did you mean 'mnist'?"),
            ("services.mnist.budget=-1", "must be greater than or equal to 0, not -1"),
            ("services.mnist.dataset=mnits", "unknown data set 'mnits'; did you mean 'mnist'?" + OWN),
            ("clients.data_size=[5000]", "5,000 images are more than the 1,438 training images of digits"),
        ],
    )
    def test_problems_name_the_option(self, market: str, override: str, problem: str) -> None:
        assert problems(market, override) == [f"{override}: {problem}"]

    def test_problems_of_the_file_come_first(self, market: str) -> None:
        assert problems(market.replace("= 5", "= 0"), "clients.cores=0") == [
            "f:2: rounds: must be greater than or equal to 1, not 0",
            "clients.cores=0: must be greater than or equal to 1, not 0",
        ]

    def test_names_may_hold_dots(self, market: str) -> None:
        text = market.replace('name = "mnist"', 'name = "a"').replace('name = "digits"', 'name = "a.b"')
        changed = parse(text, overrides=["services.a.b.budget=1", "services.a.budget=2"])
        assert [service.budget for service in changed.services] == [2.0, 1.0]


class TestText:
    def test_it_is_written_with_its_defaults(self, scenario: Scenario) -> None:
        written = tomllib.loads(dumps(settled(scenario)))
        assert written["timeline"] == {"seconds_per_sample": 0.001, "upload_seconds": 0.5}  # no word for absent
        assert written["clients"]["lasting"] == {"persistence": 0.0, "drift": 0.0}
        assert written["training"]["by_dataset"] == {"digits": {"local_epochs": 3}}

    def test_nothing_is_lost(self, market: str) -> None:
        scenario = parse(
            market
            + 'checkpoint = "a\\\\b \\"c\\""\n'
            + "[services.policy_options]\n"
            + '"a key" = [1, 2.5e-7, -0.0, true, "\\u0007\\u007f\\n\u2028é"]\n'
            + "nested = { deeper = { x = [{ y = 1 }, []] }, empty = {} }\n"
            + "[sweep]\n"
            + '"services.digits.policy_options" = [{}, { x = 1e300 }]\n'
            + "timeline.deadline = [1, 2]\n",
        )
        assert parse(dumps(scenario)) == scenario


class TestDigest:
    def test_it_is_known(self, scenario: Scenario, with_set: Callable[..., Scenario]) -> None:
        """Changing it would orphan everyone's run directories: say so in the changelog."""
        assert digest(scenario) == "5616f6e6"
        assert digest(with_set("training.validation=0")) == "6b9c4cba"

    def test_layout_and_comments_do_not_matter(self, market: str, scenario: Scenario) -> None:
        rearranged = "# new\n" + market.replace("budget = 20", "budget = 20.0").replace("[timeline]", "[timeline]\n\n")
        assert digest(parse(rearranged)) == digest(scenario)

    def test_every_value_and_extra_matters(self, scenario: Scenario, with_set: Callable[..., Scenario]) -> None:
        digests = [
            digest(scenario),
            digest(with_set("rounds=6")),
            digest(with_set("timeline.slot=9")),
            digest(scenario, {"mnist": "ab"}),
            digest(scenario, {"mnist": "ac"}),
        ]
        assert len(set(digests)) == len(digests)

    def test_the_order_of_extras_does_not(self, scenario: Scenario) -> None:
        assert digest(scenario, {"a": "1", "b": "2"}) == digest(scenario, {"b": "2", "a": "1"})


class TestChanges:
    def test_an_unknown_policy(self, scenario: Scenario) -> None:
        with pytest.raises(InputError) as caught:
            with_policy(scenario, "randm")
        assert str(caught.value) == "unknown policy 'randm'; did you mean 'random'?" + OWN

    def test_rounds(self, scenario: Scenario) -> None:
        assert with_values(scenario, {"rounds": 7}).rounds == 7
        with pytest.raises(ScenarioError) as caught:
            with_values(scenario, {"rounds": 0})
        assert str(caught.value) == "rounds=0: must be greater than or equal to 1, not 0"

    def test_what_is_swept_stays(self, market: str) -> None:
        swept = parse(market + '[sweep]\nrounds = [1, 2]\n"services.mnist.policy" = ["random", "lcfa"]')
        with pytest.raises(ScenarioError, match="rounds=3: is swept by this scenario"):
            with_values(swept, {"rounds": 3})
        with pytest.raises(ScenarioError, match=r"policy 'lcfa': services\.mnist\.policy: is swept by this scenario"):
            with_policy(swept, "lcfa")
