"""The side effects of calls: what prints, what writes files or folders, and what only shows.

`EFFECTS` has a row for each function, or for all of a package; the longest that a path begins with decides, and None says that it has none
though its package has. To add a package, add its path to the line of what it does. Methods are known by their names, where nothing else is
known of what they are called on.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ddpify.facts.library.files import WRITTEN_TO_PATHS

Effect = Literal["print", "file", "folder"]

_HANDLERS = "FileHandler handlers.RotatingFileHandler handlers.TimedRotatingFileHandler handlers.WatchedFileHandler".split()
HANDLERS = frozenset(f"logging.{name}" for name in _HANDLERS)
_LOG_LEVELS = "info debug warning warn error critical log exception".split()
_PRINTS = """
    print pprint.pprint pprint.pp loguru.logger sys.stdout sys.stderr torchsummary.summary torchsummary.summary_string torchsummaryX.summary
    torchinfo.summary torch_geometric.logging.log IPython.display prettytable rich.print rich.print_json tqdm.tqdm.write
    click.echo click.secho click.echo_via_pager typer.echo typer.secho rich_click.echo rich_click.secho termcolor.cprint
    absl.logging.info absl.logging.warning absl.logging.warn absl.logging.error absl.logging.debug absl.logging.exception absl.logging.log
    logzero.logger
    monai.config.print_config monai.config.print_debug_info monai.config.print_system_info monai.config.print_gpu_info
""".split()
_WRITES = """
    torch.save torch.jit.save torch.export.save torch.onnx.export dill.dump dill.dump_session dill.dump_module cloudpickle.dump json.dump
    pickle.dump yaml.dump yaml.dump_all joblib.dump torchvision.utils.save_image numpy.save numpy.savez numpy.savez_compressed
    numpy.savetxt scipy.io.savemat scipy.misc.imsave monai.visualize.plot_2d_or_3d_image
    nibabel.save SimpleITK.WriteImage tifffile.imwrite skimage.io.imsave pydicom.dcmwrite
    soundfile.write torchaudio.save scipy.io.wavfile.write torchvision.io.write_png torchvision.io.write_jpeg torchvision.io.write_video
    sentencepiece.SentencePieceTrainer sentencepiece.SentencePieceTrainer.train sentencepiece.SentencePieceTrainer.Train
    safetensors.torch.save safetensors.torch.save_file safetensors.torch.save_model cv2.imwrite cv2.imwritemulti imageio matplotlib seaborn
    shutil os.remove os.removedirs os.rename os.renames os.replace os.unlink os.rmdir os.symlink os.link os.system
    subprocess.call subprocess.check_call subprocess.run requests.post requests.put requests.patch requests.delete
    wandb torch_geometric.logging.init_wandb tensorboard_logger mlflow neptune comet_ml clearml swanlab trackio dvclive
""".split()
_NONE = """
    sys.stdout.isatty sys.stderr.isatty sys.stdout.fileno sys.stderr.fileno
    shutil.which shutil.disk_usage shutil.get_terminal_size imageio.imread imageio.v2.imread imageio.v3.imread
    imageio.get_reader imageio.v2.get_reader matplotlib.use
    matplotlib.pyplot.imread matplotlib.pyplot.switch_backend
    wandb.Audio wandb.Graph wandb.Histogram wandb.Html wandb.Image wandb.Object3D wandb.Plotly wandb.Table wandb.Video
