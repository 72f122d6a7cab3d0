"""The league: policies against each other in all seats of a market, their ratings, and how each can be exploited."""
