#!/usr/bin/env python3
"""Goal: ranges of any size work in keyspaces that keep one version of a key: a tree of hash tables,
and a tree that is told to keep no old values.
Method: what the commands answer of a quiet keyspace is what a model has; while others write, a key
that is there all the while comes exactly once, in its order."""

import bisect
import threading
import unittest

from resp import Error
from skep_process import ServerTest

STABLE = 30_000
OOM = Error("OOM command not allowed when used memory > 'maxmemory'.")


def key_of(number):
    return b"%08d" % number


def value_of(number):
    return number.to_bytes(8, "little")


class OneVersionTest(ServerTest):
    OPTIONS = ("--keyspace", "1=hashleaf,key=8,value=8", "--btree-multi-version", "no")

    def fill(self, db):
        """The even numbers, which stay."""
        self.check("OK", "SELECT", db)
        keys = [key_of(2 * i) for i in range(STABLE)]
        for first in range(0, STABLE, 500):
            words = []
            for key in keys[first:first + 500]:
                words += [key, value_of(int(key))]
            self.check("OK", "MSET", *words)
        return keys

    def kscan(self, *words):
        token, items = self.client.call("KSCAN", *words)
        while token != b"0":
            token, more = self.client.call("KSCAN", "NEXT", token)
            items += more
        return items

    def test_a_quiet_keyspace(self):
        for db in (0, 1):
            with self.subTest(db=db):
                keys = self.fill(db)
                pairs = [word for key in keys for word in (key, value_of(int(key)))]
                self.check(keys, "KRANGE", "-", "+")
                self.check(pairs, "KRANGE", "-", "+", "WITHVALUES")
                self.check(keys[::-1], "KRANGE", "-", "+", "REV")
                self.check(keys[700:20700], "KRANGE", "-", "+", "LIMIT", 700, 20000)
                self.check(keys[::-1][7000:9000], "KRANGE", "-", "+", "REV", "LIMIT", 7000, 2000)
                self.check(keys[29000:], "KRANGE", "-", "+", "LIMIT", 29000, 5000)
                self.check([], "KRANGE", "-", "+", "LIMIT", STABLE, 5000)
                low, high = bisect.bisect_left(keys, b"00009"), bisect.bisect_left(keys, b"00041")
                self.check(keys[low:high], "KRANGE", "[00009", "(00041")
                self.check(high - low, "KCOUNT", "[00009", "(00041")
                self.check(STABLE, "KCOUNT", "-", "+")
                self.check(keys, "KEYS", "*")
                self.check([key for key in keys if key.endswith(b"12")], "KEYS", "*12")
                self.check([key for key in keys if key.startswith(b"0001")], "KEYS", "0001*")
                self.check(sum(int(key) for key in keys), "KREDUCE", "-", "+", "sum", "i64")
                self.assertEqual(self.kscan("-", "+"), keys)
                self.assertEqual(self.kscan("-", "+", "REV", "COUNT", 7000), keys[::-1])
                self.assertEqual(self.kscan("[00009", "(00041", "COUNT", 1000, "WITHVALUES"),
                                 pairs[2 * low:2 * high])
                self.assertEqual(self.kscan("-", "+", "COUNT", 9000, "WITHDEADLINES"),
                                 [word for key in keys for word in (key, -1)])

    def test_a_reply_that_memory_has_no_room_for(self):
        keys = self.fill(1)
        self.addCleanup(self.client.call, "CONFIG", "SET", "maxmemory", 0)
        self.check("OK", "CONFIG", "SET", "maxmemory", 1 << 20)
        # A reply of less than a megabyte is made all the same.
        self.check(keys, "KRANGE", "-", "+")
        self.check(STABLE, "KCOUNT", "-", "+")
        self.check("OK", "CONFIG", "SET", "maxmemory", 0)
        for first in range(0, 60_000, 1000):
            self.check("OK", "MSET", *(word for i in range(first, first + 1000)
                                       for word in (b"1%07d" % i, value_of(0))))
        self.check("OK", "CONFIG", "SET", "maxmemory", 1 << 20)
        self.check(OOM, "KRANGE", "-", "+", "WITHVALUES")
        self.check(STABLE + 60_000, "KCOUNT", "-", "+")
        self.assertEqual(len(self.kscan("-", "+", "COUNT", 5000)), STABLE + 60_000)
        used = int(self.client.call("INFO", "memory").split(b"used_memory:")[1].split()[0])
        self.assertLess(used, 64 << 20)

    def test_while_others_write(self):
        for db in (0, 1):
            with self.subTest(db=db):
                self.check_while_others_write(db)

    def check_while_others_write(self, db):
        keys = self.fill(db)
        done = threading.Event()
        failures = []

        def write(number):
            try:
                with self.server.connect() as client:
                    client.call("SELECT", db)
                    for turn in range(1000):
                        if done.is_set():
                            return
                        first = 2 * (number * 7919 + turn * 104_729 % STABLE) + 1
                        some = [key_of(first + 2 * i) for i in range(1000)]
                        client.call("MSET", *(word for key in some for word in (key, b"changing")))
                        client.call("DEL", *some)
            except Exception as error:  # told by the test's thread
                failures.append(error)

        writers = [threading.Thread(target=write, args=(i,)) for i in range(2)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(5):
                for listed in (self.client.call("KRANGE", "-", "+"),
                               self.client.call("KRANGE", "-", "+", "REV")[::-1],
                               self.client.call("KEYS", "*"), self.kscan("-", "+", "COUNT", 1000)):
                    self.assertTrue(all(a < b for a, b in zip(listed, listed[1:])))
                    self.assertEqual([key for key in listed if int(key) % 2 == 0], keys)
                count = self.client.call("KCOUNT", "-", "+")
                self.assertGreaterEqual(count, STABLE)
        finally:
            done.set()
            for writer in writers:
                writer.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
