"""What users read when a scenario is wrong: one edit to a good file, and every line that comes of it."""

import pytest

from scenarios.file.checks import Catalogue
from scenarios.loader import ScenarioError, parse

OWN = " (--plugin FILE loads your own)"

# (case, text in the good scenario, what it becomes, the problems)
BAD = [
    (
        "a mistyped key",
        "cores = 2",
        "coers = 2",
        ["f:4: clients.cores: is missing", "f:6: clients.coers: unknown key; did you mean 'cores'?"],
    ),
    (
        "a key in the wrong table",
        "cores = 2",
        "cores = 2\nrounds = 9",
        ["f:7: clients.rounds: unknown key here; it belongs at the top of the file, above the first [table]"],
    ),
    ("another wrong table", "rounds = 5", "rounds = 5\nslot = 9", [
        "f:3: slot: unknown key here; it belongs in [timeline]"]),
    ("a key of nothing", "upload_s", "zzz = 1\nupload_s", [
        "f:18: timeline.zzz: unknown key; choose from seconds_per_sample, upload_seconds, slot, deadline"]),
    ("a missing key of a service", "budget = 20\n", "", ["f:20: services.mnist.budget: is missing"]),
    ("a missing key at the top", "rounds = 5\n", "", ["f:1: rounds: is missing"]),
    ("text for a number", "count = 4", 'count = "4"', ['f:5: clients.count: must be a whole number, not the text "4"']),
    ("a boolean for a number", "count = 4", "count = true", ["f:5: clients.count: must be a whole number, not true"]),
    ("a fraction of a client", "count = 4", "count = 4.0", ["f:5: clients.count: must be a whole number, not 4.0"]),
    ("a date for a number", "count = 4", "count = 2026-01-01", [
        "f:5: clients.count: must be a whole number, not a date"]),
    ("no clients", "count = 4", "count = 0", ["f:5: clients.count: must be at least 1, not 0"]),
    ("no cores", "cores = 2", "cores = 0", ["f:6: clients.cores: must be at least 1, not 0"]),
    ("too many clients", "count = 4", "count = 1_000_000", [
        "f:5: clients.count: must be at most 100,000, not 1,000,000"]),
    ("endless digits", "count = 4", "count = 4" + "0" * 5000, ["f:5: has a number of too many digits"]),
    ("endless hexadecimal digits", "count = 4", "count = 0x4" + "0" * 5000, [
        "f:5: clients.count: must be at most 100,000, not an integer of more than 30 digits"]),
    ("an integer no float holds", "= 0.5\n", "= 1" + "0" * 400 + "\n", [
        "f:18: timeline.upload_seconds: must be a number that a computer can hold, "
        "not an integer of more than 30 digits"]),
    ("a list for a number", "count = 4", "count = [4]", ["f:5: clients.count: must be a whole number, not a list"]),
    ("a number for a list", "= [0.4, 1.0]", "= 0.4", ["f:8: clients.emd: must be a list, not 0.4"]),
    ("an empty list", "= [0.4, 1.0]", "= []", ["f:8: clients.emd: must not be empty"]),
    ("items on lines of their own", "= [100, 200]", '= [\n  100,\n  "200",\n  0,\n]', [
        'f:9: clients.data_size: must be a whole number, not the text "200"',
        "f:10: clients.data_size: must be at least 1, not 0"]),
    ("an EMD that no ten labels have", "= [0.4, 1.0]", "= [0.4, 1.81, 1.0]", [
        "f:8: clients.emd: must be at most 1.8 = 2 (1 - 1/10) for the 10 labels of mnist, not 1.81"]),
    ("an EMD that no labels have", "= [0.4, 1.0]", "= [2.5, -1]", [
        "f:8: clients.emd: must be at most 2, not 2.5", "f:8: clients.emd: must be at least 0, not -1"]),
    ("more images than there are", "= [100, 200]", "= [100, 2000]", [
        "f:7: clients.data_size: 2,000 images are more than the 1,437 training images of digits"]),
    ("more of a label than there is", "= [100, 200]", "= [100, 300]", [
        "f:7: clients.data_size: 300 images at EMD 1.0 can need 180 of one of the 10 labels; "
        "the rarest label of digits has 139, of which training.validation = 0.1 leaves 125"]),
    ("bids below zero", "per_emd = 1.0", "per_emd = 3.0", [
        "f:9: clients.cost: the cost of 100 images at EMD 1 would be -0.500000, and must not be negative"]),
    ("absurd bids", "per_sample = 0.025", "per_sample = 1e6", [
        "f:9: clients.cost: the cost of 200 images at EMD 0.4 would be 199999999.600000, "
        "above the limit of 10,000,000"]),
    ("a misnamed cost", "per_emd", "per_emb", [
        "f:9: clients.cost.per_emd: is missing", "f:9: clients.cost.per_emb: unknown key; did you mean 'per_emd'?"]),
    ("negative money", "budget = 20", "budget = -1", ["f:23: services.mnist.budget: must be at least 0, not -1"]),
    ("infinite money", "budget = 20", "budget = inf", [
        "f:23: services.mnist.budget: must be a finite number, not inf"]),
    ("money that is no number", "budget = 20", "budget = nan", [
        "f:23: services.mnist.budget: must be a finite number, not nan"]),
    ("too much money", "budget = 20", "budget = 1e10", [
        "f:23: services.mnist.budget: must be at most 1,000,000,000, not 10,000,000,000"]),
    ("fine money", "budget = 20", "budget = 20.0000001", [
        "f:23: services.mnist.budget: has more than six decimals: 20.0000001"]),
    ("a target in percent", "= 0.97", "= 97", [
        "f:24: services.mnist.target_accuracy: must be at most 1, not 97 (a fraction: 97 % is 0.97)"]),
    ("a target of nothing", "= 0.97", "= 0", ["f:24: services.mnist.target_accuracy: must be more than 0, not 0"]),
    ("a reward that never grows", "_base = 60", "_base = 1", [
        "f:25: services.mnist.reward_base: must be more than 1, not 1"]),
    ("an unknown data set", '= "mnist"\nbudget', '= "mnits"\nbudget', [
        "f:22: services.mnist.dataset: unknown data set 'mnits'; did you mean 'mnist'?" + OWN]),
    ("an unknown policy", '"hqfa"', '"best"', [
        "f:34: services.digits.policy: unknown policy 'best'; choose from random, lcfa, hqfa, greedy, d-first" + OWN]),
    ("training of an unknown data set", "by_dataset.digits", "by_dataset.digit", [
        "f:14: training.by_dataset.digit: unknown data set 'digit'; did you mean 'digits'?" + OWN]),
    ("two services of one name", 'name = "digits"', 'name = "mnist"', [
        'f:29: services.mnist.name: is also the name of another service: "mnist" (line 21)']),
    ("a name that leaves its folder", 'name = "market"', 'name = "../market"', [
        "f:1: name: must be 1 to 64 of A-Z a-z 0-9 - _ . and not start with a dot or a hyphen, "
        'not the text "../market"']),
    ("a model's name that is no name", 'learning_rate = 0.05', 'learning_rate = 0.05\nmodel = "my cnn"', [
        "f:13: training.model: must be 1 to 64 of A-Z a-z 0-9 - _ . and not start with a dot or a hyphen, "
        'not the text "my cnn"']),
    ("a service without a name", 'name = "digits"\n', "", ["f:28: services.#2.name: is missing"]),
    ("a table for a list of tables", "[[services]]\nname = \"mnist\"", "[services]\nname = \"mnist\"", [
        "f:28: is not valid TOML: cannot overwrite a value"]),
    ("an unknown choice", "[training]", '[training]\nkernel = "fusd"', [
        "f:12: training.kernel: must be one of auto, fused, reference, not the text \"fusd\"; did you mean 'fused'?"]),
    ("a backend that there is not", "[training]", '[training]\nbackend = "cloud"', [
        'f:12: training.backend: must be one of real, surrogate, noiseless, not the text "cloud"']),
    ("more tests than images", "[training]", "[training]\neval_samples = 361", [
        "f:12: training.eval_samples: must be at most 360, the test images of digits, not 361"]),
    ("a deadline after the slot", "[timeline]", "[timeline]\nslot = 3\ndeadline = 4.5", [
        "f:19: timeline.deadline: must be at most the slot of 3 seconds, not 4.5"]),
    ("clients that are a number", "[clients]", "clients = 4\n[other]", [
        "f:4: clients: must be a table, not 4",
        "f:5: other: unknown key; choose from name, description, rounds, dqi, clients, market, training, timeline, "
        "services, sweep, runs, interventions"]),
    ("a date among options", 'policy = "hqfa"', 'policy = "hqfa"\npolicy_options = { since = 2026-01-01 }', [
        "f:35: services.digits.policy_options: must not hold a date or a time of day"]),
    ("a key that acts on terminals", "rounds = 5", 'rounds = 5\n"\\u001b[2J" = 1', [
        'f:3: "\\u001b[2J": unknown key; choose from name, description, rounds, dqi, clients, market, training, '
        "timeline, services, sweep, runs, interventions"]),
    ("no TOML", "rounds = 5", "rounds 5", ["f:2: is not valid TOML: expected '=' after a key in a key/value pair"]),
    ("an open string", '"hqfa"\n', '"""hqfa\n', ["f:35: is not valid TOML: unterminated string"]),
    ("a key twice", "rounds = 5", "rounds = 5\nrounds = 6", ["f:3: is not valid TOML: cannot overwrite a value"]),
    ("lists without end", "rounds = 5", "rounds = " + "[" * 500 + "]" * 500, ["f: has lists more than 32 deep"]),
    ("deep lists", "rounds = 5", "rounds = " + "[" * 40 + "]" * 40, [
        "f: rounds: holds lists and tables more than 32 deep"]),
    ("a key without end", "rounds = 5", "rounds" + ".a" * 100_000 + " = 5", ["f:2: has a key of more than 32 parts"]),
]  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "problems"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_problem_is_named_with_its_line(
    market: str, catalogue: Catalogue, good: str, bad: str, problems: list[str]
) -> None:
    assert good in market
    with pytest.raises(ScenarioError) as caught:
        parse(market.replace(good, bad, 1), "f", catalogue=catalogue)
    assert [str(problem) for problem in caught.value.problems] == problems


