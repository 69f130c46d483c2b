#!/usr/bin/env python3
"""Goal: python/skep.py does nothing with an argument that it cannot pass on as it is, and nothing
with what was closed: it raises, and the store is as it was.
Method: a table of values for every name that a parameter has, each of them wrong. Every public
function is called once for each of its parameters and each such value, with all others right. The
functions and their parameters are asked of the module, so that a new one without an entry fails the
test. SKEP_LIBRARY and SKEP_SERVER name what is tested."""

import array
import inspect
import math
import os
import pathlib
import sys
import tempfile
import unittest
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

import skep  # noqa: E402
from skep_process import SkepServer  # noqa: E402

WRONG = (TypeError, skep.InvalidArgument)
NO_BYTES = [5, 0, 5.0, True, [1, 2], object()]
NO_LIMITS = [-1, 2**32 - 1, 2**32, 2**32 + 1, 2**64, 1.5, "3", b"3"]
NO_TIMES = ["soon", b"1", math.nan, math.inf, -math.inf, 1e300, 2.0**56, 2**80, [1]]
# Truth is all that is asked of these, or they are handed back as they are.
ANYTHING_GOES = {"default", "atomic", "previous", "each", "reverse", "keys_only"}

CONTENTS = {b"a": b"1", b"b": b"2", b"c": b"3", b"v": bytes(8)}


class Values:
    """The right and the wrong values of each parameter, for one store."""

    def __init__(self, test, store):
        closed_snapshot, closed_watch = store.snapshot(), store.watch("a")
        closed_snapshot.close()
        closed_watch.close()
        other = skep.open()
        test.addCleanup(other.close)
        handles = [closed_snapshot, closed_watch, other.snapshot(), other.watch("a"), "x", 5, store]
        self.wrong = {
            **dict.fromkeys(("key", "value", "expected", "to", "operand"), [*NO_BYTES, None]),
            **dict.fromkeys(("lo", "hi", "prefix"), NO_BYTES),
            **dict.fromkeys(("limit", "visits_max"), NO_LIMITS),
            **dict.fromkeys(("until", "ttl"), NO_TIMES),
            "keys": [5, None, "ab", b"ab", ["a", None], ["a", 5]],
            "at": handles,
            "watch": [*handles, None, store.keyspace(1).watch("a")],
            "delta": [1.5, "5", None, 2**63, -2**63 - 1],
            "number": [-1, 2**32, 2**32 + 1, 1.0, "0", None],
            "cursor": [-1, 2**64, 1.5, "0", None],
            "create": [-1, 2**32, 2**32 + 2, 1.5, None],
            "returns": ["both", 1, [], b"old"],
            "element": ["i7", 3, None, []],
            "function": ["nothing", "add-decimal\0", "add\0", 5, None, b"add"],
            "operands": [[300], [-1], [1.5], ["x"], [None]],
        }
        self.right = {"key": "a", "keys": ["a"], "value": "1", "expected": "9", "to": "z", "number": 0,
                      "cursor": 0, "element": "u8", "function": "add", "operands": [1], "operand": b"1",
                      "until": None, "watch": store.watch("a")}


def functions_of(kind):
    """Names and parameters of the public functions."""
    for name, member in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_") and name not in (
                "__getitem__", "__setitem__", "__delitem__", "__contains__"):
            continue
        yield name, list(inspect.signature(member).parameters.values())[1:]


def use(result):
    """Evaluates a generator, whose errors come only then."""
    if inspect.isgenerator(result):
        list(result)


