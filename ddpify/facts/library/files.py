"""Which functions and methods touch files: a row each, with what they do to the file, and where they are given its path.

A row is a line `kind path position keyword [ending]`: `-` where the path is passed by keyword alone; the ending is what the library adds
where the path lacks it. A function that touches two files has two lines. To add one, write its line.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Kind = Literal["write", "read", "make", "remove", "look", "list", "handed"]  # "handed": to what may read it

_FUNCTIONS = """
    write torch.save 1 f
    write safetensors.torch.save_file 1 filename
    write torchvision.utils.save_image 1 fp
    write numpy.save 0 file .npy
    write numpy.savez 0 file .npz
    write numpy.savez_compressed 0 file .npz
    write numpy.savetxt 0 fname
    write joblib.dump 1 filename
    write cv2.imwrite 0 filename
    write scipy.io.savemat 0 file_name
    write scipy.io.wavfile.write 0 filename
    write nibabel.save 1 filename
    read nibabel.load 0 filename
    write SimpleITK.WriteImage 1 fileName
    read SimpleITK.ReadImage 0 fileName
    write tifffile.imwrite 0 file
    write skimage.io.imsave 0 fname
    write pydicom.dcmwrite 0 filename
    write soundfile.write 0 file
    write torchaudio.save 0 uri
    write torchvision.io.write_png 1 filename
    write torchvision.io.write_jpeg 1 filename
    write torchvision.io.write_video 0 filename
    write sentencepiece.SentencePieceTrainer.train - model_prefix .model
    write sentencepiece.SentencePieceTrainer.Train - model_prefix .model
    write matplotlib.pyplot.savefig 0 fname
    write matplotlib.pyplot.imsave 0 fname
    write logging.basicConfig - filename
    write logging.FileHandler 0 filename
    write shutil.copy 1 dst
    read shutil.copy 0 src
    write shutil.copy2 1 dst
    read shutil.copy2 0 src
    write shutil.copyfile 1 dst
    read shutil.copyfile 0 src
    write shutil.copytree 1 dst
    read shutil.copytree 0 src
    write shutil.move 1 dst
    remove shutil.move 0 src
    write os.rename 1 dst
    remove os.rename 0 src
    write os.replace 1 dst
    remove os.replace 0 src
    read sqlite3.connect 0 database
    read torch.load 0 f
    read torch.jit.load 0 f
    read safetensors.torch.load_file 0 filename
    read torchvision.io.read_image 0 path
    read torchaudio.load 0 uri
    read numpy.load 0 file
    read numpy.loadtxt 0 fname
    read numpy.genfromtxt 0 fname
    read numpy.fromfile 0 file
    read librosa.load 0 path
    read soundfile.read 0 file
    read joblib.load 0 filename
    read scipy.io.loadmat 0 file_name
    read cv2.imread 0 filename
    read PIL.Image.open 0 fp
    read imageio.imread 0 uri
    read imageio.v2.imread 0 uri
    read imageio.v3.imread 0 uri
    read imageio.get_reader 0 uri
    read imageio.v2.get_reader 0 uri
    read skimage.io.imread 0 fname
    read tifffile.imread 0 files
    read torchvision.io.decode_image 0 input
    read matplotlib.pyplot.imread 0 fname
    read matplotlib.image.imread 0 fname
    read os.path.getsize 0 filename
    read os.path.getmtime 0 filename
    remove shutil.rmtree 0 path
    remove os.remove 0 path
    remove os.unlink 0 path
    remove os.rmdir 0 path
    write os.symlink 1 dst
    write os.link 1 dst
    make os.makedirs 0 name
    make os.mkdir 0 name
    list os.listdir 0 path
    list os.scandir 0 path
    list os.walk 0 path
    list glob.glob 0 path
    list glob.iglob 0 path
    look os.path.exists 0 path
    look os.path.isfile 0 path
    look os.path.isdir 0 path
    look os.path.lexists 0 path
    look os.path.islink 0 path
"""
# the functions of pandas that read the file at their first argument
_READ_BY_PANDAS = "clipboard csv excel feather fwf gbq hdf html json orc parquet pickle sas spss sql stata table xml".split()


class PathArgument(NamedTuple):
    """What a function does to the file whose path it is given at a position, or by a keyword."""

    kind: Kind
    position: int | None
    keyword: str
    ending: str = ""


def _rows(text: str) -> dict[str, list[PathArgument]]:
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    out: dict[str, list[PathArgument]] = {}
    for line in text.strip().splitlines():
        kind, path, position, keyword, *ending = line.split()
        out.setdefault(path, []).append(PathArgument(kinds[kind], None if position == "-" else int(position), keyword, *ending))
    return out


FUNCTIONS = _rows(_FUNCTIONS) | {f"pandas.read_{name}": [PathArgument("read", 0, "filepath_or_buffer")] for name in _READ_BY_PANDAS}
ONLY_THEIR_OWN = frozenset(("torch.load", "torch.jit.load", "numpy.load", "joblib.load"))  # what these read, their library wrote

# Methods: of a path, and of a table, a figure or a model that is written to one.
OF_PATHS: dict[str, Kind] = {
    **dict.fromkeys(("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"), "write"),
    **dict.fromkeys(("read_text", "read_bytes"), "read"),
    "mkdir": "make",
    "unlink": "remove",
    **dict.fromkeys(("exists", "is_file", "is_dir", "is_symlink"), "look"),
    **dict.fromkeys(("iterdir", "glob", "rglob"), "list"),
}
MOVING = frozenset(("rename", "replace", "rmdir"))  # of a path; a text has `replace`, too
# of a table, a figure, a map, a clip; `RENDERED` ones give a text where they are given no path
WRITTEN_TO_PATHS = frozenset(
    """
        to_csv to_json to_pickle to_excel to_parquet to_hdf to_feather to_stata to_orc to_msgpack to_file savefig save_pretrained tofile
        write_html write_image write_gif write_videofile write_csv write_parquet write_json write_ndjson write_excel write_ipc
    """.split()
)
RENDERED = frozenset(("to_html", "to_latex", "to_markdown"))
WRITTEN_BY = ("path_or_buf", "path", "buf", "excel_writer", "fname", "filename", "file")  # keywords of their paths
SAVED_TO = ("fp", "path", "filename", "fname", "file", "save_directory")  # of what saves itself
