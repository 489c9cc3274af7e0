"""The frameworks that drive training, what shows it, and what each offers for several GPUs. Data only."""

from __future__ import annotations

from ddpify.records import dataclass


@dataclass(frozen=True)
class Framework:
    """A library that drives training.

    It drives where one of the names `makes` of the packages `roots` is called (any of theirs if that is empty), and one of the
    methods `runs`, if there are any, is called on something. With `alone` it counts only where no torch code trains beside it.
    """

    name: str
    roots: tuple[str, ...]
    makes: tuple[str, ...]
    offers: str
    runs: tuple[str, ...] = ()
    alone: bool = False


_LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
_OWN = "it does not train with torch, and brings its own data parallelism"

FRAMEWORKS = (
    Framework("Hugging Face Accelerate", ("accelerate",), ("Accelerator", "notebook_launcher"),
              "run it on several GPUs with `accelerate launch`"),
    Framework("Lightning", _LIGHTNING, ("Trainer",), "give its Trainer `devices=N, strategy=\"ddp\"`", ("fit",)),
    Framework("Lightning", _LIGHTNING, ("LightningModule",), "give its Trainer `devices=N, strategy=\"ddp\"`", ("fit",), alone=True),
    Framework("Lightning", _LIGHTNING, ("LightningCLI",), "give its Trainer `devices=N, strategy=\"ddp\"`"),
    Framework("Lightning Fabric", _LIGHTNING, ("Fabric",), "give its Fabric `devices=N, strategy=\"ddp\"`"),
    Framework("Lightning Fabric", _LIGHTNING, ("LightningLite",), "give it `devices=N, strategy=\"ddp\"`", ("run",)),
    Framework("PyTorch Ignite", ("ignite",), ("Engine", "create_supervised_trainer", "Parallel"),
              "run it under ignite.distributed's `idist.Parallel` with `idist.auto_model` and `idist.auto_dataloader`", ("run",)),
    Framework("DeepSpeed", ("deepspeed",), ("initialize",), "run it on several GPUs with the `deepspeed` launcher"),
    Framework("Colossal-AI", ("colossalai",), ("initialize", "launch", "launch_from_torch", "Booster"),
              "run it on several GPUs with `colossalai run`, and choose a plugin for its Booster"),
    Framework("Horovod", ("horovod",), ("init", "DistributedOptimizer"), "run it on several GPUs with `horovodrun -np N`"),
    Framework("torch.distributed.rpc", ("torch",), ("init_rpc",), "it is distributed already, in a way that has no common step"),
    Framework("Ray", ("ray",), (), "give its ScalingConfig `num_workers=N, use_gpu=True`"),
    Framework("the Hugging Face Trainer", ("transformers", "trl", "setfit"),
              ("Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer", "KTOTrainer", "ORPOTrainer", "PPOTrainer",
               "RewardTrainer", "SetFitTrainer"),
              "it runs on several GPUs as it is, under `torchrun --nproc-per-node N`", ("train",)),
    Framework("Sentence Transformers", ("sentence_transformers",),
              ("SentenceTransformerTrainer", "CrossEncoderTrainer"), "run it under `torchrun --nproc-per-node N`", ("train",)),
    Framework("Sentence Transformers", ("sentence_transformers",), ("SentenceTransformer", "CrossEncoder"),
              "move from `fit` to its SentenceTransformerTrainer, which runs under `torchrun`", ("fit",)),
    Framework("fastai", ("fastai", "fastai2"),
              ("Learner", "cnn_learner", "vision_learner", "unet_learner", "text_classifier_learner", "language_model_learner",
               "tabular_learner", "collab_learner", "simple_classifier_learner", "create_cnn"),
              "wrap the training in its `learn.distrib_ctx()` and run it with `accelerate launch`"),
    Framework("Composer", ("composer",), ("Trainer",), "run it on several GPUs with the `composer` launcher", ("fit",)),
    Framework("MMEngine", ("mmengine", "mmcv"), ("Runner", "EpochBasedRunner", "IterBasedRunner", "build_runner", "from_cfg"),
              "run it on several GPUs with its `--launcher pytorch`", ("train", "run")),
    Framework("Detectron2", ("detectron2",), ("DefaultTrainer", "SimpleTrainer", "launch"), "give its `launch` `num_gpus_per_machine=N`"),
    Framework("Catalyst", ("catalyst",), ("Runner", "SupervisedRunner"), "give its runner `engine=dl.DistributedDataParallelEngine()`",
              ("train", "run")),
    Framework("Ultralytics", ("ultralytics",), ("YOLO", "RTDETR"), "give its `train` `device=[0, 1, …]`", ("train",)),
    Framework("torchnet", ("torchnet",), ("Engine",),
              "write its loop out (zero_grad, forward, backward, step), and convert that", ("train",)),
    Framework("Poutyne", ("poutyne",), ("Model", "Experiment", "ModelBundle"),
              "it has no data parallelism but nn.DataParallel: write its loop out", ("fit", "fit_generator", "train")),
    Framework("torchbearer", ("torchbearer",), ("Trial",), "it has no data parallelism but nn.DataParallel: write its loop out", ("run",)),
    Framework("Flair", ("flair",), ("ModelTrainer",), "give its `train` `multi_gpu=True` inside flair's `launch_distributed`",
              ("train", "fine_tune")),
    Framework("SpeechBrain", ("speechbrain",), ("Brain",), "run it under `torchrun --nproc-per-node N`", ("fit",)),
    Framework("segmentation_models_pytorch", ("segmentation_models_pytorch",), ("TrainEpoch",),
              "write its loop out (zero_grad, forward, backward, step), and convert that", ("run",)),
    Framework("pytorch_metric_learning's trainers", ("pytorch_metric_learning",),
              ("MetricLossOnly", "TrainWithClassifier", "CascadedEmbeddings", "TwoStreamMetricLoss", "DeepAdversarialMetricLearning"),
              "write its loop out (zero_grad, forward, backward, step), and convert that", ("train",)),
    Framework("MONAI's engines", ("monai",), ("SupervisedTrainer", "GanTrainer", "AdversarialTrainer"),
              "run it under `torchrun` with the model wrapped, as MONAI's distributed examples do", ("run",)),
    Framework("skorch", ("skorch",), ("NeuralNet", "NeuralNetClassifier", "NeuralNetRegressor", "NeuralNetBinaryClassifier"),
              "it reaches several GPUs through skorch.hf's AccelerateMixin", ("fit", "partial_fit")),
    Framework("Stable-Baselines3", ("stable_baselines3", "sb3_contrib"), (), "it has no data-parallel training; run one seed per GPU",
              ("learn",)),
    Framework("PyTorch/XLA", ("torch_xla",), ("optimizer_step", "spawn", "launch", "MpDeviceLoader"),
              "it runs on several devices through `torch_xla.launch`"),
    Framework("TensorFlow or Keras", ("tensorflow", "keras", "tf_keras"), (), f"{_OWN} (`tf.distribute`)",
              ("fit", "fit_generator", "gradient", "minimize", "apply_gradients", "train_on_batch"), alone=True),
    Framework("JAX", ("jax",), ("grad", "value_and_grad", "pmap", "vjp"), f"{_OWN} (`jax.sharding`)", alone=True),
    Framework("JAX", ("flax", "equinox", "haiku"), ("TrainState", "create", "filter_grad", "filter_value_and_grad", "transform"),
              f"{_OWN} (`jax.sharding`)", alone=True),
    Framework("PaddlePaddle", ("paddle",), (), f"{_OWN} (`paddle.distributed.launch`)",
              ("backward", "minimize", "fit"), alone=True),
    Framework("MXNet", ("mxnet",), (), f"{_OWN} (`kvstore`)", ("backward", "fit", "step"), alone=True),
    Framework("MindSpore", ("mindspore",), (), f"{_OWN} (`msrun`)", ("train", "set_train"), alone=True),
)  # fmt: skip

ROOTS = frozenset(root for framework in FRAMEWORKS for root in framework.roots)
"""The packages of the table."""
