#!/usr/bin/env python3
"""Goal: DUMP and RESTORE carry every value from here to Redis and back.
Method: the packaged redis-server and skep-server get the same collections, of all types and in all
encodings that Redis has for them; each restores what the other has dumped, and must have the same
members then. Once with collections in one value, and once in parts of some members each.
"""

import random
import re
import unittest

from beside_redis import BesideRedisTest
from resp import Error
from skep_process import SANITIZED, ServerTest, SkepServer

LATER_MS = 4_102_444_800_000
READS = {"hash": ("HGETALL",), "set": ("SMEMBERS",), "list": ("LRANGE", 0, -1),
         "zset": ("ZRANGE", 0, -1, "WITHSCORES"), "string": ("GET",)}
ADDS = {"hash": "HSET", "set": "SADD", "list": "RPUSH", "zset": "ZADD"}
# Redis packs small collections, and none with these.
UNPACKED = [word for name in ("hash-max-listpack-entries", "zset-max-listpack-entries",
                              "set-max-intset-entries") for word in (name, 0)]
PACKED = [word for name in ("hash-max-listpack-entries", "zset-max-listpack-entries",
                            "set-max-intset-entries") for word in (name, 512)]
SCORES = ["0", "1", "-1", "0.1", "1e300", "5e-324", "inf", "-inf", "12345678901234567"]


def contents(client, key):
    """Type, deadline and members."""
    kind = str(client.call("TYPE", key))
    if kind == "none":
        return kind
    verb, *words = READS[kind]
    reply = client.call(verb, key, *words)
    if kind == "hash":
        reply = dict(zip(reply[::2], reply[1::2]))
    return kind, client.call("PEXPIRETIME", key), sorted(reply) if kind == "set" else reply


