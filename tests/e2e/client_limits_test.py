#!/usr/bin/env python3
"""Clients that do not read, and how an operator gets rid of them: CLIENT KILL and NO-EVICT,
maxmemory-clients, client-output-buffer-limit, timeout, and what a range that nobody reads pins."""

import re
import time
import unittest

import packed
from beside_redis import BesideRedisTest
from packed import AT_SNAPSHOT, BATCH, NO_UPPER_BOUND, OPEN_SNAPSHOT, SCAN, Reader, varint
from resp import Closed, Connection, Error, encode
from skep_process import (PATIENCE_S, SANITIZED, RedisServer, ServerTest, SkepServer,
                          free_port)

MIB = 1 << 20


def field(client, section, name):
    return int(re.search(rb"\b%s:(\d+)" % name.encode(), client.call("INFO", section)).group(1))


def pins(client):
    """Snapshots of the first database."""
    return int(re.search(rb"keyspace0:.*snapshots=(\d+)", client.call("INFO", "keyspace")).group(1))


def is_open(connection):
    try:
        return connection.call("PING") == "PONG"
    except (Closed, BrokenPipeError, ConnectionResetError):
        return False


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def write_all(client, pairs, patience_s=PATIENCE_S):
    """Sets all pairs. A thread that stands still while it reads, as on a busy machine, may have a write
    refused that fits a moment later (btree/upkeep.h): that is sent again, and must be taken in time."""
    deadline = time.monotonic() + patience_s
    while pairs:
        assert time.monotonic() < deadline, "writes are still refused"
        replies = client.pipeline(*(["SET", key, value] for key, value in pairs))
        assert all(str(reply) == "OK" or str(reply).startswith("OOM ") for reply in replies), replies[:3]
        pairs = [pair for pair, reply in zip(pairs, replies) if reply != "OK"]