class Arguments:
    """Tests for every kind of store; self.store is an empty one."""

    def fill(self):
        for key, value in CONTENTS.items():
            self.store[key] = value
        self.values = Values(self, self.store)

    def check_untouched(self):
        self.assertEqual(dict(self.store.items()), CONTENTS)
        self.assertEqual(list(self.store.keyspace(1).walk()), [])

    FUNCTIONS = {"apply": "append", "filter": "gt", "reduce": "sum"}  # others: right["function"]

    def call_with(self, call, where, parameters, wrong, value):
        """One call whose parameter `wrong` has this value."""
        arguments = {p.name: self.values.right[p.name] for p in parameters
                     if p.default is inspect.Parameter.empty}
        if where == "filter":
            arguments["operand"] = 1
        if where in self.FUNCTIONS:
            arguments["function"] = self.FUNCTIONS[where]
        arguments[wrong] = value
        return call(**arguments)

    def check_all(self, kind, make):
        """Calls all functions of the class on what `make` makes."""
        tried = 0
        for name, parameters in functions_of(kind):
            for parameter in parameters:
                if parameter.name in ANYTHING_GOES:
                    continue
                if parameter.name == "operand" and name == "filter":
                    wrong = ["x", 300, None, 1.5]  # an element
                else:
                    wrong = self.values.wrong[parameter.name]
                for value in wrong:
                    with self.subTest(function=name, parameter=parameter.name, value=value):
                        subject = make()
                        with self.assertRaises(WRONG):
                            use(self.call_with(getattr(subject, name), name, parameters,
                                               parameter.name, value))
                        tried += 1
        self.check_untouched()
        return tried

    def test_of_stores(self):
        self.fill()
        self.assertGreater(self.check_all(skep.Store, lambda: self.store), 200)

    def test_of_batches(self):
        self.fill()
        self.assertGreater(
            self.check_all(skep.Batch, lambda: self.store.batch(atomic=True)), 200)

    def test_what_is_wrong_is_said_at_once(self):
        # A generator would say it when the first pair is asked for.
        self.fill()
        for call in (self.store.scan, self.store.keys):
            with self.assertRaises(skep.InvalidArgument):
                call(limit=-1)
            with self.assertRaises(skep.InvalidArgument):
                call(at=self.values.wrong["at"][0])

    def test_arguments_that_contradict(self):
        self.fill()
        for call in (self.store.scan, self.store.keys, self.store.count, self.store.delete_range,
                     self.store.batch().scan, self.store.batch().count,
                     self.store.batch().delete_range,
                     self.store.batch(atomic=True).require_empty):
            with self.assertRaises(skep.InvalidArgument):
                call("a", prefix="a")
            with self.assertRaises(skep.InvalidArgument):
                call(hi="a", prefix="a")
        for put in (self.store.put, self.store.batch().put):
            with self.assertRaises(skep.InvalidArgument):
                put("a", "b", until=2**33, ttl=5)
        self.check_untouched()

    def test_a_snapshot_that_was_closed(self):
        self.fill()
        snapshot = self.store.snapshot()
        batch = self.store.batch(at=snapshot)
        got = batch.get("a")
        batch.execute()
        self.assertEqual(got.value, b"1")
        snapshot.close()
        for call in (lambda: self.store.count(at=snapshot),
                     lambda: next(self.store.scan(at=snapshot)),
                     lambda: next(self.store.keys(at=snapshot)),
                     lambda: self.store.batch(at=snapshot),
                     batch.execute, batch.begin, batch.clear, lambda: snapshot.version):
            with self.assertRaises(skep.InvalidArgument):
                call()

    def test_the_largest_that_is_right(self):
        self.fill()
        store = self.store
        self.assertEqual(store.count(), len(CONTENTS))
        self.assertEqual(len(list(store.scan(limit=2**32 - 2))), len(CONTENTS))
        self.assertEqual(list(store.scan(limit=0)), [])
        self.assertEqual(store.delete_range(limit=0), 0)
        self.assertEqual(store.add("n", 2**63 - 1), 2**63 - 1)
        self.assertEqual(store.add("m", -2**63), -2**63)
        store.put("t", "", until=Fraction(2**56 - 1, 1000))
        self.assertIn("t", store)
        for value in (bytearray(b"x"), memoryview(b"x"), array.array("B", b"x")):
            store["bytes"] = value
            self.assertEqual(store["bytes"], b"x")

    def test_a_batch_under_way_takes_nothing(self):
        self.fill()
        batch = self.store.batch(atomic=True)
        batch.get("a")
        batch.begin()
        for call in (lambda: batch.put("a", "5"), batch.begin_part, batch.execute, batch.begin):
            with self.assertRaises(skep.InvalidArgument):
                call()
        with self.assertRaises(skep.InvalidArgument):
            batch.applied
        self.assertTrue(batch.wait().applied)
        self.check_untouched()

    def check_closed(self, kind, subject, but=()):
        for name, parameters in functions_of(kind):
            if name in ("close", *but):
                continue
            arguments = [self.values.right[p.name] for p in parameters
                         if p.default is inspect.Parameter.empty]
            with self.subTest(closed=kind.__name__, function=name):
                with self.assertRaises(skep.InvalidArgument):
                    use(getattr(subject, name)(*arguments))
        for name, member in inspect.getmembers(kind, lambda member: isinstance(member, property)):
            if name.startswith("_"):
                continue
            with self.subTest(closed=kind.__name__, property=name):
                with self.assertRaises(skep.InvalidArgument):
                    getattr(subject, name)

    def test_what_was_closed(self):
        self.fill()
        store = self.store
        batch, snapshot, watch, scan = (store.batch(atomic=True), store.snapshot(),
                                        store.watch("a"), store.scan())
        slot = batch.get("a")
        batch.execute()
        for handle in (batch, snapshot, watch):
            handle.close()
            handle.close()
        self.check_closed(skep.Batch, batch)
        self.check_closed(skep.Snapshot, snapshot)
        self.check_closed(skep.Slot, slot)
        with self.assertRaises(skep.InvalidArgument):
            store.batch(atomic=True).require_unchanged(watch)
        next(scan)
        table = store.keyspace(1)
        store.close()
        store.close()
        self.check_closed(skep.Store, store, but=("keyspace",))
        self.check_closed(skep.Keyspace, table)
        self.check_closed(skep.Keyspace, store.keyspace(0))
        with self.assertRaises(skep.InvalidArgument):
            list(scan)


