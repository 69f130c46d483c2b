#!/usr/bin/env python3
"""Goal: a reply with large values takes no memory beside them and stops nobody: it is sent from where
they lie, while others write, delete and flush them; what a client that does not read keeps is counted,
and is free once it has gone.
Method: MGET of 16 x 60 MiB and its kin, in RESP and in the packed protocol, beside INFO.
"""

import os
import shutil
import socket
import struct
import tempfile
import unittest

import packed
from one_server import OneServerTest
from resp import Closed, encode
from skep_process import SkepServer

VALUE = 60 << 20
KEYS = [b"k%d" % i for i in range(16)]


class LargeRepliesTest(OneServerTest):
    def setUp(self):
        super().setUp()
        self.value = os.urandom(VALUE)

    def ask_without_reading(self, keys):
        """A client that asks for all keys and reads one byte."""
        asking = socket.create_connection(("127.0.0.1", self.server.port))
        asking.sendall(encode(b"MGET", *keys))
        self.assertEqual(asking.recv(1), b"*")
        return asking

    # Goal: commands that look at a whole long value see its bytes, though a reply only refers to them.
    def test_commands_that_look_at_a_value(self):
        value = self.value[:200_000]
        self.client.call("SET", "a", value)
        self.assertEqual(self.client.call("BITCOUNT", "a"), int.from_bytes(value, "big").bit_count())
        self.assertEqual(self.client.call("BITFIELD_RO", "a", "GET", "u8", 8 * 100_000), [value[100_000]])
        bits = "".join(f"{byte:08b}" for byte in value[100_000:])
        self.assertEqual(self.client.call("BITPOS", "a", 1, 100_000, -1), 800_000 + bits.index("1"))
        self.assertEqual(self.client.call("RESTORE", "b", 0, self.client.call("DUMP", "a")), "OK")
        self.assertEqual(self.client.call("GET", "b"), value)
        self.assertEqual(self.client.call("DIGEST", "a"), self.client.call("DIGEST", "b"))
        self.client.call("SET", "c", value[:-1])
        self.assertNotEqual(self.client.call("DIGEST", "a"), self.client.call("DIGEST", "c"))

    def test_mget_beside_others(self):
        for key in KEYS:
            self.client.call("SET", key, self.value)
        before = self.info("used_memory")
        asking = self.ask_without_reading(KEYS)
        self.assertEqual(self.client.call("PING"), "PONG")
        # Nothing is copied, and what is referred to counts as memory of the client.
        self.assertLess(self.info("used_memory") - before, 4 << 20)
        self.assertGreater(self.info("mem_clients_normal"), 900 << 20)
        # Others' writes take effect, and the reply is of its own instant.
        self.client.call("APPEND", KEYS[0], b"tail")
        self.client.call("SET", KEYS[1], b"small")
        self.assertEqual(self.client.call("DEL", KEYS[2]), 1)
        self.client.call("FLUSHALL")
        self.assertGreater(self.info("used_memory"), 900 << 20)
        with asking, asking.makefile("rb") as reader:
            self.assertEqual(reader.readline(), b"16\r\n")
            for key in KEYS:
                self.assertEqual(reader.readline(), b"$%d\r\n" % VALUE)
                self.assertTrue(reader.read(VALUE) == self.value, key)
                self.assertEqual(reader.read(2), b"\r\n")
        self.until(lambda: self.info("used_memory") < 16 << 20)
        self.assertLess(self.info("mem_clients_normal"), 1 << 20)

    def test_clients_that_do_not_read_are_killed(self):
        keys = KEYS[:4]
        for key in keys:
            self.client.call("SET", key, self.value)
        with self.ask_without_reading(keys):
            self.client.call("FLUSHALL")
            self.assertGreater(self.info("used_memory"), 200 << 20)
            self.client.call("CLIENT", "KILL", "SKIPME", "yes")
            self.until(lambda: self.info("used_memory") < 16 << 20)
        # One that has more unread than it may is closed, also if none of it was copied.
        self.client.call("SET", KEYS[0], self.value)
        self.client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 10mb 0 0")
        with self.server.connect() as greedy:
            with self.assertRaises((Closed, ConnectionError)):
                greedy.call("GET", KEYS[0])

    def test_each_command_that_returns_a_value(self):
        call = self.client.call
        big, other = self.value[: 5 << 20], self.value[5 << 20: 9 << 20]
        call("SET", "a", big)
        self.assertTrue(call("GET", "a") == big)
        self.assertTrue(call("GETRANGE", "a", 12345, -100) == big[12345:-99])
        self.assertTrue(call("SUBSTR", "a", 0, 70000) == big[:70001])
        self.assertTrue(call("GETEX", "a") == big)
        self.assertTrue(call("GETEX", "a", "EX", 1000) == big)
        self.assertTrue(call("GETSET", "a", other) == big)
        self.assertTrue(call("SET", "a", big, "GET") == other)
        self.assertTrue(call("SET", "a", other, "NX", "GET") == big)
        self.assertTrue(call("MGET", "a", "absent", "a") == [big, None, big])
        for command in (("MULTI",), ("GET", "a"), ("SETRANGE", "a", 9, "x"), ("GET", "a"),
                        ("GETDEL", "a"), ("GET", "a")):
            call(*command)
        changed = big[:9] + b"x" + big[10:]
        self.assertTrue(call("EXEC") == [big, len(big), changed, changed, None])
        call("SET", "a", big)
        self.assertTrue(call("GETDEL", "a") == big)
        self.assertIsNone(call("GET", "a"))
        # Replies that are not to be sent are not, with their values.
        call("SET", "a", big)
        with socket.create_connection(("127.0.0.1", self.server.port)) as silent:
            silent.sendall(encode(b"CLIENT", b"REPLY", b"SKIP") +
                           encode(b"GET", b"a") + encode(b"PING"))
            self.assertEqual(silent.recv(100), b"+PONG\r\n")

    # Also with durable replies, which wait for a sync of the log and are held meanwhile.
    def test_the_packed_protocol(self):
        folder = tempfile.mkdtemp(prefix="skep-replies-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        big, other = self.value[: 3 << 20], self.value[3 << 20: 5 << 20]
        part = struct.pack("<qq", 100, -101)
        requests = [packed.request(packed.GET, b"a"), packed.request(packed.GET, b"absent"),
                    packed.request(packed.GET, b"a", flags=4, operand=part),
                    packed.request(packed.GET, b"a"),
                    packed.request(packed.PUT, b"a", other, flags=1),
                    packed.request(packed.DELETE, b"a", flags=1)]
        values = [big, None, big[100:-100], big, big, other]
        with SkepServer("--workers", "1", "--dir", folder) as server:
            client = packed.Client(server.port, client_id=7)
            self.addCleanup(client.close)
            for kind in (packed.BATCH, packed.ATOMIC):
                for flags in (0, packed.SYNC, packed.REMEMBER):
                    client.batch(packed.request(packed.PUT, b"a", big))
                    got = client.batch(*requests, kind=kind, flags=flags)
                    for outcome, value in zip(got, values, strict=True):
                        self.assertTrue(outcome.get("value") == value)

    def test_pipelines_keep_their_order(self):
        big = self.value[: 3 << 20]
        self.client.call("SET", "a", big)
        with socket.create_connection(("127.0.0.1", self.server.port)) as pipe:
            count = 40
            pipe.sendall((encode(b"GET", b"a") + encode(b"ECHO", b"x")) * count)
            with pipe.makefile("rb") as reader:
                for _ in range(count):
                    self.assertEqual(reader.readline(), b"$%d\r\n" % len(big))
                    self.assertTrue(reader.read(len(big)) == big)
                    self.assertEqual(reader.read(9), b"\r\n$1\r\nx\r\n")


if __name__ == "__main__":
    unittest.main()
