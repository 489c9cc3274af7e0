"""The command line: flags become Options, results become text and an exit code. Heavy imports stay inside the commands."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperCommand

from ddpify import __version__, output_files
from ddpify.errors import DdpifyError
from ddpify.options import (
    Amp,
    Backend,
    BatchSize,
    Cluster,
    Ddp,
    Evaluation,
    FindUnused,
    Guards,
    Launcher,
    Options,
    Precision,
    ScaleLR,
    SyncBN,
    Task,
    Tracker,
    WholeBatches,
)
from ddpify.source import script_path

if TYPE_CHECKING:
    from ddpify.conversion import Conversion
    from ddpify.rehearse.verify import Verdict
    from ddpify.rules.base import Alternative
    from ddpify.scaffold import Settings

app = typer.Typer(
    help="Convert PyTorch training scripts to DistributedDataParallel.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes longer to import than the help takes to show
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Asked = Callable[[str], Options]
"""The options for a script: of the command line, else of the script's pyproject.toml."""
Skip = Annotated[list[str] | None, typer.Option("--skip", metavar="ID", help="Leave a change out, by its id; may be repeated.")]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="CODES", help="Of the changes that can be left out, keep only those of these rules.")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="Leave these rules' changes out.")]


def _options(
    launcher: Annotated[
        Launcher | None, typer.Option(help="What starts the processes: torchrun, unless the script is distributed and has another.")
    ] = None,
    amp: Annotated[
        Amp, typer.Option(help="Mixed precision: as the script has it, off, torch's float16 or bfloat16, or a level of NVIDIA apex.")
    ] = "keep",
    ddp: Annotated[Ddp, typer.Option(help="Whose DistributedDataParallel; auto is apex's with apex's mixed precision.")] = "auto",
    loss_scale: Annotated[str, typer.Option(help="dynamic, or a number that losses are multiplied by.", metavar="dynamic|X")] = "auto",
    fused_adam: Annotated[bool, typer.Option("--fused-adam", help="Replace torch's Adam and AdamW by apex's FusedAdam.")] = False,
    backend: Annotated[Backend, typer.Option(help="The communication backend; auto is nccl on GPUs, else gloo.")] = "auto",
    find_unused_parameters: Annotated[
        FindUnused, typer.Option(help="Whether DDP looks for parameters that get no gradient in a step.")
    ] = "auto",
    sync_bn: Annotated[
        SyncBN, typer.Option("--sync-bn", help="Whether batch norm uses the statistics of the global batch (SyncBatchNorm).")
    ] = "auto",
    eval: Annotated[
        Evaluation, typer.Option(help="Divide the evaluation's batches among the ranks, or let every rank evaluate all of them.")
    ] = "auto",
    batch_size: Annotated[
        BatchSize, typer.Option(help="Whether the script's batch size is that of all ranks together, or of each rank.")
    ] = "global",
    scale_lr: Annotated[ScaleLR, typer.Option("--scale-lr", help="Scale the learning rate with per-rank batches.")] = "none",
    whole_batches: Annotated[
        WholeBatches,
        typer.Option(help="Where shares of the batches do not do: put them together, let rank 0 read whole ones, or tell."),
    ] = "auto",
    guards: Annotated[Guards, typer.Option(help="Write `if rank == 0:`, or switch print off in the other processes.")] = "explicit",
    draft: Annotated[
        bool, typer.Option("--draft", help="Convert all the rest where something must be done by hand, and mark these places.")
    ] = False,
) -> Options:
    """The options of a conversion, as every command that converts takes them. Raises DdpifyError for those that do not go together."""
    return Options(
        launcher,
        backend,
        guards,
        find_unused_parameters,
        sync_bn,
        eval,
        batch_size,
        scale_lr,
        whole_batches,
        amp,
        ddp,
        loss_scale,
        fused_adam,
        draft,
    )


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a conversion in the place of its parameter `asked`, which returns them."""
    shared = inspect.signature(_options, eval_str=True).parameters

    own = inspect.signature(command, eval_str=True).parameters

    @functools.wraps(command)
    def whole(context: typer.Context, **given: object) -> None:
        options = {name: given.pop(name) for name in shared}
        typed = {n: v for n, v in options.items() if getattr(context.get_parameter_source(n), "name", "") == "COMMANDLINE"}

        def asked(path: str) -> Options:
            from ddpify.settings import settings

            found = settings(Path(path))
            chosen = _options(**options | dict(found.options) | typed)  # type: ignore[arg-type]
            return replace(chosen, placements=found.placements)

        command(asked=asked, **given, **({"context": context} if "context" in own else {}))

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(parameter for name, parameter in own.items() if name not in ("asked", "context"))]
    first = [parameter for parameter in parameters if parameter.default is parameter.empty]
    rest = [parameter for parameter in parameters if parameter not in first]
    whole.__signature__ = inspect.Signature([*first, *rest, *shared.values()])  # type: ignore[attr-defined]
    whole.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *shared.values())}
    return whole


CONVERT_HELP = """Convert the training script PATH and show the change as a diff. Without -w or -o nothing is written.

