#!/usr/bin/env python3
"""Goal: python/skep.py does what it says, in process and of a server's store.
Method: one class of tests, over both. SKEP_LIBRARY and SKEP_SERVER name what is tested."""

import gc
import os
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

import skep  # noqa: E402
from skep_process import SkepServer  # noqa: E402

MANY = 1000  # some chunks of a scanner


class Calls:
    """Tests for every kind of store; self.store is an empty one."""

    def test_points(self):
        store = self.store
        store["apple"] = "red"
        store[b"\x00\xff"] = b"\x00"
        self.assertEqual(store["apple"], b"red")
        self.assertEqual(store[b"\x00\xff"], b"\x00")
        self.assertIsNone(store.get("pear"))
        self.assertEqual(store.get("pear", b"?"), b"?")
        with self.assertRaises(KeyError):
            store["pear"]
        self.assertIn("apple", store)
        self.assertNotIn("pear", store)
        store["empty"] = ""
        self.assertEqual(store["empty"], b"")
        self.assertFalse(store.insert("apple", "green"))
        self.assertTrue(store.insert("pear", "green"))
        self.assertFalse(store.update("plum", "blue"))
        self.assertTrue(store.update("pear", "ripe"))
        self.assertFalse(store.compare_and_set("pear", "green", "brown"))
        self.assertTrue(store.compare_and_set("pear", "ripe", "brown"))
        self.assertEqual(store["pear"], b"brown")
        del store["pear"]
        self.assertFalse(store.delete("pear"))
        with self.assertRaises(KeyError):
            del store["pear"]

    def test_get_many(self):
        store = self.store
        self.assertEqual(store.get_many([]), [])
        expected = []
        for i in range(200):
            expected.append(None if i % 3 == 0 else b"\x00%d" % i if i % 5 else b"")
            if expected[-1] is not None:
                store[f"key{i}"] = expected[-1]
        self.assertEqual(store.get_many(f"key{i}" for i in range(200)), expected)
        with self.assertRaises(skep.TooLarge):
            store.get_many(["key1", b"k" * (64 * 1024 + 1)])
        with self.assertRaises(TypeError):
            store.get_many(["key1", 2])

    def test_counters(self):
        self.assertEqual(self.store.add("n"), 1)
        self.assertEqual(self.store.add("n", -5), -4)
        self.assertEqual(self.store["n"], b"-4")
        self.store["word"] = "x"
        with self.assertRaises(skep.InvalidArgument):
            self.store.add("word")

    def test_deadlines(self):
        store, later = self.store, round(time.time()) + 1000
        store.put("k", "v", until=later)
        self.assertEqual(store.deadline("k"), later)
        store.put("k", "v", ttl=1000)
        self.assertGreater(store.deadline("k"), later - 100)
        self.assertTrue(store.expire("k", None))
        self.assertIsNone(store.deadline("k"))
        with self.assertRaises(KeyError):
            store.deadline("absent")
        self.assertFalse(store.expire("absent", later))
        store.put("k", "v", until=1)
        self.assertNotIn("k", store)

    def fill(self):
        with self.store.batch() as batch:
            for i in range(MANY):
                batch.put(f"key{i:04}", str(i))

    def test_ranges(self):
        self.fill()
        store = self.store
        pairs = [(b"key%04d" % i, b"%d" % i) for i in range(MANY)]
        self.assertEqual(list(store.items()), pairs)
        self.assertEqual(list(store), [key for key, _ in pairs])
        self.assertEqual(list(store.scan("key0100", "key0200")), pairs[100:200])
        self.assertEqual(list(store.scan(prefix="key00", reverse=True)), pairs[99::-1])
        self.assertEqual(list(store.scan("key0500", limit=300)), pairs[500:800])
        self.assertEqual(list(store.keys(prefix="key099", reverse=True, limit=2)),
                         [b"key0999", b"key0998"])
        self.assertEqual(store.floor("key0500x"), pairs[500])
        self.assertIsNone(store.floor("a"))
        self.assertEqual(store.count(), MANY)
        self.assertEqual(store.count(prefix="key000"), 10)
        self.assertEqual(store.delete_range("key0100", "key0200", limit=40), 40)
        self.assertEqual(store.delete_range(prefix="key01"), 60)
        self.assertEqual(store.count(), MANY - 100)

    def test_a_scan_that_is_not_finished_and_a_snapshot(self):
        self.fill()
        scan = self.store.scan()
        self.assertEqual(next(scan), (b"key0000", b"0"))
        with self.store.snapshot() as snapshot:
            self.store.delete_range()
            self.assertEqual(self.store.count(), 0)
            self.assertEqual(self.store.count(at=snapshot), MANY)
            self.assertEqual(len(list(self.store.scan(at=snapshot))), MANY)
            self.assertEqual(self.store.batch(at=snapshot).execute().applied, True)
            with self.store.batch(at=snapshot) as batch:
                slot = batch.get("key0007")
            self.assertEqual(slot.value, b"7")
        self.assertEqual(len(list(scan)), MANY - 1)

    def test_batches(self):
        store = self.store
        store["old"] = "value"
        with store.batch() as batch:
            put = batch.put("pear", "green")
            got = batch.get("pear")
            inserted = batch.insert("old", "new", previous=True)
            updated = batch.update("absent", "new")
            length = batch.length("old")
            deleted = batch.delete("old", previous=True)
            with self.assertRaises(skep.InvalidArgument):
                put.verdict
        self.assertTrue(put.done)
        self.assertIsNone(put.value)
        self.assertEqual(got.value, b"green")
        self.assertEqual((inserted.verdict, inserted.value), ("exists", b"value"))
        self.assertEqual((updated.verdict, updated.value), ("absent", None))
        self.assertEqual(length.integer, 5)
        self.assertEqual(deleted.value, b"value")
        batch.clear()
        with self.assertRaises(skep.InvalidArgument):
            put.verdict
        self.fill()
        batch.clear()
        scan = batch.scan(prefix="key00", limit=30)
        count = batch.count(prefix="key")
        batch.execute()
        self.assertEqual(scan.items, [(b"key%04d" % i, b"%d" % i) for i in range(30)])
        self.assertTrue(scan.more)
        self.assertEqual(count.integer, MANY)

    def test_a_slot_that_is_refused(self):
        with self.store.batch() as batch:
            refused = batch.put(bytes(65537), "")
            done = batch.put("k", "v")
        self.assertTrue(done.done)
        self.assertEqual(refused.verdict, "refused")
        self.assertIsInstance(refused.error, skep.TooLarge)
        with self.assertRaises(skep.TooLarge) as caught:
            refused.value
        self.assertEqual(caught.exception.detail, 65536)
        with self.assertRaises(skep.TooLarge):
            self.store.put(bytes(65537), "")

    def test_atomic_batches(self):
        store = self.store
        store["a"] = "1"
        for attempt in range(2):
            with store.batch(atomic=True) as batch:
                condition = batch.require_value("a", "1")
                batch.require_absent("b")
                batch.move("a", "b")
            self.assertEqual(batch.applied, attempt == 0)
        self.assertEqual(condition.verdict, "absent")
        self.assertEqual(list(store.items()), [(b"b", b"1")])
        with store.batch(atomic=True) as batch:
            batch.begin_part()
            batch.require_present("a")
            lost = batch.put("c", "1")
            batch.begin_part()
            batch.require_empty(prefix="x")
            kept = batch.put("d", "1")
        self.assertEqual((lost.verdict, kept.verdict), ("not applied", "done"))

    def test_a_block_that_fails_executes_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with self.store.batch() as batch:
                batch.put("k", "v")
                1 / 0
        self.assertNotIn("k", self.store)

    def test_watches(self):
        self.store["k"] = "1"
        for disturbed in (False, True):
            with self.store.watch("k") as watch:
                if disturbed:
                    self.store["k"] = "2"
                with self.store.batch(atomic=True) as batch:
                    batch.require_unchanged(watch)
                    batch.put("k", "3")
                self.assertEqual(batch.applied, not disturbed)

    def test_batches_under_way(self):
        batches = [self.store.batch() for _ in range(10)]
        slots = []
        for i, batch in enumerate(batches):
            batch.put(f"k{i}", str(i))
            slots.append(batch.get(f"k{i}"))
            batch.begin()
        for batch in batches:
            batch.wait()
        self.assertEqual([slot.value for slot in slots], [b"%d" % i for i in range(10)])
        with self.assertRaises(skep.InvalidArgument):
            batches[0].wait()

    def test_vectors(self):
        with self.store.batch() as batch:
            batch.update_elements("v", "add", "u32", [1, 2, 3], create=3, each=True)
            new = batch.update_elements("v", "add", "u32", [10], returns="new")
            total = batch.reduce("v", "sum", "u32")
            wanted = batch.filter("v", "gt", "u32", 11)
        self.assertEqual(skep.numbers("u32", new.value), (11, 12, 13))
        self.assertEqual(total.integer, 36)
        self.assertEqual((wanted.integer, skep.numbers("u32", wanted.value)), (2, (12, 13)))
        with self.assertRaises(skep.InvalidArgument):
            batch.apply("v", "nothing")

    def test_a_keyspace_without_order(self):
        table = self.store.keyspace(1)
        with table.batch() as batch:
            batch.delete_all()
            for i in range(MANY):
                batch.put(f"{i}", f"{i}")
        self.assertEqual(sorted(table.walk()), sorted((b"%d" % i,) * 2 for i in range(MANY)))
        with self.assertRaises(skep.NotSupported):
            list(table.scan())
        self.assertNotIn("1", self.store)
        with self.assertRaises(skep.InvalidArgument):
            self.store.keyspace(99).get("k")
        self.assertEqual(self.store.statistics()[1]["engine"], "hash")

    def test_threads(self):
        def count():
            for _ in range(200):
                self.store.add("n")

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.store["n"], b"800")


