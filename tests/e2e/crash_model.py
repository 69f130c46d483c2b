"""crash_model.py: what a store may hold after a crash, and whether it does.

A run of the server is one `Run`: what it held at first, and every operation that was sent, with the
time it was sent and the time its reply came, if one did. Each operation took effect at an instant
between the two, and what is recovered of a database is the state of one instant, its *cut*. So each
thing looked at has candidates: which of its operations are in the state, and from when to when the
cut must then lie. A state is right if there is a cut that suits every thing, and if the operations
that are one at their instant are there for all their keys or for none.

What is looked at:

  a key that one connection owns       its operations, in their order
  a register, written by all           one or more keys that are always written together
  a counter, incremented by all        the replies say how many increments came before

A key's state is None or (value, deadline); a deadline is None or (at least, at most), in seconds.
"""

import struct
from dataclasses import dataclass, field
FOREVER = float("inf")
# How far the server's clock, of the turn in which it has read a request, may lie beside ours.
CLOCK_S = 0.25
INTEGERS_PER_VECTOR = 64


@dataclass(eq=False)
class Operation:
    """`steps` are pairs of key and step (see `apply`)."""
    steps: list
    sent: float = 0
    acked: float = FOREVER
    replies: list = None  # one a step, where the reply tells them
    total: int = None     # or the sum of the replies of all
    is_whole: bool = False  # of several keys, one at its instant
    is_flush: bool = False
    survives: bool = True   # promised, if it was acknowledged
    register: str = None    # that it writes, and
    value: bytes = None     # what
    counter: str = None     # that it increments
    read: str = None        # a register; the reply is the value
    limit: int = None       # only so many of the steps that find their key
    changes: bool = False   # for sure

    def is_acked(self):
        return self.acked < FOREVER


class Impossible(AssertionError):
    """An answer, or a recovered state, is impossible."""


# ---- What an operation makes of a key ----


def apply(step, state, now):
    """The state after a step, and its reply. `now` is (at least, at most)."""
    kind = step[0]
    value, deadline = state if state else (None, None)
    if kind == "get":
        return state, value
    if kind == "set":
        condition = step[3]
        if (condition == "NX" and state) or (condition == "XX" and not state):
            return state, None
        return (step[1], step[2]), "OK"
    if kind == "keep":
        return (step[1], deadline), "OK"
    if kind == "incr":
        number = int(value or 0) + step[1]
        return (b"%d" % number, deadline), number
    if kind == "append":
        return ((value or b"") + step[1], deadline), len(value or b"") + len(step[1])
    if kind == "vadd":
        count = len(value) // 8 if state else INTEGERS_PER_VECTOR
        numbers = struct.unpack(f"<{count}q", value) if state else (0,) * count
        return (struct.pack(f"<{count}q", *(n + step[1] for n in numbers)), deadline), count
    if kind == "gone":
        return None, None
    if kind == "del":
        return None, int(state is not None)
    if kind == "until":
        return (value, step[1]) if state else None, int(state is not None)
    if kind == "for":
        until = (now[0] + step[1], now[1] + step[1])
        return (value, until) if state else None, int(state is not None)
    if kind == "persist":
        return (value, None) if state else None, int(deadline is not None)
    raise AssertionError(step)


def alive(state, earliest, latest):
    """The states that it may be by then: itself, gone, or either."""
    if state is None or state[1] is None or state[1][0] > latest + CLOCK_S:
        return [state]
    return [None] if state[1][1] < earliest - CLOCK_S else [state, None]


def without_copies(states):
    return list(dict.fromkeys(states))


@dataclass
class Entry:
    """One of the operations on a key."""
    operation: Operation  # None: what was there before
    states: list          # that the key may be in after it
    changes: bool = True  # for sure