Standard output holds the diff. Standard error says what was changed, what is left to do, and which commands to run next.
For PATH `-` the script is read from standard input, and standard output gets the converted code, not a diff; `-o -` does so for any PATH.

\b
Examples:
  ddpify convert train.py                   show the diff
  ddpify convert train.py -o train_ddp.py   write a converted copy
  ddpify convert train.py -w                convert in place
  ddpify convert train.py | git apply       the same, by way of git
  ddpify convert - < train.py > ddp.py      as a filter
  ddpify convert train.ipynb -w             make train.py of a notebook's cells, converted; the notebook stays
  ddpify convert train.py --verbose         each change with its line and reason
  ddpify convert train.py --check           write nothing; the exit code says whether it would change
  ddpify convert train.py --draft -w        with `# ddpify: MANUAL ...` above what is to be done by hand
  ddpify convert train.py --prove -w        run both for 20 steps first; what the run shows need not be reviewed
  ddpify convert train.py --prove --steps 5 -- --data ./data    the same, with arguments of the script
  ddpify convert train.py -w --launcher launch --emit-launcher run.sh

\b
Exit codes:
  0  done, or nothing to do
  1  something is left to review or to do by hand, something failed under --prove, or --check would change the script
  2  the input cannot be read, another framework drives the script, or --prove could not run it
"""


class _WithScriptArguments(TyperCommand):
    """A command that leaves what follows `--` to the script that it runs."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Take the script's arguments out before the command's own are read."""
        ctx.meta["ddpify.args"] = list(args)
        at = args.index("--") if "--" in args else len(args)
        at = at if self.name == "verify" or "--prove" in args[:at] else len(args)  # else what follows may be the path
        ctx.obj = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


Nproc = Annotated[int, typer.Option(help="How many ranks run the distributed script.", min=2)]
Steps = Annotated[int, typer.Option(help="Optimizer steps to compare; 0 lets the scripts end.", min=0)]
TimeLimit = Annotated[float, typer.Option("--time-limit", help="Seconds that each run may take.", min=1)]
Python = Annotated[str, typer.Option(help="The interpreter that has torch.")]
Prove = Annotated[bool, typer.Option("--prove", help="Run the script and its conversion; nothing is written unless they train alike.")]


@app.callback(invoke_without_command=True)
def _ddpify(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False) -> None:
    if version:
        print(f"ddpify {__version__}")
        raise typer.Exit


