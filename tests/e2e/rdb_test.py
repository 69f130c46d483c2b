#!/usr/bin/env python3
"""Goal: what redis-server saved is what the reader of RDB files finds.
Method: a redis-server of the system's is filled with every type in every encoding it has, in several
databases, saves, and is asked for all its keys; the listing of the file must be the same.

Also skep-dump must store all of it that there is of here, and skep-check count it.

Usage: rdb_test.py RDB_LISTING SKEP_CHECK SKEP_DUMP"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

from skep_process import PATIENCE_S, REDIS_BINARY, RedisServer, SkepServer, needs

LISTING, CHECK, DUMP = "", "", ""


def listing(path):
    """(entries, end): {(db, key): (type, value, deadline_ms)}, and the words of the last line. The
    value of a collection is its members, a list of them or a dict."""
    done = subprocess.run([LISTING, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    *lines, end = [line.split() for line in done.stdout.splitlines()]
    entries = {}
    for kind, db, key, *rest in lines:
        at = (int(db), text(key))
        assert at not in entries, at
        if kind == "skipped":
            entries[at] = (kind, None, None)
        elif kind == "string":
            entries[at] = (kind, text(rest[0]), int(rest[1]))
        else:
            entries[at] = (kind, members_of(kind, list(map(text, rest[1:]))), int(rest[0]))
    return entries, end


def members_of(kind, texts):
    if kind in ("hash", "zset"):
        return dict(zip(texts[::2], texts[1::2]))
    return texts if kind == "list" else sorted(texts)


READS = {"string": ("GET",), "hash": ("HGETALL",), "set": ("SMEMBERS",),
         "list": ("LRANGE", 0, -1), "zset": ("ZRANGE", 0, -1, "WITHSCORES")}


def text(hexadecimal):
    return b"" if hexadecimal == "-" else bytes.fromhex(hexadecimal)


def contents(redis):
    """The contents of the server by its own account, in the form of listing()."""
    entries = {}
    for db in range(16):
        redis.call("SELECT", db)
        for key in redis.call("KEYS", "*"):
            kind = str(redis.call("TYPE", key))
            if kind not in READS:
                entries[db, key] = ("skipped", None, None)
                continue
            verb, *words = READS[kind]
            value = redis.call(verb, key, *words)
            if kind != "string":
                value = members_of(kind, value)
            entries[db, key] = (kind, value, max(redis.call("PEXPIRETIME", key), 0))
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
    redis.call("ZADD", "zset:edges", "5e-324", "tiny", "1.7976931348623157e308", "huge", "0.1", "0.1",
               "-9007199254740993", b"\0\xff", 3, 12345)
    redis.call("RPUSH", "list:large", rng.randbytes(100_000), b"y" * 100_000)
    redis.call("RPUSH", "list:numbers", *(2**i - 1 for i in range(64)), *(-2**i for i in range(64)))
    for _ in range(12):  # in pieces when they are read
        redis.call("SADD", "set:pieces", *(rng.randbytes(500) for _ in range(200)))
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
            skipped = sum(kind == "skipped" for kind, _, _ in expected.values())
            collections = len(expected) - strings - skipped
            self.assertEqual(end[2:5], [str(strings), str(collections), str(skipped)])
            return end

    def fill(self, redis, rng):
        for db in (0, 3, 15):
            redis.call("SELECT", db)
            fill_strings(redis, rng)
            fill_others(redis, rng)

    def test_all_types(self):
        self.assertEqual(self.check(fill=self.fill)[6], "true")

    def test_without_compression(self):
        self.check("--rdbcompression", "no", fill=self.fill)

    def test_without_checksum(self):
        self.assertEqual(self.check("--rdbchecksum", "no", fill=self.fill)[6], "false")

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

        self.assertEqual(self.check(fill=fill)[5], "2")

    # Goal: an import stores every string and every collection of whatever size, with its deadline.
    # Method: what was at some keys is replaced; streams are skipped; what has expired when it is
    # imported is gone, also a collection that is read in pieces.
    def test_import(self):
        redis = RedisServer()
        self.addCleanup(redis.stop)
        skep = SkepServer()
        self.addCleanup(skep.stop)
        theirs, ours = redis.connect(), skep.connect()
        self.addCleanup(theirs.close)
        self.addCleanup(ours.close)
        ours.call("SELECT", 15)
        for db in (4, 15):
            theirs.call("SELECT", db)
            theirs.call("SET", "string", "value")
            fill_others(theirs, random.Random())
        for key in ("set:pieces", "zset:many"):
            theirs.call("PEXPIREAT", key, 4_102_444_800_123)
        expected = {at: entry for at, entry in contents(theirs).items() if entry[0] != "skipped"}
        ours.call("SET", "list:many", "another value")
        ours.call("SADD", "set:pieces", "another member")
        for _ in range(2):
            self.import_into(skep, redis, theirs, len(expected))
            self.assertEqual(contents(ours), expected)
        theirs.call("SELECT", 15)
        for key in ("hash:few", "set:pieces"):
            theirs.call("PEXPIRE", key, 1500)
        self.assertEqual(theirs.call("SAVE"), "OK")
        while theirs.call("EXISTS", "hash:few", "set:pieces") > 0:
            time.sleep(0.05)
        self.import_into(skep, redis, None, len(expected))
        ours.call("SELECT", 15)
        self.assertEqual(ours.call("EXISTS", "hash:few", "set:pieces"), 0)
        self.assertEqual(ours.call("EXISTS", "hash:many"), 1)

    # Goal: hashes whose fields have deadlines, which this machine's Redis has none of, come with them.
    # Method: a file in the format of Redis 7.4 has a hash of one piece and one of several.
    def test_import_of_deadlines_of_fields(self):
        def length(number):
            return b"\x81" + number.to_bytes(8, "big")

        def string(text):
            return length(len(text)) + text

        first = 4_102_444_800_000
        rdb = b"REDIS0012\xfe\x00"
        for key, count in ((b"few", 3), (b"many", 400)):
            rdb += b"\x18" + string(key) + first.to_bytes(8, "little") + length(count)
            for i in range(count):
                behind = 0 if i % 3 == 0 else i + 1
                rdb += length(behind) + string(b"field %d" % i) + string(b"%d" % i * 3000)
        rdb += b"\xff" + bytes(8)
        skep = SkepServer()
        self.addCleanup(skep.stop)
        with tempfile.NamedTemporaryFile(suffix=".rdb") as file, skep.connect() as ours:
            file.write(rdb)
            file.flush()
            done = subprocess.run([DUMP, "import", "--port", str(skep.port), "--format", "rdb",
                                   file.name], stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stderr.strip()),
                             (0, "imported 2 keys"))
            for key, count in (("few", 3), ("many", 400)):
                self.assertEqual(ours.call("HLEN", key), count)
                fields = [f"field {i}" for i in range(count)]
                self.assertEqual(ours.call("HPEXPIRETIME", key, "FIELDS", count, *fields),
                                 [-1 if i % 3 == 0 else first + i for i in range(count)])
                self.assertEqual(ours.call("HMGET", key, *fields),
                                 [b"%d" % i * 3000 for i in range(count)])

    def import_into(self, skep, redis, theirs, count):
        if theirs is not None:
            self.assertEqual(theirs.call("SAVE"), "OK")
        rdb = os.path.join(redis.folder, "dump.rdb")
        # A file of Redis is known by its first bytes.
        done = subprocess.run([DUMP, "import", "--port", str(skep.port), rdb],
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        *skipped, said = done.stderr.splitlines()
        self.assertEqual((done.returncode, said),
                         (0, f"imported {count} keys, {len(skipped)} of other types skipped"), skipped)
        self.assertTrue(all(line.endswith(": stream") for line in skipped), skipped)
        checked = subprocess.run([CHECK, rdb], stdout=subprocess.PIPE, text=True, check=False).stdout
        found = re.search(r"(\d+) strings, (\d+) collections, (\d+) keys of other types", checked)
        self.assertEqual((int(found[1]) + int(found[2]), int(found[3])), (count, len(skipped)))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    LISTING, CHECK, DUMP = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main()