def test_all_problems_are_reported_at_once_in_line_order(market: str, catalogue: Catalogue) -> None:
    text = (
        market.replace('policy = "hqfa"', 'policy = "hqaf"')
        .replace("cores = 2", "cores = 0")
        .replace("= [100, 200]", '= ["100", 5000]')
        .replace('"digits"\ndataset', '"mnist"\ndataset')
        .replace("= 0.97", "= 97")
    )
    with pytest.raises(ScenarioError) as caught:
        parse(text, "f", catalogue=catalogue)
    assert str(caught.value).splitlines() == [
        "f:6: clients.cores: must be at least 1, not 0",
        'f:7: clients.data_size: must be a whole number, not the text "100"',
        "f:7: clients.data_size: 5,000 images are more than the 1,437 training images of digits",
        "f:24: services.mnist.target_accuracy: must be at most 1, not 97 (a fraction: 97 % is 0.97)",
        'f:29: services.mnist.name: is also the name of another service: "mnist" (line 21)',
        "f:34: services.mnist.policy: unknown policy 'hqaf'; did you mean 'hqfa'?" + OWN,
    ]


def test_an_empty_file_lacks_what_has_no_default(catalogue: Catalogue) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse("", "f", catalogue=catalogue)
    assert str(caught.value).splitlines() == [
        "f:1: name: is missing",
        "f:1: rounds: is missing",
        "f:1: clients: is missing",
        "f:1: services: is missing: at least one [[services]] table is needed",
    ]


