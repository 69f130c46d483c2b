#!/usr/bin/env python3
"""Goal: strings that the tree keeps in pieces answer as Redis's do, in commands, transactions and
scans, and a log brings back what was acknowledged, though it has only what was changed.
Method: random changes of values around and beyond 64 KiB, beside a model; the server is killed and
begun again, with a log alone and with a snapshot before.
"""

import random
import shutil
import tempfile
import unittest

from resp import Error
from skep_process import SkepServer

WHOLE_MAX = 64 * 1024  # bytes of a value that is not in pieces
KEYS = [b"a", b"b", b"c"]


class LargeValuesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="skep-values-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.random = random.Random(20)
        self.model = {}

    def bytes_of(self, size):
        return self.random.randbytes(size)

    def a_change(self):
        """A command that changes a key, and the change of the model."""
        key = self.random.choice(KEYS)
        value = self.model.get(key, b"")
        offset = self.random.randrange(len(value) + 30000)
        piece = self.bytes_of(self.random.choice([1, 2, 100, 16376, 40000]))

        def written(at, what):
            return value[:at].ljust(at, b"\0") + what + value[at + len(what):]

        kind = self.random.randrange(8)
        if kind == 0:
            size = self.random.choice([WHOLE_MAX - 1, WHOLE_MAX, WHOLE_MAX + 1, 500_000])
            fresh = self.bytes_of(size)
            return key, fresh, ("SET", key, fresh), "OK"
        if kind == 1:
            return key, value + piece, ("APPEND", key, piece), len(value + piece)
        if kind == 2:
            after = written(offset, piece)
            return key, after, ("SETRANGE", key, offset, piece), len(after)
        if kind == 3:
            bit = self.random.randrange(2)
            old = (value[offset] if offset < len(value) else 0)
            byte = bytes([(old & ~16) | bit << 4])
            return key, written(offset, byte), ("SETBIT", key, offset * 8 + 3, bit), old >> 4 & 1
        if kind == 4:
            return key, value, ("EXPIRE", key, 100000), 1 if value else 0
        if kind == 5 and value:
            by = self.random.randrange(1, 256)
            added = bytes((byte + by) % 256 for byte in value)
            return key, added, ("VUPDATE", key, "add", "u8", by), len(value)
        if kind == 6 and value:
            # Few elements change.
            largest = bytes(max(byte, 250) for byte in value)
            return key, largest, ("VUPDATE", key, "max", "u8", 250, "RETURN", "NEW"), largest
        old = int.from_bytes(value[offset:offset + 2].ljust(2, b"\0"), "big")
        far = offset // 2
        far_old = int.from_bytes(value[far:far + 1].ljust(1, b"\0"), "big")
        command = ("BITFIELD", key, "SET", "u16", offset * 8, 258, "GET", "u8", far * 8)
        after = written(offset, b"\1\2")
        if far in (offset, offset + 1):
            far_old = after[far]
        return key, after, command, [old, far_old]

    def change(self, client, in_transaction):
        """A change, or some of them, which may be of one key, in one transaction."""
        replies, names = [], []
        if in_transaction:
            client.call("MULTI")
        for _ in range(self.random.randrange(1, 7) if in_transaction else 1):
            key, after, command, reply = self.a_change()
            names.append(command[:2])
            replies.append(reply)
            if after:
                self.model[key] = after
            answer = client.call(*command)
            if not in_transaction:
                self.assertTrue(answer == reply, names)
        if in_transaction:
            self.assertTrue(client.call("EXEC") == replies, names)

    def check(self, client):
        for key, value in self.model.items():
            self.assertTrue(client.call("GET", key) == value, key)
            size = len(value)
            self.assertEqual(client.call("STRLEN", key), size)
            first, last = self.random.randrange(-size - 5, size), self.random.randrange(size + 9)
            begin = max(first + size, 0) if first < 0 else first
            self.assertTrue(client.call("GETRANGE", key, first, last) == value[begin:last + 1])
            self.assertTrue(client.call("GETRANGE", key, -3, -1) == value[-3:])
            self.assertEqual(client.call("GETRANGE", key, -1, -3), b"")
            byte = value[last] if last < size else 0
            self.assertEqual(client.call("GETBIT", key, last * 8), byte >> 7)
            ones = sum(byte.bit_count() for byte in value[begin:last + 1])
            self.assertEqual(client.call("BITCOUNT", key, first, last), ones)
            self.assertEqual(client.call("BITCOUNT", key, first, last, "BYTE"), ones)
        pairs = client.call("KRANGE", "-", "+", "WITHVALUES")
        self.assertTrue(dict(zip(pairs[::2], pairs[1::2])) == self.model)
        self.assertTrue(client.call("MGET", *KEYS) == [self.model.get(key) for key in KEYS])

    def test_changes_and_kills(self):
        server = SkepServer("--dir", self.folder)
        try:
            for saves in (False, True, False):
                with server.connect() as client:
                    if saves:
                        self.assertEqual(client.call("SAVE"), "OK")
                    for step in range(60):
                        self.change(client, in_transaction=step % 2 == 0)
                    self.check(client)
                server.popen.kill()
                server.wait()
                server._discard()
                server = SkepServer("--dir", self.folder)
                with server.connect() as client:
                    self.check(client)
            with server.connect() as client:
                self.assertEqual(client.call("RENAME", b"a", b"d"), "OK")
                self.model[b"d"] = self.model.pop(b"a")
                self.assertEqual(client.call("COPY", b"d", b"a"), 1)
                self.model[b"a"] = self.model[b"d"]
                dumped = client.call("DUMP", b"d")
                self.assertEqual(client.call("RESTORE", b"b", 0, dumped, "REPLACE"), "OK")
                self.model[b"b"] = self.model[b"d"]
                KEYS.append(b"d")
                self.check(client)
                self.assertEqual(client.call("DEL", *KEYS), len(KEYS))
                self.assertEqual(client.call("DBSIZE"), 0)
        finally:
            server.stop()

    # Goal: a small change of a large value is as small in the log.
    def test_the_log_has_what_was_changed(self):
        server = SkepServer("--dir", self.folder)
        try:
            with server.connect() as client:
                client.call("SET", "large", bytes(32 << 20))
                before = self.log_bytes(client)
                for i in range(100):
                    client.call("APPEND", "large", b"tail")
                    client.call("SETRANGE", "large", i << 18, b"range")
                    client.call("SETBIT", "large", i << 20, 1)
                    if i % 25 == 0:
                        client.call("VUPDATE", "large", "max", "u8", 1)
                client.pipeline(("MULTI",), *[("SETBIT", "large", i << 20, 0) for i in range(100)], ("EXEC",))
                self.assertLess(self.log_bytes(client) - before, 100_000)
                reply = client.call("SETRANGE", "large", 64 << 20, b"x")
                self.assertIsInstance(reply, Error)
                self.assertEqual(client.call("STRLEN", "large"), (32 << 20) + 400)
        finally:
            server.stop()

    # Goal: requests that see the whole of a value that is larger than the work of a turn are done, and
    # not set aside for ever because of the copy that they need.
    def test_requests_that_see_the_whole_value(self):
        server = SkepServer("--dir", self.folder)
        try:
            with server.connect() as client:
                client.call("SET", "large", bytes(40 << 20))
                for command in (("INCR", "large"), ("LPUSH", "large", "a"), ("PFADD", "large", "a")):
                    self.assertIsInstance(client.call(*command), Error, command)
                    client.call("MULTI")
                    client.call(*command)
                    self.assertIsInstance(client.call("EXEC")[0], Error, command)
                self.assertEqual(client.call("BITPOS", "large", 1), -1)
                self.assertIsNone(client.call("SET", "large", "b", "IFEQ", "a"))
                self.assertEqual(len(client.call("GETDEL", "large")), 40 << 20)
        finally:
            server.stop()

    @staticmethod
    def log_bytes(client):
        text = client.call("INFO", "persistence").decode()
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return int(fields["aof_current_size"])


if __name__ == "__main__":
    unittest.main()
