#!/usr/bin/env python3
"""The packed protocol against the real server, with a client written from its page alone."""

import os
import shutil
import signal
import struct
import tempfile
import time
import unittest

import packed
from packed import (ABORTED, ABSENT, AT_SNAPSHOT, ATOMIC, COUNT, DONE, EXISTS, GET, INSERT,
                    NO_UPPER_BOUND, PUT, REMEMBER, REQUIRE_ABSENT, SCAN, Client, Reader, Refused,
                    request, varint)
from skep_process import PATIENCE_S, ServerTest, SkepServer

ALL = {"flags": NO_UPPER_BOUND}


class PackedTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.packed = Client(self.server.port)
        self.addCleanup(self.packed.close)

    def test_the_worked_bytes_of_the_page(self):
        puts = bytes.fromhex("01 04 05 6b657931 76616c7565 61 6b657932 20 6b657933")
        _, reply = self.packed.call(packed.BATCH, puts, count=3)
        self.assertEqual([o["verdict"] for o in packed.outcomes(reply, 3)], [DONE, DONE, ABSENT])
        self.check("OK", "FLUSHALL")
        self.packed.batch(request(PUT, b"a", b"one"), request(PUT, b"b", b"two"),
                          request(PUT, b"c", b"three"))
        gets = b"".join(request(GET, key) for key in (b"a", b"b", b"x", b"c"))
        _, reply = self.packed.call(packed.BATCH, gets + request(COUNT, **ALL)
                                    + request(SCAN, **ALL), count=6)
        self.assertEqual(reply.hex(" "), bytes.fromhex(
            "28036f6e65 3874776f 01 28057468726565 800106 800202020103010105"
            "616f6e656274776f637468726565").hex(" "))

    def test_both_protocols_on_one_store(self):
        self.check("OK", "SET", "from resp", "1")
        self.assertEqual(self.packed.batch(request(GET, b"from resp"))[0]["value"], b"1")
        self.packed.batch(request(PUT, b"from packed", b"2"))
        self.check(b"2", "GET", "from packed")
        self.assertIn(b"cmd=packed", self.client.call("CLIENT", "LIST"))

    def test_keyspaces(self):
        self.packed.batch(request(PUT, b"k", b"3"), keyspace=3)
        self.assertEqual(self.packed.batch(request(GET, b"k"))[0]["verdict"], ABSENT)
        self.assertEqual(self.packed.batch(request(GET, b"k"), keyspace=3)[0]["value"], b"3")
        with self.assertRaises(Refused):
            self.packed.batch(request(GET, b"k"), keyspace=self.packed.keyspaces)

    def test_atomic(self):
        first = self.packed.batch(request(REQUIRE_ABSENT, b"a"), request(PUT, b"a", b"1"),
                                  request(PUT, b"b", b"1"), kind=ATOMIC)
        self.assertEqual([o["verdict"] for o in first], [DONE, DONE, DONE])
        again = self.packed.batch(request(REQUIRE_ABSENT, b"a"), request(PUT, b"b", b"2"),
                                  kind=ATOMIC)
        self.assertEqual([o["verdict"] for o in again], [EXISTS, ABORTED])
        self.check(b"1", "GET", "b")

    def test_functions(self):
        self.packed.batch(request(PUT, b"n", struct.pack("<3q", 40, 3, -1)))
        total = self.packed.batch(request(packed.APPLY, b"n", b"",
                                          operand=packed.function(2, 3, b"sum")))[0]
        self.assertEqual(total["integer"], 42)
        wanted = self.packed.batch(request(packed.APPLY, b"n", struct.pack("<q", 0),
                                           operand=packed.function(3, 3, b"gt")))[0]
        self.assertEqual(wanted["value"], struct.pack("<2q", 40, 3))
        unknown = self.packed.batch(request(packed.APPLY, b"n", b"",
                                            operand=packed.function(2, 3, b"none")))[0]
        self.assertEqual(unknown["verdict"], packed.REFUSED)

    def test_a_snapshot_stays_as_it_was(self):
        self.packed.batch(*(request(PUT, b"key%05d" % i, b"old") for i in range(30000)))
        _, reply = self.packed.call(packed.OPEN_SNAPSHOT)
        number = Reader(reply).varint()
        self.check(30000, "KDELRANGE", "-", "+")
        items, begin = [], b""
        while True:
            scan = varint(number) + request(SCAN, begin, **ALL)
            _, reply = self.packed.call(packed.BATCH, scan, count=1, flags=AT_SNAPSHOT)
            outcome = packed.outcomes(reply, 1)[0]
            items += outcome.get("items", [])
            if not outcome["more"]:
                break
            begin = outcome["value"]
        self.assertEqual(items, [(b"key%05d" % i, b"old") for i in range(30000)])
        self.packed.call(packed.CLOSE_SNAPSHOT, varint(number))
        with self.assertRaises(Refused):
            self.packed.call(packed.BATCH, varint(number) + request(SCAN, **ALL), count=1,
                             flags=AT_SNAPSHOT)

    def test_once(self):
        first = Client(self.server.port, client_id=7)
        insert = request(INSERT, b"once", b"1")
        for _ in range(3):
            outcome = first.batch(insert, flags=REMEMBER, message=5)[0]
            self.assertEqual(outcome["verdict"], DONE)
        first.close()
        again = Client(self.server.port, client_id=7)
        self.assertEqual(again.batch(insert, flags=REMEMBER, message=5)[0]["verdict"], DONE)
        self.assertEqual(again.batch(insert, flags=REMEMBER, message=6)[0]["verdict"], EXISTS)
        again.close()

    def test_many_long_ranges_in_one_message(self):
        # Goal: what a message reads of ranges is cut on every engine, so that the reply is bounded
        # and others go on; who asks for the rest gets all of it, each pair once.
        pairs = [(b"%08d" % i, b"%08d" % (7 * i)) for i in range(20_000)]
        with SkepServer("--keyspace", "1=hashleaf,key=8,value=8", "--keyspace", "2=model") as server:
            client = Client(server.port)
            self.addCleanup(client.close)
            for keyspace in (0, 1, 2):
                with self.subTest(keyspace=keyspace):
                    client.batch(*(request(PUT, key, value) for key, value in pairs),
                                 keyspace=keyspace)
                    scans = [request(SCAN, **ALL)] * 300
                    _, reply = client.call(packed.BATCH, b"".join(scans), count=300,
                                           keyspace=keyspace)
                    self.assertLess(len(reply), 8 << 20)
                    counts = client.batch(*[request(COUNT, b"0", **ALL)] * 300, keyspace=keyspace)
                    for outcome in packed.outcomes(reply, 300):
                        self.assertTrue(outcome["more"])
                        self.assertEqual(outcome["items"], pairs[:len(outcome["items"])])
                    for outcome in counts:
                        self.assertTrue(outcome["more"])
                        self.assertGreater(outcome["value"], pairs[outcome["integer"] - 1][0])
                        self.assertLessEqual(outcome["value"], pairs[outcome["integer"]][0])
                    items, begin = [], b""
                    while True:
                        part = client.batch(request(SCAN, begin, **ALL), keyspace=keyspace)[0]
                        items += part["items"]
                        if not part["more"]:
                            break
                        begin = part["value"]
                    self.assertEqual(items, pairs)

    def test_many_messages_under_way(self):
        ids = [self.packed.send(packed.BATCH, request(PUT, b"k%d" % i, b"v"), count=1)
               for i in range(2000)]
        answered = sorted(self.packed.take()[0] for _ in ids)
        self.assertEqual(answered, ids)
        self.check(2000, "DBSIZE")

    def test_a_client_that_does_not_read(self):
        """The client delays no other one, and gets all its answers once it reads."""
        self.packed.batch(request(PUT, b"large", b"x" * 1_000_000))
        slow = Client(self.server.port)
        sent = 0
        try:
            for _ in range(2000):
                slow.send(packed.BATCH, request(GET, b"large") * 4, count=4)
                sent += 1
        except TimeoutError:
            self.fail("requests are small: the server must take them or its socket must")
        self.check("PONG", "PING")
        self.assertLess(self.server.rss_bytes(), 500 << 20)
        for _ in range(50):
            _, _, _, count, payload = slow.take()
            self.assertEqual(len(packed.outcomes(payload, count)[3]["value"]), 1_000_000)
        slow.close()
        self.check("PONG", "PING")


    def test_parts_of_values(self):
        """A get of a part, which the hello promises, has no other bytes of the value, long ones too."""
        self.assertTrue(self.packed.features & 16)
        for value in (b"0123456789", os.urandom(300_000)):
            self.packed.batch(request(PUT, b"v", value))
            size = len(value)
            for first, last in ((0, 0), (3, 5), (-4, -1), (0, -1), (2, 10 * size), (size - 1, -1), (5, 2), (size, -1)):
                part = packed.part(first, last)
                found = self.packed.batch(request(GET, b"v", flags=4, operand=part))[0]
                begin, end = (at + size if at < 0 else at for at in (first, last))
                self.assertEqual((found["verdict"], found.get("value", b"")), (DONE, value[begin:end + 1]))
        self.assertEqual(self.packed.batch(request(GET, b"none", flags=4, operand=packed.part(0, 1)))[0]["verdict"], ABSENT)

    def test_long_values_come_whole(self):
        """They are sent from where they lie, also if they are written meanwhile, and among small ones."""
        values = [os.urandom(size) for size in (70_000, 10, 1 << 20, 65_536, 65_537, 300_000)]
        puts = [request(PUT, b"v%d" % i, value) for i, value in enumerate(values)]
        gets = [request(GET, b"v%d" % i) for i in range(len(values))]
        self.packed.batch(*puts)
        for kind in (packed.BATCH, ATOMIC):
            before = self.packed.send(kind, b"".join(gets), count=len(gets))
            write = self.packed.send(packed.BATCH, b"".join(request(PUT, b"v%d" % i, b"new") for i in range(len(values))),
                                     count=len(values))
            answers = {}
            for _ in range(2):
                message, _, _, count, payload = self.packed.take()
                answers[message] = packed.outcomes(payload, count)
            self.assertEqual([found["value"] for found in answers[before]], values)
            self.assertEqual([found["verdict"] for found in answers[write]], [DONE] * len(values))
            self.assertEqual(self.packed.batch(*gets)[2]["value"], b"new")
            self.packed.batch(*puts)

    def test_the_leaves_of_a_tree(self):
        """Links of all leaves, page by page; with them, requests have hints that are right, or not."""
        for begin in range(0, 2000, 100):
            self.client.call("MSET", *(part for i in range(begin, begin + 100)
                                       for part in (f"key{i:05}", "v" * 20)))
        self.assertTrue(self.packed.features & 8)
        links = []
        start = b""
        while True:
            _, reply = self.packed.call(packed.TOP, varint(3) + start)
            reader = Reader(reply)
            page = [(reader.take(reader.varint()), reader.take(8), reader.varint())
                    for _ in range(reader.varint())]
            self.assertLessEqual(len(page), 3)
            links += page
            start = reader.rest()
            if not start:
                break
        self.assertGreater(len(links), 5)
        self.assertEqual([lower for lower, _, _ in links], sorted({lower for lower, _, _ in links}))
        for i in range(0, 2000, 37):
            key = f"key{i:05}".encode()
            right = max((lower, hint) for lower, hint, _ in links if lower <= key)[1]
            wrong = links[0][1] if right != links[0][1] else links[1][1]
            told = self.packed.batch(request(GET, key, hint=right), request(GET, key, hint=wrong))
            self.assertEqual([outcome["value"] for outcome in told], [b"v" * 20] * 2)
            self.assertEqual([outcome.get("hint") for outcome in told], [None, right])

    def test_a_thousand_clients_that_leave(self):
        """Clients leave in the middle of a message, of which nothing is done, or before the answer."""
        payload = request(PUT, b"left", b"value")
        message = struct.pack("<IIBBHI", len(payload), 1, packed.BATCH, 0, 0, 1) + payload
        for i in range(1000):
            client = Client(self.server.port, client_id=i + 1)
            client.socket.sendall(message[:i % len(message)] if i % 3 else message * 5)
            client.close()
        until = time.monotonic() + PATIENCE_S
        while b"connected_clients:2\r\n" not in self.client.call("INFO", "clients"):
            self.assertLess(time.monotonic(), until)
        self.check(1, "DBSIZE")