class InProcess(Calls, unittest.TestCase):
    def setUp(self):
        self.store = skep.open(keyspace={1: "hash"})
        self.addCleanup(self.store.close)

    def test_options(self):
        with skep.open(engine="hash", hash_fill_slots=5, btree_multi_version=True) as store:
            store["k"] = "v"
        for wrong in ({"color": "red"}, {"engine": "abacus"}, {"keyspaces": -1}):
            with self.assertRaises(skep.InvalidArgument):
                skep.open(**wrong)
        self.assertIn("btree", skep.engines())
        self.assertRegex(skep.version(), r"^\d+\.\d+\.\d+$")

    def test_a_directory(self):
        with tempfile.TemporaryDirectory(prefix="skep-python-") as folder:
            with skep.open(folder, log_sync="always") as store:
                store["k"] = "v"
                store.save()
                with self.assertRaises(skep.Unavailable):
                    skep.open(folder)
            with skep.open(folder) as store:
                self.assertEqual(store["k"], b"v")
        with self.assertRaises(skep.NotSupported):
            self.store.save()

    def test_what_is_used_after_its_end(self):
        scan, batch, snapshot = self.store.scan(), self.store.batch(), self.store.snapshot()
        self.fill()
        next(scan)
        self.store.close()
        with self.assertRaises(skep.InvalidArgument):
            list(scan)
        with self.assertRaises(skep.InvalidArgument):
            batch.execute()
        with self.assertRaises(skep.InvalidArgument):
            self.store.get("k")
        snapshot.close()
        self.store.close()

    def test_a_store_that_is_dropped_before_what_reads_it(self):
        store = skep.open()
        store["k"] = "v"
        scan = store.scan()
        snapshot = store.snapshot()
        del store
        gc.collect()
        self.assertEqual(next(scan), (b"k", b"v"))
        self.assertGreater(snapshot.version, 0)

    def test_a_store_and_what_reads_it_are_collected_together(self):
        for _ in range(20):
            cycle = {"store": skep.open()}
            cycle["store"]["k"] = "v"
            cycle["scan"] = cycle["store"].scan()
            next(cycle["scan"])
            cycle["snapshot"] = cycle["store"].snapshot()
            cycle["batch"] = cycle["store"].batch()
            cycle["batch"].itself = cycle["store"].itself = cycle
            del cycle
            gc.collect()

    def test_maintain(self):
        self.assertIn(self.store.maintain(), (True, False))


class OfAServer(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = SkepServer("--keyspace", "1=hash")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.store = skep.connect(f"127.0.0.1:{self.server.port}", connections=2)
        self.addCleanup(self.store.close)
        self.store.delete_range()

    def test_no_server(self):
        with self.assertRaises(skep.Unavailable):
            skep.connect("unix:/nowhere/socket", timeout_ms=100)
        with self.assertRaises(skep.InvalidArgument):
            skep.connect("nowhere")


class OfAServerWhoseLeavesAreRead(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skep-python-")
        cls.place = f"mem:unix:{cls.folder.name}/leaves"
        cls.server = SkepServer("--keyspace", "1=hash", "--share-leaves", cls.place)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.store = skep.connect(f"127.0.0.1:{self.server.port}", one_sided=self.place)
        self.addCleanup(self.store.close)
        self.store.delete_range()

    def test_nobody_shares(self):
        with self.assertRaises(skep.Unavailable):
            skep.connect(f"127.0.0.1:{self.server.port}", one_sided="mem:unix:/nowhere/leaves")
        with self.assertRaises(skep.InvalidArgument):
            skep.connect(f"127.0.0.1:{self.server.port}", one_sided="leaves")


if __name__ == "__main__":
    unittest.main()
