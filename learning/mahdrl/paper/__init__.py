"""`mahdrl-paper`: our reading of Algorithm 1 of the paper and its equations (7) to (12).

Read ``algorithm`` first, from top to bottom: it follows the lines of Algorithm 1. docs/decisions/algorithm1.md lists
what is ours, and what that is worth.
"""
