#!/usr/bin/env python3
"""Goal: commands that make their writes of what they read (BITOP, COPY, SORT, ZUNIONSTORE, ...) are
parts of a transaction like others: they see what comes before them in it, and the whole happens at
one instant.
Method: random transactions beside the packaged redis-server, whose replies and whose keys after
each must be the same; invariants while others write; the limits and errors that are Skep's own.
"""

import random
import threading
import unittest

from beside_redis import BesideRedisTest
from resp import Error, encode
from skep_process import ServerTest, SkepServer

OOM = "OOM command not allowed when used memory > 'maxmemory'."
NOT_BEHIND = Error(
    "ERR a command that reads before it writes cannot follow a write of the first keys of a range, "
    "or a condition that one is empty, in a transaction")
TOO_MANY = Error("ERR a transaction with a command that reads before it writes can name 16384 keys "
                 "at most")

CONVERSATIONS = {
    "each command alone": r"""
        SET s1 abc
        SET s2 "\xff\x00x"
        ZADD z1 1 a 2 b 3 c
        ZADD z2 10 b 20 c 30 d
        SADD t1 c d e
        RPUSH l1 3 1 2
        MSET w1 3 w2 2 w3 1
        GEOADD g1 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
        MULTI
        BITOP AND d1 s1 s2
        BITOP NOT d2 s1
        COPY s1 d3
        COPY s1 d3
        COPY s2 d3 REPLACE
        COPY z1 d4
        COPY nosuch d5
        SORT l1
        SORT l1 BY w* STORE d6
        SORT_RO l1 DESC
        ZUNIONSTORE d7 2 z1 t1 WEIGHTS 2 3
        ZINTERSTORE d8 2 z1 z2
        ZDIFFSTORE d9 2 z1 z2
        GEOSEARCHSTORE e1 g1 FROMMEMBER Palermo BYRADIUS 500 km
        GEORADIUS g1 15 37 200 km STORE e2
        GEORADIUSBYMEMBER g1 Palermo 100 km STOREDIST e3
        SUNIONSTORE e4 t1 t1
        ZRANGESTORE e5 z1 0 1
        PFADD h1 a b
        PFMERGE h2 h1
        EXEC
        MGET d1 d2 d3
        ZRANGE d4 0 -1 WITHSCORES
        LRANGE d6 0 -1
        ZRANGE d7 0 -1 WITHSCORES
        ZRANGE d8 0 -1 WITHSCORES
        ZRANGE d9 0 -1 WITHSCORES
        ZRANGE e1 0 -1 WITHSCORES
        ZRANGE e2 0 -1 WITHSCORES
        ZRANGE e3 0 -1
        ~KEYS *
        """,
    "a scan of one type beside them": r"""
        SET s v
        RPUSH l a
        SADD t x
        MULTI
        SCAN 0 TYPE list COUNT 1000
        SUNIONSTORE d t
        EXEC
        """,
    "they see what comes before them, and are seen behind": r"""
        MULTI
        SET a abc
        BITOP OR b a
        APPEND b d
        COPY b c
        BITOP XOR d c a
        RENAME d e
        STRLEN e
        COPY e a REPLACE
        GET a
        RPUSH l 2 1 x
        SORT l STORE m
        LSET l 2 3
        SORT l STORE m
        LPOP m
        SADD s a b c
        SREM s a
        ZUNIONSTORE z 1 s
        ZADD z 5 q
        ZUNIONSTORE z 2 z z
        ZRANGE z 0 -1 WITHSCORES
        DEL s
        ZUNIONSTORE z 1 s
        EXISTS z
        EXEC
        """,
    "errors in their places": r"""
        SET a 1
        RPUSH l 1 x
        MULTI
        BITOP AND d l
        BITOP NOSUCH d a
        BITOP NOT d a a
        COPY a a
        COPY a b NOSUCH
        SORT a
        SORT l STORE d
        SORT l BY
        ZUNIONSTORE d 0 a
        ZUNIONSTORE d 1 a
        ZUNIONSTORE d 2 a
        ZINTERSTORE d 1 l WEIGHTS x
        GEOSEARCHSTORE d a FROMMEMBER m BYRADIUS 1 m
        GEOSEARCHSTORE d nosuch FROMMEMBER m BYRADIUS 1 m
        GEORADIUS a 1 1 1 m STORE d
        SET b 2
        COPY b c
        EXEC
        ~KEYS *
        MULTI
        BITOP AND
        BITOP AND d a
        EXEC
        """,
    "with watches": r"""
        SET a 1
        WATCH a
        MULTI
        COPY a b
        EXEC
        WATCH a
        SET a 2
        MULTI
        COPY a c
        EXEC
        MGET a b c
        """,
    "everything is deleted before": r"""
        MSET a 1 b 2
        MULTI
        FLUSHDB
        COPY a c
        BITOP OR d b b
        SET a 3
        COPY a c
        EXEC
        ~KEYS *
        """,
    "deadlines": r"""
        SET a 1 PXAT 33177117420000
        MULTI
        COPY a b
        PERSIST a
        COPY a c
        EXPIREAT b 33177117421
        COPY b d
        BITOP AND e a b
        PEXPIREAT a 1
        COPY a f
        PEXPIRETIME b
        PEXPIRETIME c
        PEXPIRETIME d
        PEXPIRETIME e
        EXISTS f
        EXEC
        """,
}

