from .blobs import *
from .loaders import build_loaders
