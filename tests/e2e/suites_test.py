#!/usr/bin/env python3
"""Goal: what the test suites of Redis and its clients ask beside commands about data has Redis's
answers: what a server without replicas and users says, options that are set beforehand, PFDEBUG,
COMMAND GETKEYS.
Method: the same to skep-server and to the packaged redis-server; what is Skep's own, alone.
"""

import unittest

from beside_redis import BesideRedisTest
from resp import Error
from skep_process import ServerTest

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
        ACL LIST
        ACL LIST x
        ACL GETUSER default
        ACL GETUSER nosuch
        ACL GETUSER
        ACL DELUSER nosuch other
        ACL DELUSER nosuch default
        ACL DELUSER
        ACL DRYRUN default GET k
        ACL DRYRUN default GET
        ACL DRYRUN default NOSUCH k
        ACL DRYRUN nosuch GET k
        ACL DRYRUN default
        LATENCY GRAPH
        LATENCY GRAPH nosuch
        CLIENT TRACKINGINFO
        CLIENT TRACKING OFF
        CLIENT TRACKING MAYBE
        CLIENT GETREDIR
        MEMORY PURGE
        """,
    "scripts": r"""
        FUNCTION
        FUNCTION FLUSH
        FUNCTION FLUSH SYNC
        FUNCTION flush async
        FUNCTION FLUSH x
        FUNCTION FLUSH SYNC x
        FUNCTION LIST
        FUNCTION LIST WITHCODE
        FUNCTION LIST WITHCODE WITHCODE
        FUNCTION LIST LIBRARYNAME a
        FUNCTION LIST LIBRARYNAME
        FUNCTION LIST LIBRARYNAME a LIBRARYNAME b
        FUNCTION LIST libraryname a withcode
        FUNCTION LIST FOO
        FUNCTION DELETE
        FUNCTION DELETE x
        FUNCTION DELETE x y
        FUNCTION KILL
        FUNCTION KILL x
        FUNCTION STATS x
        FUNCTION NOSUCH
        FUNCTION LOAD
        SCRIPT
        SCRIPT FLUSH
        SCRIPT FLUSH SYNC
        SCRIPT flush async
        SCRIPT FLUSH x
        SCRIPT FLUSH SYNC x
        SCRIPT EXISTS
        SCRIPT EXISTS a
        SCRIPT EXISTS a b c
        SCRIPT KILL
        SCRIPT KILL x
        SCRIPT NOSUCH
        SCRIPT LOAD
        SCRIPT LOAD a b
        MULTI
        FUNCTION FLUSH
        FUNCTION LIST
        SCRIPT FLUSH
        SCRIPT EXISTS a
        SCRIPT KILL
        EXEC
        """,
    "shutting down": r"""
        SHUTDOWN x
        SHUTDOWN NOSAVE SAVE
        SHUTDOWN SAVE NOW NOSAVE
        SHUTDOWN SAVE x
        SHUTDOWN ABORT
        SHUTDOWN abort ABORT
        SHUTDOWN ABORT NOW
        SHUTDOWN FORCE ABORT
        SHUTDOWN SAVE ABORT
        SHUTDOWN NOSAVE ABORT x
        PING
        """,
    "places in no order": r"""
        GEOADD far 45 65 a -135 85.05 b 90 85.0511 c -45 65.509 d 0.35 85.0002 e -0.15 85 f
        GEORADIUSBYMEMBER far a 5009431 m
        GEORADIUSBYMEMBER far d 5009431 m
        GEORADIUSBYMEMBER far f 4891.94 m
        GEORADIUS far 0 0 50000 km
        GEOADD edge 179.5 36 a -179.5 36 b 179.9 -36 c -179.9 -36.1 d
        GEOSEARCH edge FROMLONLAT 179 37 BYBOX 400 400 km
        GEOSEARCH edge FROMLONLAT -179 37 BYBOX 400 400 km
        GEOSEARCH edge FROMLONLAT 179.9 0 BYRADIUS 10000 km
        GEOADD town -73.94 40.74 a -73.97 40.76 b -73.99 40.73 c -74.01 40.71 d -73.78 40.64 e
        GEORADIUS town -73.98 40.76 3 km
        GEORADIUS town -73.98 40.76 10 km
        GEORADIUS town -73.98 40.76 10 km COUNT 2 ANY
        GEORADIUS town -73.98 40.76 10 km COUNT 2 ANY DESC
        GEORADIUS town -73.98 40.76 10 km COUNT 3 ANY STORE some
        ZRANGE some 0 -1
        GEOSEARCH town FROMMEMBER a BYRADIUS 0 m
        """,
    "wrong words": r"""
        CLIENT TRACKING OFF REDIRECT
        CLIENT TRACKING OFF REDIRECT x
        CLIENT TRACKING OFF PREFIX
        CLIENT TRACKING OFF NOSUCH
        CLIENT TRACKING ON NOSUCH
        CLIENT TRACKING OFF bcast NOLOOP optin OPTOUT PREFIX p
        CLIENT TRACKINGINFO
        LOLWUT VERSION x
        CONFIG SET hz
        CONFIG SET hz 10 dynamic-hz
        """,
    "two databases": r"""
        SET k v
        MOVE k nosuch
        MOVE k 0
        MOVE k 16
        MOVE k -1
        MOVE k
        MOVE nosuch 1
        SELECT 1
        SET k w
        SELECT 0
        MOVE k 1
        GET k
        SWAPDB a 0
        SWAPDB 0 a
        SWAPDB 0 16
        SWAPDB -1 0
        SWAPDB 1 1
        SWAPDB 1
        GET k
        """,
    "other servers": r"""
        MIGRATE h 1 k 0 1
        MIGRATE h 1 k 0
        MIGRATE h 1 k a 1
        MIGRATE h 1 k 0 a
        MIGRATE h 1 k 0 1 NOSUCH
        MIGRATE h 1 k 0 1 AUTH
        MIGRATE h 1 k 0 1 AUTH2 a
        MIGRATE h 1 k 0 1 COPY REPLACE AUTH2 a b AUTH c
        MIGRATE h 1 k 0 1 KEYS a
        MIGRATE h 1 "" 0 1 KEYS
        MIGRATE h 1 "" 0 1 copy keys a b
        MULTI
        MIGRATE h 1 k 0 1
        EXEC
        """,
    "HyperLogLogs": r"""
        PFSELFTEST
        PFDEBUG ENCODING nosuch
        PFDEBUG NOSUCH nosuch
        PFADD h
        GET h
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
        CONFIG GET replica-read-only
        CONFIG GET slave-read-only
        CONFIG GET min-replicas-to-write
        CONFIG GET repl-diskless-load
        CONFIG GET acllog-max-len
        CONFIG GET oom-score-adj
        CONFIG GET masterauth
        CONFIG SET replica-read-only maybe
        CONFIG SET min-replicas-to-write 1 masterauth secret
        CONFIG GET masterauth
        CONFIG SET min-replicas-to-write 0 masterauth ""
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
        COMMAND GETKEYS BLPOP a b 0
        COMMAND GETKEYS BZPOPMAX a 0
        COMMAND GETKEYS MEMORY USAGE a
        COMMAND GETKEYS MEMORY STATS
        COMMAND GETKEYS MEMORY USAGE
        COMMAND GETKEYS OBJECT ENCODING a
        COMMAND GETKEYSANDFLAGS OBJECT FREQ a
        COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT
        COMMAND GETKEYSANDFLAGS SORT a STORE b
        COMMAND GETKEYSANDFLAGS PFMERGE a b c
        COMMAND GETKEYSANDFLAGS SUNIONSTORE a b c
        COMMAND GETKEYSANDFLAGS ZDIFFSTORE a 2 b c
        COMMAND GETKEYSANDFLAGS BRPOP a b 0
        COMMAND GETKEYSANDFLAGS MIGRATE h 1 k 0 1
        COMMAND GETKEYSANDFLAGS MIGRATE h 1 "" 0 1 COPY KEYS a b
        COMMAND GETKEYSANDFLAGS MIGRATE h 1 x 0 1 COPY KEYS a b
        ~COMMAND LIST FILTERBY ACLCAT hyperloglog
        ~COMMAND LIST FILTERBY PATTERN config*
        ~COMMAND LIST FILTERBY PATTERN config|*re*
        ~COMMAND LIST FILTERBY PATTERN co*help
        COMMAND LIST FILTERBY ACLCAT nosuch
        ~ACL CAT sortedset
        ~ACL CAT bitmap
        ~ACL CAT geo
        ~ACL CAT transaction
        """,
}


class SuitesTest(BesideRedisTest):
    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)


def places(info):
    """Of COMMAND INFO what clients decide by: arity, legacy places of keys, categories, key specs
    without their notes, whether keys move, and the same of each subcommand."""
    name, arity, flags, first, last, step, categories, _, specs, subcommands = info
    plain = [[part for i in range(0, len(spec), 2) if spec[i] != b"notes" for part in spec[i:i + 2]]
             for spec in specs]
    return {"name": name, "arity": arity, "keys": (first, last, step), "movable": "movablekeys" in flags,
            "categories": sorted(categories), "specs": plain,
            "subcommands": {sub[0]: places(sub) for sub in subcommands}}


class CommandTableTest(BesideRedisTest):
    # Subcommands have the categories of their command here. In Redis some of these are for
    # administrators only and others are not, and DEBUG and FUNCTION write nothing.
    OTHER_CATEGORIES = {b"acl", b"client", b"debug", b"function", b"memory"}

    def command_info(self, name):
        redis, skep = [server.connect() for server in (self.redis, self.skep)]
        with redis, skep:
            return [connection.call("COMMAND", "INFO", name)[0] for connection in (redis, skep)]

    def names(self):
        found = []
        for server in (self.redis, self.skep):
            with server.connect() as connection:
                found.append({name for name in connection.call("COMMAND", "LIST")})
        return found

    # Goal: a client that finds keys, or decides where a command goes, by the table does as with
    # Redis.
    # Method: all commands that both have.
    def test_places_and_categories(self):
        redis, skep = self.names()
        for name in sorted(redis & skep):
            if b"|" in name:
                continue
            with self.subTest(name=name):
                theirs, ours = [places(info) for info in self.command_info(name)]
                for table in (theirs, ours):
                    shared = theirs["subcommands"].keys() & ours["subcommands"].keys()
                    table["subcommands"] = {sub: table["subcommands"][sub] for sub in shared}
                if name in self.OTHER_CATEGORIES:
                    for table in (theirs, ours):
                        for each in (table, *table["subcommands"].values()):
                            del each["categories"]
                self.assertEqual(ours, theirs)

    # Goal: subcommands have names of their own, as in Redis.
    def test_names_of_subcommands(self):
        redis, skep = self.names()
        ours = {name for name in skep if name.startswith((b"config|", b"object|", b"memory|"))}
        self.assertEqual(ours, {name for name in redis if name.split(b"|")[0] + b"|" in
                                (b"config|", b"object|", b"memory|") and b"|" in name})
        for name, known in [("object|encoding", True), ("OBJECT|Freq", True), ("object|", False),
                            ("object|nosuch", False), ("nosuch|x", False), ("get|x", False),
                            ("object|help", True), ("get|help", False)]:
            with self.subTest(name=name):
                theirs, ours = self.command_info(name)
                self.assertEqual(ours is not None, known)
                if known:
                    self.assertEqual(places(ours), places(theirs))
        with self.skep.connect() as connection:
            docs = connection.call("COMMAND", "DOCS", "object|encoding", "object|nosuch")
            self.assertEqual(docs[0], b"object|encoding")
            self.assertEqual(len(docs), 2)


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
        self.assertTrue({b"blocking", b"dangerous", b"keyspace", b"sortedset"} < set(categories))
        self.assertIn(b"hset", self.client.call("ACL", "CAT", "HASH"))
        self.assertIn(b"config|get", self.client.call("ACL", "CAT", "admin"))
        self.assertNotIn(b"hset", self.client.call("ACL", "CAT", "read"))

    def test_what_there_is_not(self):
        self.assertIsInstance(self.client.call("CLIENT", "TRACKING", "ON"), Error)
        self.assertIsInstance(self.client.call("REPLICAOF", "localhost", 1), Error)
        self.assertIsInstance(self.client.call("BGREWRITEAOF"), Error)

    # Goal: that no script runs, and none will, is told.
    def test_no_scripts(self):
        self.check([b"running_script", None, b"engines", []], "FUNCTION", "STATS")
        for words in [("FUNCTION", "LOAD", "#!lua name=x"), ("SCRIPT", "LOAD", "return 1")]:
            self.assertRegex(self.client.call(*words), "^ERR this server runs no scripts")

    # Goal: the one user cannot be changed by ACL, and its password stays its own.
    def test_the_one_user(self):
        self.assertRegex(self.client.call("ACL", "SETUSER", "default", "off"), "^ERR there is one user")
        for command in ("LOAD", "SAVE"):
            self.assertRegex(self.client.call("ACL", command), "not configured to use an ACL file")
        self.check("OK", "CONFIG", "SET", "requirepass", "secret")
        self.addCleanup(self.client.call, "CONFIG", "SET", "requirepass", "")
        self.check([b"user default on #(redacted) ~* &* +@all"], "ACL", "LIST")
        told = self.client.call("ACL", "GETUSER", "default")
        self.assertEqual(told[:4], [b"flags", [b"on"], b"passwords", [b"(redacted)"]])

    # Goal: MIGRATE of a key that is there is an error, and passwords are in no log.
    def test_nothing_is_migrated(self):
        self.client.call("SET", "k", "v")
        for words in [("k", 0, 1), ("", 0, 1, "KEYS", "nosuch", "k")]:
            self.assertRegex(self.client.call("MIGRATE", "localhost", 1, *words),
                             "^ERR MIGRATE: this server connects to no other")
        self.check(b"v", "GET", "k")
        self.check("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
        self.addCleanup(self.client.call, "CONFIG", "SET", "slowlog-log-slower-than", 10000)
        self.client.call("SLOWLOG", "RESET")
        for command, told in [
                ("MIGRATE h 1 x 0 1 AUTH a COPY", "MIGRATE h 1 x 0 1 AUTH (redacted) COPY"),
                ("MIGRATE h 1 x 0 1 AUTH2 a b COPY",
                 "MIGRATE h 1 x 0 1 AUTH2 (redacted) (redacted) COPY"),
                ("CONFIG SET masterauth a hz 10", "CONFIG SET masterauth (redacted) hz 10"),
                ("ACL SETUSER a >b", "ACL SETUSER (redacted) (redacted)")]:
            with self.subTest(command=command):
                self.client.call(*command.split())
                words = self.client.call("SLOWLOG", "GET", 1)[0][3]
                self.assertEqual(b" ".join(words).decode(), told)

    # Goal: a key is moved by nobody, and is where it was.
    def test_nothing_is_moved(self):
        self.client.call("SET", "k", "v")
        self.assertRegex(self.client.call("MOVE", "k", 1), "two databases at one instant")
        self.assertRegex(self.client.call("SWAPDB", 0, 1), "two databases at one instant")
        self.check(b"v", "GET", "k")

    # Goal: the graph of an event has a column for each second that had one, as high as its time.
    def test_latency_graph(self):
        self.check("OK", "CONFIG", "SET", "latency-monitor-threshold", 1)
        self.addCleanup(self.client.call, "CONFIG", "SET", "latency-monitor-threshold", 0)
        self.client.call("SET", "a", "x" * 4000)
        self.client.call("SET", "b", "y" * 4000)
        while not self.client.call("LATENCY", "HISTORY", "command"):
            self.client.call("LCS", "a", "b", "LEN")
        head, line, *rows, ages, end = self.client.call("LATENCY", "GRAPH", "command").split(b"\n")
        self.assertRegex(head, rb"^command - high \d+ ms, low \d+ ms \(all time high \d+ ms\)$")
        self.assertEqual(line, b"-" * 80)
        columns = len(self.client.call("LATENCY", "HISTORY", "command"))
        self.assertEqual(len(rows), 8)
        self.assertTrue(all(len(row) <= columns for row in rows))
        self.assertIn(b"#", rows[0])
        self.assertEqual(rows[-1].strip(b"#"), b"")
        self.assertRegex(ages, rb"^from \d+ to \d+ seconds ago$")
        self.assertEqual(end, b"")

    # Goal: options that change nothing are kept as long as the server runs, for all connections.
    def test_unused_options(self):
        self.check("OK", "CONFIG", "SET", "hz", 50, "maxmemory-samples", 3)
        with self.server.connect() as other:
            self.assertEqual(other.call("CONFIG", "GET", "hz", "maxmemory-s*"),
                             [b"hz", b"50", b"maxmemory-samples", b"3"])


if __name__ == "__main__":
    unittest.main()
