#!/usr/bin/env python3
"""Goal: hashes, sets, lists and sorted sets live through a kill, are atomic, and are told apart from
strings by whatever meets them.
Method: what differential_test.py cannot compare with Redis: restarts, commands that draw at random,
other clients meanwhile, keyspaces without types, the packed protocol.
"""

import shutil
import tempfile
import threading
import unittest

import packed
from resp import Error
from skep_process import ServerTest, SkepServer

WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
LATER_MS = 4_102_444_800_000
READS = {b"hash": ("HGETALL",), b"set": ("SMEMBERS",), b"list": ("LRANGE", 0, -1),
         b"zset": ("ZRANGE", 0, -1, "WITHSCORES"), b"string": ("GET",)}


def contents(client):
    """All keys with their types, deadlines and members."""
    found = {}
    for key in client.call("KEYS", "*"):
        kind = client.call("TYPE", key)
        read = READS[kind.encode() if isinstance(kind, str) else kind]
        found[key] = (kind, client.call("PEXPIRETIME", key),
                      client.call(read[0], key, *read[1:]))
    return found


class RestartTest(unittest.TestCase):
    # Goal: the log and a snapshot have all that was acknowledged, with its type and deadline.
    # Method: collections whose changes the log has as values, and large ones whose changes it has as
    # functions, are written; the server is killed; then a snapshot is taken, more is written, and it
    # is killed again.
    def test_kill_and_restart(self):
        folder = tempfile.mkdtemp(prefix="skep-types-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = SkepServer("--dir", folder)
        try:
            for saves in (False, True):
                with server.connect() as client:
                    if saves:
                        self.assertEqual(client.call("SAVE"), "OK")
                    self.write(client, b"after-" if saves else b"")
                    before = contents(client)
                self.assertGreaterEqual(len(before), 11)
                server.popen.kill()
                server.wait()
                server._discard()
                server = SkepServer("--dir", folder)
                with server.connect() as client:
                    self.assertEqual(contents(client), before)
        finally:
            server.stop()

    def write(self, client, prefix):
        def say(verb, key, *words):
            reply = client.call(verb, prefix + key, *words)
            self.assertNotIsInstance(reply, Error, (verb, key))

        say("HSET", b"hash", "f", "1", "g", "x" * 300)
        say("HINCRBY", b"hash", "f", 41)
        say("SADD", b"set", "a", "b", "c")
        say("SPOP", b"set")
        say("RPUSH", b"list", "a", "b", "c")
        say("ZADD", b"zset", 1, "one", 2.5, "more")
        say("SET", b"string", "s")
        for i in range(300):
            say("RPUSH", b"long", "element-%d" % i)
            say("ZADD", b"ranked", i % 7, "member-%d" % i)
            say("SADD", b"many", "member-%d" % i)
        say("LPOP", b"long", 5)
        say("SPOP", b"many", 40)
        say("ZPOPMAX", b"ranked", 3)
        say("PEXPIREAT", b"hash", LATER_MS)
        say("PEXPIREAT", b"ranked", LATER_MS)
        say("HDEL", b"hash", "g")
        client.call("LMOVE", prefix + b"long", prefix + b"moved", "LEFT", "RIGHT")
        client.call("SUNIONSTORE", prefix + b"union", prefix + b"set", prefix + b"many")
        client.call("RENAME", prefix + b"zset", prefix + b"renamed")
        say("SADD", b"gone", "x")
        say("SREM", b"gone", "x")
        say("HSET", b"replaced", "f", "1")
        say("SET", b"replaced", "now a string")


class TypesTest(ServerTest):
    OPTIONS = ("--keyspace", "1=hash")

    # Goal: what is drawn is a member, distinct where it must be, and gone if it is taken.
    def test_draws(self):
        members = {b"m%d" % i for i in range(20)}
        self.check(20, "SADD", "s", *members)
        self.assertIn(self.client.call("SRANDMEMBER", "s"), members)
        drawn = self.client.call("SRANDMEMBER", "s", 7)
        self.assertEqual(len(set(drawn)), 7)
        self.assertLessEqual(set(drawn), members)
        self.assertEqual(len(self.client.call("SRANDMEMBER", "s", -50)), 50)
        one = self.client.call("SPOP", "s")
        self.assertIn(one, members)
        some = set(self.client.call("SPOP", "s", 5))
        self.assertEqual(len(some), 5)
        self.assertEqual(set(self.client.call("SMEMBERS", "s")), members - some - {one})
        self.client.call("HSET", "h", *(word for i in range(9) for word in ("f%d" % i, i)))
        fields = self.client.call("HRANDFIELD", "h", 4, "WITHVALUES")
        self.assertEqual([b"f" + value for value in fields[1::2]], fields[::2])
        self.client.call("ZADD", "z", *(word for i in range(9) for word in (i, "m%d" % i)))
        self.assertEqual(len(set(self.client.call("ZRANDMEMBER", "z", 4))), 4)
        firsts = {self.client.call("SRANDMEMBER", "s") for _ in range(200)}
        self.assertGreater(len(firsts), 5)

    # Goal: a command of two keys happens at one instant.
    # Method: clients move elements and members back and forth; another one always finds all.
    def test_moves_are_atomic(self):
        count = 20
        self.client.call("RPUSH", "a", *range(count))
        self.client.call("SADD", "p", *range(count))
        done = threading.Event()

        def move():
            with self.server.connect() as client:
                while not done.is_set():
                    client.pipeline(["LMOVE", "a", "b", "LEFT", "RIGHT"], ["RPOPLPUSH", "b", "a"],
                                    ["SMOVE", "p", "q", 3], ["SMOVE", "q", "p", 3])

        movers = [threading.Thread(target=move) for _ in range(2)]
        for mover in movers:
            mover.start()
        try:
            for _ in range(200):
                *_, (first, second) = self.client.pipeline(
                    ["MULTI"], ["LRANGE", "a", 0, -1], ["LRANGE", "b", 0, -1], ["EXEC"])
                self.assertEqual(sorted(map(int, first + second)), list(range(count)))
                self.assertEqual(len(self.client.call("SUNION", "p", "q")), count)
                self.assertEqual(self.client.call("SINTER", "p", "q"), [])
        finally:
            done.set()
            for mover in movers:
                mover.join()

    # Goal: a change of a member is a change of a watched key, and EXEC has commands of several keys.
    def test_transactions(self):
        other = self.server.connect()
        self.addCleanup(other.close)
        self.client.call("HSET", "h", "f", 1)
        self.check("OK", "WATCH", "h")
        other.call("HINCRBY", "h", "f", 1)
        self.assertEqual(self.client.pipeline(["MULTI"], ["HGET", "h", "f"], ["EXEC"])[-1], None)
        replies = self.client.pipeline(
            ["MULTI"], ["SADD", "s", "a", "b"], ["SADD", "t", "b"], ["SINTERSTORE", "u", "s", "t"],
            ["HGET", "s", "f"], ["RPUSH", "l", "x"], ["LMOVE", "l", "k", "LEFT", "LEFT"], ["EXEC"])
        self.assertEqual(replies[-1], [2, 1, 1, WRONG_TYPE, 1, b"x"])
        self.check([b"b"], "SMEMBERS", "u")
        self.check([b"x"], "LRANGE", "k", 0, -1)

    # Goal: a scan of one type finds all its keys and no others; ranges tell no collection's bytes.
    def test_scans(self):
        for i in range(100):
            self.client.call("HSET", "h%d" % i, "f", "v")
            self.client.call("SET", "s%d" % i, "v")
            self.client.call("ZADD", "z%d" % i, 1, "v")
        for kind, first in (("hash", b"h"), ("string", b"s"), ("zset", b"z"), ("list", b"")):
            found, cursor = [], b"0"
            while True:
                cursor, keys = self.client.call("SCAN", cursor, "COUNT", 7, "TYPE", kind)
                found += keys
                if cursor == b"0":
                    break
            expected = [b"%s%d" % (first, i) for i in range(100)] if first else []
            self.assertEqual(sorted(found), sorted(expected))
        self.check([b"h99", b""], "KRANGE", "[h99", "[h99", "WITHVALUES")
        token, items = self.client.call("KSCAN", "[h99", "[s0", "WITHVALUES", "WITHDEADLINES")
        self.assertEqual((token, items), (b"0", [b"h99", None, -1, b"s0", b"v", -1]))
        self.assertIn(self.client.call("RANDOMKEY")[:1], (b"h", b"s", b"z"))

    # Goal: a range of one type has its keys, in order, whatever its size, direction and limits.
    # Method: so many keys of all types, some with deadlines, that the range takes many turns, beside
    # a plain model; also in a transaction, and where all values are strings.
    def test_ranges_of_a_type(self):
        kinds = [(b"string", "SET", ("v",)), (b"hash", "HSET", ("f", "v")), (b"set", "SADD", ("m",)),
                 (b"list", "RPUSH", ("e",)), (b"zset", "ZADD", (1, "m"))]
        keys = {}
        for begin in range(0, 6000, 500):
            commands = []
            for i in range(begin, begin + 500):
                kind, verb, words = kinds[i * i % 7 % 5]
                keys[b"k%05d" % i] = kind
                commands.append([verb, b"k%05d" % i, *words])
                if i % 3 == 0:
                    commands.append(["PEXPIREAT", b"k%05d" % i, LATER_MS])
            self.client.pipeline(*commands)
        for kind in (b"string", b"hash", b"list", b"zset", b"stream"):
            wanted = sorted(key for key in keys if keys[key] == kind)
            for words, expected in (
                    (("-", "+"), wanted), (("-", "+", "REV"), wanted[::-1]),
                    (("PREFIX", "k0"), wanted), (("[k00010", "(k00200"),
                                                [k for k in wanted if b"k00010" <= k < b"k00200"]),
                    (("-", "+", "LIMIT", 5, 3), wanted[5:8]),
                    (("-", "+", "LIMIT", 700, 2000, "REV"), wanted[::-1][700:2700]),
                    (("-", "+", "LIMIT", 10, 0), []), (("-", "+", "LIMIT", 9000, 5), [])):
                self.check(expected, "KRANGE", *words, "TYPE", kind.upper())
                self.assertEqual(self.client.pipeline(
                    ["MULTI"], ["KRANGE", *words, "TYPE", kind], ["EXEC"])[-1], [expected])
        strings = [key for key in sorted(keys) if keys[key] == b"string"]
        self.check([word for key in strings[:2] for word in (key, b"v")],
                   "KRANGE", "-", "+", "TYPE", "string", "LIMIT", 0, 2, "WITHVALUES")
        self.check(Error("ERR syntax error"), "KRANGE", "-", "+", "TYPE")
        with SkepServer("--keyspace", "0=hashleaf,key=4,value=4") as server:
            with server.connect() as client:
                client.call("SET", "aaaa", "1111")
                self.assertEqual(client.call("KRANGE", "-", "+", "TYPE", "string"), [b"aaaa"])
                self.assertEqual(client.call("KRANGE", "-", "+", "TYPE", "hash"), [])

    # Goal: what cannot be done in two databases at one instant is an error that says so; a copy of a
    # collection is done at two, and wakes who waits there.
    def test_two_databases(self):
        with SkepServer() as server, server.connect() as client, server.connect() as waiter:
            for i in range(3000):
                client.call("RPUSH", "l", b"%d" % i + b"x" * 50)
            waiter.pipeline(["SELECT", 5])
            waiter.send(b"BLPOP l 0\r\n")
            while b"blocked_clients:1" not in client.call("INFO", "clients"):
                pass
            self.assertEqual(client.call("COPY", "l", "l", "DB", 5), 1)
            self.assertEqual(waiter.read_reply()[0], [b"l", b"0" + b"x" * 50])
            expected = client.call("LRANGE", "l", 1, -1)
            self.assertEqual(waiter.call("LRANGE", "l", 0, -1), expected)
            self.assertEqual(waiter.call("OBJECT", "ENCODING", "l"), b"quicklist")
            self.assertIn("two databases", str(client.call("MOVE", "l", 6)))
            self.assertIn("two databases", str(client.call("SWAPDB", 0, 5)))
            self.assertEqual(client.call("LLEN", "l"), 3000)
        self.client.call("RPUSH", "l", "x")
        self.assertIsInstance(self.client.call("COPY", "l", "l", "DB", 1), Error)
        self.check(1, "LLEN", "l")

    # Goal: where collections are not kept in parts, one that would exceed its limit is refused with
    # an error that names it, and stays; elsewhere there is no such limit.
    def test_limit(self):
        half = "x" * (1 << 19)
        error = Error("ERR a collection exceeds the maximum size (1048576 bytes)")
        with SkepServer("--collection-value-bytes", 0) as server, server.connect() as client:
            self.assertEqual(client.call("HSET", "h", "a", half), 1)
            self.assertEqual(client.call("HSET", "h", "b", half), error)
            self.assertEqual(client.call("HLEN", "h"), 1)
            self.assertEqual(client.call("HDEL", "h", "a"), 1)
            self.assertEqual(client.call("EXISTS", "h"), 0)
        for field in ("a", "b", "c"):
            self.check(1, "HSET", "h", field, half)
        self.check([half.encode()] * 3, "HVALS", "h")

    # Goal: what stores the result of others has no smaller limit than what it reads.
    # Method: two sorted sets of less than the limit of one value are united and searched.
    def test_limit_of_results(self):
        error = Error("ERR a collection exceeds the maximum size (1048576 bytes)")
        with SkepServer("--collection-value-bytes", 0) as server, server.connect() as small:
            for client in (small, self.client):
                for key, begin in (("a", 0), ("b", 900)):
                    for i in range(begin, begin + 900, 100):
                        client.call("GEOADD", key, *(word for j in range(i, i + 100)
                                                     for word in (1, 2, b"%04d" % j + b"x" * 1000)))
                united = client.call("ZUNIONSTORE", "u", 2, "a", "b")
                self.assertEqual(united, error if client is small else 1800)
                self.assertEqual(client.call("ZCARD", "u"), 0 if client is small else 1800)
            self.check(1800, "GEOSEARCHSTORE", "f", "u", "FROMLONLAT", 1, 2, "BYRADIUS", 1, "km")
            self.check(1800, "ZCARD", "f")

    def test_keyspaces_without_types(self):
        self.check("OK", "SELECT", 1)
        self.check(Error("ERR this engine has plain values only: strings"), "HSET", "h", "f", "v")
        self.check(Error("ERR this engine has plain values only: strings"), "SUNION", "a", "b")
        self.check("OK", "SET", "h", "v")
        self.check("string", "TYPE", "h")
        self.check("OK", "SELECT", 0)

    # Goal: a client of the packed protocol is told that a value is no string.
    def test_packed(self):
        wrong_type = 11
        self.client.call("HSET", "h", "f", "v")
        client = packed.Client(self.server.port)
        self.addCleanup(client.close)
        found = client.batch(packed.request(packed.GET, b"h"))
        self.assertEqual(found[0]["verdict"], packed.REFUSED)
        self.assertEqual(found[0]["status"][:2], (wrong_type, 1))
        self.assertEqual(client.batch(packed.request(packed.DELETE, b"h"))[0]["verdict"],
                         packed.DONE)
        self.check(0, "EXISTS", "h")


if __name__ == "__main__":
    unittest.main()
