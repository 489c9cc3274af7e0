"""What makes two runs of a training script comparable, and the record of what each did. Needs torch and nothing of ddpify.

The settings come from the environment: DDPIFY_REHEARSAL (the folder of the record), DDPIFY_RANKS (how many ranks the batch is
shared by), DDPIFY_STEPS (optimizer steps after which the script is ended, 0 for none), DDPIFY_DOUBLE (1: float64), DDPIFY_CLOCK
(1: another clock) and DDPIFY_LINES (places at which it is recorded that the script came to them: JSON, a list of paths and lines).
"""


def install() -> None:
    """Prepare this process."""
    from ddpify_rehearsal import record

    record.start()
    from ddpify_rehearsal import devices, draws, files, lines, loaders, neutral, output, stage, training

    stage.install()
    devices.install()
    neutral.install()
    draws.install()
    loaders.install()
    training.install()
    files.install()
    output.install()
    lines.install()
