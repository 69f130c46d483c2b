#!/usr/bin/env python3
"""Goal: collections that are kept in parts (src/collections) answer as those in one value do, live
through kills, and their parts are never seen.
Method: the streams of differential_test.py, with so low a limit that nearly every collection is in
parts of a few members each; restarts after kills; scans by cursors while others write.
"""

import shutil
import tempfile
import unittest

import differential_test
from resp import Error
from skep_process import ServerTest, SkepServer

SMALL = ("--collection-value-bytes", 48)


class LargeStreamsTest(differential_test.DifferentialTest):
    SKEP_OPTIONS = SMALL

    # What the limit does not change.
    test_a_watched_key_expires = None
    test_seconds_are_rounded = None
    test_all_shared_commands_are_in_the_table = None
    test_listed_differences_are_still_there = None


class LargeRestartTest(unittest.TestCase):
    # Goal: after a kill every large collection is what was acknowledged, and what was deleted is
    # swept, also if its sweep had not begun.
    # Method: collections of all types are written, renamed, deleted and overwritten; the server is
    # killed, with a log alone and with a snapshot before; contents and the number of hidden items
    # are compared.
    def test_kill_and_restart(self):
        folder = tempfile.mkdtemp(prefix="skep-large-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = SkepServer("--dir", folder, *SMALL)
        try:
            for saves in (False, True):
                with server.connect() as client:
                    if saves:
                        self.assertEqual(client.call("SAVE"), "OK")
                    self.write(client, b"after-" if saves else b"")
                    before = self.contents(client)
                self.assertGreaterEqual(len(before), 4)
                server.popen.kill()
                server.wait()
                server._discard()
                server = SkepServer("--dir", folder, *SMALL)
                with server.connect() as client:
                    self.assertEqual(self.contents(client), before)
            with server.connect() as client:
                self.assertEqual(client.call("DEL", *before), len(before))
                while self.hidden_items(client) > 0:
                    client.call("PING")
        finally:
            server.stop()

    def write(self, client, prefix):
        for i in range(400):
            member = "member-%d" % (i * 37 % 400)
            for command in (("HSET", "hash", member, i), ("SADD", "set", member),
                            ("RPUSH", "list", member), ("ZADD", "zset", i % 7, member),
                            ("SADD", "gone", member), ("SADD", "replaced", member)):
                verb, key, *words = command
                reply = client.call(verb, prefix + key.encode(), *words)
                self.assertNotIsInstance(reply, Error, command)
        client.call("RENAME", prefix + b"hash", prefix + b"renamed")
        client.call("DEL", prefix + b"gone")
        client.call("SET", prefix + b"replaced", "a string")
        client.call("ZPOPMIN", prefix + b"zset", 50)
        client.call("LPOP", prefix + b"list", 50)

    def contents(self, client):
        reads = {"hash": ("HGETALL",), "set": ("SMEMBERS",), "list": ("LRANGE", 0, -1),
                 "zset": ("ZRANGE", 0, -1, "WITHSCORES"), "string": ("GET",)}
        found = {}
        for key in client.call("KEYS", "*"):
            verb, *words = reads[str(client.call("TYPE", key))]
            found[key] = client.call(verb, key, *words)
        return found

    def hidden_items(self, client):
        for line in client.call("INFO", "everything").decode().splitlines():
            if line.startswith("db0_collection_items:"):
                return int(line.split(":")[1])
        return 0


class LargeRenameTest(ServerTest):
    OPTIONS = SMALL

    # Goal: RENAME of a large collection to its own name writes nothing, so WATCH sees no change.
    def test_to_itself(self):
        for i in range(40):
            self.client.call("HSET", "hash", "field-%d" % i, i)
        self.check("OK", "WATCH", "hash")
        self.check("OK", "RENAME", "hash", "hash")
        self.check(0, "RENAMENX", "hash", "hash")
        self.check("OK", "MULTI")
        self.check([], "EXEC")
        self.check(40, "HLEN", "hash")


class LargeWithoutMemoryTest(ServerTest):
    OPTIONS = SMALL

    # Goal: over maxmemory whatever takes members out of large collections goes on, also when it
    # waits and in transactions; of a transaction what may store is refused, and nothing else.
    # Method: the limit is set below what is used, before a transaction's EXEC as well.
    def test_pops(self):
        for i in range(400):
            self.client.call("ZADD", "zset", i, "member-%d" % i)
            self.client.call("RPUSH", "list", "element-%d" % i)
            self.client.call("SADD", "set", "member-%d" % i)
        self.check("OK", "MULTI")
        for command in (("SADD", "set", "new"), ("ZPOPMIN", "zset"), ("SET", "string", "x"),
                        ("SREM", "set", "member-7"), ("DEL", "list-2", "nothing"), ("LLEN", "list")):
            self.check("QUEUED", *command)
        with self.server.connect() as other:
            self.assertEqual(other.call("CONFIG", "SET", "maxmemory", 1), "OK")
            self.addCleanup(self.client.call, "CONFIG", "SET", "maxmemory", 0)
            refused = other.call("SADD", "set", "new")
            self.assertIsInstance(refused, Error)
            self.check([refused, [b"member-0", b"0"], refused, 1, 0, 400], "EXEC")
            self.check([b"zset", b"member-1", b"1"], "BZPOPMIN", "nothing", "zset", 0)
            self.check([b"zset", b"member-399", b"399"], "BZPOPMAX", "zset", 0)
            self.check([b"zset", [[b"member-2", b"2"], [b"member-3", b"3"]]], "BZMPOP", 0, 2,
                       "nothing", "zset", "MIN", "COUNT", 2)
            self.check([b"zset", [[b"member-398", b"398"]]], "ZMPOP", 1, "zset", "MAX")
            self.check([b"list", b"element-0"], "BLPOP", "nothing", "list", 0)
            self.check([b"list", [b"element-399"]], "LMPOP", 2, "nothing", "list", "RIGHT")
            self.check(1, "LREM", "list", 0, "element-200")
            self.check("OK", "LTRIM", "list", 1, -2)
            self.check(395, "LLEN", "list")
            self.check([b"element-2", b"element-3"], "LRANGE", "list", 0, 1)
            self.check(refused, "LSET", "list", 0, "x" * 100)
            self.check(394, "ZCARD", "zset")
            while self.client.call("BZPOPMIN", "zset", 0)[1] != b"member-397":
                pass
            self.check(0, "EXISTS", "zset")


class LargeScansTest(ServerTest):
    OPTIONS = SMALL

    # Goal: a member that is there from the first step of a scan to the last comes at least once,
    # whatever is added, removed and changed meanwhile.
    # Method: half of the members stay; the others come and go between the steps.
    def test_members_that_stay_are_found(self):
        for verb, add, remove, each in (("HSCAN", "HSET", "HDEL", 2), ("SSCAN", "SADD", "SREM", 1),
                                        ("ZSCAN", "ZADD", "ZREM", 2)):
            def put(member, i):
                words = {"HSET": (member, i), "SADD": (member,), "ZADD": (i % 5, member)}[add]
                self.client.call(add, "key-" + verb, *words)

            stay = [b"stay-%d" % i for i in range(300)]
            for i, member in enumerate(stay):
                put(member, i)
            found, cursor, steps = set(), b"0", 0
            while True:
                cursor, texts = self.client.call(verb, "key-" + verb, cursor, "COUNT", 20)
                found.update(texts[::each])
                steps += 1
                if cursor == b"0":
                    break
                for i in range(10):
                    put(b"stay-%d-%d" % (steps, i), i)
                    put(stay[(steps * 10 + i) % 300], steps)
                    self.client.call(remove, "key-" + verb, b"stay-%d-%d" % (steps - 1, i))
            self.assertGreater(steps, 5)
            self.assertLessEqual(set(stay), found)

    # Goal: in a transaction a large collection is there until the command that takes its last member.
    def test_last_member_in_a_transaction(self):
        members = [f"member{i}" for i in range(30)]
        pairs = [word for member in members for word in (member, 1)]
        for add, remove_others, remove_last in [
                (("SADD", "key", *members), ("SREM", "key", *members[1:]), ("SREM", "key", members[0])),
                (("HSET", "key", *pairs), ("HDEL", "key", *members[1:]), ("HDEL", "key", members[0])),
                (("RPUSH", "key", *members), ("LPOP", "key", 29), ("RPOP", "key"))]:
            self.client.call("FLUSHDB")
            self.client.call(*add)
            self.client.call(*remove_others)
            reply = self.client.pipeline(
                ("MULTI",), ("EXISTS", "key"), ("DBSIZE",), ("KRANGE", "-", "+"),
                ("EXPIRE", "key", 100), remove_last, ("EXISTS", "key"), ("DBSIZE",), ("EXEC",))[-1]
            self.assertEqual(reply[:4] + reply[5:], [1, 1, [b"key"], 1, 0, 0], add[0])

    # Goal: OBJECT ENCODING, TYPE, MEMORY USAGE and COPY know large collections.
    def test_objects(self):
        for i in range(200):
            self.client.call("HSET", "hash", "field-%d" % i, i)
            self.client.call("RPUSH", "list", i)
            self.client.call("ZADD", "zset", i, "member-%d" % i)
        for key, encoding in (("hash", b"hashtable"), ("list", b"quicklist"), ("zset", b"skiplist")):
            self.check(encoding, "OBJECT", "ENCODING", key)
            self.assertGreater(self.client.call("MEMORY", "USAGE", key), 600)
            self.check(1, "COPY", key, "copy-" + key)
        self.check(200, "HLEN", "copy-hash")
        self.check(1, "HDEL", "copy-hash", "field-7")
        self.check(200, "HLEN", "hash")
        self.assertEqual(self.client.call("LRANGE", "copy-list", 0, -1),
                         self.client.call("LRANGE", "list", 0, -1))
        self.check(6, "DBSIZE")
        self.check(6, "KCOUNT", "-", "+")

    # Goal: a deadline takes a large collection as a whole, and its parts are swept.
    def test_expiry(self):
        for i in range(2000):
            self.client.call("SADD", "set", "member-%d" % i)
        self.check(1, "PEXPIRE", "set", 1)
        while self.client.call("SCARD", "set") > 0:
            pass
        while b"db0_collection_items:0" not in self.client.call("INFO", "everything"):
            pass
        self.check(1, "SADD", "set", "member-7")


if __name__ == "__main__":
    unittest.main()
