"""skep.py: Skep for Python, over the C interface (include/skep.h). Needs nothing but libskep.so.

    with skep.open() as store:                      # in this process
        store["user:7"] = "Ada"
        for key, value in store.scan(prefix="user:"):
            print(key, value)

    with skep.connect("127.0.0.1:6379") as store:   # a server's: the same calls
        store.add("visits", 5)

Keys and values are bytes, or anything that has the bytes of one (bytearray, memoryview, an array);
str is taken as UTF-8. What comes back is bytes. Every call is linearizable: it takes effect at one
instant between its call and its return (get_many: the get of each key). Times are seconds since 1970, as time.time() has them.

Every argument is checked before anything is done. One of a wrong type is a TypeError. One that is out
of its range, names something that there is not, or has been closed, is an InvalidArgument, which is a
ValueError too. Whatever is used after it was closed raises InvalidArgument.

Any thread may use a store, and calls do not hold the interpreter's lock; batches, scans, snapshots
and watches have one user at a time.

The library is the file SKEP_LIBRARY names; else libskep.so beside this file; else that of the
installation this file is part of; else what the system's loader finds.
"""

import ctypes
import itertools
import os
import struct
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from skep_arguments import Item as _Item, Key as _Key, Outcome as _Outcome, Range as _Range, Value as _Value
from skep_arguments import (UINT32_MAX, UINT64_MAX, Aborted, Corrupt, Error, InvalidArgument, IoError,
                            Moved, NotSupported, OutOfMemory, SnapshotTooOld, TooLarge, Unavailable,
                            WrongType, as_bytes, as_deadline, as_limit, as_number, as_pair, as_text, error_of,
                            one_of)

__all__ = ["open", "connect", "Store", "Keyspace", "Batch", "Error", "InvalidArgument",
           "NotSupported", "TooLarge", "OutOfMemory", "SnapshotTooOld", "Unavailable", "Aborted",
           "IoError", "Corrupt", "Moved", "WrongType", "engines", "version", "vector", "numbers"]

_SONAME = "libskep.so.0.1"


def _load():
    here = Path(__file__).resolve().parent
    if path := os.environ.get("SKEP_LIBRARY"):
        return ctypes.CDLL(path)
    installed = here.parents[2] if len(here.parents) > 2 else here
    for path in [here / "libskep.so", here / _SONAME, installed / "lib" / _SONAME,
                 *installed.glob(f"lib/*/{_SONAME}"), installed / "lib64" / _SONAME]:
        if path.exists():
            return ctypes.CDLL(str(path))
    return ctypes.CDLL(_SONAME)


_Visitor = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_char_p, c_char_p, c_uint64)
_DONE, _ABSENT, _EXISTS, _MISMATCH, _NOT_APPLIED, _REFUSED = range(6)
_VERDICTS = ["done", "absent", "exists", "mismatch", "not applied", "refused"]
_PREFIX, _REVERSE, _KEYS_ONLY, _SEEK_FLOOR = 1, 1, 2, 4
_RETURN_PREVIOUS, _NO_VALUE, _ATOMIC = 1, 64, 1
_NO_SLOT = 2**32 - 1
_KINDS = {"plain": 0, "update": 1, "reduce": 2, "filter": 3}
_ELEMENTS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
             "u64": "Q", "f32": "f", "f64": "d"}
_RETURNS = {None: 0, "old": 1, "new": 2}
# What a scan asks the library for at once.
_ITEMS = 256

_lib = _load()


def _check(code, _function, _arguments):
    if code:
        text = _lib.skep_error_text().decode(errors="replace")
        raise error_of(code, text, _lib.skep_error_detail())