@app.command(cls=_WithScriptArguments, help=CONVERT_HELP)
@_with_options
def convert(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The script that starts the training, its folder, or - for standard input.")],
    asked: Asked,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write to this file, or into this folder.")] = None,
    write: Annotated[bool, typer.Option("-w", "--write", help="Write in place.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if the script would change.")] = False,
    emit_launcher: Annotated[
        str | None, typer.Option("--emit-launcher", metavar="FILE", help="Also write a shell script that starts the result.")
    ] = None,
    allow_dirty: Annotated[bool, typer.Option("--allow-dirty", help="Let -w overwrite uncommitted changes.")] = False,
    format: Annotated[
        Literal["text", "json", "sarif", "github"],
        typer.Option(help="Put a report for programs on standard output; github is for the annotations of GitHub Actions."),
    ] = "text",
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="List each change with its reason.")] = False,
    prove: Prove = False,
    nproc: Nproc = 2,
    steps: Steps = 20,
    time_limit: TimeLimit = 300,
    python: Python = sys.executable,
    skip: Skip = None,
    select: Select = None,
    ignore: Ignore = None,
) -> None:
    """See CONVERT_HELP."""
    _check_prove(context, prove, path)
    if write + check + (output is not None) > 1:
        raise typer.BadParameter("give only one of -w, -o and --check")
    if path == "-" and write:
        raise typer.BadParameter("-w cannot write to standard input; use -o FILE, or nothing")

    def work() -> int:
        nonlocal path
        path = _entry(path)
        options, conversion = _to_be_run(path, given := asked(path), prove)
        conversion = _chosen(conversion, path, skip, select, ignore)
        target = None if conversion.status == "refuse" else output_files.target_of(path, output_files.in_place(path) if write else output)
        starter = output_files.starter_of(conversion, emit_launcher, _script(conversion, path, target), allow_dirty)
        into_folder = output is not None and output_files.is_folder(output)
        if prove and conversion.changed:
            if target:  # what cannot be written is reported before anything runs
                output_files.files_of(conversion, target, path, into_folder, allow_dirty)
            setting, chosen = (python, nproc, steps, time_limit), (skip, select, ignore)
            conversion, held = _proved(conversion, path, options, given, setting, context.obj, chosen)
            if not held:
                target = starter = None
                if format == "text":
                    return conversion.exit_code
        if target:
            output_files.write(conversion, target, path, into_folder, allow_dirty)
        if starter:
            output_files.write_starter(*starter)
        if format != "text":
            _emit(_report(conversion, _script(conversion, path, target), format).encode())
        else:
            _show(conversion, code=path == "-" or output == "-", quiet=check or bool(target))
            _tell(conversion, path, target, options, verbose)
        return max(conversion.exit_code, int(check and conversion.changed))

    _run(work)


def _script(conversion: Conversion, path: str, target: Path | None) -> str:
    """What commands call the result: where it is written, or would be."""
    return str(target) if target else conversion.shown if conversion.source.notebook and path != "-" else path


def _report(conversion: Conversion, script: str, format: str) -> str:
    """What programs read of a conversion; `script` is the path that the run command names."""
    from ddpify.report import github, json, sarif

    if format == "json":
        return json.render(conversion, script)
    return sarif.render(conversion) if format == "sarif" else github.commands(conversion)


def _check_prove(context: typer.Context, prove: bool, path: str) -> None:
    """Raises BadParameter for what belongs to --prove and is given without it, and for a script that has no place to run in."""
    for name in ("nproc", "steps", "time_limit", "python"):
        source = context.get_parameter_source(name)
        if not prove and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} goes with --prove")
    if prove and path == "-":
        raise typer.BadParameter("--prove runs the script where it lies; name its file")


def _to_be_run(path: str, options: Options, prove: bool) -> tuple[Options, Conversion]:
    """The conversion that is asked for; before it is run, that of shares of the batches where the run may tell whether they do."""
    from ddpify.rules.base import Change, Finding, Safety

    if prove and options.whole_batches != "never":
        shares = replace(options, whole_batches="never")
        conversion = _convert(path, shares)
        items: list[Change | Finding] = [*conversion.findings, *conversion.changes]
        if all(item.level < Safety.MANUAL or item.alternatives for item in items):
            return shares, conversion
    return options, _convert(path, options)


def _proved(
    conversion: Conversion,
    path: str,
    options: Options,
    asked: Options,
    setting: tuple[str, int, int, float],
    args: list[str],
    chosen: tuple[list[str] | None, list[str] | None, list[str] | None] = (None, None, None),
) -> tuple[Conversion, bool]:
    """The conversion, or an alternative, with what a run of it showed, and whether it held; what did not is printed on standard error."""
    from ddpify.rehearse.launch import Setting
    from ddpify.rehearse.prove import prove
    from ddpify.report import terminal, verdict
    from ddpify.rules.base import Alternative

    def otherwise(assumed: tuple[Alternative, ...]) -> Conversion:
        changed = functools.reduce(lambda known, each: known.assuming(each.option, each.value), assumed, options)
        return _chosen(_convert(path, changed), path, *chosen)

    last = (Alternative("whole_batches", asked.whole_batches),) if asked != options else ()
    with _ending_what_was_started(), _Progress(setting[2]) as progress:
        conversion, found = prove(conversion, Path(path), Setting(*setting, True), options.starts, args, progress, otherwise, last)
    if found.exit_code:
        width = shutil.get_terminal_size((120, 24)).columns
        sys.stdout.flush()
        tried = "".join(f"tried     {each}\n" for each in (conversion.trial.tried if conversion.trial is not None else ()))
        sys.stderr.write(f"{verdict.terminal(found, terminal.wants_colour(sys.stderr), width)}{tried}nothing is written\n")
    return conversion, not found.exit_code


