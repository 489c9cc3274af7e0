"""The findings of no single rule: what was not seen, what failed, and what the check of the result found."""

from __future__ import annotations


class Unseen:
    """Something that every training loop needs is not proven.

    What it does: once all rules have been applied, each backward call must have gradients that are averaged, a loss that averages over the
        samples of all ranks, loaders that give each rank a different part of the data, and samplers whose epoch is set. What no
        change brings about and no fact proves is reported, with its line. Code that was not analysed to its end is reported, too.
    Why: what is not proven may go wrong without an error: the ranks' parameters drift apart, or all train on the same samples.
    Safety: MANUAL. The conversion is not finished before a person has looked at the place.
    References: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    CODE, TITLE = "DDP900", "not proven"


class Failed:
    """A step of ddpify itself failed.

    What it does: reports what failed. Where the rewriting failed, the file is left as it was; where the check of the result failed, the
        result is shown, unchecked.
    Why: a defect of ddpify must cost nobody a file, nor pass as a proof.
    Safety: MANUAL. Please report it with the script.
    References: https://docs.python.org/3/library/exceptions.html
    """

    CODE, TITLE = "DDP901", "ddpify failed"


class NotIdempotent:
    """The result, read as if it were a script to convert, still has something to convert.

    What it does: the converted script is planned once more; what a rule would still change or report was not carried out.
    Why: edits that cannot be combined, or lines that they gave a new meaning, show only in the result.
    Safety: MANUAL. The message names the rule; do by hand what it says.
    References: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    CODE, TITLE = "DDP902", "not fully converted"


class Believed:
    """The project says how a value differs between ranks, and the conversion relies on it.

    What it does: lists each place where `[tool.ddpify.placements]` in pyproject.toml, or a comment such as `# ddpify: replicate`, says
        that a value is the same on all ranks (`replicate`), a row for each of a rank's samples (`shard`), their mean or sum (`mean`,
        `sum`), a number that combines them with one another (`coupled`), or a rank's own (`per-rank`).
    Why: no analysis knows every package. What the owner of a script declares is relied on, and stays visible.
    Safety: NOTE. It is believed; `ddpify verify` runs both scripts and shows where it was wrong.
    References: https://docs.pytorch.org/docs/stable/distributed.tensor.html
    """

    CODE, TITLE = "DDP903", "declared by the project"


class Faulty:
    """The result would not run, or not as it should.

    What it does: checks the text of every conversion: each name is bound where it is used, on every path; each call fits the signature of
        what it calls; each helper is given what it takes; the process group is joined before anything asks for it, and by every process
        that asks. What was right before the conversion and is not in the result is reported, with its line there.
    Why: such a script ends in an error, hangs, or computes with numbers of one rank.
    Safety: MANUAL. The message says what is wrong.
    References: https://docs.python.org/3/reference/executionmodel.html, https://docs.pytorch.org/docs/stable/distributed.html
    """

    CODE, TITLE = "DDP904", "error in the result"


class Notebook:
    """A line of a notebook has no place in a script, or means something else there.

    What it does: a notebook's code cells become one script. Shell commands and magics become the Python that they stand for, figures are
        saved to files instead of shown, and values that a cell shows are printed. What is left out is listed; what a script cannot do
        (`get_ipython()`, unknown magics, names that no cell above binds) is to be written by hand; cells that the notebook ran in
        another order are to be looked at.
    Why: a notebook keeps what cells bound that were changed, deleted or run in another order. A script has nothing but its lines.
    Safety: NOTE where something is left out that trains nothing; REVIEW where cells ran in another order; MANUAL where the script would
        end with an error.
    References: https://ipython.readthedocs.io/en/stable/interactive/magics.html
    """

    CODE, TITLE = "DDP905", "from a notebook"


class Marked:
    """A place is marked that is to be done by hand.

    What it does: with `--draft`, a comment such as `# ddpify: MANUAL DDP201: ...` is put above the statement of each finding that is to be
        done by hand, and all the rest is converted, where otherwise nothing would be. A script with such a comment is not finished:
        each is reported again, until it is taken away.
    Why: half of a conversion trains wrongly, and is a good beginning for a person who sees where the other half belongs.
    Safety: the comment is SAFE, what it is about is MANUAL: do there what the finding says, then take the comment away.
    References: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    CODE, TITLE = "DDP906", "mark what is to be done by hand"


STAGE_FINDINGS = (Unseen, Failed, NotIdempotent, Believed, Faulty, Notebook, Marked)