def _declare():
    """The signatures of include/skep.h. `code` is a result that is checked."""
    code, handle, slot, out = c_int, c_void_p, c_uint32, POINTER(c_void_p)
    place, data, kv = [handle, c_uint32], [c_char_p, c_size_t], [c_char_p, c_size_t] * 2
    one_range, done = [POINTER(_Range)], [POINTER(c_int)]
    number = POINTER(c_uint64)
    signatures = {
        code: {
            "open": [POINTER(c_char_p), out], "connect": [c_char_p, POINTER(c_char_p), out],
            "get": place + data + [out, POINTER(c_size_t)], "put": place + kv,
            "get_many": place + [POINTER(_Key), c_size_t, POINTER(_Value), handle],
            "put_until": place + kv + [c_uint64], "insert": place + kv + done,
            "update": place + kv + done, "delete": place + data + done,
            "compare_and_set": place + kv + data + done,
            "expire": place + data + [c_uint64] + done,
            "deadline": place + data + done + [number],
            "scan": place + one_range + [c_uint32, c_uint32, handle, out],
            "scanner_next": [handle, POINTER(_Item), c_size_t, POINTER(c_size_t)],
            "count": place + one_range + [handle, number],
            "delete_range": place + one_range + [c_uint32, number],
            "take_snapshot": place + [out], "watch_key": place + data + [out], "save": [handle],
            "statistics": [handle, _Visitor, c_void_p], "execute": place + [handle],
            "begin": place + [handle], "wait": [handle],
        },
        slot: {
            "batch_get": [handle] + data + [c_uint32], "batch_put": [handle] + kv + [c_uint32],
            "batch_put_until": [handle] + kv + [c_uint64, c_uint32],
            "batch_insert": [handle] + kv + [c_uint32], "batch_update": [handle] + kv + [c_uint32],
            "batch_delete": [handle] + data + [c_uint32],
            "batch_compare_and_set": [handle] + kv + data,
            "batch_expire": [handle] + data + [c_uint64], "batch_move": [handle] + kv,
            "batch_apply": [handle] + data + [handle] + data,
            "batch_update_elements": [handle] + data + [handle] + data + [c_int, c_uint32, c_int],
            "batch_scan": [handle] + one_range + [c_uint32, c_uint32],
            "batch_walk": [handle, c_uint64, c_uint32, c_uint32],
            "batch_count": [handle] + one_range + [c_uint32],
            "batch_delete_range": [handle] + one_range + [c_uint32],
            "batch_delete_all": [handle], "batch_require_absent": [handle] + data,
            "batch_require_present": [handle] + data, "batch_require_value": [handle] + kv,
            "batch_require_unchanged": [handle] + data + [handle],
            "batch_require_empty": [handle] + one_range,
        },
        None: {
            "close": [handle], "free": [handle], "scanner_free": [handle],
            "snapshot_free": [handle], "watch_free": [handle], "batch_free": [handle],
            "scratch_free": [handle],
            "batch_clear": [handle], "batch_read_at": [handle, handle],
            "batch_begin_part": [handle],
        },
        handle: {"batch_new": [c_uint32], "scratch_new": [], "find_function": [c_int, c_char_p, c_int]},
        c_char_p: {"error_text": [], "version": []},
        c_uint64: {"error_detail": [], "snapshot_version": [handle]},
        POINTER(c_char_p): {"engine_names": []},
        POINTER(_Outcome): {"batch_outcome": [handle, c_uint32]},
        c_size_t: {"batch_items": [handle, c_uint32, c_size_t, POINTER(_Item), c_size_t]},
    }
    for result, functions in signatures.items():
        for name, arguments in functions.items():
            function = getattr(_lib, f"skep_{name}")
            function.restype, function.argtypes = result, arguments
    for name in signatures[code]:
        getattr(_lib, f"skep_{name}").errcheck = _check
    # c_int and "a number that is not a code": the same type.
    for name in ["maintain", "batch_applied"]:
        function = getattr(_lib, f"skep_{name}")
        function.restype, function.argtypes = c_int, [handle]


_declare()


def _range(lo, hi, prefix):
    """For the library; keeps what it points to."""
    if prefix is not None:
        if lo is not None or hi is not None:
            raise InvalidArgument("a range has bounds or a prefix, not both")
        return _Range(*as_pair(prefix), None, 0, _PREFIX)
    low = as_pair(lo) if lo is not None else (None, 0)
    high = as_pair(hi) if hi is not None else (None, 0)
    return _Range(*low, *high, 0)


def _handle_of(name, what, kind, store):
    """Of a snapshot or watch that is open and of this store; None of none."""
    if what is None:
        return None
    if not isinstance(what, kind):
        raise TypeError(f"{name} is a {kind.__name__}, not {type(what).__name__}")
    if what._store is not store:
        raise InvalidArgument(f"{name} is of another store")
    return what._handle


def _pairs(items, count):
    at = ctypes.string_at
    for i in range(count):
        item = items[i]
        yield at(item.key, item.key_bytes), at(item.value, item.value_bytes)