class KillTest(BesideRedisTest):
    # Over a unix socket all clients of Redis would have one address.
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.redis_port = free_port()
        cls.tcp_redis = RedisServer("--port", cls.redis_port)
        cls.addClassCleanup(cls.tcp_redis.stop)

    # Goal: every filter of CLIENT KILL ends whom Redis ends, and answers what Redis answers.
    # Method: on each server four connections; one kills by a filter that is made of the others' ids
    # and addresses; then is compared who is still there.
    def test_filters(self):
        filters = {
            "id": lambda of: ["ID", of[1]["id"]],
            "old form": lambda of: [of[1]["addr"]],
            "old form, oneself": lambda of: [of[0]["addr"]],
            "address": lambda of: ["ADDR", of[2]["addr"]],
            "local address": lambda of: ["LADDR", of[2]["laddr"]],
            "all but oneself": lambda of: ["TYPE", "normal"],
            "all": lambda of: ["TYPE", "normal", "SKIPME", "no"],
            "oneself": lambda of: ["ID", of[0]["id"], "SKIPME", "no"],
            "oneself, skipped": lambda of: ["ID", of[0]["id"]],
            "two that fit": lambda of: ["ID", of[1]["id"], "ADDR", of[1]["addr"]],
            "two that do not": lambda of: ["ID", of[1]["id"], "ADDR", of[2]["addr"]],
            "last counts": lambda of: ["ID", of[1]["id"], "ID", of[2]["id"]],
            "user": lambda of: ["USER", "default", "ID", of[3]["id"]],
            "replicas": lambda of: ["TYPE", "replica"],
            "subscribers": lambda of: ["TYPE", "pubsub", "SKIPME", "no"],
            "any case": lambda of: ["iD", of[1]["id"], "sKiPmE", "YES"],
            "wrong at the end": lambda of: ["ID", of[1]["id"], "SKIPME", "maybe"],
        }
        for name, words in filters.items():
            with self.subTest(name=name):
                outcomes = [self.kill(port, words) for port in (self.redis_port, self.skep.port)]
                self.assertEqual(outcomes[0], outcomes[1])

    def kill(self, port, words):
        connections = [Connection(port, timeout=PATIENCE_S) for _ in range(4)]
        try:
            of = []
            for connection in connections:
                line = connection.call("CLIENT", "INFO").decode()
                of.append(dict(pair.split("=", 1) for pair in line.split()))
            reply = connections[0].call("CLIENT", "KILL", *words(of))
            return reply, [is_open(connection) for connection in connections]
        finally:
            for connection in connections:
                connection.close()

    def test_errors_and_the_rest(self):
        self.check_conversations({
            "kill": """
                CLIENT KILL
                CLIENT KILL 1.2.3.4:5
                CLIENT KILL ID
                CLIENT KILL ID 0
                CLIENT KILL ID -1
                CLIENT KILL ID abc
                CLIENT KILL ID 999999999
                CLIENT KILL TYPE nosuch
                CLIENT KILL TYPE master
                CLIENT KILL TYPE slave
                CLIENT KILL USER nobody
                CLIENT KILL SKIPME maybe ID 999999999
                CLIENT KILL NOSUCH x
                CLIENT KILL ID 999999999 ADDR
                CLIENT KILL ADDR 1.2.3.4:5 LADDR 1.2.3.4:6 SKIPME no
                """,
            "no-evict": """
                CLIENT NO-EVICT
                CLIENT NO-EVICT on
                CLIENT NO-EVICT OFF
                CLIENT NO-EVICT maybe
                CLIENT NO-EVICT on off
                """,
            "options": """
                CONFIG SET client-output-buffer-limit normal
                CONFIG SET client-output-buffer-limit "nosuch 0 0 0"
                CONFIG SET client-output-buffer-limit "normal 0 x 0"
                CONFIG SET client-output-buffer-limit "normal 0 0"
                CONFIG SET client-output-buffer-limit "normal 3mb 2mb 60 replica 5 4 3 pubsub 1 1 1"
                CONFIG GET client-output-buffer-limit
                CONFIG SET client-output-buffer-limit "slave 256mb 64mb 60"
                CONFIG GET client-output-buffer-limit
                CONFIG SET client-output-buffer-limit "normal 0 0 0"
                CONFIG SET maxmemory-clients 101%
                CONFIG SET maxmemory-clients abc
                CONFIG SET maxmemory-clients 5%
                CONFIG GET maxmemory-clients
                CONFIG SET maxmemory-clients 100mb
                CONFIG GET maxmemory-clients
                CONFIG SET maxmemory-clients 0
                """})

    # Goal: what a client sent behind the command that ends it is not done.
    def test_nothing_behind_ones_own_end(self):
        with self.skep.connect() as client, self.skep.connect() as other:
            line = client.call("CLIENT", "INFO").decode()
            address = re.search(r"addr=(\S+)", line).group(1)
            client.send(encode("CLIENT", "KILL", address) + encode("SET", "behind", 1))
            self.assertEqual(client.read(), "OK")
            self.assertTrue(client.is_closed())
            self.assertEqual(other.call("EXISTS", "behind"), 0)


