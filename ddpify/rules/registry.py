"""All rules, in the order they run."""

from __future__ import annotations

from ddpify.rules.data import batch_size, download, evaluation, loader, manual_batches, prepare, whole_batches
from ddpify.rules.io import files, guards, progress, run_names, writers, written_then_read
from ddpify.rules.loop import carried, decisions, learning_rate, loss, metrics, set_epoch, settings, steering
from ddpify.rules.model import average, dataparallel, device, input_gradients, names, no_sync, wrap, writes
from ddpify.rules.precision import apex, autocast, fused, removal, scaled_loss, scaler, spelling, switch
from ddpify.rules.process import cuda_visible_devices, local_rank, relaunch, seed, setup, spawn, worker_seed

# What yields changes and findings of itself; `setup` then adds the runtime block that the others need,
# `spawn` moves all of it under mp.spawn, and `relaunch` what is distributed already.
PLANNING = (
    cuda_visible_devices,
    local_rank,
    seed,
    worker_seed,
    dataparallel,
    device,
    fused,
    apex,  # before the wraps, which come after it in the script
    wrap,
    input_gradients,
    no_sync,
    average,
    names,
    writes,
    loader,
    manual_batches,
    evaluation,
    download,
    prepare,
    batch_size,
    set_epoch,
    spelling,
    switch,
    autocast,
    scaler,
    carried,
    loss,
    scaled_loss,  # what the rule before it makes of a loss is scaled
    decisions,
    settings,
    steering,
    whole_batches,  # a rank's rows are of what all ranks share
    learning_rate,
    metrics,
    writers,
    progress,
    run_names,
    files,
    written_then_read,
    guards,  # last: what it lifts out of a statement comes after what the others put in front of it
)
# What gives a script that is distributed already another mixed precision.
PRECISION = (fused, apex, spelling, switch, autocast, scaled_loss, scaler)
RULES = (setup, spawn, relaunch, *PLANNING, removal)  # the last acts before the others, on the script as it was