def some_words(rng, kind, count):
    """What the command that adds members of this kind takes."""
    def text():
        if rng.random() < 0.4:
            return b"%d" % (rng.randrange(-2**63, 2**63) >> rng.randrange(63))
        size = rng.choice([0, 1, 2, 20, 21, 63, 64, 65, 126, 127, 300, 4095, 4096])
        return rng.randbytes(size) if rng.random() < 0.5 else b"ab" * (size // 2)

    words = []
    for i in range(count):
        member = b"%d" % (i * 97) if kind == "set" and count % 2 else text()
        if kind == "zset":
            words.append(rng.choice(SCORES))
        words.append(member)
        if kind == "hash":
            words.append(text())
    return words


class DumpTest(BesideRedisTest):
    # Goal: what one has dumped the other restores, whatever the encoding.
    def test_both_directions(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        redis, skep = self.connect_both()
        for _ in range(20 if SANITIZED else 60):
            kind = rng.choice(list(ADDS))
            words = some_words(rng, kind, rng.choice([1, 2, 3, 10, 100, 129, 600]))
            options = rng.choice([PACKED, UNPACKED])
            with self.subTest(seed=seed, kind=kind, options=options):
                self.assertEqual(redis.call("CONFIG", "SET", *options), "OK")
                for client in (redis, skep):
                    client.call("DEL", "key")
                    self.assertNotIsInstance(client.call(ADDS[kind], "key", *words), Error)
                    client.call("PEXPIREAT", "key", LATER_MS)
                expected = contents(redis, "key")
                payloads = [client.call("DUMP", "key") for client in (redis, skep)]
                for client in (redis, skep):
                    for payload in payloads:
                        self.assertEqual(client.call("RESTORE", "key", LATER_MS, payload, "REPLACE",
                                                     "ABSTTL"), "OK")
                        self.assertEqual(contents(client, "key"), expected)
                    # What is restored takes members, and loses them.
                    self.assertNotIsInstance(client.call(ADDS[kind], "key", *words), Error)
                self.assertEqual(contents(skep, "key"), contents(redis, "key"))

    # Goal: a transaction has both, as one step with the rest of it.
    def test_in_a_transaction(self):
        for client in self.connect_both():
            client.call("ZADD", "z", 1, "a", 2.5, "b")
            client.call("SET", "s", "a string")
            payload, text = client.call("DUMP", "z"), client.call("DUMP", "s")
            replies = client.pipeline(
                ["MULTI"], ["DUMP", "z"], ["ZADD", "z", 3, "c"], ["DUMP", "s"], ["DUMP", "none"],
                ["RESTORE", "y", 0, payload], ["RESTORE", "y", 0, payload], ["ZCARD", "y"],
                ["ZCARD", "z"], ["RESTORE", "z", 0, text, "REPLACE"], ["GET", "z"], ["EXEC"])[-1]
            self.assertEqual(replies, [payload, 1, text, None, "OK",
                                       Error("BUSYKEY Target key name already exists."), 2, 3, "OK",
                                       b"a string"])

    # Goal: whoever waits for a list gets an element of one that is restored.
    def test_a_waiter(self):
        with self.skep.connect() as client, self.skep.connect() as waiter:
            client.call("FLUSHALL")
            client.call("RPUSH", "list", "a", "b")
            payload = client.call("DUMP", "list")
            waiter.send(b"BLPOP other 0\r\n")
            while b"blocked_clients:1" not in client.call("INFO", "clients"):
                pass
            self.assertEqual(client.call("RESTORE", "other", 0, payload), "OK")
            self.assertEqual(waiter.read_reply()[0], [b"other", b"a"])
            self.assertEqual(client.call("LRANGE", "other", 0, -1), [b"b"])

    # Goal: a damaged payload, with a right checksum or not, changes nothing.
    # Method: every byte of some payloads is changed; Redis says what the checksum is of no other.
    def test_damage(self):
        with self.skep.connect() as client:
            client.call("FLUSHALL")
            client.call("HSET", "h", "f", "v", "n", 300)
            payload = client.call("DUMP", "h")
            for at in range(len(payload)):
                damaged = bytearray(payload)
                damaged[at] ^= 1
                self.assertEqual(client.call("RESTORE", "x", 0, bytes(damaged)),
                                 Error("ERR DUMP payload version or checksum are wrong"))
            self.assertEqual(client.call("EXISTS", "x"), 0)


class LargeDumpTest(DumpTest):
    SKEP_OPTIONS = ("--collection-value-bytes", 48)


class LimitTest(ServerTest):
    OPTIONS = ("--keyspace", "1=hash")

    def parts(self):
        """How many parts large collections have."""
        info = self.client.call("INFO", "engine").decode()
        return int(re.search(r"db0_collection_items:(\d+)", info)[1])

    # Goal: a collection may be restored up to the limit of a value, and becomes a large one; beyond
    # it, and where there are no large ones, the error says so, and nothing is changed.
    def test_limits(self):
        members = [b"%06d" % i + b"m" * 1000 for i in range(1200)]
        for i in range(0, len(members), 200):
            self.client.call("SADD", "s", *members[i:i + 200])
        payload = self.client.call("DUMP", "s")
        self.assertGreater(len(payload), 1 << 15)
        before = self.parts()
        self.check("OK", "RESTORE", "t", 0, payload)
        self.assertGreater(self.parts(), before + before // 2)
        self.check(members, "SMEMBERS", "t")
        with SkepServer("--collection-value-bytes", 0) as server, server.connect() as small:
            small.call("SET", "t", "kept")
            self.assertEqual(small.call("RESTORE", "t", 0, payload, "REPLACE"),
                             Error("ERR a collection exceeds the maximum size"))
            self.assertEqual(small.call("GET", "t"), b"kept")
        for i in range(70):
            self.client.call("RPUSH", "l", b"%d" % i + b"x" * (1 << 20))
        large = self.client.call("DUMP", "l")
        self.check(Error("ERR a collection exceeds the maximum size"), "RESTORE", "t", 0, large,
                   "REPLACE")
        self.check(members, "SMEMBERS", "t")
        self.check("OK", "SELECT", 1)
        self.assertIsInstance(self.client.call("RESTORE", "t", 0, payload), Error)
        self.check(None, "DUMP", "t")


if __name__ == "__main__":
    unittest.main()
