"""Rows of the built-in functions and the standard library."""

from __future__ import annotations

from functools import partial

from ddpify.facts import named
from ddpify.facts.library import containers, generic, numbers, reflection
from ddpify.facts.library.paths import ENVIRONMENT, LISTINGS
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.library.torch import drawn_of_size
from ddpify.facts.model import Ext, Lit, Module, Value, just
from ddpify.facts.origins import Origin


def _environment(use: Use) -> Value | None:
    """`os.environ.get(name)`: a launcher's variable is the rank, or how many there are; another one is a setting."""
    if not use.args:
        return None
    name = str(next((o.value for o in use.args[0].objs if isinstance(o, Lit)), ""))
    kind = ENVIRONMENT.get(name)
    return Value(frozenset(), frozenset((Origin(kind),))) if kind else just(use.run.objects.part(Ext("os.environ"), name))


_ASKED_OR_SHOWN = "isinstance hasattr callable issubclass type id print".split()
_COMBINED = "divmod input repr format dir locals chr ord".split()
_BESIDE = "combinations combinations_with_replacement permutations product pairwise groupby accumulate zip_longest".split()
_CURVED = ("pow", *(f"math.{name}" for name in "log log2 log10 log1p exp expm1 sqrt pow tanh sin cos".split()))
_COMPUTED = "math os time json sys re shutil pathlib copy string glob itertools operator datetime".split()
_CLOCKS = """
    time.time time.time_ns time.perf_counter time.monotonic time.process_time timeit.default_timer time.strftime time.ctime time.asctime
    time.localtime time.gmtime os.getpid datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today
""".split()
_DRAWN = "uuid.uuid1 uuid.uuid4 tempfile.mkdtemp tempfile.mktemp tempfile.TemporaryDirectory secrets.token_hex".split()

ROWS: dict[str, Rule] = {
    # numbers
    **dict.fromkeys(("float", "bool"), numbers.converted),
    **dict.fromkeys(("str", "json.dumps", "pickle.dumps", "pprint.pformat"), numbers.text),
    **dict.fromkeys(("int", "round", "abs"), numbers.rounded),
    **dict.fromkeys(_CURVED, numbers.curved),
    "len": numbers.length,
    "sum": numbers.added_up,
    **dict.fromkeys(("any", "all"), numbers.whether),
    "max": partial(numbers.extreme, scale="largest"),
    "min": partial(numbers.extreme, scale="smallest"),
    # containers, and what goes through them
    **dict.fromkeys(("dict", "collections.OrderedDict"), containers.dictionary),
    "dict.fromkeys": containers.by_keys,
    "collections.defaultdict": containers.default_dict,
    "collections.Counter": containers.tally,
    **dict.fromkeys(("set", "frozenset"), containers.unordered),
    **dict.fromkeys(("list", "tuple"), containers.listed),
    "sorted": containers.in_order,
    **dict.fromkeys(("iter", "itertools.cycle"), containers.passed_on),
    **dict.fromkeys(("reversed", "itertools.islice"), containers.some),
    **{f"itertools.{name}": containers.beside for name in _BESIDE},
    **dict.fromkeys(("hash", "heapq", "bisect", "statistics"), containers.of_all),
    "itertools.chain": containers.chained,
    "itertools.chain.from_iterable": partial(containers.chained, elements=True),
    "enumerate": containers.counted,
    "zip": containers.zipped,
    **dict.fromkeys(("range", "xrange"), containers.numbers),
    "next": containers.following,
    "map": containers.mapped,
    "filter": reflection.filtered,
    # names, attributes and modules
    "getattr": reflection.attribute_by_name,
    "setattr": reflection.attribute_set_by_name,
    "vars": lambda use: named.space(use.run, use.argument(0)),
    "globals": lambda use: named.space(use.run, just(Module(use.run.frame.file))),
    "super": reflection.parent_class,
    "eval": lambda use: named.evaluated(use.run, use.event),
    "__import__": reflection.imported_top,
    "importlib.import_module": reflection.imported,
    "importlib.util.spec_from_file_location": reflection.read_from_file,
    "importlib.machinery.SourceFileLoader": reflection.read_from_file,
    "imp.load_source": reflection.read_from_file,
    "importlib.util.module_from_spec": reflection.of_specification,
    **dict.fromkeys(("functools", "inspect"), generic.uncalled),  # they do not call what they are given
    "functools.reduce": containers.reduced,
    "functools.partial": lambda use: named.partial(use.run, use.node, use.argument(0), use.args[1:], use.keywords),
    # everything else
    **dict.fromkeys(_ASKED_OR_SHOWN, generic.nothing),
    **dict.fromkeys(_COMBINED, generic.combined),
    **dict.fromkeys(_COMPUTED, generic.computed),
    **dict.fromkeys(("copy.copy", "copy.deepcopy", "json.load", "json.loads"), generic.instance),
    **dict.fromkeys(("pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"), generic.path),
    **dict.fromkeys(("open", "slice"), generic.fresh),
    **dict.fromkeys(("os.getenv", "os.environ.get"), _environment),
    **dict.fromkeys(LISTINGS, generic.listing),
    **dict.fromkeys(_CLOCKS, generic.clock),
    **dict.fromkeys((*_DRAWN, "random"), generic.drawn),
    **dict.fromkeys(("random.uniform", "random.randint"), drawn_of_size),
    "random.shuffle": generic.shuffled,
    **dict.fromkeys("signal threading _thread asyncio sched multiprocessing concurrent".split(), generic.called_later),
}