def _pass(scanner):
    """The pairs of a scanner, which ends with them."""
    count, items = c_size_t(), (_Item * _ITEMS)()
    with scanner:
        while True:
            _lib.skep_scanner_next(scanner._handle, items, _ITEMS, byref(count))
            if not count.value:
                return
            # Before anything else can close what they point to.
            yield from list(_pairs(items, count.value))


def version():
    """Of the library."""
    return _lib.skep_version().decode()


def engines():
    """The names that the option `engine` takes."""
    names = _lib.skep_engine_names()
    found = []
    while names[len(found)] is not None:
        found.append(names[len(found)].decode())
    return found


def vector(element, values):
    """The bytes of a vector: elements "i8" .. "u64", "f32", "f64"."""
    code, values = one_of("element", element, _ELEMENTS), list(values)
    try:
        return struct.pack(f"<{len(values)}{code}", *values)
    except (struct.error, OverflowError) as error:
        raise InvalidArgument(f"not a vector of {element}: {error}") from None


def numbers(element, data):
    """The elements of such bytes."""
    code, data = one_of("element", element, _ELEMENTS), as_bytes(data)
    size = struct.calcsize("<" + code)
    if len(data) % size != 0:
        raise InvalidArgument(f"{len(data)} bytes are no vector of {element}", size)
    return struct.unpack(f"<{len(data) // size}{code}", data)


def _function(kind, name, element="i8"):
    one_of("element", element, _ELEMENTS)
    found = _lib.skep_find_function(_KINDS[kind], as_text("a function's name", name),
                                    list(_ELEMENTS).index(element))
    if not found:
        raise InvalidArgument(f"no such function: {kind} {name} {element}")
    return found


# ---- Stores ----

_keys = itertools.count()