REVIEW_HELP = """Show each change of a conversion with its reason, and ask whether to take it, by the keys of `git add -p`.

What is to be reviewed comes first. Changes that a correct training needs are taken together or not at all; the rest can be left out, one
by one. With -w or -o the choice is written; without, it asks at the end, or puts the diff on standard output where that is no terminal.
With --html nothing is asked: the whole review is one page that needs no network, and PATH stays as it is.

\b
Examples:
  ddpify review train.py -w                   choose, then convert in place
  ddpify review train.py -o train_ddp.py      the same, into a copy
  ddpify review train.py > chosen.patch       the choice as a patch
  ddpify review train.py --amp torch -w       with the options of `ddpify convert`
  ddpify review train.py --html review.html   a page instead, to read, share and choose from
  ddpify review train.py --prove -w           run both for 20 steps first, and review what that does not show

\b
Exit codes:
  0    done, or nothing to do
  1    something is left to do by hand, or nothing was written; with --html, something is left to review, too
  2    the input cannot be read, there is no terminal, or another framework drives the script
  130  interrupted by Ctrl-C; every file is as it was
"""


@app.command(cls=_WithScriptArguments, help=REVIEW_HELP)
@_with_options
def review(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The script that starts the training, or its folder.")],
    asked: Asked,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write to this file, or into this folder.")] = None,
    write: Annotated[bool, typer.Option("-w", "--write", help="Write in place.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page; ask nothing.")] = None,
    allow_dirty: Annotated[bool, typer.Option("--allow-dirty", help="Let -w overwrite uncommitted changes.")] = False,
    prove: Prove = False,
    nproc: Nproc = 2,
    steps: Steps = 20,
    time_limit: TimeLimit = 300,
    python: Python = sys.executable,
    skip: Skip = None,
    select: Select = None,
    ignore: Ignore = None,
) -> None:
    """See REVIEW_HELP."""
    _check_prove(context, prove, path)
    if write + (output is not None) + (html is not None) > 1:
        raise typer.BadParameter("give only one of -w, -o and --html")
    if path == "-" and html is None:
        raise typer.BadParameter("standard input is where the keys come from; name the script")

    def work() -> int:
        from ddpify import terminal_review

        if html is None and not terminal_review.possible():
            given = shlex.join([path, *shlex.split(asked(path).command_line())])
            instead = f"ddpify convert {given}, or ddpify review {given} --html page.html"
            raise DdpifyError("review asks on a terminal, and here is none", instead)
        script = _entry(path)
        options, whole = _to_be_run(script, wanted := asked(script), prove)
        if prove and whole.changed:
            whole, held = _proved(whole, script, options, wanted, (python, nproc, steps, time_limit), context.obj)
            if not held:
                return whole.exit_code
        chosen = _chosen(whole, script, skip, select, ignore)
        if html is not None:
            asked_for = [*(f"--select={codes}" for codes in select or ()), *(f"--ignore={codes}" for codes in ignore or ())]
            _review_page(_chosen(whole, script, None, select, ignore), chosen, script, options, asked_for, html)
            return chosen.exit_code
        if chosen.status != "convert" or not chosen.changes:
            _tell(chosen, script, None, options, False)
            return chosen.exit_code
        return _ask(whole, chosen, script, options, output_files.in_place(script) if write else output, allow_dirty)

    _run(work)


def _ask(whole: Conversion, conversion: Conversion, path: str, options: Options, output: str | None, allow_dirty: bool) -> int:
    """Let the user choose on the terminal, and write the choice, or show it."""
    from ddpify import terminal_review

    target, into_folder = output_files.target_of(path, output), output is not None and output_files.is_folder(output)
    if target:  # what cannot be written is reported before anything is asked
        output_files.files_of(conversion, target, path, into_folder, allow_dirty)
    outcome = terminal_review.ask(conversion)
    out = {*conversion.left_out, *outcome.review.left_out}
    skipped = [change.id for change in whole.changes if change.id in out]
    command = ["ddpify", "convert", path, *shlex.split(options.command_line())]
    command += ["-w"] if output == path else ["-o", output] if output is not None else []
    command += ["--skip", ",".join(skipped)] if skipped else []
    sys.stderr.write(terminal_review.summary(outcome, shlex.join(command)))
    chosen, asking = outcome.conversion, output is None and sys.stdout.isatty()
    if outcome.review.ended == "quit" or (asking and not _confirmed(chosen, path)):
        return 1
    target = script_path(Path(path)) if asking else target
    if target:
        output_files.write(chosen, target, path, into_folder, allow_dirty or asking)
    else:
        _show(chosen, code=output == "-", quiet=False)
    sys.stdout.flush()
    sys.stderr.write(_commands(chosen, path, target, options))
    return int(any(finding.level.name == "MANUAL" for finding in chosen.findings))


