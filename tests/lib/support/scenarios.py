"""A market that is played in a moment: one service, three clients, two rounds."""

SMALL = """\
name = "small"
rounds = 2
[clients]
count = 3
cores = 1
data_size = [20]
emd = [0.2]
cost = { per_sample = 0.05, per_emd = 1.0 }
[[services]]
name = "one"
dataset = "digits"
budget = 3
target_accuracy = 0.99
reward_base = 10
policy = "random"
"""
