"""``[[clients.groups]]``: keys of a group, their names from outside, and what is wrong with them."""

import re

import pytest

from scenarios.build import population_spec
from scenarios.file.differences import flattened
from scenarios.loader import ScenarioError, digest, dumps, parse, points

GROUPS = """
[[clients.groups]]
name = "servers"
count = 1
data_size = [60, 80]
cost = { per_sample = 0.03 }
speed = [4]

[[clients.groups]]
name = "phones"
count = 2
emd = [0.8]
departure_rate = 0.5

"""


@pytest.fixture
def grouped(two_services: str) -> str:
    return two_services.replace("[[services]]", f"{GROUPS}[[services]]", 1)


def test_what_a_group_leaves_out_is_as_in_clients(grouped: str) -> None:
    scenario = parse(grouped)
    clients = scenario.clients
    servers, phones, others = population_spec(scenario).groups
    assert [it.count for it in (servers, phones, others)] == [1, 2, clients.count - 3]
    assert (servers.data_sizes, phones.data_sizes) == ((60, 80), clients.data_size)
    assert (servers.emds, phones.emds) == (clients.emd, (0.8,))
    assert (servers.cost.per_sample, phones.cost.per_sample) == (0.03, clients.cost.per_sample)
    assert servers.cost.per_emd == clients.cost.per_emd
    assert (servers.speeds, phones.speeds) == ((4.0,), clients.speed)
    assert (servers.departure_rate, phones.departure_rate) == (0.0, 0.5)
    assert clients.group_names()[:4] == ["servers", "phones", "phones", ""]


def test_a_group_may_be_of_all_clients_or_of_none(grouped: str) -> None:
    total = parse(grouped).clients.count
    for servers, sizes in ((total, (60, 80)), (0, parse(grouped).clients.data_size)):
        counts = [f"clients.groups.servers.count={servers}", "clients.groups.phones.count=0"]
        [group] = population_spec(parse(grouped, overrides=counts)).groups
        assert (group.count, group.data_sizes) == (total, sizes)


def test_a_scenario_with_groups_is_written_and_read_again(grouped: str) -> None:
    scenario = parse(grouped)
    assert parse(dumps(scenario)) == scenario
    assert "groups" not in dumps(parse(grouped.replace(GROUPS, "")))


def test_groups_go_by_name_in_set_and_sweeps(grouped: str) -> None:
    changed = parse(grouped, overrides=["clients.groups.phones.count=3", "clients.groups.servers.cost.per_emd=0"])
    assert changed.clients.groups[1].count == 3
    assert changed.clients.groups[0].cost.per_emd == 0
    assert changed.clients.groups[0].cost.per_sample == 0.03
    swept = points(parse(grouped + '[sweep]\n"clients.groups.servers.count" = [0, 1, 2]\n'))
    assert [it.label for it in swept] == [f"clients.groups.servers.count={count}" for count in (0, 1, 2)]
    assert len({digest(it.scenario) for it in swept}) == 3
    assert flattened(swept[2].scenario.model_dump())["clients.groups.servers.count"] == 2


@pytest.mark.parametrize(
    ("before", "after", "line", "problem"),
    [
        ("count = 2\nemd", "cuont = 2\nemd", "cuont", "phones.cuont: unknown key; did you mean 'count'?"),
        ("count = 2\nemd", "count = 200\nemd", "count = 200", "phones.count: makes 201 clients of the groups up to "),
        (
            '"phones"',
            '"servers"',
            'name = "servers"',
            'servers.name: is also the name of another group: "servers" (line ',
        ),
        (
            "emd = [0.8]",
            "emd = [1.9]",
            "emd = [1.9]",
            "phones.emd: must be at most 1.8 = 2 (1 - 1/10) for the 10 labels",
        ),
        ("[60, 80]", "[60, 4000]", "data_size", "servers.data_size: 4,000 images are more than the "),
        ("per_sample = 0.03", "per_emd = 100", "[[clients.groups]]", "servers: the cost of 60 images at EMD "),
        ("speed = [4]", "label_mix = { dirichlet = 1 }", "label_mix", "servers.label_mix: is possible only where "),
        (
            "speed = [4]",
            'behaviour = { kind = "markpu" }',
            "behaviour",
            "servers.behaviour.kind: unknown behaviour 'ma",
        ),
        ("speed = [4]", "core = 3", "core", "servers.core: unknown key"),
    ],
)
def test_problems_name_the_group_and_the_line(grouped: str, before: str, after: str, line: str, problem: str) -> None:
    text = grouped.replace(before, after)
    with pytest.raises(ScenarioError) as caught:
        parse(text, "market.toml")
    found = next(
        it for it in caught.value.problems if f"{it.key}: {it.message}".startswith(f"clients.groups.{problem}")
    )
    assert text.splitlines()[(found.line or 0) - 1].startswith(line)


def test_one_table_is_no_list_of_groups(two_services: str) -> None:
    text = two_services.replace("[[services]]", '[clients.groups]\nname = "servers"\n\n[[services]]', 1)
    with pytest.raises(
        ScenarioError, match=r"clients\.groups: must be a list, .* have double brackets, \[\[clients\.groups\]\]"
    ):
        parse(text)


def test_groups_that_draw_label_mixes_need_them_everywhere(grouped: str) -> None:
    mixed = ["clients.emd=[]", "clients.label_mix.dirichlet=0.5"]
    with pytest.raises(
        ScenarioError, match=re.escape("clients.groups.phones.emd: cannot be given together with clients.l")
    ):
        parse(grouped, overrides=mixed)
    text = grouped.replace("emd = [0.8]", "label_mix = { dirichlet = 100 }")
    servers, phones, _ = population_spec(parse(text, overrides=mixed)).groups
    assert (servers.concentration, phones.concentration) == (0.5, 100)


def test_a_key_of_a_group_that_is_not_there_is_named(grouped: str) -> None:
    for key, problem in (
        ("clients.groups.server.count=1", "unknown group 'server'; did you mean 'servers'?"),
        ("clients.groups.servers=1", "must name a group and one of its keys: clients.groups.NAME.count"),
        ("sweep.clients.groups.servers.name=['x']", "cannot be swept"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(problem)):
            parse(grouped, overrides=[key])