class _Handle:
    """Something of the library's that is freed once: by close(), by `with`, when it is dropped, or
    with its store. The store has the list, not the objects: the collector may end them in any
    order."""

    def __init__(self, store, handle, free):
        self._store = store  # which must not be dropped before
        self._key = next(_keys)
        store._open[self._key] = handle, free

    @property
    def _handle(self):
        found = self._store._open.get(self._key)
        if found is None:
            raise InvalidArgument(f"the {type(self).__name__.strip('_').lower()} was closed")
        return found[0]

    def close(self):
        handle, free = self._store._open.pop(self._key, (None, None))
        if handle:
            free(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_key"):  # else its making has failed
            self.close()


class Snapshot(_Handle):
    """One state of one keyspace, pinned: for the parameter `at`, until it is closed."""

    @property
    def version(self):
        return _lib.skep_snapshot_version(self._handle)


class Watch(_Handle):
    """A key that is watched, for Batch.require_unchanged, until it is closed."""

    def __init__(self, keyspace, handle, key):
        super().__init__(keyspace._store, handle, _lib.skep_watch_free)
        self._keyspace = keyspace
        self.key = key


class _Scanner(_Handle):
    """A pass over a range that has begun."""


class Keyspace:
    """One keyspace of a store; the store itself acts as its keyspace 0. Like a dict that is ordered
    by its keys, if its engine has an order."""

    def __init__(self, store, number):
        self._store = store
        self.number = as_number("the number of a keyspace", number, 0, UINT32_MAX)

    @property
    def _at(self):
        return self._store._handle, self.number

    # Points.

    def get(self, key, default=None):
        value, size = c_void_p(), c_size_t()
        _lib.skep_get(*self._at, *as_pair(key), byref(value), byref(size))
        if not value:
            return default
        try:
            return ctypes.string_at(value, size.value)
        finally:
            _lib.skep_free(value)

    def get_many(self, keys):
        """The values of many keys, None of absent ones, each read at an instant of its own."""
        if isinstance(keys, (str, bytes)):
            raise TypeError("keys are several, not one")
        pairs = [as_pair(key) for key in keys]
        values, scratch = (_Value * len(pairs))(), _lib.skep_scratch_new()
        if not scratch:
            raise OutOfMemory("the process has no memory")
        try:
            _lib.skep_get_many(*self._at, (_Key * len(pairs))(*pairs), len(pairs), values, scratch)
            return [ctypes.string_at(value.at, value.bytes) if value.at else None for value in values]
        finally:
            _lib.skep_scratch_free(scratch)

    def put(self, key, value, until=None, ttl=None):
        """Stores. `until`: when the key expires; `ttl`: in how many seconds."""
        _lib.skep_put_until(*self._at, *as_pair(key), *as_pair(value), as_deadline(until, ttl))

    def insert(self, key, value):
        """Stores if the key is absent; whether it was."""
        return self._whether(_lib.skep_insert, *as_pair(key), *as_pair(value))

    def update(self, key, value):
        """Stores if the key is present; whether it was."""
        return self._whether(_lib.skep_update, *as_pair(key), *as_pair(value))

    def delete(self, key):
        """Whether it was present."""
        return self._whether(_lib.skep_delete, *as_pair(key))

    def compare_and_set(self, key, expected, value):
        """Stores if the value is `expected`; whether it was."""
        return self._whether(_lib.skep_compare_and_set, *as_pair(key), *as_pair(expected),
                             *as_pair(value))

    def expire(self, key, until):
        """Gives the key another time of its end; None: never. Whether it is present."""
        return self._whether(_lib.skep_expire, *as_pair(key), as_deadline(until))

    def deadline(self, key):
        """When the key expires; None: never. KeyError if it is absent."""
        present, deadline = c_int(), c_uint64()
        _lib.skep_deadline(*self._at, *as_pair(key), byref(present), byref(deadline))
        if not present.value:
            raise KeyError(key)
        return deadline.value / 1000 if deadline.value else None

    def add(self, key, delta=1):
        """Adds to a counter, a decimal number, which begins with 0; the new number."""
        delta = as_number("delta", delta, -2**63, 2**63 - 1)
        with self.batch() as batch:
            slot = batch.apply(key, "add-decimal", str(delta))
        return slot.integer

    def _whether(self, function, *arguments):
        done = c_int()
        function(*self._at, *arguments, byref(done))
        return bool(done.value)

    def __getitem__(self, key):
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key, value):
        self.put(key, value)

    def __delitem__(self, key):
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key):
        present, deadline = c_int(), c_uint64()
        _lib.skep_deadline(*self._at, *as_pair(key), byref(present), byref(deadline))
        return bool(present.value)

    # Ranges: lo <= key < hi, or all keys that begin with `prefix`.

    def scan(self, lo=None, hi=None, *, prefix=None, reverse=False, limit=None, at=None):
        """Pairs of key and value in order, at one version: of the snapshot `at`, or of the
        first pair that is asked for."""
        return self._scan(_range(lo, hi, prefix), _REVERSE if reverse else 0, limit, at)

    def keys(self, lo=None, hi=None, *, prefix=None, reverse=False, limit=None, at=None):
        flags = _KEYS_ONLY | (_REVERSE if reverse else 0)
        pairs = self._scan(_range(lo, hi, prefix), flags, limit, at)
        return (key for key, _ in pairs)

    def floor(self, key):
        """The pair with the largest key that is not above `key`; None if there is none."""
        key = as_bytes(key)
        for found in self._scan(_range(key, None, None), _SEEK_FLOOR, 1, None):
            return found if found[0] <= key else None
        return None

    def _scan(self, bounds, flags, limit, at):
        """Not itself a generator, which would look at its arguments when the first pair is wanted."""
        out = c_void_p()
        _lib.skep_scan(*self._at, byref(bounds), flags, as_limit("limit", limit),
                       _handle_of("at", at, Snapshot, self._store), byref(out))
        return _pass(_Scanner(self._store, out, _lib.skep_scanner_free))

    def walk(self):
        """All pairs in no order, of an engine that has none ("hash"): each key that stays comes
        exactly once."""
        cursor = 0
        batch = Batch(self)
        while True:
            step = batch.walk(cursor, _ITEMS)
            batch.execute()
            yield from step.items
            cursor = step.integer
            if cursor == 0:
                return
            batch.clear()

    def __iter__(self):
        return self.keys()

    def items(self):
        return self.scan()

    def count(self, lo=None, hi=None, *, prefix=None, at=None):
        """How many keys; takes time with their number."""
        count = c_uint64()
        _lib.skep_count(*self._at, byref(_range(lo, hi, prefix)),
                        _handle_of("at", at, Snapshot, self._store), byref(count))
        return count.value

    def delete_range(self, lo=None, hi=None, *, prefix=None, limit=None):
        """Deletes the first `limit` keys of the range, at one instant; how many there were."""
        count = c_uint64()
        _lib.skep_delete_range(*self._at, byref(_range(lo, hi, prefix)), as_limit("limit", limit),
                               byref(count))
        return count.value

    # What is closed after use.

    def snapshot(self):
        out = c_void_p()
        _lib.skep_take_snapshot(*self._at, byref(out))
        return Snapshot(self._store, out, _lib.skep_snapshot_free)

    def watch(self, key):
        """Watch first, then read, then execute the batch that requires the key unchanged."""
        out = c_void_p()
        _lib.skep_watch_key(*self._at, *as_pair(key), byref(out))
        return Watch(self, out, as_bytes(key))

    def batch(self, atomic=False, at=None):
        """`with store.batch() as batch:` executes it at the end of the block."""
        return Batch(self, atomic, at)


