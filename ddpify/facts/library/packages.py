"""Rows of smaller packages: progress bars, sklearn, einops, pandas, and what hands a function of the script its settings."""

from __future__ import annotations

from ddpify.facts import drivers, named
from ddpify.facts.library import containers, flow
from ddpify.facts.library.generic import array_function, clock, computed
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import Value, just
from ddpify.facts.origins import Origin
from ddpify.placement import rows, shape


def _split(use: Use) -> Value:
    """Parts in an order that is drawn, unless it is seeded."""
    parts = computed(use)
    if "random_state" in use.keywords:
        return parts
    return Value(parts.objs, parts.origins | flow.drawn("numpy", use.node), parts.scale, parts.shape)


def _metric(use: Use) -> Value:
    """Numbers of all rows together: of those that a rank has of a batch."""
    made = computed(use)
    plain = len(use.args) <= 2 and use.keywords.keys() <= {"y_true", "y_pred"}
    average: shape.Scale = "mean" if use.name in _AVERAGES and plain and made.scale == "sample" else "other"
    if use.name == "confusion_matrix" and use.keywords.keys() - {"y_true", "y_pred"} == {"labels"} and use.keywords["labels"].scale is None:
        average = "sum" if made.scale == "sample" else "other"  # of as many classes on each rank
    return Value(made.objs, made.origins, average) if made.scale in shape.ROWS else made


def _similarities(use: Use) -> Value:
    """How much each row of one tensor is like each of another: rows of a batch meet."""
    made = use.mixed
    return made if made.scale is None else Value(frozenset(), made.origins | {Origin("coupled", use.node)}, "other")


_SIMILARITIES = "cos_sim pytorch_cos_sim dot_score euclidean_sim manhattan_sim".split()
_AVERAGES = frozenset(("accuracy_score", "zero_one_loss", "hamming_loss", "mean_absolute_error", "mean_squared_error"))
_ENTRIES = """
    fire.Fire fire.core.Fire absl.app.run typer.run tyro.cli tyro.extras.cli defopt.run jsonargparse.CLI jsonargparse.auto_cli clize.run
    plac.call argh.dispatch_command simple_parsing.parse draccus.parse pyrallis.parse cyclopts.run
""".split()
_CLOCKS = """
    pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow pandas.datetime.now pandas.datetime.today pandas.datetime.utcnow
    arrow.now arrow.utcnow pendulum.now pendulum.today
""".split()

ROWS: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("tqdm.tqdm", "progressbar.progressbar", "rich.progress.track", "alive_progress.alive_it"),
            *("prefetch_generator.BackgroundGenerator", "fastprogress.progress_bar", "fastprogress.master_bar"),
        ),
        containers.passed_on,
    ),
    "monai.utils.first": containers.following,  # the first batch
    "tqdm.trange": lambda use: containers.passed_on(use, values=just(use.instance("range"))),
    **dict.fromkeys(("sklearn", "segmentation_models_pytorch.metrics"), computed),  # smp 0.6
    **{f"sentence_transformers.util.{name}": _similarities for name in _SIMILARITIES},  # sentence-transformers 6.2
    "sklearn.metrics": _metric,
    **dict.fromkeys(("sklearn.model_selection.train_test_split", "sklearn.utils.shuffle", "sklearn.utils.resample"), _split),
    "pointnet2_ops": lambda use: array_function(use, rows.POINTNET2) if use.name in rows.POINTNET2 else None,
    "einops": lambda use: array_function(use, rows.EINOPS) if use.name in rows.EINOPS else None,
    **dict.fromkeys(_CLOCKS, clock),
    **dict.fromkeys(
        ("hydra.utils.instantiate", "hydra.utils.call"), lambda use: named.instantiated(use.run, use.event, use.args, use.keywords)
    ),
    **dict.fromkeys(_ENTRIES, lambda use: drivers.started(use.run, use.event, use.path, use.args, use.keywords)),
}