STRINGS, SETS, LISTS, SORTED, HASHES = (
    [b"%s%d" % (name, i) for i in range(3)] for name in (b"s", b"t", b"l", b"z", b"h"))
ALL = STRINGS + SETS + LISTS + SORTED + HASHES
VALUES = [b"", b"0", b"7", b"-3", b"\x00", b"\xff\x80", b"word", b"y" * 70, b"q" * 300]
# No zero bytes, where Redis's SORT ends a text.
MEMBERS = [b"1", b"2", b"3", b"10", b"m", b"n", b"\xff", b"", b"p" * 100]


class Writer:
    """Random commands of a transaction; most keys have the type that their commands want."""

    def __init__(self, rng):
        self.rng = rng

    def key(self, kind):
        return self.rng.choice(kind if self.rng.random() < 0.9 else ALL)

    def command(self):
        return self.storing() if self.rng.random() < 0.4 else self.plain()

    def plain(self):
        pick = self.rng.choice
        key = self.key
        return pick([
            lambda: ("SET", key(STRINGS), pick(VALUES)),
            lambda: ("APPEND", key(STRINGS), pick(VALUES)),
            lambda: ("SETRANGE", key(STRINGS), pick([0, 5]), pick(VALUES)),
            lambda: ("INCR", key(STRINGS)),
            lambda: ("SADD", key(SETS), pick(MEMBERS), pick(MEMBERS)),
            lambda: ("SREM", key(SETS), pick(MEMBERS)),
            lambda: ("SMOVE", key(SETS), key(SETS), pick(MEMBERS)),
            lambda: ("SUNIONSTORE", key(SETS), key(SETS), key(SETS)),
            lambda: ("RPUSH", key(LISTS), pick(MEMBERS), pick(MEMBERS)),
            lambda: ("LPOP", key(LISTS)),
            lambda: ("LMOVE", key(LISTS), key(LISTS), "LEFT", "RIGHT"),
            lambda: ("ZADD", key(SORTED), pick([1, 2, -0.5, 1e300]), pick(MEMBERS)),
            lambda: ("ZREM", key(SORTED), pick(MEMBERS)),
            lambda: ("ZRANGESTORE", key(SORTED), key(SORTED), 0, pick([-1, 1])),
            lambda: ("HSET", key(HASHES), pick(MEMBERS), pick(MEMBERS)),
            lambda: ("HDEL", key(HASHES), pick(MEMBERS)),
            lambda: ("DEL", key(ALL)),
            lambda: ("RENAME", key(ALL), key(ALL)),
            lambda: ("RENAMENX", key(ALL), key(ALL)),
            lambda: ("PEXPIREAT", key(ALL), pick([1, 33177117420000, 33177117421000])),
            lambda: ("PERSIST", key(ALL)),
            lambda: ("PEXPIRETIME", key(ALL)),
            lambda: ("MSET", key(STRINGS), pick(VALUES), key(STRINGS), pick(VALUES)),
            lambda: ("FLUSHDB",) if self.rng.random() < 0.1 else ("DBSIZE",),
        ])()

    def storing(self):
        pick = self.rng.choice
        key = self.key
        return pick([
            lambda: ("BITOP", pick(["AND", "OR", "XOR"]), key(STRINGS), key(STRINGS), key(STRINGS)),
            lambda: ("BITOP", "NOT", key(STRINGS), key(STRINGS)),
            lambda: ("COPY", key(ALL), key(ALL)),
            lambda: ("COPY", key(ALL), key(ALL), "REPLACE"),
            lambda: ("SORT", key(LISTS), "ALPHA", "STORE", key(LISTS)),
            lambda: ("SORT", key(LISTS), "ALPHA", "GET", "#", "GET", "h*->m", "STORE",
                     key(LISTS)),
            lambda: ("SORT", key(SETS), "ALPHA", "DESC"),
            lambda: ("ZUNIONSTORE", key(SORTED), 2, key(SORTED), key(SETS), "WEIGHTS", 2, 0.5),
            lambda: ("ZINTERSTORE", key(SORTED), 2, key(SORTED), key(SORTED), "AGGREGATE", "MIN"),
            lambda: ("ZDIFFSTORE", key(SORTED), 2, key(SORTED), key(SETS)),
        ])()