class OwnKeys:
    """The keys of one connection, each with its operations in their order."""

    def __init__(self, base):
        self.history = {key: [Entry(None, [state])] for key, state in base.items()}

    def states(self, key):
        return self.history[key][-1].states if key in self.history else [None]

    def add(self, operation):
        after = {}    # states by key; a key may come more than once
        changes = {}  # for sure
        least = most = found = 0
        for number, (key, step) in enumerate(operation.steps):
            if operation.limit is not None:
                if found == operation.limit:
                    break
                found += self.states(key) != [None]
            before = after.get(key, self.states(key))
            results = self._results(operation, key, step, after)
            if operation.is_acked() and operation.replies is not None:
                reply = operation.replies[number]
                results = [result for result in results if result[1] == reply]
                if not results:
                    raise Impossible(f"{key} {step!r:.200} was answered {reply!r:.200}, but was "
                                     f"one of {before!r:.500}")
            replies = [reply for _, reply, _ in results if isinstance(reply, int)]
            least += min(replies, default=0)
            most += max(replies, default=0)
            after[key] = without_copies(state for state, _, _ in results)
            changes[key] = changes.get(key, False) or all(changed for _, _, changed in results)
        if operation.is_acked() and operation.total is not None:
            if not least <= operation.total <= most:
                raise Impossible(f"{operation.steps!r:.500} was answered {operation.total}, could "
                                 f"be from {least} to {most}")
        for key, states in after.items():
            if states != self.states(key) or operation.is_whole:
                entries = self.history.setdefault(key, [Entry(None, [None])])
                entries.append(Entry(operation, states, changes.get(key, False)))
        operation.changes |= any(changes.values())

    def _results(self, operation, key, step, after):
        """The possible results of a step on a key: state, reply, and whether that is a change."""
        now = (operation.sent - CLOCK_S, operation.acked + CLOCK_S)

        def before(which):
            states = after.get(which, self.states(which))
            return without_copies(s for state in states
                                  for s in alive(state, operation.sent, operation.acked))

        if step[0] != "move from":
            return [(*result, result[0] != state) for state in before(key)
                    for result in [apply(step, state, now)]]
        sources = before(step[1])
        after[step[1]] = [None]
        results = [(state, "OK", True) for state in sources if state]
        if None in sources:
            results += [(state, "ERR no such key", False) for state in before(key)]
        return results


# ---- What may be found ----


@dataclass
class Candidate:
    """The cut is from `begin` to `end`, `has` is in it, `lacks` is not."""
    begin: float
    end: float
    has: set = field(default_factory=set)
    lacks: set = field(default_factory=set)


def is_found(state, found, looked):
    """Whether a key in this state may be read as `found`, from looked[0] to looked[1]."""
    for now in alive(state, *looked):
        if now is None or found is None:
            if now is found:
                return True
        elif now[0] == found[0]:
            if now[1] is None or found[1] is None:
                if now[1] is found[1]:
                    return True
            elif now[1][0] - 0.002 <= found[1][0] <= now[1][1] + 0.002:
                return True
    return False


def own_candidates(history, found, looked):
    candidates = []
    must = max((i for i, entry in enumerate(history) if entry.operation
                and entry.operation.survives and entry.operation.is_acked()), default=0)
    for i in range(must, len(history)):
        if not any(is_found(state, found, looked) for state in history[i].states):
            continue
        before = [e.operation for e in history[1:i + 1]]
        behind = [e.operation for e in history[i + 1:]]
        candidates.append(Candidate(
            begin=next((e.operation.sent for e in reversed(history[1:i + 1]) if e.changes),
                       -FOREVER),
            end=next((e.operation.acked for e in history[i + 1:] if e.changes), FOREVER),
            has={op for op in before if op.is_whole}, lacks={op for op in behind if op.is_whole}))
    return candidates


def register_candidates(base, writes, found):
    """`writes` are operations with a value each; None deletes, which may change nothing."""
    candidates = []
    for last in [None, *writes]:
        if (last.value if last else base) != found:
            continue
        acked = last.acked if last else -FOREVER
        later = [w for w in writes if w.sent > acked]
        if any(w.survives and w.is_acked() for w in later):
            continue
        candidates.append(Candidate(
            begin=last.sent if last and last.value else -FOREVER,
            end=min((w.acked for w in later if w.value), default=FOREVER),
            has={last} if last else set(), lacks={w for w in later if w.is_flush}))
    return candidates


def counter_candidates(base, operations, found):
    """Increments, and flushes, at which nothing else was under way."""
    flushes = [op for op in operations if op.is_flush]
    candidates = []
    for begun, ended in zip([None, *flushes], [*flushes, None]):
        begin = begun.sent if begun else -FOREVER
        if ended and ended.survives and ended.is_acked():
            continue
        end = ended.acked if ended else FOREVER
        start = 0 if begun else base
        these = [op for op in operations if not op.is_flush and op.sent > begin
                 and (not ended or op.sent < ended.sent)]
        number = int(found or 0)
        promised = [op for op in these if op.survives and op.is_acked()]
        least = max([start + len(promised), *(op.replies[0] for op in promised)])
        later = [op for op in operations if ended and op.sent > ended.sent]
        if not least <= number <= start + len(these) or (found is None) != (number == 0):
            continue
        if any(op.survives and op.is_acked() for op in later):
            continue
        for op in these:
            if op.is_acked() and op.replies[0] <= number:
                begin = max(begin, op.sent)
            elif op.is_acked():
                end = min(end, op.acked)
        candidates.append(Candidate(begin, end, {begun} if begun else set(),
                                    {ended} if ended else set()))
    return candidates