class NoReaderTest(ServerTest):
    def deaf(self, *command, count=1):
        """A connection that has asked and reads nothing."""
        connection = self.server.connect()
        self.addCleanup(connection.close)
        # Whoever counts clients next counts this one.
        self.assertEqual(connection.call("PING"), "PONG")
        connection.send(encode(*command) * count)
        return connection

    def set(self, *options):
        for name, value in zip(options[::2], options[1::2]):
            before = self.client.call("CONFIG", "GET", name)[1]
            self.addCleanup(self.client.call, "CONFIG", "SET", name, before)
        self.check("OK", "CONFIG", "SET", *options)

    def clients(self):
        return self.client.call("CLIENT", "LIST").decode().count("\n")

    # Goal: CLIENT KILL ends one that does not read, whatever it is in the middle of, and CLIENT LIST
    # does not tell of it any more.
    def test_kill_in_the_middle(self):
        self.check("OK", "SET", "big", b"x" * MIB)
        self.client.pipeline(*(["SET", b"key:%04d" % i, b"v" * 10_000] for i in range(1000)))
        for command in (["GET", "big"], ["KRANGE", "-", "+", "WITHVALUES"], ["KEYS", "*"]):
            with self.subTest(command=command):
                deaf = self.deaf(*command, count=50)
                address = "127.0.0.1:%d" % deaf.socket.getsockname()[1]
                wait_until(lambda: address.encode() in self.client.call("CLIENT", "LIST"))
                self.check("OK", "CLIENT", "KILL", address)
                self.assertNotIn(address.encode(), self.client.call("CLIENT", "LIST"))
                self.check(Error("ERR No such client"), "CLIENT", "KILL", address)
                wait_until(lambda: field(self.client, "clients", "connected_clients") == 1)
        self.assertEqual(field(self.client, "engine", "db0_snapshots"), 0)

    # Goal: `timeout` ends who does not take its replies, though it sends on and on; and not who
    # takes them slowly.
    def test_timeout_of_those_that_do_not_read(self):
        self.check("OK", "SET", "big", b"x" * MIB)
        self.client.pipeline(*(["SET", b"key:%04d" % i, b"v" * 10_000] for i in range(1000)))
        deaf = [self.deaf("GET", "big", count=50), self.deaf("KRANGE", "-", "+", "WITHVALUES", count=9)]
        slow = self.deaf("GET", "big", count=30)
        self.set("timeout", 5)
        for _ in range(30):
            self.assertEqual(len(slow.read()), MIB)
            self.check("PONG", "PING")
            time.sleep(0.3)
        wait_until(lambda: self.clients() == 2)
        for connection in deaf:
            with self.assertRaises(Closed):
                while True:
                    connection.read()
        self.assertTrue(is_open(slow))

    # Goal: the soft limit holds for as long as it says, the hard one at once.
    def test_output_limits(self):
        self.check("OK", "SET", "big", b"x" * (8 * MIB))
        self.set("client-output-buffer-limit", "normal 100mb 1mb 1")
        deaf = self.deaf("MGET", "big", "big")
        wait_until(lambda: self.clients() == 1)
        with self.assertRaises(Closed):
            deaf.read()
        self.set("client-output-buffer-limit", "normal 20mb 1mb 100000")
        over_soft = self.deaf("GET", "big")
        over_hard = self.deaf("MGET", *["big"] * 4)
        wait_until(lambda: self.clients() == 2)
        self.assertEqual(len(over_soft.read()), 8 * MIB)
        with self.assertRaises(Closed):
            over_hard.read()

    # Goal: over maxmemory-clients the largest goes, as few as suffice, and none that is kept or for one.
    def test_eviction_of_clients(self):
        self.check("OK", "SET", "big", b"x" * (8 * MIB))
        self.check("OK", "CLIENT", "NO-EVICT", "on")
        self.assertIn(b"flags=e", self.client.call("CLIENT", "INFO"))
        kept = self.server.connect()
        self.addCleanup(kept.close)
        self.assertEqual(kept.call("CLIENT", "NO-EVICT", "ON"), "OK")
        kept.send(encode("MGET", *["big"] * 6))
        small, large = self.deaf("GET", "big"), self.deaf("MGET", *["big"] * 3)

        # The kernel takes what it can of a reply, in several turns.
        def kept_bytes():
            time.sleep(0.05)
            return re.findall(rb"omem=([1-9]\d{6,})", self.client.call("CLIENT", "LIST"))

        wait_until(lambda: len(kept_bytes()) == 3 and kept_bytes() == kept_bytes())
        evicted = field(self.client, "stats", "evicted_clients")
        others = [line for line in self.client.call("CLIENT", "LIST").splitlines()
                  if b" flags=N " in line]
        others_bytes = sum(int(re.search(rb"tot-mem=(\d+)", line).group(1)) for line in others)
        self.set("maxmemory-clients", str(others_bytes - MIB))
        with self.assertRaises(Closed):
            large.read()
        self.assertEqual(len(small.read()), 8 * MIB)
        self.assertEqual(len(kept.read()), 6)
        self.assertEqual(field(self.client, "stats", "evicted_clients"), evicted + 1)
        wait_until(lambda: field(self.client, "memory", "mem_clients_normal") < MIB)

    # Goal: names are not a place to keep things in.
    def test_names_are_short(self):
        long = Error("ERR Client names cannot be longer than 256 bytes.")
        self.check("OK", "CLIENT", "SETNAME", "n" * 256)
        self.check(b"n" * 256, "CLIENT", "GETNAME")
        self.check(long, "CLIENT", "SETNAME", "n" * 257)
        self.check(long, "CLIENT", "SETNAME", "n" * (100 * MIB))
        self.check(long, "CLIENT", "SETINFO", "LIB-NAME", "n" * 257)
        self.check(long, "HELLO", 3, "SETNAME", "n" * 257)
        self.check(b"n" * 256, "CLIENT", "GETNAME")


