"""`flmarket plugins`: all that a scenario can name, and what each of it is."""

from pathlib import Path

from scenarios.file.schema import REGISTRIES
from support.shell import Command, flmarket

MINE = '''
from flmarket import Behaviour, Mechanism, Offer, Policy, behaviour, mechanism, model, policy


@policy("hermit")
class Hermit(Policy):
    """Wants nobody.

    Not at any price.
    """

    def act(self, observation):
        return Offer.none()


@mechanism("lottery")
class Lottery(Mechanism):
    """Draws the winners."""

    def clear(self, book):
        raise NotImplementedError


@behaviour("modest")
class Modest(Behaviour):
    """Asks for nothing."""

    def bids(self, round_, costs):
        return 0 * costs

    def bid_range(self, lowest, highest):
        return 0 * lowest, 0 * highest


@model("narrow")
def narrow(labels):
    """One thin layer."""
'''


def test_all_kinds_are_listed_by_their_summary_or_docstring(tmp_path: Path, command: Command) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    done = command("plugins", "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert {row[0] for row in rows if row[0]} == {registry.kind for registry in REGISTRIES}
    assert all(row[3] for row in rows if row[0]), rows
    for own in (
        ["policy", "hermit", "mine.py", "Wants nobody."],
        ["mechanism", "lottery", "mine.py", "Draws the winners."],
        ["behaviour", "modest", "mine.py", "Asks for nothing."],
        ["model", "narrow", "mine.py", "One thin layer."],
    ):
        assert own in rows
    policies = flmarket("policies", "--plugin", "mine.py", cwd=tmp_path).stdout
    assert "Wants nobody." in policies