def check_cut(candidates, earliest):
    """`candidates` by name. Raises if no instant from the earliest on suits all."""
    begins = sorted({earliest, *(c.begin for all in candidates.values() for c in all)})
    worst = None
    for cut in begins:
        if cut < earliest:
            continue
        suiting = {name: [c for c in all if c.begin <= cut <= c.end]
                   for name, all in candidates.items()}
        unsuited = [name for name, all in suiting.items() if not all]
        if unsuited:
            worst = unsuited if worst is None or len(unsuited) < len(worst) else worst
            continue
        there, absent = {}, {}
        for name, all in suiting.items():
            for op in set.intersection(*(c.has for c in all)):
                there[op] = name
            for op in set.intersection(*(c.lacks for c in all)):
                absent[op] = name
        halves = there.keys() & absent.keys()
        if not halves:
            return cut
        worst = [f"{there[op]} has it, {absent[op]} has not: {op!r:.600}" for op in halves]
    raise Impossible(f"no instant suits all; the best one not these: {worst!r:.2000}")


class Run:
    """One database in one run of the server."""

    def __init__(self, base):
        self.base = base        # states by key
        self.operations = []    # of all connections, those of one in their order
        self.looked = None      # when it was read after the crash: from, to
        self.lost_s = 0         # how old the oldest acknowledged operation is that was lost

    def expect(self, owners, registers, counters, found, killed, durable_before):
        """Raises if `found`, states by key, is not what may be there.

        owners:   names; the keys of an owner begin with its own
        registers, counters: keys by name; names
        durable_before: what was acknowledged before then has to be there, whatever it was
        """
        self.operations.sort(key=lambda op: op.sent)
        for op in self.operations:
            op.survives |= op.acked < durable_before
        self._take_reads()
        candidates = {}
        for owner in owners:
            candidates.update(self._own(owner, found))
        for name, keys in registers.items():
            candidates[name] = self._register(name, keys, found)
        for name in counters:
            candidates[name] = self._counter(name, found)
        known = {key for keys in registers.values() for key in keys} | candidates.keys()
        if strange := found.keys() - known:
            raise Impossible(f"keys that nobody has written: {strange}")
        cut = check_cut(candidates, self._earliest())
        lost = [op.acked for op in self.operations
                if op.is_acked() and op.changes and op.sent > cut]
        self.lost_s = killed - min(lost, default=killed)

    def _take_reads(self):
        """A value that was read had been written, and no crash undoes what a client was told."""
        writers = {op.value: op for op in self.operations if op.value}
        for op in self.operations:
            if op.read and op.is_acked() and op.replies[0] in writers:
                writer = writers[op.replies[0]]
                if not writer.is_acked():
                    writer.survives = False  # so far
                writer.acked = min(writer.acked, op.acked)
                writer.survives |= op.survives

    def _earliest(self):
        """The instants at which the cut may lie, by the operations that must be in it."""
        return max((op.sent for op in self.operations
                    if op.changes and op.survives and op.is_acked()), default=-FOREVER)

    @staticmethod
    def _value(states, key):
        return states[key][0] if states.get(key) else None

    @staticmethod
    def _tail(operations):
        return "".join(f"\n  {op!r:.400}" for op in operations[-8:])

    def _own(self, owner, found):
        is_own = lambda key: key.startswith(owner)
        keys = OwnKeys({key: state for key, state in self.base.items() if is_own(key)})
        for op in self.operations:
            if op.is_flush:
                for entries in keys.history.values():
                    entries.append(Entry(op, [None], changes=entries[-1].states != [None]))
            elif op.steps and is_own(op.steps[0][0]):
                keys.add(op)
        if strange := {key for key in found if is_own(key)} - keys.history.keys():
            raise Impossible(f"keys that nobody has written: {strange}")
        candidates = {}
        for key, history in keys.history.items():
            candidates[key] = own_candidates(history, found.get(key), self.looked)
            if not candidates[key]:
                shown = "".join(f"\n  {e.operation!r:.400} -> {e.states!r:.300}"
                                for e in history[-6:])
                raise Impossible(f"{key} is {found.get(key)!r:.300}; its last of {len(history)} "
                                 f"operations:{shown}")
        return candidates

    def _register(self, name, keys, found):
        values = {self._value(found, key) for key in keys}
        if len(values) != 1:
            raise Impossible(f"the keys of {name} are not of one operation: {values}")
        writes = [op for op in self.operations if op.register == name or op.is_flush]
        value = values.pop()
        candidates = register_candidates(self._value(self.base, keys[0]), writes, value)
        if not candidates:
            raise Impossible(f"register {name} is {value}:{self._tail(writes)}")
        return candidates

    def _counter(self, name, found):
        operations = [op for op in self.operations if op.counter == name or op.is_flush]
        value = self._value(found, name)
        candidates = counter_candidates(int(self._value(self.base, name) or 0), operations, value)
        if not candidates:
            raise Impossible(f"counter {name} is {value}:{self._tail(operations)}")
        return candidates