class Store(Keyspace):
    """Made by open() and connect(). Close it when no other thread uses it."""

    number = 0

    def __init__(self, handle):  # not a keyspace's: it is its own store
        self._own_handle = handle
        self._free = _lib.skep_close  # the module may be gone before the store is
        self._open = {}  # what was made from it: key of the object, (handle, how to free it)

    @property
    def _handle(self):
        if self._own_handle is None:
            raise InvalidArgument("the store was closed")
        return self._own_handle

    @property
    def _store(self):
        return self

    def close(self):
        """Ends what was made from it, too."""
        while self._open:
            handle, free = self._open.popitem()[1]
            free(handle)
        handle, self._own_handle = self._own_handle, None
        if handle is not None:
            self._free(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def keyspace(self, number):
        return Keyspace(self, number)

    def save(self):
        """Writes a snapshot of all keyspaces to the directory."""
        _lib.skep_save(self._handle)

    def maintain(self):
        """A bounded piece of upkeep; True if there is more to do now. A program whose keys expire
        calls it now and then: nothing else frees their memory (include/skep.h)."""
        return bool(_lib.skep_maintain(self._handle))

    def statistics(self):
        """{"memory_bytes": ..., 0: {"engine": "btree", "items": ...}, ...}"""
        told = {}

        def visit(_, keyspace, engine, name, value):
            numbers_of = told
            if keyspace >= 0:
                numbers_of = told.setdefault(keyspace, {"engine": engine.decode()})
            numbers_of[name.decode()] = value

        _lib.skep_statistics(self._handle, _Visitor(visit), None)
        return told


def _option_text(name, value):
    """What the library reads of an option's value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if not isinstance(value, str):
        raise TypeError(f"the option {name} is a str, a number or a bool, not "
                        f"{type(value).__name__}")
    return value


def _option_list(options):
    """Strings "name=value"; `btree_node_bytes` stands for btree.node_bytes, True for yes, and of
    `keyspace`, a dict, each number and engine is one."""
    texts = []
    for name, value in options.items():
        for family in ("btree_", "hash_"):
            if name.startswith(family):
                name = name.replace("_", ".", 1)
        if isinstance(value, dict):
            texts += [f"{name}={as_number(name, number, 0, UINT32_MAX)}={_option_text(name, engine)}"
                      for number, engine in value.items()]
        else:
            texts.append(f"{name}={_option_text(name, value)}")
    return (c_char_p * (len(texts) + 1))(*(as_text("an option", text) for text in texts), None)


def open(directory="", **options):
    """A store in this process; kept in the directory, if one is given. The options are those of
    skep_open in include/skep.h: engine="hash", memory_bytes_max=..., keyspace={1: "hash"}, ..."""
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"directory is a str or a path, not {type(directory).__name__}")
    out = c_void_p()
    _lib.skep_open(_option_list({"directory": directory, **options}), byref(out))
    return Store(out)


def connect(address="127.0.0.1:6379", **options):
    """A store that is a server's, or a pool's ("pool://ZOOKEEPER/NAME"). Options: as of skep_connect."""
    out = c_void_p()
    _lib.skep_connect(as_text("address", address), _option_list(options), byref(out))
    return Store(out)


# ---- Batches ----

class Slot:
    """One request of a batch and, once that was executed, what became of it."""

    def __init__(self, batch, number):
        self._batch = batch
        self._number = number
        self._round = batch._round

    @property
    def _outcome(self):
        found = _lib.skep_batch_outcome(self._batch._handle, self._number)
        if not found or self._round != self._batch._round:
            raise InvalidArgument("the batch was not executed since, or was cleared")
        return found.contents

    @property
    def verdict(self):
        """done, absent, exists, mismatch, not applied or refused."""
        return _VERDICTS[self._outcome.verdict]

    @property
    def done(self):
        return self._outcome.verdict == _DONE

    @property
    def error(self):
        """Why it was refused: an Error; None if it was not."""
        outcome = self._outcome
        if outcome.verdict != _REFUSED:
            return None
        return error_of(outcome.code, outcome.text.decode(errors="replace"), outcome.detail)

    def _checked(self):
        if error := self.error:
            raise error
        return self._outcome

    @property
    def value(self):
        """What was read, or was there before (previous=True), or the function returned; None if
        there is none. Raises the error of a request that was refused, as the next ones do."""
        outcome = self._checked()
        if not outcome.value_bytes and not outcome.present:
            return None
        return ctypes.string_at(outcome.value, outcome.value_bytes)

    @property
    def integer(self):
        """Of counts and deletes, how many keys; of functions their number."""
        return self._checked().integer

    @property
    def more(self):
        """The range was stopped by a limit; `value` is the bound to go on from."""
        return bool(self._checked().more)

    @property
    def items(self):
        """Of a scan: a list of pairs."""
        count = self._checked().item_count
        items = (_Item * count)()
        return list(_pairs(items, _lib.skep_batch_items(self._batch._handle, self._number, 0,
                                                        items, count)))


def _previous(wanted):
    return _RETURN_PREVIOUS if wanted else 0


class Batch(_Handle):
    """Requests that are executed together: each method adds one and returns its Slot. Unordered, or
    atomic: all or nothing at one instant, if all that is required holds."""

    def __init__(self, keyspace, atomic=False, at=None):
        store = keyspace._store
        store._handle  # one that was closed has no batches
        snapshot = _handle_of("at", at, Snapshot, store)
        handle = _lib.skep_batch_new(_ATOMIC if atomic else 0)
        if not handle:
            raise OutOfMemory("the process has no memory")
        super().__init__(store, handle, _lib.skep_batch_free)
        self._keyspace = keyspace
        self._snapshot = at
        self._round = 0
        self._under_way = False
        self._was_executed = False
        if snapshot is not None:
            _lib.skep_batch_read_at(handle, snapshot)

    def _can_run(self):
        """Its handle. A snapshot that was closed meanwhile is not read at."""
        _handle_of("at", self._snapshot, Snapshot, self._store)
        return self._handle

    def __exit__(self, kind, *_):
        if kind is None:
            self.wait() if self._under_way else self.execute()

    def execute(self):
        """Runs it; returns when every write in it is visible to every reader. Itself."""
        handle = self._can_run()
        self._was_executed = False
        _lib.skep_execute(*self._keyspace._at, handle)
        self._was_executed = True
        return self

    def begin(self):
        """Begins to run it; wait() for it before its slots are read. Itself."""
        _lib.skep_begin(*self._keyspace._at, self._can_run())
        self._was_executed = False
        self._under_way = True
        return self

    def wait(self):
        handle = self._handle
        self._under_way = False
        _lib.skep_wait(handle)
        self._was_executed = True
        return self

    def clear(self):
        """Empties it for other requests. The snapshot that it reads at, if there is one, stays."""
        handle = self._can_run()
        self._round += 1
        self._under_way = False
        self._was_executed = False
        _lib.skep_batch_clear(handle)
        if self._snapshot is not None:
            _lib.skep_batch_read_at(handle, self._snapshot._handle)

    @property
    def applied(self):
        """False if the atomic batch has changed nothing."""
        handle = self._handle
        if not self._was_executed:
            raise InvalidArgument("the batch was not executed since, or was cleared")
        return bool(_lib.skep_batch_applied(handle))

    def _add(self, function, *arguments):
        handle = self._handle
        if self._under_way:
            raise InvalidArgument("the batch is under way")
        slot = function(handle, *arguments)
        if slot == _NO_SLOT:  # all else that the library refuses was looked at before
            raise OutOfMemory("the process has no memory")
        return Slot(self, slot)

    def get(self, key):
        return self._add(_lib.skep_batch_get, *as_pair(key), 0)

    def length(self, key):
        """The slot's integer is the length of the value, which does not come."""
        return self._add(_lib.skep_batch_get, *as_pair(key), _NO_VALUE)

    def put(self, key, value, until=None, ttl=None, previous=False):
        return self._add(_lib.skep_batch_put_until, *as_pair(key), *as_pair(value),
                         as_deadline(until, ttl), _previous(previous))

    def insert(self, key, value, previous=False):
        return self._add(_lib.skep_batch_insert, *as_pair(key), *as_pair(value), _previous(previous))

    def update(self, key, value, previous=False):
        return self._add(_lib.skep_batch_update, *as_pair(key), *as_pair(value), _previous(previous))

    def delete(self, key, previous=False):
        return self._add(_lib.skep_batch_delete, *as_pair(key), _previous(previous))

    def compare_and_set(self, key, expected, value):
        return self._add(_lib.skep_batch_compare_and_set, *as_pair(key), *as_pair(expected),
                         *as_pair(value))

    def expire(self, key, until):
        return self._add(_lib.skep_batch_expire, *as_pair(key), as_deadline(until))

    def move(self, key, to):
        """Atomic batches only."""
        return self._add(_lib.skep_batch_move, *as_pair(key), *as_pair(to))

    def apply(self, key, function, operand=b""):
        """A plain function, "add-decimal" or "append"."""
        return self._add(_lib.skep_batch_apply, *as_pair(key), _function("plain", function),
                         *as_pair(operand))

    def update_elements(self, key, function, element, operands, *, create=0, returns=None,
                        each=False):
        """Updates a vector: one set of operands for all elements or, with `each`, one for each.
        `create`: an absent key is so many elements of 0. `returns`: "old" or "new" elements, as the
        slot's value; numbers() reads them."""
        return self._add(_lib.skep_batch_update_elements, *as_pair(key),
                         _function("update", function, element),
                         *as_pair(vector(element, operands)), int(bool(each)),
                         as_number("create", create, 0, UINT32_MAX),
                         one_of("returns", returns, _RETURNS))

    def reduce(self, key, function, element):
        """The slot's integer is the result, if it is one; its value the 8 bytes of it."""
        return self._add(_lib.skep_batch_apply, *as_pair(key), _function("reduce", function, element),
                         b"", 0)

    def filter(self, key, function, element, operand):
        """The slot's value: the elements that are wanted; its integer: how many."""
        return self._add(_lib.skep_batch_apply, *as_pair(key), _function("filter", function, element),
                         *as_pair(vector(element, [operand])))

    def scan(self, lo=None, hi=None, *, prefix=None, reverse=False, limit=None, keys_only=False):
        flags = (_REVERSE if reverse else 0) | (_KEYS_ONLY if keys_only else 0)
        return self._add(_lib.skep_batch_scan, byref(_range(lo, hi, prefix)), flags,
                         as_limit("limit", limit))

    def walk(self, cursor, limit=None):
        """A step through all keys in no order; the slot's integer is the next cursor, 0 the end."""
        return self._add(_lib.skep_batch_walk, as_number("cursor", cursor, 0, UINT64_MAX), 0,
                         as_limit("limit", limit))

    def count(self, lo=None, hi=None, *, prefix=None, visits_max=None):
        return self._add(_lib.skep_batch_count, byref(_range(lo, hi, prefix)),
                         as_limit("visits_max", visits_max))

    def delete_range(self, lo=None, hi=None, *, prefix=None, limit=None):
        return self._add(_lib.skep_batch_delete_range, byref(_range(lo, hi, prefix)),
                         as_limit("limit", limit))

    def delete_all(self):
        return self._add(_lib.skep_batch_delete_all)

    def begin_part(self):
        """What is added from here on is all or nothing by itself. Atomic batches only."""
        handle = self._handle
        if self._under_way:
            raise InvalidArgument("the batch is under way")
        _lib.skep_batch_begin_part(handle)

    # Conditions, in atomic batches only.

    def require_absent(self, key):
        return self._add(_lib.skep_batch_require_absent, *as_pair(key))

    def require_present(self, key):
        return self._add(_lib.skep_batch_require_present, *as_pair(key))

    def require_value(self, key, value):
        return self._add(_lib.skep_batch_require_value, *as_pair(key), *as_pair(value))

    def require_unchanged(self, watch):
        handle = _handle_of("watch", watch, Watch, self._store)
        if handle is None:
            raise TypeError("watch is a Watch, not None")
        if watch._keyspace.number != self._keyspace.number:
            raise InvalidArgument("watch is of another keyspace")
        return self._add(_lib.skep_batch_require_unchanged, *as_pair(watch.key), handle)

    def require_empty(self, lo=None, hi=None, *, prefix=None):
        return self._add(_lib.skep_batch_require_empty, byref(_range(lo, hi, prefix)))
