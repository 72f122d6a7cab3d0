"""examples/untold.py plays `mahdrl` as `policy_options = { curve = false }` does, and not as it plays by default."""

from pathlib import Path

import pytest

from support.shell import flmarket

PLUGIN = Path(__file__).parents[2] / "examples" / "untold.py"
SERVICES = ("mnist", "fashion-mnist", "emnist")


def offers(out: Path, *arguments: str) -> str:
    """Return what every client was offered in a short run of `paper` on the surrogate."""
    changes = ("--set", "training.backend=surrogate", "--set", "rounds=8")
    done = flmarket("run", "paper", *changes, "--out", str(out), "--quiet", *arguments)
    assert done.returncode == 0, done.stderr
    [found] = out.glob("**/offers.csv")
    return found.read_text()


@pytest.mark.slow
def test_the_plug_in_is_the_policy_with_its_option_set(tmp_path: Path) -> None:
    untold = [word for name in SERVICES for word in ("--set", f"services.{name}.policy_options={{curve=false}}")]
    plugged = offers(tmp_path / "plug-in", "--plugin", str(PLUGIN), "--policy", "mahdrl-untold")
    assert plugged == offers(tmp_path / "option", "--policy", "mahdrl", *untold)
    assert plugged != offers(tmp_path / "told", "--policy", "mahdrl")