class StalledRangeTest(unittest.TestCase):
    # Goal: ranges that nobody reads cost bounded memory beside overwrites, and no write stays refused
    # for what they hold: their versions are given up first, and where there is a limit for it, the
    # connections whose replies are too many.
    # Method: a dozen connections, or three dozen with maxmemory-clients, ask for everything and do
    # not read, each at a version of its own, while everything is overwritten, with little more
    # memory than the data.
    @unittest.skipIf(SANITIZED, "takes minutes under sanitizers")
    def test_overwrites_beside_ranges_nobody_reads(self):
        for connections, options in ((12, ("--maxmemory", "80mb")),
                                     (36, ("--maxmemory", "64mb", "--maxmemory-clients", "25%"))):
            with self.subTest(connections=connections):
                self.overwrite_beside(connections, options)

    def overwrite_beside(self, connections, options):
        count, value = 2000, 8_000
        with SkepServer(*options) as server, server.connect() as client:
            def overwrite(i):
                write_all(client, [(b"key:%05d" % k, b"%d" % i * value) for k in range(count)])

            overwrite(0)
            deaf = []
            for i in range(connections):
                connection = server.connect()
                self.addCleanup(connection.close)
                connection.send(encode("KRANGE", "-", "+", "WITHVALUES"))
                deaf.append(connection)
                overwrite(i % 10)
            self.assertLess(field(client, "memory", "used_memory"), 80 * MIB)
            with self.assertRaises(Closed):
                deaf[0].read()  # inside an array there is no other way to tell
            for connection in deaf:
                connection.close()
            # What lives is counted, not `used_memory`: some of what was freed lies in spans of which a
            # part lives, up to 10 MiB, and the schedule of the threads decides how much.
            wait_until(lambda: field(client, "engine", "db0_arena_allocated_bytes") < 17 * MIB)
            # A scan is told. There is as much less memory as giving it up frees, and that alone.
            token, _ = client.call("KSCAN", "-", "+", "COUNT", 1)
            overwrite(7)
            used = field(client, "memory", "used_memory")
            client.call("CONFIG", "SET", "maxmemory", used - 8 * MIB)
            self.assertEqual(client.call("SET", "key:00000", "x"), "OK")
            self.assertRegex(client.call("KSCAN", "NEXT", token), "^SNAPSHOTTOOOLD")
            client.call("CONFIG", "SET", "maxmemory", "80mb")
            overwrite(5)
            self.assertEqual(len(client.call("KRANGE", "-", "+")), count)


