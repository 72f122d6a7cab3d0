"""`flmarket validate`: every problem of every file."""

import re
from pathlib import Path

from support.shell import Command, flmarket


def test_a_valid_file_is_summed_up_in_a_line(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(one_service)
    done = flmarket("validate", "one.toml", "paper-cores", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    one, digits, images, paper, *others = done.stdout.splitlines()
    regimes = [line for line in others if " training images " not in line]  # said where the images are
    assert one == "one.toml: valid: small, 1 service, 4 rounds"
    assert digits == (
        "  digits: cnn, local_epochs 1, batch_size 10, learning_rate 0.05, momentum 0 (local_epochs as the scenario "
        "says, the rest as in its fits)"
    )
    assert images == (
        "  digits: 1,438 training images (0: 142, 1: 146, 2: 142, 3: 146, 4: 145, 5: 146, 6: 145, 7: 143, 8: 139, "
        "9: 144), 359 test images (0: 36, 1: 36, 2: 35, 3: 37, 4: 36, 5: 36, 6: 36, 7: 36, 8: 35, 9: 36), each "
        "1 x 28 x 28 (channels x height x width), standardised"
    )
    assert paper.startswith("paper-cores: valid: paper-cores, 3 services, ")
    assert paper.endswith(" points")
    assert regimes == [  # each once, in spite of the sweep
        "  mnist: cnn, local_epochs 1, batch_size 10, learning_rate 0.04, momentum 0 (as the scenario says)",
        "  fashion-mnist: cnn, local_epochs 2, batch_size 10, learning_rate 0.025, momentum 0 (as the scenario says)",
        "  emnist-digits: cnn, local_epochs 1, batch_size 10, learning_rate 0.03, momentum 0 (as the scenario says)",
    ]


def test_another_aggregation_than_the_paper_s_is_shown_and_what_is_wrong_with_it_is_named_by_its_line(
    one_service: str, tmp_path: Path
) -> None:
    rule = "[training.aggregation]\nkind = 'krum'\noptions.share = 0.3\n"
    (tmp_path / "one.toml").write_text(one_service + rule)
    assert flmarket("validate", "one.toml", cwd=tmp_path).stdout.splitlines()[2] == "  aggregation: krum, share 0.3"
    (tmp_path / "one.toml").write_text(one_service + rule.replace("0.3", "0.6"))
    done = flmarket("validate", "one.toml", cwd=tmp_path)
    assert done.returncode == 2
    line = len(one_service.splitlines()) + 3
    assert done.stderr == (
        f"one.toml:{line}: training.aggregation.options.share: aggregator 'krum': share must be a number of at least 0 "
        "and below 0.5, not 0.6\n"
    )


def test_the_page_on_scenarios_shows_what_is_printed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "scenario.md").read_text()
    example, shown = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)[0], re.findall(r"^    (.*\n)", page, re.M)
    (tmp_path / "market.toml").write_text(example)
    done = flmarket("validate", "market.toml", cwd=tmp_path)
    assert done.stdout == "".join(shown[: len(done.stdout.splitlines())])


def test_a_market_in_which_nobody_can_be_bought_is_noted_once(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "poor.toml").write_text(one_service)
    poor = ["--set", "clients.cost.per_emd=0", "--set", "services.alpha.budget=0.4", "--set", "sweep.rounds=[3, 4]"]
    done = flmarket("validate", "poor.toml", *poor, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        0,
        "note: small: no service can buy a client: none asks less than 1.00, and the largest budget is 0.4\n",
    )
    assert flmarket("validate", "poor.toml", cwd=tmp_path).stderr == ""


def test_several_problems_of_several_files_are_all_shown(tmp_path: Path, command: Command) -> None:
    (tmp_path / "one.toml").write_text("name = 'one'\nrouns = 3\n")
    (tmp_path / "two.toml").write_text("name = ")
    done = command("validate", "one.toml", "two.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "one.toml:2: rouns: unknown key; did you mean 'rounds'?" in done.stderr
    assert "two.toml:1:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_option_names_each_scenario_that_it_is_wrong_for() -> None:
    done = flmarket("validate", "quickstart", "paper", "--set", "clients.core=1")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"clients.core=1: unknown key; did you mean 'cores'? (in {name})" for name in ("quickstart", "paper")
    ]
