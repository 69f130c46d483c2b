#!/usr/bin/env python3
"""Goal: what the test suites of Redis and its clients ask beside commands about data has Redis's
answers: what a server without replicas and users says, options that are set beforehand, PFDEBUG,
COMMAND GETKEYS.
Method: the same to skep-server and to the packaged redis-server; what is Skep's own, alone.
"""

import unittest

from beside_redis import BesideRedisTest
from resp import Error
from skep_process import ServerTest, SkepServer

CONVERSATIONS = {
    "alone": r"""
        WAIT 0 0
        WAIT 1 10
        WAIT a 0
        WAIT 0 a
        WAIT 0 -1
        WAIT 0
        MULTI
        WAIT 3 100
        ROLE
        EXEC
        ROLE
        ROLE x
        REPLICAOF NO ONE
        SLAVEOF no one
        REPLICAOF NO
        READONLY
        READWRITE
        ASKING
        CLUSTER INFO
        CLUSTER
        FAILOVER
        MODULE LIST
        MODULE
        MODULE NOSUCH
        ACL WHOAMI
        ACL USERS
        ACL LOG
        ACL LOG 3
        ACL LOG x
        ACL LOG RESET
        ACL CAT nosuch
        ACL GENPASS 0
        ACL GENPASS -5
        ACL GENPASS 4097
        ACL GENPASS x
        ACL GENPASS 5 5
        ACL NOSUCH
        CLIENT TRACKINGINFO
        CLIENT TRACKING OFF
        CLIENT TRACKING MAYBE
        CLIENT GETREDIR
        MEMORY PURGE
        """,
    "HyperLogLogs": r"""
        PFSELFTEST
        PFDEBUG ENCODING nosuch
        PFDEBUG NOSUCH nosuch
        PFADD h
        PFDEBUG ENCODING h
        PFDEBUG DECODE h
        PFADD h a b c d e f g
        PFDEBUG DECODE h
        PFDEBUG NOSUCH h
        PFDEBUG encoding h x
        PFDEBUG TODENSE h
        PFDEBUG TODENSE h
        PFDEBUG ENCODING h
        PFDEBUG DECODE h
        PFDEBUG GETREG h
        PFCOUNT h
        SET s x
        PFDEBUG ENCODING s
        LPUSH l x
        PFDEBUG GETREG l
        PFDEBUG GETREG
        """,
    "options": r"""
        CONFIG SET hash-max-ziplist-entries 1 hash-max-listpack-entries 2
        CONFIG GET hash-max-ziplist-entries
        CONFIG SET hash-max-listpack-entries 4 HASH-MAX-ZIPLIST-ENTRIES 3
        CONFIG GET hash-max-listpack-entries
        CONFIG SET hash-max-ziplist-entries 1 hash-max-ziplist-entries 1
        CONFIG SET hz 10 HZ 10
        CONFIG SET hash-max-listpack-entries 512
        CONFIG GET lfu-log-factor
        CONFIG SET lfu-log-factor 1
        CONFIG GET lfu-log-fact*
        CONFIG SET lfu-log-factor x
        CONFIG SET lfu-log-factor 5 nosuch 1
        CONFIG GET lfu-log-factor
        CONFIG SET lazyfree-lazy-user-del YES lazyfree-lazy-user-flush no
        CONFIG GET lazyfree-lazy-user-del
        CONFIG SET lazyfree-lazy-user-del maybe
        CONFIG SET stream-node-max-bytes 4kb
        CONFIG GET stream-node-max-bytes
        CONFIG SET stream-node-max-bytes x
        CONFIG SET notify-keyspace-events ""
        CONFIG GET notify-keyspace-events
        CONFIG GET latency-tracking-info-percentiles
        CONFIG GET hll-sparse-max-bytes
        """,
    "keys of commands": r"""
        COMMAND GETKEYS ZUNIONSTORE d 2 a b
        COMMAND GETKEYS ZUNIONSTORE d 3 a b
        COMMAND GETKEYS ZUNIONSTORE d 0 a b
        COMMAND GETKEYS ZUNIONSTORE d x a b
        COMMAND GETKEYS ZUNION 2 a b WITHSCORES
        COMMAND GETKEYS ZINTERCARD 1 a
        COMMAND GETKEYS SINTERCARD 2 a b LIMIT 1
        COMMAND GETKEYS LMPOP 2 a b LEFT
        COMMAND GETKEYS BLMPOP 0 2 a b LEFT
        COMMAND GETKEYS BZMPOP 0 1 a MIN
        COMMAND GETKEYS SORT a
        COMMAND GETKEYS SORT abc STORE def
        COMMAND GETKEYS SORT abc STORE stored1 LIMIT 0 10 STORE stored2
        COMMAND GETKEYS GEORADIUS a 1 2 3 m STORE d
        COMMAND GETKEYS GEORADIUSBYMEMBER a m 3 m STOREDIST d
        COMMAND GETKEYS PING
        """,
}