""".split()

EFFECTS: dict[str, Effect | None] = {
    **dict.fromkeys(_PRINTS, "print"),
    **{f"{logger}.{level}": "print" for level in _LOG_LEVELS for logger in ("logging", "logging.root")},
    **dict.fromkeys((*_WRITES, *HANDLERS), "file"),
    **dict.fromkeys(("os.mkdir", "os.makedirs"), "folder"),
    **dict.fromkeys(_NONE),
}
OPENS = frozenset(  # they read or write by their mode
    "open io.open codecs.open gzip.open gzip.GzipFile bz2.open bz2.BZ2File lzma.open lzma.LZMAFile".split()
)


class Opening(NamedTuple):
    """How a library opens a file of its own: what its path and its mode are called, where the mode is given, and which modes write.

    Those that `make` the file give a handle that is only written to. Where no mode is listed, the argument says by itself that it writes.
    """

    path: str
    mode: str
    position: int | None
    make: str = ""
    change: str = ""


STORES = {
    "h5py.File": Opening("name", "mode", 1, "wx", "a+"),
    "numpy.memmap": Opening("filename", "mode", 2, "", "w"),
    "numpy.lib.format.open_memmap": Opening("filename", "mode", 1, "", "w"),
    "zipfile.ZipFile": Opening("file", "mode", 1, "wx", "a"),
    "tarfile.open": Opening("name", "mode", 1, "wx", "a"),
    "shelve.open": Opening("filename", "flag", 1, "n", "wc"),
    "pandas.HDFStore": Opening("path", "mode", 1, "w", "a+"),
    "netCDF4.Dataset": Opening("filename", "mode", 1, "wx", "a+"),
    "lmdb.open": Opening("path", "map_size", None),
    "wave.open": Opening("f", "mode", 1, "w"),
    "zarr.open": Opening("store", "mode", 1, "w", "a+"),
    "zarr.open_group": Opening("store", "mode", 1, "w", "a+"),
    "dbm.open": Opening("file", "flag", 1, "n", "wc"),
}

# ------------------------------------------------------------------------------------------------ objects that write or show

WRITERS = tuple(
    """
        SummaryWriter tensorboard_logger.Logger FileWriter Visdom aim.Run Task.init mlflow.start_run tensorboard_trace_handler
        imageio.get_writer imageio.v2.get_writer xlsxwriter.Workbook dvclive.Live clearml.Logger.current_logger clearml.Task.current_task
    """.split()
)
WRITER_CLASSES = re.compile(r"(?!csv\.|asyncio\.).*[a-z\d]\.\w*Writer")  # what libraries call a class whose instances write files
SWITCHES = {  # what opens a run of a tracker, and the argument that makes it do nothing
    "wandb.init": ("mode", '"disabled"'),
    "neptune.init_run": ("mode", '"debug"'),
    "neptune.new.init_run": ("mode", '"debug"'),
    "neptune.new.init": ("mode", '"debug"'),
    "swanlab.init": ("mode", '"disabled"'),
    "comet_ml.Experiment": ("disabled", "True"),
    "comet_ml.OfflineExperiment": ("disabled", "True"),
}
TALKERS = {  # what prints beside what it returns, and the argument that asks for it
    "thop.profile": "verbose",
    "ptflops.get_model_complexity_info": "print_per_layer_stat",
}
DRAWN = ("matplotlib.", "seaborn.")
READ_PICTURES = frozenset("buffer_rgba tostring_rgb tostring_argb print_to_buffer print_png print_rgba copy_from_bbox".split())
IN_MEMORY = frozenset(("io.BytesIO", "io.StringIO"))
LOGGERS = ("logging.getLogger", "loguru.logger", "colorlog.getLogger", "structlog.get_logger", "structlog.getLogger")
BARS = ("tqdm.", "progress.", "progressbar.", "rich.progress.", "alive_progress.", "fastprogress.", "pkbar.", "enlighten.")
BARS_WITH_SWITCH = frozenset(
    """
        tqdm.tqdm tqdm.trange tqdm.tqdm_notebook tqdm.tnrange tqdm.tqdm_auto tqdm.rich.tqdm tqdm.rich.trange tqdm.contrib.tenumerate
        tqdm.contrib.tzip rich.progress.track rich.progress.Progress alive_progress.alive_bar alive_progress.alive_it
    """.split()
)  # they have an argument `disable`
BARS_WITHOUT_SWITCH = ("progressbar.", "progress.bar.", "progress.spinner.", "fastprogress.", "pkbar.", "keras.utils.Progbar", "enlighten.")
BARS_TO_DISPLAY = frozenset(("fastprogress.progress_bar",))  # they have an argument `display`
BARS_TO_A_FILE = ("progress.bar.", "progress.spinner.", "progress.counter.")
PASSIVE = (*BARS, "matplotlib.", "pandas.", "rich.", "prettytable", "pprint.", "logging")  # they only show what they are given
HANDLES = ("open", "io.", "csv.", "gzip.", "bz2.", "lzma.", "codecs.", "tarfile.", "zipfile.", "h5py.", "pathlib.", "time.", "torch.cuda.")
COMMUNICATES = tuple("torch.distributed. random. numpy.random. torch.rand torch.normal torch.bernoulli torch.multinomial".split())

# ------------------------------------------------------------------------------------------------ methods, by their names

CONSOLE_METHODS = {"rich.": frozenset(("print", "log", "rule", "print_json")), "pprint.": frozenset(("pprint",))}
_MESSAGES = dict.fromkeys(("smtplib.SMTP", "smtplib.SMTP_SSL", "smtplib.LMTP"), frozenset(("sendmail", "send_message")))
DATABASES = {"sqlite3.connect": "database"}  # what opens a file of tables, and its argument that is the path
READS_TABLES = re.compile(r"\s*(select|pragma|explain)\b", re.IGNORECASE)  # of the texts that a database is asked to execute
FILE_METHODS = {
    "torch.profiler.ExecutionTraceObserver": frozenset(("register_callback",)),
    **_MESSAGES,
    **dict.fromkeys(DATABASES, frozenset(("execute", "executemany", "executescript", "commit"))),
}
ASKS = frozenset(
    """
        requests.get requests.request requests.head urllib.request.urlopen httpx.get httpx.request httpx.post os.popen subprocess.Popen
    """.split()
)
"""What a server or another program is asked for: a message to it, where nobody waits for the answer."""
LOGS = re.compile(r"(log|report|insert_one|insert_many|upsert|publish)(_|$)")  # what packages that nobody described call it to keep numbers
SENDS = re.compile(r"(send|notify|post|push|upload)(_|$)")  # what methods of packages that nobody described are called that send a text
LOG_METHODS = frozenset(_LOG_LEVELS)
SHOWING_METHODS = frozenset(("print_trainable_parameters",))  # of peft's models
WRITING_METHODS = WRITTEN_TO_PATHS.union(
    "imsave write_png dump to_sql export_chrome_trace export_stacks export_memory_timeline".split()  # the last ones are a profiler's
)
HANDLE_METHODS = frozenset(("write", "writelines", "writerow", "writerows"))
DUMPS = frozenset(("json.dump", "yaml.dump", "yaml.safe_dump", "pickle.dump"))
SAVES = re.compile(r"(save|write|dump)(_|$)")  # what functions of packages that nobody described are called that write files
SAVE_THEMSELVES = re.compile(r"save(_|$)|to_file(name)?$")  # what methods are called by which an object writes itself to a path
WRITE_THEMSELVES = re.compile(r"(write|export)(_|$)")  # the same, of a library's objects that are no open files
DESCRIBED = frozenset("argparse collections json logging math numpy os pathlib random re shutil sys time torch warnings".split())
KEEPING = frozenset("save_for_backward save_hyperparameters save_for_forward".split())  # in memory
PATH_METHODS = frozenset(("write_text", "write_bytes", "touch", "unlink", "symlink_to", "hardlink_to"))
SAME_FOR_ALL = frozenset(("get_rank", "get_world_size", "is_initialized", "is_available", "get_backend"))
ADVANCING = frozenset("backward step zero_grad load_state_dict seed manual_seed shuffle all_reduce barrier broadcast compute".split())
CHANGING = frozenset("append extend insert add update pop popleft popitem remove discard clear setdefault sort reverse appendleft".split())