class DatagramTest(ServerTest):
    OPTIONS = ("--udp", "yes")

    def test_datagrams_beside_connections(self):
        first = packed.Datagrams(self.server.port, client_id=5)
        self.addCleanup(first.close)
        self.assertEqual(first.call(packed.PING, b"echo"), b"echo")
        self.assertNotEqual(first.instance, 0)
        first.batch(request(PUT, b"k", b"from a datagram"))
        self.check(b"from a datagram", "GET", "k")
        for _ in range(2):
            outcome = first.batch(request(INSERT, b"once", b"1"), flags=REMEMBER, message=9)[0]
            self.assertEqual(outcome["verdict"], DONE)
        self.check("OK", "SET", "large", "x" * 100_000)
        with self.assertRaises(Refused) as refused:
            first.batch(request(GET, b"large"))
        self.assertEqual(refused.exception.args[0][0], 3)
        with self.assertRaises(Refused):
            first.call(packed.OPEN_SNAPSHOT)


class DurableTest(unittest.TestCase):
    def test_what_was_answered_is_there_after_a_kill(self):
        folder = tempfile.mkdtemp(prefix="skep-e2e-")
        self.addCleanup(shutil.rmtree, folder)
        options = ("--dir", os.path.join(folder, "data"))
        server = SkepServer(*options)
        client = Client(server.port)
        client.batch(request(PUT, b"k", b"1"), flags=packed.SYNC)
        client.batch(request(PUT, b"l", b"2"))
        server.signal(signal.SIGKILL)
        server.wait()
        client.close()
        with SkepServer(*options) as again:
            client = Client(again.port)
            values = client.batch(request(GET, b"k"), request(GET, b"l"))
            self.assertEqual([v["value"] for v in values], [b"1", b"2"])
            client.close()


if __name__ == "__main__":
    unittest.main()