def _confirmed(conversion: Conversion, path: str) -> bool:
    """Whether the user wants a choice written in place."""
    from ddpify.terminal_review import confirmed

    script = script_path(Path(path))
    files = ", ".join(file.name for file in output_files.files_of(conversion, script, path, False, True))
    try:
        output_files.files_of(conversion, script, output_files.in_place(path), False, False)
    except DdpifyError as error:  # git has no commit of what would be lost, or a script lies beside the notebook
        files += f", though {error.title}"
    return bool(files) and confirmed(f"write {files}")


VERIFY_HELP = """Check a conversion by running it: PATH as one process, CONVERTED as several ranks, and comparing what they did.

Without CONVERTED, PATH is converted first, with the options of `ddpify convert`. Any DDP script can be compared
with its original, also one written by hand. Without a GPU, the CPU stands in for CUDA. Both run in copies of the project: your files stay
as they are. What
follows `--` goes to both scripts.

\b
Examples:
  ddpify verify train.py                              convert, run both for 20 steps, compare
  ddpify verify train.py -- --epochs 1 --data ./data  the same, with arguments of the script
  ddpify verify train.py train_ddp.py --steps 0       a script converted by hand, run to its end
  ddpify verify train.py --python ../env/bin/python   run by the interpreter that has torch
  ddpify verify train.py --json > verdict.json        for a program

\b
Exit codes:
  0  all properties hold
  1  something failed; the table says what it most likely comes from
  2  could not run, with the reason
"""


@app.command(cls=_WithScriptArguments, help=VERIFY_HELP)
@_with_options
def verify(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The original script, or its folder.")],
    asked: Asked,
    converted: Annotated[
        Path | None, typer.Argument(metavar="CONVERTED", help="The distributed script; by default PATH is converted.")
    ] = None,
    nproc: Nproc = 2,
    steps: Steps = 20,
    time_limit: TimeLimit = 300,
    python: Python = sys.executable,
    json: Annotated[bool, typer.Option("--json", help="Put the verdict on standard output as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the loss curves, differences and files.")] = None,
) -> None:
    """See VERIFY_HELP."""

    def work() -> int:
        from ddpify.rehearse.launch import Setting
        from ddpify.rehearse.verify import verify as run
        from ddpify.report import terminal, verdict

        nonlocal path
        conversion: Path | Conversion | None = converted
        launcher = ""
        path = Path(_entry(str(path)))
        if converted is None:
            options = asked(str(path))
            launcher = options.starts
            conversion = _convert(str(path), options)
            if conversion.status != "convert":
                hint = "name the script that is distributed: ddpify verify PATH CONVERTED"
                raise DdpifyError(f"{path} is not converted: {conversion.reason}", hint)
        assert conversion is not None
        setting = Setting(python, nproc, steps, time_limit, True)
        with _ending_what_was_started(), _Progress(steps) as progress:
            found = run(path, conversion, setting, launcher, context.obj, progress)
        if html is not None:
            _page(found, html, shlex.join(["ddpify", "verify", *context.meta["ddpify.args"]]))
        width = shutil.get_terminal_size((120, 24)).columns
        text = verdict.render_json(found) if json else verdict.terminal(found, terminal.wants_colour(sys.stdout), width)
        _emit(text.encode())
        return found.exit_code

    _run(work)


NEW_HELP = """Make a new project in the folder DIR: a complete training that runs on one process, several GPUs or several machines.

DIR must not exist or be empty; its name becomes that of the project's package. Given nothing at all, on a terminal, it asks; what is not
given has a default.

\b
Examples:
  ddpify new                                          ask, on a terminal; else the defaults in my_project
  ddpify new faces --task image --amp torch           classify images in float16, started by torchrun
  ddpify new chat --task language-model --pretend     only list the files
  ddpify new faces --template ../our-template         files from a folder of your own

\b
Exit codes:
  0  done
  2  the name, an option or a template will not do, or DIR holds something already; nothing is written
"""