class BesideTest(BesideRedisTest):
    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)

    def contents(self, connection):
        """All keys, each with its deadline and its members."""
        reads = {b"string": ("GET",), b"set": ("SMEMBERS",), b"list": ("LRANGE", 0, -1),
                 b"zset": ("ZRANGE", 0, -1, "WITHSCORES"), b"hash": ("HGETALL",)}
        contents = {}
        for key in sorted(connection.call("KEYS", "*")):
            name, *rest = reads[connection.call("TYPE", key).encode()]
            value = connection.call(name, key, *rest)
            if name == "HGETALL":
                value = sorted(zip(value[::2], value[1::2]))
            elif name == "SMEMBERS":
                value = sorted(value)
            contents[key] = (value, connection.call("PEXPIRETIME", key))
        return contents

    def test_random_transactions(self):
        seed = random.randrange(1 << 32)
        writer = Writer(random.Random(seed))
        pair = self.connect_both()
        for number in range(400):
            commands = [writer.command() for _ in range(writer.rng.randint(1, 12))]
            data = b"".join(encode(*command) for command in [("MULTI",), *commands, ("EXEC",)])
            for connection in pair:
                connection.send(data)
            replies = [[c.read() for _ in range(len(commands) + 2)][-1] for c in pair]
            about = f"seed {seed}, transaction {number}: {commands}"
            self.assertEqual(replies[1], replies[0], about)
            self.assertEqual(*map(self.contents, reversed(pair)), about)


class LargeBesideTest(BesideTest):
    """The same with nearly every collection in parts."""

    SKEP_OPTIONS = ("--collection-value-bytes", 48)