class InProcess(Arguments, unittest.TestCase):
    def setUp(self):
        self.store = skep.open(keyspace={1: "hash"})
        self.addCleanup(self.store.close)

    def test_vectors(self):
        for element, values in (("i7", [1]), (None, [1]), ("u8", [256]), ("i8", [-129]),
                                ("u8", [1.5]), ("u8", ["x"]), ("f32", [1e300]), ("f64", ["x"])):
            with self.subTest(element=element, values=values), self.assertRaises(WRONG):
                skep.vector(element, values)
        for element, data in (("i7", b"1"), (None, b"1"), ("u32", b"12345"), ("u8", 5)):
            with self.subTest(element=element, data=data), self.assertRaises(WRONG):
                skep.numbers(element, data)

    def test_options(self):
        for wrong in ({"directory": None}, {"directory": 5}, {"directory": b"x"},
                      {"directory": "x\0y"}, {"engine": "btree\0"}, {"engine": 5},
                      {"engine": None}, {"keyspaces": 0}, {"keyspaces": -1}, {"keyspaces": 2**32 + 1},
                      {"keyspaces": 1.5}, {"memory_bytes_max": -1}, {"memory_bytes_max": 2**64},
                      {"snapshot_age_ms_max": -1}, {"snapshot_age_ms_max": 2**64},
                      {"log_sync": "sometimes"}, {"log_segment_bytes": 2**64},
                      {"log_segment_bytes": -1}, {"recovery_threads": 2**32},
                      {"recovery_threads": -1}, {"keyspace": {-1: "hash"}},
                      {"keyspace": {2**32: "hash"}}, {"keyspace": {"1": "hash"}},
                      {"keyspace": {1.0: "hash"}}, {"keyspace": {1: "abacus"}},
                      {"keyspace": {1: None}}, {"keyspace": "1"}, {"btree_node_bytes": 2**32 + 4096},
                      {"btree_node_bytes": 1}, {"btree_log_bytes": -1}, {"btree_layout": "round"},
                      {"btree_multi_version": "perhaps"}, {"hash_fill_slots": 2**32},
                      {"hash_inline_bytes_max": -1}, {"color": "red"}):
            with self.subTest(wrong=wrong), self.assertRaises(WRONG):
                skep.open(**wrong).close()
        with tempfile.TemporaryDirectory(prefix="skep-python-") as folder:
            skep.open(pathlib.Path(folder) / "data").close()


class OfAServer(Arguments, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = SkepServer("--keyspace", "1=hash")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.store = skep.connect(f"127.0.0.1:{self.server.port}")
        self.addCleanup(self.store.close)
        self.store.delete_range()

    def test_options(self):
        address = f"127.0.0.1:{self.server.port}"
        for wrong in ({"address": None}, {"address": 5}, {"address": b"x"},
                      {"address": address + "\0"}, {"address": "127.0.0.1:65536"},
                      {"connections": 0}, {"connections": 257}, {"connections": 2**32 + 1},
                      {"connections": -1}, {"timeout_ms": -1}, {"timeout_ms": 2**32 + 5},
                      {"timeout_ms": 1.5}, {"timeout_ms": None}, {"password": None},
                      {"password": 5.5}, {"datagrams": "perhaps"}, {"remembers_writes": 2},
                      {"wants_versions": "x"}, {"syncs_writes": []}, {"color": "red"}):
            with self.subTest(wrong=wrong), self.assertRaises(WRONG):
                skep.connect(**{"address": address, **wrong}).close()


if __name__ == "__main__":
    unittest.main()