def test_services_in_single_brackets(market: str, catalogue: Catalogue) -> None:
    one = market[: market.rindex("[[services]]")].replace("[[services]]", "[services]")
    with pytest.raises(ScenarioError) as caught:
        parse(one, "f", catalogue=catalogue)
    assert str(caught.value) == "f:20: services: must be tables with double brackets, [[services]], not a table"


def test_the_smallest_of_several_data_sets_decides(market: str, catalogue: Catalogue) -> None:
    """Two labels allow an EMD of 1 at most."""
    text = market.replace('dataset = "mnist"', 'dataset = "pair"').replace("[0.4, 1.0]", "[0.4, 1.01]")
    with pytest.raises(ScenarioError) as caught:
        parse(text, "f", catalogue=catalogue)
    assert str(caught.value) == ("f:8: clients.emd: must be at most 1 = 2 (1 - 1/2) for the 2 labels of pair, not 1.01")


def test_a_market_too_large_for_its_arrays(market: str, catalogue: Catalogue) -> None:
    service = market[market.index("[[services]]") : market.rindex("[[services]]")]
    many = "".join(service.replace('name = "mnist"', f'name = "s{i}"') for i in range(200))
    text = market.replace("count = 4", "count = 100_000") + many
    with pytest.raises(ScenarioError, match="100,000 clients times 202 services are more than 10,000,000"):
        parse(text, "f", catalogue=catalogue)


def test_a_thousand_problems_are_cut_short(market: str, catalogue: Catalogue) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse("".join(f"x{i} = 1\n" for i in range(1_000)) + market, "f", catalogue=catalogue)
    assert len(caught.value.problems) == 201
    assert str(caught.value.problems[-1]) == "f: 800 more problems"


LEGAL = [
    ("one client", "count = 4", "count = 1"),
    ("more cores than services", "cores = 2", "cores = 1024"),
    ("a budget below every bid", "budget = 20", "budget = 0"),
    ("a bid of zero", "per_emd = 1.0", "per_emd = 2.5"),
    ("a target of everything", "= 0.97", "= 1"),
    ("the largest EMD", "= [0.4, 1.0]", "= [0, 1.8]"),
    ("integers for floats", "= 0.5\n", "= 1\n"),
    ("Windows line ends", "\n", "\r\n"),
]


@pytest.mark.parametrize(("plain", "extreme"), [case[1:] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_extreme_but_legal(market: str, catalogue: Catalogue, plain: str, extreme: str) -> None:
    text = market.replace("= [100, 200]", "= [10, 100]") if "1.8" in extreme else market
    cheap = "per_sample = 0.025", "per_sample = 0.2"
    text = text.replace(*cheap) if "1.8" in extreme else text
    assert plain in text
    parse(text.replace(plain, extreme), catalogue=catalogue)