@app.command(help=NEW_HELP)
def new(
    context: typer.Context,
    directory: Annotated[Path | None, typer.Argument(metavar="DIR", help="The project's folder.", show_default="my_project")] = None,
    task: Annotated[Task, typer.Option(help="What is learned.")] = "image",
    launcher: Annotated[Launcher, typer.Option(help="What starts the processes.")] = "torchrun",
    amp: Annotated[Precision, typer.Option(help="Mixed precision: off, torch's float16 or bfloat16, or a level of NVIDIA apex.")] = "none",
    ddp: Annotated[Ddp, typer.Option(help="Whose DistributedDataParallel; auto is apex's with apex's mixed precision.")] = "auto",
    tracker: Annotated[Tracker, typer.Option(help="Where metrics go besides the terminal and a file.")] = "none",
    cluster: Annotated[Cluster, typer.Option(help="Files for a cluster, which spawn cannot start.")] = "none",
    template: Annotated[Path | None, typer.Option(metavar="PATH", help="Render this folder in the place of ddpify's own.")] = None,
    pretend: Annotated[bool, typer.Option("--pretend", help="List the files; write nothing.")] = False,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
) -> None:
    """See NEW_HELP."""

    def work() -> int:
        from ddpify import scaffold

        folder = directory
        choices: dict[str, str] = {"task": task, "launcher": launcher, "amp": amp, "ddp": ddp, "tracker": tracker, "cluster": cluster}
        given = any(source.name == "COMMANDLINE" for name in context.params if (source := context.get_parameter_source(name)))
        if not given and sys.stdin.isatty() and sys.stderr.isatty():
            folder, choices = _prompted(scaffold.CHOICES, choices)
        folder = Path("my_project") if folder is None else folder
        settings = scaffold.Settings(folder.absolute().resolve().name, **choices)  # type: ignore[arg-type]
        scaffold.check(folder)
        files = scaffold.render(settings, template)
        if not pretend:
            scaffold.write(folder, files)
        _emit("".join(f"{folder / name}\n" for name in files).encode())
        sys.stdout.flush()
        sys.stderr.write(_next_steps(folder, settings, files, pretend))
        return 0

    _run(work)


def _prompted(choices: dict[str, tuple[str, ...]], default: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """The folder and the choices, as answered on a terminal."""
    from ddpify import scaffold

    folder = Path(typer.prompt("folder", default="my_project", err=True))
    scaffold.Settings(folder.absolute().resolve().name)  # a name that will not do is refused before more is asked
    scaffold.check(folder)
    answers: dict[str, str] = {}
    for name, possible in choices.items():
        answer = default[name] if name == "cluster" and answers["launcher"] == "spawn" else ""  # spawned processes are on one machine
        while answer not in possible:
            answer = typer.prompt(f"{name} ({', '.join(possible)})", default=default[name], err=True)
        answers[name] = answer
    return folder, answers


def _next_steps(folder: Path, settings: Settings, files: dict[str, bytes], pretend: bool) -> str:
    """What was done, and what to type now."""
    if pretend:
        return f"{len(files)} files would be written\n"
    command = "./run.sh" if "run.sh" in files else ""
    lines = [f"{settings.title}: {len(files)} files written; now", f"  cd {shlex.quote(str(folder))}"]
    lines += ["  python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[test]'"] * ("pyproject.toml" in files)
    lines += [f"  {command}"] * bool(command)
    return "\n".join(lines) + "\n"


def _codes(begun: str) -> list[str]:
    """The rules' codes that begin so, for shells to complete."""
    from ddpify.report.rule import all_rules

    return [code for code in all_rules() if code.startswith(begun.upper())]


RULES_HELP = """List the rules, or explain one of them: what it does, why, how safe it is, with examples and references.

\b
Examples:
  ddpify rules          all codes and titles
  ddpify rules DDP301   one rule
  ddpify rules DDP3     the rules of a family
  ddpify rules --format md > rules.md   all rules with their examples, as Markdown
"""


@app.command(help=RULES_HELP)
def rules(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="A rule's code, or how it begins.", autocompletion=_codes)] = None,
    format: Annotated[Literal["text", "md"], typer.Option(help="md explains all rules that are asked for, as Markdown.")] = "text",
) -> None:
    """See RULES_HELP."""

    def work() -> int:
        from ddpify.report.rule import all_rules, explained, pages

        known = all_rules()
        if code is not None and code.upper() in known and format == "text":
            _emit(explained(known[code.upper()]).encode())
            return 0
        found = {c: rule for c, rule in known.items() if c.startswith((code or "DDP").upper())}
        if not found:
            raise DdpifyError(f"there is no rule {code}", "see `ddpify rules`")
        listed = "".join(f"{c}  {rule.title}\n" for c, rule in found.items())
        _emit((pages(found.values()) if format == "md" else listed).encode())
        return 0

    _run(work)


