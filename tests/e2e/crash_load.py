"""crash_load.py: the load of the crash test: connections that send what crash_model.py can judge."""

import random
import threading
import time

from crash_model import INTEGERS_PER_VECTOR, Operation
from resp import Closed, Error, encode

OWNERS = 4
KEYS_OF_A_KIND = 10
REGISTERS = {f"g{i}": [b"g%d:%d" % (i, member) for member in range(3)] for i in range(4)}
REGISTERS |= {f"r{i}": [b"r%d" % i] for i in range(4)}
COUNTERS = [b"k%d" % i for i in range(4)]
PIPELINE_MAX = 30


class Gate:
    """Many may be inside; who pauses it is alone."""

    def __init__(self):
        self._changed = threading.Condition()
        self._inside = 0
        self._is_paused = False

    def enter(self):
        with self._changed:
            self._changed.wait_for(lambda: not self._is_paused)
            self._inside += 1

    def leave(self):
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def pause(self):
        with self._changed:
            self._is_paused = True
            self._changed.wait_for(lambda: self._inside == 0)

    def resume(self):
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()


class Request:
    """Commands that are one operation. `take` puts their replies into it."""

    def __init__(self, operation, *commands, take=None):
        self.operation = operation
        self.commands = commands
        self.take = take


def is_refusal(reply):
    """Whether the disk was too slow, so that nothing was done."""
    if isinstance(reply, list):
        return any(is_refusal(each) for each in reply)
    return isinstance(reply, Error) and reply.startswith("MISCONF")


def take_each(operation, replies):
    operation.replies = replies


def take_all(operation, replies):
    """Takes the reply to EXEC, which is the last one."""
    operation.replies = replies[-1]


def take_total(operation, replies):
    operation.total = replies[0]


