"""What users read when a scenario is wrong: one edit to a good file, and every line that comes of it."""

import pytest

from scenarios.loader import parse
from support.scenarios import problems

OWN = " (for one of your own, load its plug-in file)"
TOP = (
    "name, description, rounds, dqi, clients, data, market, training, timeline, streams, services, sweep, runs, "
    "interventions"
)

# (case, text in the good scenario, what it becomes, the problems)
BAD = [
    ("a mistyped key", "cores = 2", "coers = 2", [
        "f:4: clients.cores: is missing", "f:6: clients.coers: unknown key; did you mean 'cores'?"]),
    ("a key in the wrong table", "cores = 2", "cores = 2\nrounds = 9", [
        "f:7: clients.rounds: unknown key here; it belongs at the top of the file, above the first [table]"]),
    ("another wrong table", "rounds = 5", "rounds = 5\nslot = 9", [
        "f:3: slot: unknown key here; it belongs in [timeline]"]),
    ("a key of nothing", "upload_s", "zzz = 1\nupload_s", [
        "f:18: timeline.zzz: unknown key; choose from mode, aggregate, seconds_per_sample, upload_seconds, "
        "download_seconds, jitter, slot, decide, slots, deadline"]),
    ("a missing key of a service", "budget = 20\n", "", ["f:20: services.mnist.budget: is missing"]),
    ("a service without a name", 'name = "digits"\n', "", ["f:28: services.#2.name: is missing"]),
    ("text for a number", "count = 4", 'count = "4"', ['f:5: clients.count: must be a valid integer, not "4"']),
    ("a boolean for a number", "count = 4", "count = true", [
        "f:5: clients.count: must be a valid integer, not true"]),
    ("a fraction of a client", "count = 4", "count = 4.0", [
        "f:5: clients.count: must be a valid integer, not 4.0"]),
    ("a number out of range", "count = 4", "count = 2_000_000", [
        "f:5: clients.count: must be less than or equal to 1000000, not 2,000,000"]),
    ("endless digits", "count = 4", "count = 0x4" + "0" * 5000, [
        "f:5: clients.count: must be less than or equal to 1000000, not an integer of more than 30 digits"]),
    ("an integer that no float holds", "= 0.5\n", "= 1" + "0" * 400 + "\n", [
        "f:18: timeline.upload_seconds: must be a valid number, not an integer of more than 30 digits"]),
    ("a number for a list", "= [0.4, 1.0]", "= 0.4", ["f:8: clients.emd: must be a list, not 0.4"]),
    ("items on lines of their own", "= [100, 200]", '= [\n  100,\n  "200",\n  0,\n]', [
        'f:9: clients.data_size: must be a valid integer, not "200"',
        "f:10: clients.data_size: must be greater than or equal to 1, not 0"]),
    ("an EMD that no ten labels have", "= [0.4, 1.0]", "= [0.4, 1.81, 1.0]", [
        "f:8: clients.emd: must be at most 1.8 = 2 (1 - 1/10) for the 10 labels of mnist, not 1.81"]),
    ("more images than there are", "= [100, 200]", "= [100, 2000]", [
        "f:7: clients.data_size: 2,000 images are more than the 1,438 training images of digits"]),
    ("more of a label than there is", "= [100, 200]", "= [100, 300]", [
        "f:7: clients.data_size: 300 images at EMD 1.0 can need 180 of one of the 10 labels; "
        "the rarest label of digits has 139, of which training.validation = 0.1 leaves 125"]),
    ("bids below zero", "per_emd = 1.0", "per_emd = 3.0", [
        "f:9: clients.cost: the cost of 100 images at EMD 1 would be -0.500000, and must not be negative"]),
    ("absurd bids", "per_sample = 0.025", "per_sample = 1e6", [
        "f:9: clients.cost: the cost of 200 images at EMD 0.4 would be 199999999.600000, "
        "above the limit of 10,000,000"]),
    ("infinite money", "budget = 20", "budget = inf", [
        "f:23: services.mnist.budget: must be a finite number, not inf"]),
    ("fine money", "budget = 20", "budget = 20.0000001", [
        "f:23: services.mnist.budget: has more than six decimals: 20.0000001"]),
    ("an unknown data set", '= "mnist"\nbudget', '= "mnits"\nbudget', [
        "f:22: services.mnist.dataset: unknown data set 'mnits'; did you mean 'mnist'?" + OWN]),
    ("an unknown policy", '"hqfa"', '"hqfb"', [
        "f:34: services.digits.policy: unknown policy 'hqfb'; did you mean 'hqfa'?" + OWN]),
    ("training of an unknown data set", "by_dataset.digits", "by_dataset.digit", [
        "f:14: training.by_dataset.digit: unknown data set 'digit'; did you mean 'digits'?" + OWN]),
    ("two services of one name", 'name = "digits"', 'name = "mnist"', [
        'f:29: services.mnist.name: is also the name of another service: "mnist" (line 21)']),
    ("a name that leaves its folder", 'name = "market"', 'name = "../market"', [
        "f:1: name: must match pattern '^[A-Za-z0-9_][A-Za-z0-9._-]*$', not \"../market\""]),
    ("an unknown choice", "[training]", '[training]\nkernel = "fusd"', [
        "f:12: training.kernel: must be 'auto', 'fused' or 'reference', not \"fusd\"; did you mean 'fused'?"]),
    ("more tests than images", "[training]", "[training]\neval_samples = 361", [
        "f:12: training.eval_samples: must be at most 359, the test images of digits, not 361"]),
    ("a deadline after the slot", "[timeline]", "[timeline]\nslot = 3\ndeadline = 4.5", [
        "f:19: timeline.deadline: must be at most the slot of 3.0 seconds, not 4.5"]),
    ("clients that are a number", "[clients]", "clients = 4\n[other]", [
        "f:4: clients: must be a table, not 4", f"f:5: other: unknown key; choose from {TOP}"]),
    ("a date among options", 'policy = "hqfa"', 'policy = "hqfa"\npolicy_options = { since = 2026-01-01 }', [
        "f:35: services.digits.policy_options: must not hold a date or a time of day"]),
    ("a deep list among options", 'policy = "hqfa"', 'policy = "hqfa"\npolicy_options = { x = ' + "[" * 40 + "]" * 40
     + " }", ["f:35: services.digits.policy_options: must not hold lists and tables more than 32 deep"]),
    ("a key that acts on terminals", "rounds = 5", 'rounds = 5\n"\\u001b[2J" = 1', [
        f'f:3: "\\u001b[2J": unknown key; choose from {TOP}']),
    ("no TOML", "rounds = 5", "rounds 5", ["f:2: is not valid TOML: expected '=' after a key in a key/value pair"]),
    ("an open string", '"hqfa"\n', '"""hqfa\n', ["f:35: is not valid TOML: unterminated string"]),
    ("a key twice", "rounds = 5", "rounds = 5\nrounds = 6", [
        "f:3: is not valid TOML: the key or table 'rounds' is given twice"]),
    ("a table twice", "[timeline]", "[clients]\n[timeline]", [
        "f:17: is not valid TOML: the key or table 'clients' is given twice"]),
    ("a table twice, the file's last", 'policy = "hqfa"', 'policy = "hqfa"\n[clients]\ncores = 1', [
        "f:35: is not valid TOML: the key or table 'clients' is given twice"]),
    ("a table that is an inline one", "[training]", "a = { b = 1 }\n[timeline.x]\n[timeline.x]\n[training]", [
        "f:13: is not valid TOML: the key or table 'timeline.x' is given twice"]),
    ("a key twice in an inline table", "rounds = 5", "rounds = { a = 1, a = 2 }", [
        "f:2: is not valid TOML: the key or table 'a' is given twice"]),
    ("a key of thousands of parts", "rounds = 5", "a" + ".a" * 8000 + " = 5", [
        "f:2: has a key of more than 64 parts"]),
    ("parts in quotes, in an inline table", "rounds = 5", "a = { " + "'a' . \"a\" . " * 4000 + "a = 5 }", [
        "f:2: has a key of more than 64 parts"]),
    ("no service", "rounds = 5", "rounds = 5\nruns = [{}]", ["f:3: runs: must have at least 1 item, not 0"]),
    ("lists without end", "rounds = 5", "rounds = " + "[" * 500 + "]" * 500, [
        "f: is not valid TOML: maximum recursion depth exceeded"]),
]  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "expected"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_problem_is_named_with_its_line(market: str, good: str, bad: str, expected: list[str]) -> None:
    assert good in market
    assert problems(market.replace(good, bad, 1)) == expected


