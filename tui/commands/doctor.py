"""``flmarket doctor``: what runs on this machine, and what to do about what does not."""

import typer

from tui.commands.console import result, stdout

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


def doctor() -> None:
    """Check what runs here: packages, kernel, data sets, GPU, cores; and what to do about each shortfall."""
    from rich.table import Table
    from rich.text import Text

    from fl.checkup import checkup

    table = Table.grid(padding=(0, 2))
    problems = 0
    for finding in checkup():
        problems += finding.state == "problem"
        found = finding.found + (f"\n-> {finding.remedy}" if finding.remedy else "")
        table.add_row(Text(finding.state, _STYLES[finding.state]), finding.subject, found)
    stdout().print(table, highlight=False)
    if problems:
        result(f"{problems} problem{'s' * (problems > 1)}; flmarket may not work until mended.")
        raise typer.Exit(1)
    result("flmarket works here.")
