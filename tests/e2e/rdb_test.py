#!/usr/bin/env python3
"""Goal: what redis-server saved is what the reader of RDB files finds.
Method: a redis-server of the system's is filled with every type in every encoding it has, in several
databases, saves, and is asked for all its keys; the listing of the file must be the same.

Usage: rdb_test.py RDB_LISTING"""

import os
import random
import subprocess
import sys
import unittest

from skep_process import REDIS_BINARY, RedisServer, needs

LISTING = ""


def listing(path):
    """(entries, end): {(db, key): (type, value, deadline_ms)}, and the words of the last line."""
    done = subprocess.run([LISTING, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    *lines, end = [line.split() for line in done.stdout.splitlines()]
    entries = {}
    for kind, db, key, *rest in lines:
        value = text(rest[0]) if rest else None
        at = (int(db), text(key))
        assert at not in entries, at
        entries[at] = (kind, value, int(rest[1]) if rest else None)
    return entries, end


def text(hexadecimal):
    return b"" if hexadecimal == "-" else bytes.fromhex(hexadecimal)


def contents(redis):
    """The contents of the server by its own account, in the form of listing()."""
    entries = {}
    for db in range(16):
        redis.call("SELECT", db)
        for key in redis.call("KEYS", "*"):
            kind = str(redis.call("TYPE", key))
            if kind == "string":
                deadline = redis.call("PEXPIRETIME", key)
                entries[db, key] = (kind, redis.call("GET", key), max(deadline, 0))
            else:
                entries[db, key] = (kind, None, None)
    return entries


def fill_strings(redis, rng):
    for number in (0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32769, 2**31 - 1, -2**31, 2**31,
                   2**63 - 1, -2**63):
        redis.call("SET", f"number:{number}", number)
        redis.call("SET", number, "the key is a number")
    for size in (0, 1, 20, 21, 63, 64, 16383, 16384, 70000, 300000):
        redis.call("SET", f"zeros:{size}", b"\0" * size)
        redis.call("SET", f"words:{size}", b"some words and " * (size // 15))
        redis.call("SET", f"noise:{size}", rng.randbytes(size))
        redis.call("SET", b"key of zeros:" + b"\0" * size, size)
    redis.call("SET", b"\0\xff\r\n\"' \\", rng.randbytes(1000))
    redis.call("APPEND", "raw number", "12345")
    redis.call("SETRANGE", "holes", 1000, "x")
    redis.call("PSETEX", "soon", 3_600_000, "1")
    redis.call("SET", "exactly", "2", "PXAT", 4_102_444_800_123)
    redis.call("SET", "far", "3", "PXAT", 2**53)


def fill_others(redis, rng):
    for name, count in (("few", 3), ("many", 1000)):
        for i in range(count):
            redis.call("RPUSH", f"list:{name}", i, rng.randbytes(30))
            redis.call("SADD", f"intset:{name}", i * i)
            redis.call("SADD", f"set:{name}", f"member {i}")
            redis.call("ZADD", f"zset:{name}", i / 3, f"member {i}")
            redis.call("HSET", f"hash:{name}", f"field {i}", rng.randbytes(10))
            redis.call("XADD", f"stream:{name}", "*", "field", i, "other", "x" * (i % 100))
    redis.call("ZADD", "zset:infinite", "inf", "a", "-inf", "b", "0", "c")
    redis.call("RPUSH", "list:large", rng.randbytes(100_000), b"y" * 100_000)
    redis.call("HSET", "hash:large", "field", b"y" * 100_000)
    redis.call("PFADD", "hll", *range(1000))  # a string
    redis.call("SETBIT", "bits", 100_000, 1)
    redis.call("GEOADD", "geo", "13.36", "38.11", "Palermo")
    for group in ("one", "two"):
        redis.call("XGROUP", "CREATE", "stream:many", group, "0")
        for consumer in ("a", "b"):
            redis.call("XREADGROUP", "GROUP", group, consumer, "COUNT", 70, "STREAMS",
                       "stream:many", ">")
    redis.call("XGROUP", "CREATECONSUMER", "stream:many", "one", "idle")
    redis.call("XADD", "stream:empty", "5-5", "f", "v")
    redis.call("XDEL", "stream:empty", "5-5")
    redis.call("EXPIRE", "list:few", 1000)


@needs(REDIS_BINARY, "redis-tools")
class RdbTest(unittest.TestCase):
    maxDiff = 2000

    def check(self, *options, fill, policy="noeviction"):
        """Returns the end line."""
        seed = random.randrange(2**32)
        with self.subTest(options=options, seed=seed):
            server = RedisServer("--maxmemory-policy", policy, *options)
            self.addCleanup(server.stop)
            redis = server.connect()
            self.addCleanup(redis.close)
            fill(redis, random.Random(seed))
            expected = contents(redis)
            self.assertEqual(redis.call("SAVE"), "OK")
            entries, end = listing(os.path.join(server.folder, "dump.rdb"))
            self.assertEqual(entries.keys(), expected.keys())
            for at, entry in expected.items():
                self.assertEqual(entries[at], entry, at)
            strings = sum(kind == "string" for kind, _, _ in expected.values())
            self.assertEqual(end[2:4], [str(strings), str(len(expected) - strings)])
            return end

    def fill(self, redis, rng):
        for db in (0, 3, 15):
            redis.call("SELECT", db)
            fill_strings(redis, rng)
            fill_others(redis, rng)

    def test_all_types(self):
        self.assertEqual(self.check(fill=self.fill)[5], "true")

    def test_without_compression(self):
        self.check("--rdbcompression", "no", fill=self.fill)

    def test_without_checksum(self):
        self.assertEqual(self.check("--rdbchecksum", "no", fill=self.fill)[5], "false")

    def test_ages_and_frequencies(self):
        for policy in ("allkeys-lru", "allkeys-lfu"):
            self.check(fill=self.fill, policy=policy)

    def test_nothing(self):
        self.check(fill=lambda redis, rng: None)

    def test_functions(self):
        def fill(redis, _):
            body = "#!lua name={}\nredis.register_function('{}', function() return 1 end)"
            for name in ("one", "two"):
                redis.call("FUNCTION", "LOAD", body.format(name, name))
            redis.call("SET", "key", "value")

        self.assertEqual(self.check(fill=fill)[4], "2")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    LISTING = sys.argv.pop(1)
    unittest.main()
