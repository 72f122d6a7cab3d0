"""The attack on the tests behind ``make mutants``: does a test notice if one token of the code is another one?

cosmic-ray makes the mutants. This package says which code is mutated, draws a sample, and runs the tests that are
nearest to each mutant. Not part of the tests that run on every change; docs/reliability.md has its last figures.
"""
