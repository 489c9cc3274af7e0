"""Random training scripts, converted and run beside their originals: differential testing of `ddpify convert`.

`python -m tests.generate --seed 1 --count 100` from the repository's root. Each file of an axis (data, models, losses, steps, metrics,
decisions, files) holds pieces of code; `compose` puts some of each together and `structure` gives them the shape of a script.
"""
