from .registry import NETS, build_net
from .wide import *
from .deep import *
