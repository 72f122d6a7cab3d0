"""What the bidders of display advertising are judged by here; the bidders come with flmarket (`rtb-lin` and others)."""

from flmarket import RunTables, measure


@measure("images", better="more", per_service="mean", digits=0)
def images(run: RunTables) -> object:
    """Images of the owners that a service has bought."""
    return run.rounds.groupby("service")["samples"].sum()