class Requests:
    """Random requests of one owner on one database."""

    def __init__(self, seed, owner, has_order, survives, is_large):
        self.random = random.Random(seed)
        self.owner = owner
        self.has_order = has_order
        self.survives = survives
        self.is_large = is_large
        self._count = 0
        self._run = b"%08x" % self.random.getrandbits(32)  # no value comes twice

    def next(self):
        makers = [(40, self._step), (6, self._multi_set), (6, self._multi_delete),
                  (8, self._transaction), (4, self._rename), (10, self._write_register),
                  (8, self._read_register), (10, self._increment)]
        if self.has_order:
            makers += [(4, self._delete_range), (2, self._delete_first), (3, self._expire_range)]
        if self.is_large:
            makers = [(3, self._large), (1, self._write_large_register)]
        [make] = self.random.choices([m for _, m in makers], [weight for weight, _ in makers])
        request = make()
        request.operation.survives = self.survives
        return request

    def _key(self, kind=None):
        kind = kind or self.random.choice(b"snvl").to_bytes(1, "big")
        return b"%s:%s:%d" % (self.owner, kind, self.random.randrange(KEYS_OF_A_KIND))

    def _value(self):
        self._count += 1
        longer = self.random.choice((0, 0, 0, 10, 300, 3000))
        return b"%s.%s.%d" % (self.owner, self._run, self._count) + b"x" * longer

    def _deadline(self):
        ms = int(time.time() * 1000) + self.random.choice((30, 200, 1000, 3000, 100_000))
        return ms, (ms / 1000, ms / 1000)

    def _step_of(self, key):
        """Arguments and step of something to do with a key."""
        kind = key.split(b":")[1]
        lot = self.random.random()
        if lot < 0.1:
            return ("DEL", key), ("del",)
        if lot < 0.2:
            return ("GET", key), ("get",)
        if lot < 0.3 and kind != b"l":
            ms, deadline = self._deadline()
            return ("PEXPIREAT", key, ms), ("until", deadline)
        if lot < 0.34 and kind != b"l":
            return ("PERSIST", key), ("persist",)
        if kind == b"n":
            number = self.random.choice((1, -1, 1000, -10**12))
            return ("INCRBY", key, number), ("incr", number)
        if kind == b"v":
            number = self.random.randrange(1, 100)
            return (("VUPDATE", key, "add", "i64", number, "CREATE", INTEGERS_PER_VECTOR),
                    ("vadd", number))
        value = self._value()
        if lot < 0.5:
            return ("APPEND", key, value[:20]), ("append", value[:20])
        if lot < 0.6 and kind != b"l":
            ms, deadline = self._deadline()
            return ("SET", key, value, "PXAT", ms), ("set", value, deadline, None)
        if lot < 0.65:
            return ("SET", key, value, "KEEPTTL"), ("keep", value)
        condition = self.random.choice((None, None, None, "NX", "XX"))
        arguments = (condition,) if condition else ()
        return ("SET", key, value, *arguments), ("set", value, None, condition)

    def _step(self):
        key = self._key()
        command, step = self._step_of(key)
        return Request(Operation([(key, step)]), command, take=take_each)

    def _large(self):
        key = b"%s:b:%d" % (self.owner, self.random.randrange(4))
        value = self._value().ljust(1 << 20, b"x")
        return Request(Operation([(key, ("set", value, None, None))]), ("SET", key, value),
                       take=take_each)

    def _some_keys(self, kind=None):
        count = self.random.randrange(2, 6)
        return list(dict.fromkeys(self._key(kind) for _ in range(count)))

    def _multi_set(self):
        keys = self._some_keys(self.random.choice((b"s", b"l")))
        values = [self._value() for _ in keys]
        steps = [(key, ("set", value, None, None)) for key, value in zip(keys, values)]
        arguments = [a for pair in zip(keys, values) for a in pair]
        return Request(Operation(steps, is_whole=True), ("MSET", *arguments))

    def _multi_delete(self):
        keys = self._some_keys()
        return Request(Operation([(key, ("del",)) for key in keys], is_whole=True),
                       ("DEL", *keys), take=take_total)

    def _transaction(self):
        keys = [self._key() for _ in range(self.random.randrange(2, 8))]
        parts = [self._step_of(key) for key in keys]
        steps = [(key, step) for key, (_, step) in zip(keys, parts)]
        return Request(Operation(steps, is_whole=True), ("MULTI",),
                       *(command for command, _ in parts), ("EXEC",), take=take_all)

    def _rename(self):
        source, target = self._key(b"s"), self._key(b"s")
        if source == target:
            return self._step()
        return Request(Operation([(target, ("move from", source)), (source, ("gone",))],
                                 is_whole=True),
                       ("RENAME", source, target),
                       take=lambda operation, replies: take_each(operation, [replies[0], None]))

    def _range(self, kind):
        first, last = sorted(self.random.choices(range(KEYS_OF_A_KIND), k=2))
        prefix = b"%s:%s:" % (self.owner, kind)
        return ([b"%s%d" % (prefix, i) for i in range(first, last + 1)],
                b"[%s%d" % (prefix, first), b"[%s%d" % (prefix, last))

    def _delete_range(self):
        keys, low, high = self._range(self.random.choice((b"s", b"n", b"v", b"l")))
        return Request(Operation([(key, ("del",)) for key in keys], is_whole=True),
                       ("KDELRANGE", low, high), take=take_total)

    def _delete_first(self):
        keys, low, high = self._range(b"l")
        limit = self.random.randrange(1, 4)
        return Request(Operation([(key, ("del",)) for key in keys], is_whole=True, limit=limit),
                       ("KDELRANGE", low, high, "LIMIT", limit), take=take_total)

    def _expire_range(self):
        keys, low, high = self._range(self.random.choice((b"s", b"n", b"v")))
        ms = self.random.choice((100, 1000, 100_000))
        return Request(Operation([(key, ("for", ms / 1000)) for key in keys]),
                       ("KEXPIRE", low, high, ms), take=take_total)

    def _write_large_register(self):
        return self._write_register(extra=b"x" * (1 << 18))

    def _write_register(self, extra=b""):
        name = self.random.choice(list(REGISTERS))
        keys = REGISTERS[name]
        if self.random.random() < 0.1:
            return Request(Operation([], register=name), ("DEL", *keys))
        value = self._value() + extra
        arguments = [a for key in keys for a in (key, value)]
        return Request(Operation([], register=name, value=value, changes=True),
                       ("MSET", *arguments))

    def _read_register(self):
        name = self.random.choice(list(REGISTERS))
        return Request(Operation([], read=name), ("GET", REGISTERS[name][0]), take=take_each)

    def _increment(self):
        name = self.random.choice(COUNTERS)
        return Request(Operation([], counter=name, changes=True), ("INCR", name), take=take_each)


