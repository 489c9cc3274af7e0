"""Calls that were interpreted before, with the same arguments, are not interpreted again.

While a function runs, what it reads that was there before it is recorded: in the memory, in the functions around it, in what was
registered, and of which settings it matters what is known. Where all of that is as it was, its result is, too, and what the call did is
done once more without running it: what it wrote, the events, and what was seen of its expressions, calls, stores and branches. That holds
in a later pass of a loop, and in another run of the interpreter, which assumed something of other statements than those of the call; of
the forward of a module, wherever it is called from. What a forward makes is then the same object: another call of it gives the same
lists, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sized

from ddpify.facts.interpret.settings import made_under
from ddpify.facts.interpret.state import Frame, Interpreter
from ddpify.facts.model import Call, Decision, Known, Loop, Obj, Stack, Value
from ddpify.facts.recording import Recording, Repeated, Seen

# of what `lengths` gives
_EVENTS, _LOG, _NOTED, _CALLS, _STORES, _DECISIONS, _LOOPS, _TESTS, _VISITED, _CLAIMS, _POINT, _ORDER = range(12)
_KEPT = 6  # so many outcomes of one call are kept
Outcomes = dict[object, list["Outcome"]]


def lengths(run: Interpreter) -> tuple[int, ...]:
    """How long the lists are that a call makes longer, the point that is running, and how many events were counted."""
    record, log = run.record, run.log
    lists: tuple[Sized, ...]
    lists = (
        record.events,
        record.log,
        log.noted,
        log.calls,
        log.stores,
        run.trace.decisions,
        run.loops,
        run.tests,
        log.visited,
        run.claims.log,
    )
    return (*(len(each) for each in lists), record.current, run.order)


class Outcome(Repeated):
    """What one call did, and under which conditions it does the same again."""

    def __init__(self, run: Interpreter, frame: Frame, recording: Recording, start: tuple[int, ...]) -> None:
        self.of, self.assumed = run, _assumptions(run)
        self.recording = recording
        self.frame, self.views = frame, run.trace.views
        self.start, self.end = start, lengths(run)
        self.around = _around(run, recording.functions)
        self.stack = run.stack
        self.writes = {key: value for key in recording.written if (value := run.memory.held(key)) is not None}
        owners = {owner for owner, _ in self.writes}
        self.keys = {owner: frozenset(run.keys[owner]) for owner in owners if owner in run.keys}
        self.believed = dict(run.trace.believed)
        self.returned, self.yielded, self.changed, self.local = frame.returned, frame.yielded, frame.changed, frame.local
        self.record, self.log, self.decisions, self.outputs_of = run.record, run.log, run.trace.decisions, run.trace.outputs_of
        self.claims = tuple(dict.fromkeys(run.claims.log[self.start[_CLAIMS] : self.end[_CLAIMS]]))
        self._nodes: set[ast.AST] | None = None
        self._values: dict[ast.AST, Value] | None = None
        self._visited: set[ast.AST] | None = None
        self._calls: list[Seen] | None = None

    # ------------------------------------------------------------------------------------------------ conditions

    def holds(self, run: Interpreter, assumed: Mapping[object, object]) -> bool:
        """Whether the call would do now what it did then."""
        recording = self.recording
        if len(run.driven) != recording.driven:
            return False
        if self.around != _around(run, recording.functions) or not run.memory.holds(recording, self.writes):
            return False
        if any(run.asked(key) != value for key, value in recording.other.items()):
            return False
        if run.settings != recording.settings and _about(run.settings ^ recording.settings, recording.settings_asked):
            return False
        if run is self.of or assumed == self.assumed:
            return True
        nodes, visited = self.nodes(), self.visited()
        return not any(node in nodes or node in visited for node, _ in assumed.items() ^ self.assumed.items())

    def nodes(self) -> set[ast.AST]:
        """The expressions that were seen."""
        if self._nodes is None:
            self._nodes = set()
            for noted in self.log.noted[self.start[_NOTED] : self.end[_NOTED]]:
                self._nodes |= noted.nodes() if isinstance(noted, Repeated) else {noted[0]}
        return self._nodes

    def values(self) -> dict[ast.AST, Value]:
        """What the expressions were seen to be."""
        if self._values is None:
            self._values = {}
            for noted in self.log.noted[self.start[_NOTED] : self.end[_NOTED]]:
                for node, value in noted.values().items() if isinstance(noted, Repeated) else (noted,):
                    seen = self._values.get(node)
                    self._values[node] = value if seen is None or seen is value else seen | value
        return self._values

    def visited(self) -> set[ast.AST]:
        """The statements that ran."""
        if self._visited is None:
            self._visited = set()
            for visited in self.log.visited[self.start[_VISITED] : self.end[_VISITED]]:
                self._visited |= visited.visited() if isinstance(visited, Repeated) else {visited}
        return self._visited

    def calls(self) -> list[Seen]:
        """The evaluations of calls, those of one call under one stack joined."""
        if self._calls is None:
            found: dict[tuple[ast.AST, Stack], Seen] = {}
            for each in self.log.calls[self.start[_CALLS] : self.end[_CALLS]]:
                for seen in each.calls() if isinstance(each, Repeated) else (each,):
                    key = seen.call.node, seen.stack
                    if key not in found:
                        found[key] = seen.copy()
                    else:
                        _join(found[key], seen)
            self._calls = list(found.values())
        return self._calls

    # ------------------------------------------------------------------------------------------------ once more

    def repeat(self, run: Interpreter, frame: Frame) -> None:
        """Do what the call did."""
        watch = run.memory.watch
        recording = self.recording
        if isinstance(watch, Recording):
            watch.include(recording, run.memory.held)
            watch.add_rest(recording, run.settings)
        run.record.repeated(self.record, *((self.start[i], self.end[i]) for i in (_EVENTS, _LOG, _POINT)))
        run.memory.go_on()
        for place, value in self.writes.items():
            run.memory[place] = value
        for obj, names in self.keys.items():
            run.keys.setdefault(obj, set()).update(names)
        run.claims.repeat(self.claims)
        if run.settings != recording.settings:
            for obj, known in recording.made.items():
                made_under(run, obj, known | run.settings)
        run.closures.update(recording.closures)
        for aliases in run.all_aliases():
            aliases.include(recording.aliases, self.frame, frame)
        self._seen_again(run)
        frame.returned, frame.yielded, frame.changed, frame.local = self.returned, self.yielded, set(self.changed), self.local

    def _seen_again(self, run: Interpreter) -> None:
        again, trace = Again(self, run), run.trace
        tests = run.tests
        calls = run.repeated.get((self, run.stack))
        if calls is None and run is self.of and run.stack == self.stack:
            calls = [run.calls[seen.call.node, seen.stack] for seen in self.calls()]
        if calls is not None:
            for seen, call in zip(self.calls(), calls, strict=True):
                call.now, call.last = seen.now, seen.last + again.shift
                around = again.around(seen.loops)
                if len(around) >= len(call.loops):
                    call.loops = around
        else:
            if run is not self.of:
                trace.believed.update(self.believed)
                trace.visited |= self.visited()
                if self.of not in run.earlier:
                    run.earlier.add(self.of)
                    trace.views |= self.views
                    for obj, parts in self.outputs_of.items():
                        trace.outputs_of.setdefault(obj, set()).update(parts)
                for node, value in self.values().items():
                    noted = trace.values.get(node)
                    if noted is not value:
                        trace.values[node] = value if noted is None else noted | value
            calls = [again.noted(seen, run, (*tests, *seen.call.tests[self.start[_TESTS] :])) for seen in self.calls()]
        run.repeated[self, run.stack] = calls
        run.log.noted.append(self)
        run.log.visited.append(self)
        run.log.calls.append(again)
        for store in self.log.stores[self.start[_STORES] : self.end[_STORES]]:
            around = again.around(store.loops)
            run.stored(store.node, store.file, again.under(store.stack), store.order + again.shift, store.receiver, store.value, around)
        for d in self.decisions[self.start[_DECISIONS] : self.end[_DECISIONS]]:
            trace.decisions.append(Decision(d.node, d.file, again.under(d.stack), d.test, again.around(d.loops)))
        run.order += self.end[_ORDER] - self.start[_ORDER]


class Again(Repeated):
    """What a call did, done once more: later, inside other loops, and maybe by way of other calls."""

    __slots__ = ("_around", "loops", "of", "shift", "stack")

    def __init__(self, of: Outcome, run: Interpreter) -> None:
        self.of, self.shift, self.loops, self.stack = of, run.order - of.start[_ORDER], run.loops, run.stack
        self._around: dict[int, tuple[Loop, ...]] = {}

    def around(self, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        """The loops around something now that had others around it then."""
        found = self._around.get(id(loops))
        if found is None:
            found = self._around[id(loops)] = (*self.loops, *loops[self.of.start[_LOOPS] :])
        return found

    def under(self, stack: Stack) -> Stack:
        """The calls by way of which something happens now that happened by way of others then."""
        return stack if self.stack is self.of.stack else (*self.stack, *stack[len(self.of.stack) :])

    def noted(self, seen: Seen, run: Interpreter, tests: tuple[tuple[ast.expr, Value], ...]) -> Call:
        """Note a call that was seen then."""
        return run.called(seen, self.under(seen.stack), self.around(seen.loops), self.shift, tests)

    def calls(self) -> Iterator[Seen]:
        """The evaluations of calls."""
        for seen in self.of.calls():
            out = seen.copy()
            out.loops, out.stack = self.around(seen.loops), self.under(seen.stack)
            out.order, out.last = seen.order + self.shift, seen.last + self.shift
            yield out


def _join(known: Seen, seen: Seen) -> None:
    known.func, known.receiver = known.func | seen.func, known.receiver | seen.receiver
    if known.args is not seen.args:
        known.args = [a | b for a, b in zip(known.args, seen.args, strict=False)] + seen.args[len(known.args) :]
    if known.keywords is not seen.keywords:
        known.keywords = dict(known.keywords)
        for name, value in seen.keywords.items():
            known.keywords[name] = known.keywords[name] | value if name in known.keywords else value
    if len(seen.loops) >= len(known.loops):
        known.loops = seen.loops
    known.no_grad = known.no_grad and seen.no_grad
    known.last, known.now, known.result = seen.last, seen.now, known.result | seen.result


def _assumptions(run: Interpreter) -> dict[object, object]:
    """The edits that a run assumes, by the statement or expression."""
    out: dict[object, object] = {}
    for node, what in run.wraps.items():
        out[node] = ("wraps", what)
    for node, targets in run.replicated_after.items():
        out[node] = (out.get(node), "replicated", targets, run.shares)
    for branch in run.replicated_branches:
        out[branch] = (out.get(branch), "replicated")
    for expression in run.unwraps:
        out[expression] = (out.get(expression), "unwraps")
    for loader, reader in run.assumed.read_whole.items():
        out[loader] = (out.get(loader), "whole", reader)
    for place, how in run.redistributed.items():
        out[place] = (out.get(place), "redistributed", how)
    return out


def _about(known: frozenset[Known], settings: set[Obj]) -> bool:
    """Whether something that is known is known of one of some settings."""
    return any(setting in settings for setting, _, _ in known)


def _around(run: Interpreter, functions: set[tuple[ast.AST, Stack]]) -> dict[tuple[ast.AST | None, Stack], int]:
    """How often some functions are running."""
    out: dict[tuple[ast.AST | None, Stack], int] = {}
    for frame in run.frames:
        key = frame.node, frame.made
        if key in functions:
            out[key] = out.get(key, 0) + 1
    return out


def find(run: Interpreter, known: Outcomes, key: object) -> Outcome | None:
    """An outcome that a call has again, where there is one: rather of the same calls around it."""
    outcomes = known.get(key)
    if outcomes is None:
        return None
    assumed = _assumptions(run)
    outcomes = sorted(outcomes, key=lambda o: o.stack == run.stack)
    return next((o for o in reversed(outcomes) if o.holds(run, assumed)), None)


def keep(known: Outcomes, key: object, outcome: Outcome) -> None:
    """Keep what a call did."""
    outcomes = known.setdefault(key, [])
    outcomes.append(outcome)
    del outcomes[:-_KEPT]