class SuitesTest(BesideRedisTest):
    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)


class OwnAnswersTest(ServerTest):
    def test_passwords_and_categories(self):
        for bits, digits in [((), 64), ((1,), 1), ((5,), 2), ((4096,), 1024)]:
            drawn = {self.client.call("ACL", "GENPASS", *bits) for _ in range(20)}
            self.assertTrue(all(len(word) == digits for word in drawn))
            self.assertTrue(all(word.strip(b"0123456789abcdef") == b"" for word in drawn))
            self.assertGreater(len(drawn), 1)
        categories = self.client.call("ACL", "CAT")
        self.assertIn(b"hash", categories)
        self.assertEqual(categories, sorted(set(categories)))
        self.assertIn(b"hset", self.client.call("ACL", "CAT", "HASH"))
        self.assertNotIn(b"hset", self.client.call("ACL", "CAT", "read"))

    def test_what_there_is_not(self):
        self.assertIsInstance(self.client.call("CLIENT", "TRACKING", "ON"), Error)
        self.assertIsInstance(self.client.call("REPLICAOF", "localhost", 1), Error)
        self.assertIsInstance(self.client.call("BGREWRITEAOF"), Error)
        self.assertIsInstance(self.client.call("CONFIG", "SET", "notify-keyspace-events", "KEA"),
                              Error)

    # Goal: options that change nothing are kept as long as the server runs, for all connections.
    def test_unused_options(self):
        self.check("OK", "CONFIG", "SET", "hz", 50, "maxmemory-samples", 3)
        with self.server.connect() as other:
            self.assertEqual(other.call("CONFIG", "GET", "hz", "maxmemory-s*"),
                             [b"hz", b"50", b"maxmemory-samples", b"3"])


class DebugTest(unittest.TestCase):
    def test_it_is_refused(self):
        with SkepServer() as server, server.connect() as client:
            for words in [("SLEEP", 0), ("NOSUCH",), ("HELP",)]:
                self.assertRegex(client.call("DEBUG", *words), "^ERR DEBUG command not allowed")
            self.assertIsInstance(client.call("CONFIG", "SET", "enable-debug-command", "yes"), Error)

    def test_subcommands(self):
        for who in ("local", "yes"):
            with SkepServer("--enable-debug-command", who) as server, server.connect() as client:
                self.check_subcommands(client)

    def check_subcommands(self, client):
        wrong = Error("ERR unknown subcommand or wrong number of arguments for 'nosuch'. Try DEBUG "
                      "HELP.")
        self.assertEqual(client.call("DEBUG", "nosuch"), wrong)
        self.assertEqual(client.call("DEBUG", "SLEEP", "0.001"), "OK")
        self.assertIsInstance(client.call("DEBUG", "SLEEP", "-1"), Error)
        self.assertIsInstance(client.call("DEBUG", "SLEEP", "nan"), Error)
        self.assertEqual(client.call("DEBUG", "ERROR", "OOPS x\r\ny"), Error("OOPS x  y"))
        self.assertEqual(client.call("DEBUG", "STRINGMATCH-LEN", 5, "a*a"), 1)
        self.assertEqual(client.call("DEBUG", "STRINGMATCH-LEN", 5, "b*"), 0)
        self.assertEqual(client.call("DEBUG", "POPULATE", 3, "k", 20), "OK")
        self.assertEqual(client.call("MGET", "k:0", "k:2"),
                         [b"value:0" + bytes(13), b"value:2" + bytes(13)])
        self.assertEqual(client.call("DBSIZE"), 3)
        client.call("ZADD", "z", 1, "a", 2, "b")
        client.call("COPY", "z", "y")
        digests = client.call("DEBUG", "DIGEST-VALUE", "z", "y", "k:0", "nosuch")
        self.assertEqual([len(d) for d in digests], [40] * 4)
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(len(set(digests)), 3)
        self.assertEqual(digests[3], "0" * 40)
        self.assertRegex(client.call("DEBUG", "OBJECT", "z"), "encoding:listpack")
        self.assertEqual(client.call("DEBUG", "OBJECT", "nosuch"), Error("ERR no such key"))
        self.assertEqual(client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0), "OK")
        self.assertIsInstance(client.call("DEBUG", "RELOAD"), Error)
        client.call("HELLO", 3)
        for kind, reply in [("integer", 12345), ("true", True), ("map", {0: False, 1: True, 2: False}),
                            ("double", 3.141), ("null", None), ("string", b"Hello World")]:
            self.assertEqual(client.call("DEBUG", "PROTOCOL", kind), reply)
        client.call("FLUSHALL")
        client.call("MULTI")
        self.assertIsInstance(client.call("DEBUG", "SLEEP", 0), Error)
        client.call("DISCARD")
        client.call("HELLO", 2)


if __name__ == "__main__":
    unittest.main()