class Worker(threading.Thread):
    """Sends requests on one connection until it is closed."""

    def __init__(self, server, gate, database, requests):
        super().__init__(daemon=True)
        self.operations = []
        self.failure = None
        self._gate = gate
        self._requests = requests
        self._connection = server.connect()
        self._connection.call("SELECT", database)

    def make_durable(self):
        assert self._connection.call("CLIENT", "DURABILITY", "ALWAYS") == "OK"

    def run(self):
        try:
            while not self.failure:
                self._gate.enter()
                try:
                    self._exchange()
                finally:
                    self._gate.leave()
        except (Closed, OSError):
            pass
        finally:
            self._connection.close()

    def _exchange(self):
        draw = self._requests.random
        depth = 1 if draw.random() < 0.5 else draw.randrange(2, PIPELINE_MAX)
        depth = min(depth, 4) if self._requests.is_large else depth
        batch = [self._requests.next() for _ in range(depth)]
        now = time.time()
        for request in batch:
            request.operation.sent = now
            self.operations.append(request.operation)
        self._connection.send(b"".join(encode(*c) for r in batch for c in r.commands))
        for request in batch:
            replies = [self._connection.read() for _ in request.commands]
            if any(is_refusal(reply) for reply in replies):
                self.operations.remove(request.operation)
                continue
            errors = [r for r in replies if isinstance(r, Error) and r != "ERR no such key"]
            if errors:
                self.failure = f"{request.commands!r:.300} was answered {errors}"
                return
            if request.take:
                request.take(request.operation, replies)
            request.operation.acked = time.time()


class Controller(threading.Thread):
    """Snapshots, and now and then an empty database."""

    def __init__(self, server, gate, databases, seed, survives, saves):
        super().__init__(daemon=True)
        self.flushes = [[] for _ in range(databases)]
        self.durable_before = 0  # what was acknowledged before then is in a snapshot
        self.failure = None
        self._gate = gate
        self._random = random.Random(seed)
        self._connection = server.connect()
        self._survives = survives
        self._saves = saves  # how often, of all that it might do

    def run(self):
        try:
            while not self.failure:
                time.sleep(self._random.expovariate(8))
                lot = self._random.random()
                if lot < 0.05:
                    self._flush(self._random.randrange(len(self.flushes)))
                elif self._random.random() >= self._saves:
                    continue
                elif lot < 0.5:
                    self._expect(self._connection.call("BGSAVE"), "Background saving started")
                else:
                    self._save()
        except (Closed, OSError):
            pass
        finally:
            self._connection.close()

    def _expect(self, reply, wanted):
        if reply not in (wanted, "ERR Background save already in progress"):
            self.failure = f"{reply}, not {wanted}"
        return reply == wanted

    def _save(self):
        now = time.time()
        if self._expect(self._connection.call("SAVE"), "OK"):
            self.durable_before = now

    def _flush(self, database):
        self._gate.pause()
        try:
            self._connection.call("SELECT", database)
            flush = Operation([], sent=time.time(), is_flush=True, is_whole=True, changes=True,
                              survives=self._survives)
            self.flushes[database].append(flush)
            if is_refusal(self._connection.call("FLUSHDB")):
                self.flushes[database].remove(flush)
            else:
                flush.acked = time.time()
        finally:
            self._gate.resume()
