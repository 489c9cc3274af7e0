"""Whether what a library gives is the same in every process that asks alike: by package, or by function where it is not its package's.

The longest row that a dotted path begins with decides. A package without a row is not known, and what is not known is not taken to be
the same on all ranks. A row is added by whoever has read what the package does.
"""

from __future__ import annotations

import builtins
import sys
from typing import Literal

Source = Literal["same", "process", "unknown"]

# These compute from their arguments, from files and settings that all ranks share, or draw numbers that are followed by themselves.
_SAME = """
    torch torchvision torchaudio torchtext torchdata torchmetrics torch_geometric torch_scatter torch_sparse torch_cluster
    torchsummary torchsummaryX torchinfo torch_optimizer torchnet torchdiffeq apex numpy scipy sklearn pandas matplotlib seaborn PIL cv2
    skimage imageio albumentations imgaug kornia einops timm transformers tokenizers datasets evaluate peft diffusers accelerate safetensors
    sentence_transformers sentencepiece huggingface_hub segmentation_models_pytorch efficientnet_pytorch pretrainedmodels monai
    pytorch_metric_learning open_clip clip bitsandbytes tensorboardX tensorboard tensorboard_logger visdom wandb mlflow neptune comet_ml
    aim clearml loguru rich tqdm progress progressbar yaml ruamel toml tomli omegaconf hydra yacs easydict munch addict box attrdict
    ml_collections absl click fire typer tyro simple_parsing configargparse jsonargparse dotenv h5py lmdb zarr tables msgpack ujson orjson
    nltk spacy jieba gensim rouge rouge_score sacrebleu bert_score six future tabulate colorama termcolor prettytable natsort joblib dill
    cloudpickle networkx dgl ogb rdkit librosa soundfile numba cython tensorflow faiss thop ptflops fvcore pycocotools shapely trimesh
    gflags plyfile unidecode inflect prefetch_generator pretty_midi medpy nibabel SimpleITK pydicom tifffile lpips pytorch_msssim
    attr attrs pydantic more_itertools toolz regex requests packaging typing_extensions pytorch_pretrained_bert pytorch_transformers
    pkg_resources setuptools google scikitplot yellowbrick statsmodels gym gymnasium pycuda nvidia ema_pytorch lightly
    pytorch_warmup warmup_scheduler fastprogress fastcore plac defopt argh clize cyclopts draccus pyrallis docopt tap
""".split()

# These tell of the process, its machine or the moment.
_PROCESS = """
    psutil pynvml GPUtil resource gc tracemalloc threading _thread multiprocessing concurrent queue asyncio signal select selectors socket
    subprocess platform.node platform.uname getpass secrets tempfile uuid sched
    os.getpid os.getppid os.getloadavg os.urandom os.times os.uname os.cpu_count os.sched_getaffinity os.stat os.lstat os.access
    os.path.exists os.path.isfile os.path.isdir os.path.getmtime os.path.getctime os.path.getatime os.path.getsize os.path.lexists
    pathlib.Path.exists pathlib.Path.is_file pathlib.Path.is_dir pathlib.Path.stat shutil.disk_usage sys.getrefcount sys.stdin input
    torch.cuda.memory_allocated torch.cuda.max_memory_allocated torch.cuda.memory_reserved torch.cuda.max_memory_reserved
    torch.cuda.memory_cached torch.cuda.max_memory_cached torch.cuda.memory_stats torch.cuda.mem_get_info torch.cuda.utilization
    torch.cuda.temperature torch.cuda.power_draw torch.cuda.clock_rate torch.cuda.Event torch.cuda.memory_summary
    requests urllib.request http.client torch.multiprocessing
""".split()

ROWS: dict[str, Source] = {
    **dict.fromkeys(sys.stdlib_module_names, "same"),
    **dict.fromkeys(dir(builtins), "same"),
    **dict.fromkeys(_SAME, "same"),
    **dict.fromkeys(_PROCESS, "process"),
    "torch.multiprocessing.set_start_method": "same",
    "torch.multiprocessing.set_sharing_strategy": "same",
    "multiprocessing.cpu_count": "process",
}