def main() -> None:
    """Run the command line; every outcome is an exit code."""
    try:
        _app_of(sys.argv[1:2])()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        import traceback

        traceback.print_exc()
        print("error: ddpify itself failed; please report the lines above with the script", file=sys.stderr)
        sys.exit(2)


def _app_of(asked: list[str]) -> typer.Typer:
    """The command line with nothing but the command that is asked for, so that no other's options are looked at; else all of it."""
    commands = [c for c in app.registered_commands if (c.name or getattr(c.callback, "__name__", "")) in asked]
    if not commands:
        return app
    only = copy.copy(app)
    only.registered_commands = commands
    return only


def _run(work: Callable[[], int]) -> None:
    """Exit with what `work` returns; an expected failure is shown and exits with 2."""
    try:
        exit_code = work()
        sys.stdout.flush()
    except DdpifyError as failure:
        from ddpify.report import terminal

        sys.stderr.write(terminal.error(failure, terminal.wants_colour(sys.stderr)))
        exit_code = 2
    except KeyboardInterrupt:
        exit_code = 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        exit_code = 1
    raise typer.Exit(exit_code)


@contextlib.contextmanager
def _ending_what_was_started() -> Iterator[None]:
    """Let the first signal that ends this process, such as Ctrl-C, end what it started, too; what comes meanwhile disturbs nothing."""
    import signal

    def ended(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        sys.stderr.write("\ninterrupted: what was started is ended\n")
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {each: signal.signal(each, ended) for each in numbers}
    try:
        yield
    finally:
        if signal.getsignal(numbers[0]) is ended:  # else the end has begun
            for each, handler in before.items():
                signal.signal(each, handler)


class _Progress:
    """What runs now, and its optimizer steps so far, on a line of standard error that a terminal shows."""

    def __init__(self, steps: int) -> None:
        self._goal, self._shown = f"/{steps}" if steps else "", ""

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, run: str, steps: int) -> None:
        text = f"{run}: {steps}{self._goal} steps"
        if sys.stderr.isatty() and text != self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._shown = text

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def _page(verdict: Verdict, html: Path, command: str) -> None:
    from ddpify.report.verdict_page import render
    from ddpify.source import write_all

    write_all({html: render(verdict, command).encode()})


def _review_page(offered: Conversion, chosen: Conversion, path: str, options: Options, codes: list[str], html: Path) -> None:
    """Write the page of a conversion, with the changes turned off that are chosen away; `codes` are the other flags that it needs."""
    from ddpify import progress
    from ddpify.report import review_page, terminal
    from ddpify.settings import settings
    from ddpify.source import write_all

    read = [offered.path, *(module.path for module in offered.modules)]
    if html.exists() and any(file is not None and file.exists() and file.samefile(html) for file in read):
        raise DdpifyError(f"{html} is part of what is reviewed", "name another file for the page")
    flags = [*options.command_line(settings(Path(path)).options).split(), *codes]
    left_out = {change.id for change in offered.changes} - {change.id for change in chosen.changes}
    with progress.shown():
        page = review_page.render(offered, options, flags, frozenset(left_out))
    write_all({html: page.encode()})
    sys.stderr.write(f"{terminal.summary(chosen)}the page is {html}\n")