class PackedTest(unittest.TestCase):
    """The same limits on the packed protocol, and by datagrams."""

    COUNT, VALUE_BYTES = 2000, 8_000
    EVERYTHING = packed.request(SCAN, flags=NO_UPPER_BOUND)

    def overwrite(self, client, i):
        """Writes a pair for each key."""
        write_all(client, [(b"key:%05d" % k, b"%d" % (i % 10) * self.VALUE_BYTES)
                           for k in range(self.COUNT)])

    def packed_client(self, server):
        client = packed.Client(server.port)
        self.addCleanup(client.close)
        return client

    # Goal: scans that nobody reads cost bounded memory beside overwrites, and no write stays refused
    # for them: the largest connections end.
    @unittest.skipIf(SANITIZED, "takes minutes under sanitizers")
    def test_scans_nobody_reads(self):
        with (SkepServer("--maxmemory", "64mb", "--maxmemory-clients", "25%") as server,
              server.connect() as client):
            self.overwrite(client, 0)
            for i in range(36):
                deaf = self.packed_client(server)
                try:
                    for _ in range(100):
                        deaf.send(BATCH, self.EVERYTHING, count=1)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # it was the largest
                self.overwrite(client, i)
            self.assertLess(field(client, "memory", "used_memory"), 64 * MIB)
            self.assertGreater(field(client, "stats", "evicted_clients"), 0)

    # Goal: who opens snapshots for ever, beside overwrites, has a bounded number of them and costs no
    # write its room; the oldest are given up, which their owner is told, and the owner's memory is
    # counted as a client's.
    @unittest.skipIf(SANITIZED, "takes minutes under sanitizers")
    def test_snapshots_for_ever(self):
        handles_max, handle_bytes = 16_384, 128
        with SkepServer("--maxmemory", "64mb") as server, server.connect() as client:
            self.overwrite(client, 0)
            greedy = self.packed_client(server)
            first = Reader(greedy.call(OPEN_SNAPSHOT)[1]).varint()
            for i in range(64):
                ids = [greedy.send(OPEN_SNAPSHOT, b"") for _ in range(handles_max // 64)]
                answers = [greedy.take() for _ in ids]
                self.overwrite(client, i)
            self.assertTrue(answers[-1][2] & packed.FAILED, "one snapshot too many")
            self.assertFalse(answers[-2][2] & packed.FAILED)
            self.assertLess(field(client, "memory", "used_memory"), 64 * MIB)
            self.assertGreater(field(client, "memory", "mem_clients_normal"),
                               handles_max * handle_bytes)
            _, reply = greedy.call(BATCH, varint(first) + self.EVERYTHING, count=1,
                                   flags=AT_SNAPSHOT)
            outcome = packed.outcomes(reply, 1)[0]
            self.assertEqual((outcome["verdict"], outcome["status"][0]), (packed.REFUSED, 5))
            self.assertEqual(client.call("CONFIG", "SET", "maxmemory-clients", "1mb"), "OK")
            wait_until(lambda: field(client, "stats", "evicted_clients") == 1)
            wait_until(lambda: field(client, "memory", "mem_clients_normal") < MIB)
            self.assertEqual(pins(client), 0)

    # Goal: datagrams that ask for everything, again and again, whose answers nobody takes, pin
    # nothing and leave nothing behind.
    def test_datagrams_nobody_reads(self):
        with (SkepServer("--maxmemory", "64mb", "--udp", "yes") as server,
              server.connect() as client):
            self.overwrite(client, 0)
            before = field(client, "memory", "used_memory")
            deaf = [packed.Datagrams(server.port, client_id=i + 1) for i in range(50)]
            for i in range(20):
                for datagrams in deaf:
                    self.addCleanup(datagrams.close)
                    for _ in range(10):
                        datagrams.send(BATCH, self.EVERYTHING, count=1)
                self.overwrite(client, i)
                self.assertEqual(pins(client), 0)
            self.assertLess(field(client, "memory", "used_memory") - before, 8 * MIB)


if __name__ == "__main__":
    unittest.main()