class StoringTest(ServerTest):
    def transaction(self, *commands, client=None):
        client = client or self.client
        return client.pipeline(("MULTI",), *commands, ("EXEC",))[-1]

    def other(self):
        client = self.server.connect()
        self.addCleanup(client.close)
        return client

    # Goal: what a transaction copies is of one instant, also while others write.
    # Method: one thread gives two keys one number, by transactions; others copy both in one
    # transaction, in different ways. The copies are always equal, and all transactions are done.
    def test_copies_are_of_one_instant(self):
        self.check("OK", "MSET", "a", 0, "b", 0)
        stop = threading.Event()
        failures = []

        def write():
            with self.server.connect() as client:
                while not stop.is_set():
                    client.pipeline(("MULTI",), ("INCR", "a"), ("INCR", "b"), ("EXEC",))

        def copy(mine):
            with self.server.connect() as client:
                for _ in range(200):
                    reply = self.transaction(
                        ("COPY", "a", mine + "1", "REPLACE"), ("BITOP", "OR", mine + "2", "b"),
                        ("BITOP", "XOR", mine + "3", mine + "1", mine + "2"),
                        ("GETRANGE", mine + "3", 0, -1), ("GET", "a"), ("GET", mine + "1"),
                        client=client)
                    if reply[0] != 1 or reply[3].strip(b"\x00") or reply[4] != reply[5]:
                        failures.append(reply)

        writer = threading.Thread(target=write)
        copiers = [threading.Thread(target=copy, args=(name,)) for name in ("x", "y")]
        for thread in [writer, *copiers]:
            thread.start()
        for thread in copiers:
            thread.join()
        stop.set()
        writer.join()
        self.assertEqual(failures, [])

    # Goal: a key that the transaction names is as others have left it when EXEC is executed: an
    # increment by a transaction that also copies is never lost.
    def test_increments_add_up(self):
        def add():
            with self.server.connect() as client:
                for _ in range(150):
                    self.transaction(("INCR", "n"), ("COPY", "n", "m", "REPLACE"), client=client)

        threads = [threading.Thread(target=add) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.check(b"450", "GET", "n")
        self.check(b"450", "GET", "m")

    # Goal: behind a command whose outcome depends on keys that it does not name, these commands
    # answer an error in their places, and the others are done.
    def test_behind_parts_of_ranges(self):
        for before in [("KDELRANGE", "-", "+", "LIMIT", 1),
                       ("KEXPIRE", "-", "+", 100000, "LIMIT", 1),
                       ("KBATCH", "IF", "EMPTY", "[x", "+", "DO", "PUT", "x", 1)]:
            self.client.call("FLUSHDB")
            self.client.call("MSET", "a", 1, "b", 2)
            reply = self.transaction(("COPY", "a", "c"), before, ("COPY", "b", "d"),
                                     ("SET", "e", 1))
            self.assertEqual((reply[0], reply[2:]), (1, [NOT_BEHIND, "OK"]), before)
            self.check(0, "EXISTS", "d")

    # Goal: a range that is deleted, or gets a deadline, as a whole is gone for what comes behind.
    def test_behind_whole_ranges(self):
        self.client.call("MSET", "a1", 1, "a2", 2, "b1", 3)
        self.assertEqual(
            self.transaction(("KDELRANGE", "PREFIX", "a"), ("COPY", "a1", "c"), ("COPY", "b1", "d"),
                             ("KEXPIRE", "PREFIX", "b", 500000), ("COPY", "b1", "e"),
                             ("COPY", "d", "f"), ("TTL", "e"), ("TTL", "f"), ("KEXPIRE", "-", "+", 0),
                             ("COPY", "f", "g")),
            [2, 0, 1, 1, 1, 1, 500, -1, 4, 0])
        self.check(0, "DBSIZE")

    def test_limits(self):
        keys = [f"k{i}" for i in range(16384)]
        self.client.call("SET", keys[0], 1)
        full = self.transaction(("MGET", *keys[:-1]), ("COPY", keys[0], "other"),
                                ("SET", "z", 1))
        self.assertEqual(full[1:], [1, "OK"])
        reply = self.transaction(("MGET", *keys), ("COPY", keys[0], "other"), ("SET", "z", 1))
        self.assertEqual(reply[1:], [TOO_MANY, "OK"])
        self.assertEqual(self.transaction(("COPY", "z", "y", "DB", 1), ("SET", "z", 2)),
                         [Error("ERR COPY: a transaction is about one database"), "OK"])

    # Goal: a hash table's keyspace has the commands of strings, with its own errors for the rest.
    def test_keyspace_without_types(self):
        with SkepServer("--keyspace", "1=hash") as server, server.connect() as client:
            client.call("SELECT", 1)
            added, *rest = self.transaction(
                ("SADD", "s", "x"), ("SET", "a", "ab"), ("BITOP", "OR", "b", "a", "s"),
                ("COPY", "b", "c"), ("ZUNIONSTORE", "d", 1, "s"), ("MGET", "b", "c", "d"),
                client=client)
            self.assertIsInstance(added, Error)
            self.assertEqual(rest, ["OK", 2, 1, 0, [b"ab", b"ab", None]])

    def test_values_of_one_size(self):
        options = ("--keyspace", "2=hashleaf,key=8,value=8")
        with SkepServer(*options) as server, server.connect() as client:
            client.call("SELECT", 2)
            reply = self.transaction(("SET", "k" * 8, "v" * 8), ("COPY", "k" * 8, "l" * 8),
                                     client=client)
            self.assertEqual(reply[0], "OK")
            self.assertIsInstance(reply[1], Error)
            self.assertIsNone(client.call("GET", "l" * 8))


class MemoryTest(unittest.TestCase):
    # Goal: what copies and writes take is bounded as the answers of a transaction are.
    def test_bytes_are_bounded(self):
        with SkepServer("--maxmemory-clients", "64mb") as server, server.connect() as client:
            client.call("SET", "a", b"x" * (8 << 20))
            copies = [("COPY", "a", f"b{i}") for i in range(12)]
            reply = client.pipeline(("MULTI",), *copies, ("SET", "z", 1), ("EXEC",))[-1]
            too_large = Error("ERR the values of a transaction exceed the maximum size "
                              f"({64 << 20} bytes)")
            done = reply.index(too_large)
            self.assertIn(done, (7, 8))
            self.assertEqual(reply, [1] * done + [too_large] * (12 - done) + ["OK"])
            self.assertEqual(client.call("DBSIZE"), done + 2)

    # Goal: without memory the transaction's commands that store answer errors, each by itself, and
    # nothing is stored.
    def test_memory_limit(self):
        with SkepServer("--maxmemory", "64mb") as server, server.connect() as client:
            with server.connect() as other:
                client.pipeline(("SET", "a", "x" * 1000), ("MULTI",), ("COPY", "a", "b"),
                                ("DEL", "c"))
                self.assertEqual(other.call("CONFIG", "SET", "maxmemory", "1"), "OK")
                reply = client.call("EXEC")
                self.assertEqual(reply, [Error(OOM), 0])
                self.assertEqual(other.call("EXISTS", "b"), 0)


if __name__ == "__main__":
    unittest.main()