def _entry(path: str) -> str:
    """The script that is meant: of a folder, the one that trains; with several, the one that is chosen on a terminal."""
    if not path or not Path(path).is_dir():
        return path
    from ddpify.entries import entries

    found = [str(Path(path, script)) for script in entries(Path(path))]
    if not found:
        raise DdpifyError(f"no script in {path} trains on one device", "name the script that starts the training")
    if len(found) > 1:
        listed = "".join(f"\n  {i}  {script}" for i, script in enumerate(found, 1))
        if not (sys.stderr.isatty() and sys.stdin.isatty()):
            raise DdpifyError(f"several scripts in {path} train:{listed}", f"name one of them, such as {shlex.quote(found[0])}")
        typer.echo(f"several scripts in {path} train:{listed}", err=True)
        answer = 0
        while not 1 <= answer <= len(found):
            answer = typer.prompt("which one", type=int, err=True)
        found = [found[answer - 1]]
    return found[0]


def _convert(path: str, options: Options) -> Conversion:
    from ddpify import progress
    from ddpify.conversion import convert as run

    if not path:
        raise DdpifyError("PATH is empty", "give the path of the training script")
    gc.disable()  # as `convert` does, until what it has made is frozen
    try:
        with progress.shown():
            return run(sys.stdin.buffer.read(), options, shown="<stdin>") if path == "-" else run(Path(path), options)
    finally:
        gc.freeze()
        gc.enable()


def _chosen(conversion: Conversion, path: str, skip: list[str] | None, select: list[str] | None, ignore: list[str] | None) -> Conversion:
    """The conversion without the changes that were not wanted; several ids or codes may be given in one word, with commas."""
    from ddpify.choices import leaving_out
    from ddpify.settings import settings

    def words(given: list[str] | None) -> list[str]:
        return [word.strip() for text in given or () for word in text.split(",") if word.strip()]

    known = settings(Path(path))
    return conversion.without(leaving_out(conversion.changes, words(skip), words(select) or known.select, words(ignore) or known.ignore))


def _show(conversion: Conversion, code: bool, quiet: bool) -> None:
    """The result on standard output: its code, or its diff: a patch, or for a terminal with the rules' codes."""
    if quiet or conversion.status == "refuse":
        return
    if code:
        _emit(conversion.bytes)
    elif not sys.stdout.isatty():
        _emit(conversion.patch)
    elif conversion.changed:
        from ddpify import progress
        from ddpify.attribution import attributed
        from ddpify.report import terminal
        from ddpify.report.annotated import with_codes

        with progress.shown():
            files = attributed(conversion)
        text = with_codes(files, conversion.changes, terminal.wants_colour(sys.stdout))
        _emit(text.encode(sys.stdout.encoding, "backslashreplace"))


def _tell(conversion: Conversion, path: str, target: Path | None, options: Options, verbose: bool) -> None:
    """What there is to know, on standard error."""
    from ddpify.report import terminal

    text = ""
    if conversion.findings or conversion.changes:
        commands = _commands(conversion, path, target, options)
        text += terminal.report(conversion, commands, verbose, terminal.wants_colour(sys.stderr))
    if conversion.status != "convert":
        text += f"{'refused' if conversion.status == 'refuse' else 'nothing to do'}: {conversion.reason}\n"
    sys.stdout.flush()
    sys.stderr.write(text)


def _commands(conversion: Conversion, path: str, target: Path | None, options: Options) -> str:
    """What to run next: what finishes the result, compares it with the original, and trains with it."""
    from ddpify.report import terminal
    from ddpify.settings import settings

    if conversion.status != "convert" or not conversion.changed or not conversion.command:
        return ""
    script = target or script_path(Path("train.py" if path == "-" else path))
    unfinished = any(finding.level.name == "MANUAL" for finding in conversion.findings)
    flags = options.command_line(settings(Path(path)).options).split()
    text = terminal.command("install first:", conversion.install) if conversion.install else ""
    if unfinished and target is None and path != "-":
        to = "DIR" if conversion.edited else "FILE"
        text += terminal.command("finish it in a copy:", shlex.join(["ddpify", "convert", path, *flags, "-o", to]))
    elif conversion.trial is not None:
        pass  # they were run
    elif target is None and path != "-" and not conversion.left_out:
        text += terminal.command("compare by running both:", shlex.join(["ddpify", "verify", path, *flags]))
    elif target is not None and path != "-" and not target.samefile(path):
        text += terminal.command("compare by running both:", shlex.join(["ddpify", "verify", path, str(target)]))
    label = "once finished, run it:" if unfinished else "run it:" if target else "once written, run it:"
    return text + terminal.command(label, conversion.run_command(str(script)))


def _emit(data: bytes) -> None:
    while data:  # unbuffered (python -u), one call may write only a part
        data = data[sys.stdout.buffer.write(data) :]
