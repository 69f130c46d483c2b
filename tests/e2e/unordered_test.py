#!/usr/bin/env python3
"""A keyspace without order: what lists, counts and deletes all of its keys."""

import threading
import time
import unittest

import redis
from resp import Error
from skep_process import ServerTest

NO_ORDER = Error("ERR this engine has no order")
NO_LIST = Error("ERR this database has no order: in a transaction its keys cannot be listed")
STABLE = 3000
CHANGING = 20000


class UnorderedTest(ServerTest):
    OPTIONS = ("--keyspace", "1=hash")

    def setUp(self):
        super().setUp()
        self.check("OK", "SELECT", 1)

    def fill(self, count):
        for first in range(0, count, 500):
            words = []
            for i in range(first, min(first + 500, count)):
                words += [f"stable:{i}", i]
            self.check("OK", "MSET", *words)
        return {f"stable:{i}".encode() for i in range(count)}

    def scan_all(self, *options):
        cursor, keys, steps = b"0", [], 0
        while steps == 0 or cursor != b"0":
            cursor, some = self.client.call("SCAN", cursor, *options)
            keys += some
            steps += 1
        return keys, steps

    def test_scan_and_keys_of_a_quiet_keyspace(self):
        self.check([b"0", []], "SCAN", 0)
        self.check([], "KEYS", "*")
        wanted = self.fill(STABLE)
        for count in (1, 10, 4096):
            keys, steps = self.scan_all("COUNT", count)
            self.assertEqual(len(keys), STABLE)
            self.assertEqual(set(keys), wanted)
            self.assertGreaterEqual(steps, STABLE // count)
        some = {key for key in wanted if key.startswith(b"stable:12")}
        self.assertEqual(sorted(self.scan_all("MATCH", "stable:12*", "COUNT", 100)[0]), sorted(some))
        self.assertEqual(len(self.scan_all("TYPE", "string")[0]), STABLE)
        self.assertEqual(self.scan_all("TYPE", "list"), ([], 1))
        self.assertEqual(sorted(self.client.call("KEYS", "*")), sorted(wanted))
        self.assertEqual(sorted(self.client.call("KEYS", "stable:12*")), sorted(some))
        self.check([b"stable:77"], "KEYS", "stable:77")
        self.check(STABLE, "DBSIZE")
        self.assertIn(self.client.call("RANDOMKEY"), wanted)
        self.check("OK", "FLUSHDB")
        self.check(0, "DBSIZE")
        self.check(None, "RANDOMKEY")
        self.check([b"0", []], "SCAN", 0)

    def test_wrong_cursors(self):
        self.check(Error("ERR invalid cursor"), "SCAN", "x")
        self.check(Error("ERR invalid cursor"), "SCAN", 2**64 - 1)
        self.check(Error("ERR syntax error"), "SCAN", 0, "COUNT", 0)

    def test_a_long_list_of_keys(self):
        """The list is collected and sent over many turns."""
        wanted = self.fill(STABLE)
        for first in range(0, CHANGING, 500):
            self.check("OK", "MSET", *(word for i in range(first, first + 500)
                                       for word in (f"{i}:" + "long" * 50, "")))
        keys = self.client.call("KEYS", "*")
        self.assertEqual(len(keys), STABLE + CHANGING)
        self.assertEqual({key for key in keys if key.startswith(b"stable:")}, wanted)

    def test_expired_keys_are_not_listed(self):
        self.fill(10)
        self.check("OK", "SET", "gone", 1, "PX", 50)
        self.check("OK", "SET", "later", 1, "EX", 1000)
        time.sleep(0.1)  # it is reclaimed only later
        self.assertNotIn(b"gone", self.scan_all()[0])
        self.assertIn(b"later", self.scan_all()[0])
        self.assertEqual(len(self.client.call("KEYS", "*")), 11)

    def test_in_a_transaction(self):
        self.fill(20)
        self.check("OK", "MULTI")
        for words in (("DEL", "stable:1"), ("SET", "new", 1), ("SET", "more", 1), ("DBSIZE",),
                      ("SCAN", 0), ("KEYS", "*"), ("FLUSHDB",), ("DBSIZE",), ("SET", "last", 1),
                      ("DBSIZE",), ("RANDOMKEY",)):
            self.check("QUEUED", *words)
        self.check([1, "OK", "OK", 21, NO_LIST, NO_LIST, "OK", 0, "OK", 1, b"last"], "EXEC")
        self.check(1, "DBSIZE")

    def test_what_needs_an_order_is_refused(self):
        self.fill(5)
        for words in (("KRANGE", "-", "+"), ("KCOUNT", "-", "[x"), ("KDELRANGE", "-", "+"), ("KFIRST",),
                      ("KLAST",), ("KFLOOR", "a"), ("KCEIL", "a"), ("KSCAN", "-", "+"),
                      ("KEXPIRE", "-", "+", 1000), ("KREDUCE", "-", "+", "sum", "u8")):
            self.check(NO_ORDER, *words)
        self.check(5, "DBSIZE")

    def test_scan_while_others_write(self):
        """A real client scans; others store and delete so much that the table grows and shrinks."""
        wanted = self.fill(STABLE)
        done = threading.Event()
        failures = []

        def write(number):
            try:
                with redis.Redis(port=self.server.port, db=1) as client:
                    while not done.is_set():
                        for first in range(0, CHANGING, 1000):
                            keys = [f"changing:{number}:{i}" for i in range(first, first + 1000)]
                            client.mset(dict.fromkeys(keys, "x" * 30))
                            if done.is_set():
                                break
                        for first in range(0, CHANGING, 1000):
                            keys = [f"changing:{number}:{i}" for i in range(first, first + 1000)]
                            client.delete(*keys)
            except Exception as error:  # told by the test's thread
                failures.append(error)

        writers = [threading.Thread(target=write, args=(i,)) for i in range(2)]
        for writer in writers:
            writer.start()
        try:
            sizes = set()
            with redis.Redis(port=self.server.port, db=1) as client:
                for _ in range(8):
                    sizes.add(client.dbsize() // 5000)
                    seen = list(client.scan_iter(count=50))
                    self.assertEqual(len(seen), len(set(seen)))
                    self.assertEqual({key for key in seen if key.startswith(b"stable:")}, wanted)
                    self.assertEqual(
                        {key for key in client.keys("stable:*")}, wanted)
        finally:
            done.set()
            for writer in writers:
                writer.join()
        self.assertEqual(failures, [])
        self.assertGreater(len(sizes), 1)


class LimitTest(ServerTest):
    OPTIONS = ("--keyspace", "1=hash", "--maxmemory", "64mb")

    def test_keys_at_the_memory_limit(self):
        """A long list is refused and a short one is not; the memory of the list is given back."""
        self.check("OK", "SELECT", 1)
        full, count = Error("OOM command not allowed when used memory > 'maxmemory'."), 0
        while self.client.call("SET", f"{count}:" + "k" * 1000, "") == "OK":
            count += 1
        self.assertGreater(count, 10000)
        for _ in range(3):
            self.check(full, "KEYS", "*")
            self.assertEqual(len(self.client.call("KEYS", "7:*")), 1)
        self.check(count, "DBSIZE")
        gone = [f"{i}:" + "k" * 1000 for i in range(2000)]
        self.check(len(gone), "DEL", *gone)
        self.check("OK", "SET", "small", 1)


if __name__ == "__main__":
    unittest.main()