def test_all_problems_of_keys_are_reported_at_once_in_line_order_and_then_all_across_keys(market: str) -> None:
    twice = market.replace('"digits"\ndataset', '"mnist"\ndataset').replace("[100, 200]", "[100, 5000]")
    text = twice.replace('policy = "hqfa"', 'policy = "hqaf"').replace("cores = 2", "cores = 0")
    assert problems(text) == [
        "f:6: clients.cores: must be greater than or equal to 1, not 0",
        "f:34: services.mnist.policy: unknown policy 'hqaf'; did you mean 'hqfa'?" + OWN,
    ]
    assert problems(twice) == [
        "f:7: clients.data_size: 5,000 images are more than the 1,438 training images of digits",
        'f:29: services.mnist.name: is also the name of another service: "mnist" (line 21)',
    ]


def test_an_empty_file_lacks_what_has_no_default() -> None:
    assert problems("") == [f"f:1: {key}: is missing" for key in ("name", "rounds", "clients", "services")]


def test_services_in_single_brackets(market: str) -> None:
    one = market[: market.rindex("[[services]]")].replace("[[services]]", "[services]")
    assert problems(one) == [
        "f:20: services: must be a list, not a table; tables of a list have double brackets, [[services]]"
    ]


def test_the_smallest_of_several_data_sets_decides(market: str) -> None:
    """Two labels allow an EMD of 1 at most."""
    text = market.replace('dataset = "mnist"', 'dataset = "pair"').replace("[0.4, 1.0]", "[0.4, 1.01]")
    assert "f:8: clients.emd: must be at most 1 = 2 (1 - 1/2) for the 2 labels of pair, not 1.01" in problems(text)


def test_a_market_too_large_for_its_arrays(market: str) -> None:
    service = market[market.index("[[services]]") : market.rindex("[[services]]")]
    many = "".join(service.replace('name = "mnist"', f'name = "s{i}"') for i in range(200))
    [found] = problems(market.replace("count = 4", "count = 100_000") + many)
    assert "100,000 clients times 202 services are more than 10,000,000" in found


@pytest.mark.parametrize(
    ("plain", "extreme"),
    [
        ("count = 4", "count = 1"),
        ("cores = 2", "cores = 1024"),  # more cores than services
        ("budget = 20", "budget = 0"),
        ("per_emd = 1.0", "per_emd = 2.5"),  # a bid of zero
        ("= 0.97", "= 1"),
        (  # the largest EMD
            "[100, 200]\nemd = [0.4, 1.0]\ncost = { per_sample = 0.025",
            "[10, 100]\nemd = [0, 1.8]\ncost = { per_sample = 0.2",
        ),
        ("= 0.5\n", "= 1\n"),  # an integer for a float
        ("\n", "\r\n"),
    ],
)
def test_extreme_but_legal(market: str, plain: str, extreme: str) -> None:
    assert plain in market
    parse(market.replace(plain, extreme))
