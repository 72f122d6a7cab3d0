"""The end of ``flmarket run``'s output: a table of the results and where the logs are."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from flmarket.analysis.results.summary import SHOWN, ServiceSummary, summarise
from flmarket.cli.console import note, program, stdout
from scenarios.running.runner import Run

FEW = 5  # runs whose logs are named one by one; of more, their scenarios' folders are


def print_results(
    complete: Sequence[Run],
    changes: Sequence[str] = (),  # what the user set in the scenarios
) -> None:
    """Print the table of complete runs and where their logs are; nothing if there are none."""
    console = stdout()
    if complete:
        console.print(results_table(summarise(complete), changes))
        places = [run.directory.path / "rounds.csv" for run in complete]
        if len(places) > FEW:
            places = list(dict.fromkeys(path.parents[2] for path in places))
        for path in places:
            console.print(str(path), markup=False, highlight=False, soft_wrap=True)


def print_next_steps(first: Run) -> None:
    """Say what to do after a first run."""
    name = program()
    note(
        f"""
What next?
  Watch it, round by round:
    {name} replay {first.directory.path}
  Compare policies, then see the differences:
    {name} run quickstart --policy random --policy hqfa --seeds 5
    {name} report runs --baseline random
  Make a scenario of your own, edit it and run it:
    {name} scenarios show quickstart > market.toml
    {name} run market.toml"""
    )


def results_table(summaries: Sequence[ServiceSummary], changes: Sequence[str] = ()) -> Table:
    """Return the results of services as a table, one row for each; a lower bound in it is explained below."""
    table = Table(title=Text("\n".join(["Results (means over seeds)", *changes])))
    for name in ("scenario", "service", "policy"):
        table.add_column(name, overflow="fold")
    for name in ("seeds", "final accuracy", "rounds to target", "spent", "served", "refused"):
        table.add_column(name, justify="right")
    group = None
    for row in summaries:
        if group not in {None, row.group}:
            table.add_section()
        texts = {measure.name: measure.text(row.means[measure.name]) for measure in SHOWN}
        table.add_row(
            "" if row.group == group else row.group,
            row.service,
            row.policy,
            str(row.seeds),
            f"{texts['final accuracy']} %",
            row.to_target.text(),
            *(texts[name] for name in ("spent", "served", "refused")),
        )
        group = row.group
    some = next((row.to_target for row in summaries if 0 < row.to_target.reached.sum() < row.seeds), None)
    if some is not None:
        table.caption = (
            f"{some.text()}: a lower bound; {some.reached.sum()} of {some.reached.size} runs met the target, "
            "the others count with their last round"
        )
    return table
