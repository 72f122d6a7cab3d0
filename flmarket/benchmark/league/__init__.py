"""The league, ``flmarket league``: policies visit each other in all seats of a market; see docs/league.md."""
