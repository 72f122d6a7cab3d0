"""`flmarket explain`: words on stdout, a table in a file, and one line for whatever is wrong."""

from pathlib import Path

import pandas as pd
import pytest

from support.shell import flmarket


@pytest.mark.slow
def test_a_round_is_explained_in_words_and_as_a_table(batch: Path, tmp_path: Path) -> None:
    run = next((batch / "runs").rglob("rounds.csv")).parent
    service = pd.read_csv(run / "rounds.csv").service[0]
    table = tmp_path / "clients.csv"
    done = flmarket("explain", str(run), "--round", "2", "--service", service, "--csv", str(table))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Round 2, {service}: wanted ")
    assert "The best in DQI within its budget, " in done.stdout
    assert done.stdout.endswith(f" replay {run} --round 2\n")  # the command that shows the round on the screen
    rows, offers = pd.read_csv(table), pd.read_csv(run / "offers.csv")
    mine = offers[(offers["round"] == 2) & (offers.service == service)].set_index("client")
    told = rows.dropna(subset=["payment"]).set_index("client")
    assert told.payment.to_dict() == mine.payment.to_dict()
    assert told.outcome.to_dict() == mine.outcome.to_dict()
