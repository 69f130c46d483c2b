#!/usr/bin/env python3
"""Transactions as clients see them: MULTI, EXEC, DISCARD, WATCH, UNWATCH."""

import threading
import time
import unittest

from beside_redis import BesideRedisTest, lines
from resp import NOT_A_BOUND, Error, encode
from skep_process import ServerTest, SkepServer

ABORTED = "EXECABORT Transaction discarded because of previous errors."
NOT_ALLOWED = "ERR Command not allowed inside a transaction: "
NOT_AN_INTEGER = "ERR value is not an integer or out of range"
OOM = "OOM command not allowed when used memory > 'maxmemory'."
TOO_LARGE = ("ERR the range is too large to be read in a transaction (more than 16777216 bytes or "
             "1048576 keys)")

# What is the same in Redis, byte for byte.
CONVERSATIONS = {
    "errors of the words themselves": r"""
        EXEC
        DISCARD
        UNWATCH
        EXEC x
        DISCARD x
        UNWATCH x
        WATCH
        MULTI x
        EXEC
        """,
    "nothing queued": "MULTI\nEXEC\nEXEC\nMULTI\nDISCARD\nDISCARD",
    "nested": "MULTI\nMULTI\nSET a 1\nMULTI\nEXEC\nGET a",
    "wrong arity": "MULTI\nSET a 2\nMULTI x\nSET a 3\nEXEC\nGET a\nEXEC",
    "exec of wrong arity": "MULTI\nSET a 2\nEXEC x\nEXEC\nGET a",
    "exec of wrong arity unwatches": "WATCH a\nSET a 1\nMULTI\nEXEC x\nMULTI\nPING\nEXEC",
    "discard of wrong arity": "MULTI\nDISCARD x\nEXEC",
    "unknown": "MULTI\nSET a 1\nNOSUCH b c\nSET c 1\nEXEC\nEXISTS a c",
    "unknown, discarded": "MULTI\nNOSUCH\nDISCARD\nMULTI\nPING\nEXEC",
    "watch inside": "MULTI\nWATCH a\nSET a 1\nEXEC",
    "watch inside, wrong arity": "MULTI\nWATCH\nSET a 1\nEXEC",
    "unwatch inside": "SET a 1\nWATCH a\nSET a 2\nMULTI\nUNWATCH\nPING\nEXEC\nMULTI\nPING\nEXEC",
    "reset inside": "MULTI\nSET a 1\nRESET\nEXEC\nGET a",
    "reset unwatches": "WATCH a\nSET a 1\nRESET\nMULTI\nPING\nEXEC",
    "errors in their places": r"""
        MULTI
        SET s word
        INCR s
        SET s
        EXEC
        MULTI
        SET s word
        INCR s
        INCRBY s x
        SET t 1 NOSUCH
        APPEND s s
        EXEC
        MGET s t
        """,
    "replies of all kinds": r"""
        MSET a 1 b 2 c word
        MULTI
        GET a
        GET nothing
        MGET a nothing c
        EXISTS a b nothing a
        STRLEN c
        TYPE c
        TYPE nothing
        SET a 5 GET
        SET a 6 NX
        SET a 6 XX
        GETSET a 7
        SETNX a 8
        GETDEL b
        GETDEL b
        DEL a c nothing
        MSETNX a 1 b 1
        MSETNX a 2 d 2
        RENAME a e
        RENAME nothing e
        RENAMENX e b
        RENAMENX e f
        RENAMENX f f
        RENAME f f
        DECR f
        PING
        PING hello
        ECHO hello
        UNLINK f b
        DBSIZE
        RANDOMKEY
        KEYS *
        SCAN 0
        SCAN x
        ECHO end
        EXEC
        """,
    "sees its own writes": r"""
        MSET k1 1 k2 2 other 3
        MULTI
        DBSIZE
        KEYS other
        DEL other k1
        KEYS other
        DBSIZE
        SET k3 3
        DBSIZE
        FLUSHDB
        DBSIZE
        KEYS *
        SET k4 4
        KEYS *
        FLUSHDB nosuch
        EXEC
        DBSIZE
        """,
    "watch": r"""
        WATCH a
        MULTI
        SET a 1
        EXEC
        WATCH a
        SET a 2
        MULTI
        SET a 3
        EXEC
        GET a
        MULTI
        SET a 4
        EXEC
        WATCH a b
        SET b 1
        UNWATCH
        MULTI
        SET a 5
        EXEC
        WATCH a
        SET a 5
        MULTI
        PING
        EXEC
        WATCH a a
        WATCH a
        MULTI
        PING
        EXEC
        WATCH a
        DEL nothing
        MULTI
        PING
        EXEC
        WATCH nothing
        DEL nothing
        MULTI
        PING
        EXEC
        WATCH a
        GET a
        SET a x NX
        MULTI
        PING
        EXEC
        WATCH a
        MULTI
        SET a 6
        DISCARD
        SET a 7
        MULTI
        PING
        EXEC
        WATCH a
        SET a 8
        MULTI
        NOSUCH
        EXEC
        MULTI
        PING
        EXEC
        WATCH a
        FLUSHALL
        MULTI
        PING
        EXEC
        WATCH a
        FLUSHALL
        MULTI
        PING
        EXEC
        WATCH a
        SELECT 0
        MULTI
        PING
        EXEC
        """,
    "quit": "MULTI\nSET q 1\nQUIT",
}


class CompareTest(BesideRedisTest):
    """Conversations that must give the same bytes with Redis 7.0."""

    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)

    def test_conversations_in_one_packet(self):
        for protocol in (2, 3):
            for name, conversation in CONVERSATIONS.items():
                pair = self.connect_both(protocol)
                commands = [command for _, command in lines(conversation)]
                for connection in pair:
                    connection.send(b"".join(encode(*command) for command in commands))
                for command in commands:
                    with self.subTest(name=name, protocol=protocol, command=command):
                        redis, skep = (connection.read_reply()[1] for connection in pair)
                        self.assertEqual(skep, redis)


class TransactionTest(ServerTest):
    def transaction(self, *commands, client=None):
        """The reply of EXEC."""
        client = client or self.client
        self.assertEqual(client.call("MULTI"), "OK")
        for command in commands:
            self.assertEqual(client.call(*command), "QUEUED", command)
        return client.call("EXEC")

    def other(self):
        client = self.server.connect()
        self.addCleanup(client.close)
        return client

    def test_what_is_not_allowed_dooms(self):
        for reason, *command in [("a transaction is about one database", "SELECT", 1),
                                 ("a transaction is about one database", "FLUSHALL"),
                                 ("it reads at a version of its own", "KSCAN", "-", "+"),
                                 ("it ends the server", "SHUTDOWN")]:
            self.check("OK", "MULTI")
            self.check(Error(NOT_ALLOWED + reason), *command)
            self.check("QUEUED", "SET", "a", 1)
            self.check(Error(ABORTED), "EXEC")
            self.check(0, "EXISTS", "a")

    def test_ranges_see_earlier_writes(self):
        self.check("OK", "MSET", "a", 1, "b", 2, "c", 3, "x", 9)
        self.assertEqual(
            self.transaction(
                ("KRANGE", "-", "+"), ("KCOUNT", "-", "+"), ("SET", "d", 4),
                ("KRANGE", "[b", "+", "WITHVALUES"), ("KDELRANGE", "[b", "[c"), ("KCOUNT", "-", "+"),
                ("KRANGE", "-", "+", "REV", "LIMIT", 1, 9), ("KFIRST",), ("KLAST", "WITHVALUE"),
                ("KFLOOR", "c"), ("KCEIL", "b"), ("KCEIL", "z"), ("KDELRANGE", "-", "+", "LIMIT", 1),
                ("KEYS", "*"), ("SCAN", 0, "MATCH", "d*"), ("KRANGE", "bad", "+"),
                ("KRANGE", "-", "+", "LIMIT", 1, "x"), ("KCOUNT", "PREFIX", "x"),
                ("SCAN", 0, "TYPE", "hash")),
            [[b"a", b"b", b"c", b"x"], 4, "OK",
             [b"b", b"2", b"c", b"3", b"d", b"4", b"x", b"9"], 2, 3,
             [b"d", b"a"], b"a", [b"x", b"9"],
             b"a", b"d", None, 1,
             [b"d", b"x"], [b"0", [b"d"]],
             Error(NOT_A_BOUND), Error(NOT_AN_INTEGER), 1,
             [b"0", []]])
        self.check([b"d", b"x"], "KRANGE", "-", "+")

    # A SCAN that a transaction began goes on outside, and the other way round.
    def test_scan_cursors(self):
        self.check("OK", "MSET", *(word for i in range(30) for word in (f"k{i:02}", i)))
        cursor, first = self.client.call("SCAN", 0)
        (cursor, second), = self.transaction(("SCAN", cursor))
        cursor, third = self.client.call("SCAN", cursor, "COUNT", 100)
        self.assertEqual(cursor, b"0")
        self.assertEqual(first + second + third, [b"k%02d" % i for i in range(30)])

    def test_reads_of_ranges_are_bounded(self):
        value = "v" * (1 << 20)
        for i in range(17):
            self.check("OK", "SET", f"k{i}", value)
        reply = self.transaction(("KRANGE", "-", "+", "WITHVALUES"), ("SET", "after", 1),
                                 ("KCOUNT", "-", "+"), ("KRANGE", "-", "+", "LIMIT", 0, 1))
        self.assertEqual(reply, [Error(TOO_LARGE), "OK", 18, [b"after"]])

    def test_local_commands_run_in_their_places(self):
        self.check("OK", "MULTI")
        for command in [("CLIENT", "SETNAME", "me"), ("CLIENT", "GETNAME"), ("COMMAND", "COUNT"),
                        ("CONFIG", "SET", "hash", "1"), ("CONFIG", "GET", "databases"), ("TIME",),
                        ("INFO", "server"), ("AUTH", "x"), ("HELLO", 3), ("GET", "nothing"),
                        ("HELLO", 2)]:
            self.check("QUEUED", *command)
        self.client.send(encode("EXEC"))
        value, raw = self.client.read_reply()
        self.assertEqual(value[:2], ["OK", b"me"])
        self.assertGreater(value[2], 50)
        self.assertIsInstance(value[3], Error)
        self.assertEqual(value[4], [b"databases", b"16"])
        self.assertEqual(len(value[5]), 2)
        self.assertIn(b"skep_version", value[6])
        self.assertIsInstance(value[7], Error)
        self.assertEqual(value[8]["proto".encode()], 3)
        self.assertIn(b"\r\n_\r\n", raw)
        self.check("OK", "CLIENT", "SETNAME", "")

    def test_one_packet_split_at_every_byte(self):
        data = b"".join(encode(*command) for command in [
            ("SET", "n", 1), ("WATCH", "n"), ("MULTI",), ("INCR", "n"), ("GET", "n"), ("EXEC",),
            ("GET", "n")])
        expected = ["OK", "OK", "OK", "QUEUED", "QUEUED", [2, b"2"], b"2"]
        for cut in range(len(data)):
            self.client.send(data[:cut])
            if cut % 8 == 0:
                time.sleep(0.001)  # or the halves may arrive as one
            self.client.send(data[cut:])
            self.assertEqual([self.client.read() for _ in expected], expected, cut)

    # Goal: what a connection has sent before WATCH is no change of what it watches.
    def test_own_earlier_writes_do_not_count(self):
        for _ in range(200):
            replies = self.client.pipeline(("SET", "a", 1), ("INCR", "a"), ("WATCH", "a"),
                                           ("GET", "a"), ("MULTI",), ("SET", "a", 9), ("EXEC",))
            self.assertEqual(replies, ["OK", 2, "OK", b"2", "OK", "QUEUED", ["OK"]])

    def test_every_change_of_another_counts(self):
        other = self.other()
        changes = [
            [("SET", "a", 2)], [("SET", "a", 1)], [("SET", "a", 2), ("SET", "a", 1)],
            [("DEL", "a")], [("DEL", "a"), ("SET", "a", 1)], [("UNLINK", "a", "b")],
            [("INCR", "a")], [("APPEND", "a", "x")], [("GETSET", "a", 1)], [("GETDEL", "a")],
            [("KDELRANGE", "-", "+")], [("KDELRANGE", "[a", "[a")], [("FLUSHALL",)],
            [("FLUSHDB",)], [("MSET", "b", 1, "a", 1)], [("RENAME", "a", "z")],
            [("SET", "z", 1), ("RENAME", "z", "a")], [("EXPIRE", "a", 100)],
            [("MULTI",), ("SET", "a", 1), ("EXEC",)]]
        for change in changes:
            with self.subTest(change=change):
                self.check("OK", "MSET", "a", 1, "b", 1)
                self.check("OK", "WATCH", "nothing", "a")
                for command in change:
                    self.assertNotIsInstance(other.call(*command), Error)
                self.assertIsNone(self.transaction(("SET", "mine", 1)))
                self.check(0, "EXISTS", "mine")
                self.assertEqual(self.transaction(("PING",)), ["PONG"])

    def test_what_changes_nothing_does_not_count(self):
        other = self.other()
        self.check("OK", "SET", "a", 1)
        for command in [("GET", "a"), ("SETNX", "a", 2), ("SET", "a", 2, "NX"), ("DEL", "nothing"),
                        ("SET", "ab", 1), ("KDELRANGE", "(a", "+"), ("KDELRANGE", "-", "(a"),
                        ("MSETNX", "a", 1, "y", 1), ("RENAMENX", "z", "a"), ("INCRBY", "a", "x"),
                        ("PERSIST", "a"), ("EXPIRE", "nothing", 100), ("EXPIRE", "a", 1, "XX")]:
            with self.subTest(command=command):
                self.check("OK", "WATCH", "a", "nothing")
                other.call("SET", "z", 1)
                other.call(*command)
                self.assertEqual(self.transaction(("GET", "a")), [b"1"])

    def test_absent_key_appears(self):
        other = self.other()
        for command in [("SET", "new", 1), ("INCR", "new"), ("APPEND", "new", "x"),
                        ("MSETNX", "new", 1, "newer", 1)]:
            self.check("OK", "WATCH", "new")
            other.call(*command)
            self.assertIsNone(self.transaction(("PING",)))
            other.call("FLUSHALL")
            # Appears and is gone again: a change all the same.
            self.check("OK", "WATCH", "new")
            other.call(*command)
            other.call("DEL", "new")
            self.assertIsNone(self.transaction(("PING",)))
            other.call("FLUSHALL")

    def test_expiry_is_a_change(self):
        self.check("OK", "SET", "a", 1, "PX", 20)
        self.check("OK", "WATCH", "a")
        while self.client.call("EXISTS", "a"):
            time.sleep(0.005)
        self.assertIsNone(self.transaction(("PING",)))
        # One that was expired when it was watched has not changed.
        self.check("OK", "WATCH", "a")
        self.assertEqual(self.transaction(("PING",)), ["PONG"])

    def test_databases(self):
        other = self.other()
        self.assertEqual(other.call("SELECT", 1), "OK")
        self.check("OK", "SET", "a", 1)
        self.check("OK", "WATCH", "a")
        self.assertEqual(other.call("SET", "a", 2), "OK")
        self.assertEqual(self.transaction(("GET", "a")), [b"1"])
        self.check("OK", "WATCH", "a")
        self.check(Error("ERR SELECT while keys are watched: a transaction is about one database"),
                   "SELECT", 1)
        self.check("OK", "SELECT", 0)
        self.check("OK", "UNWATCH")
        self.check("OK", "SELECT", 1)
        self.check("OK", "WATCH", "a")
        self.assertEqual(other.call("SET", "a", 3), "OK")
        self.assertIsNone(self.transaction(("PING",)))
        self.check("OK", "SELECT", 0)

    def test_queue_is_bounded(self):
        limit = int(self.client.call("CONFIG", "GET", "client-query-buffer-limit")[1])
        self.addCleanup(self.client.call, "CONFIG", "SET", "client-query-buffer-limit", limit)
        self.check("OK", "CONFIG", "SET", "client-query-buffer-limit", "2mb")
        self.check("OK", "MULTI")
        replies = [self.client.call("SET", f"k{i}", "v" * 100_000) for i in range(40)]
        self.assertEqual(replies[:8], ["QUEUED"] * 8)
        self.assertIn(Error("ERR the transaction exceeds client-query-buffer-limit"), replies)
        self.check(Error(ABORTED), "EXEC")
        self.check(0, "DBSIZE")
        keys = [f"{i:060000}" for i in range(40)]
        # Two commands, each of which is shorter than the limit.
        self.check("OK", "WATCH", *keys[:20])
        self.check(Error("ERR the watched keys exceed client-query-buffer-limit"), "WATCH",
                   *keys[20:])
        self.assertEqual(self.transaction(("PING",)), ["PONG"])

    def test_many_commands(self):
        count = 20_000
        self.check("OK", "MULTI")
        queued = self.client.pipeline(*[("INCR", f"n{i % 100}") for i in range(count)])
        self.assertEqual(queued, ["QUEUED"] * count)
        self.assertEqual(self.client.call("EXEC"), [1 + i // 100 for i in range(count)])
        self.assertEqual(set(self.client.call("MGET", *[f"n{i}" for i in range(100)])),
                         {b"%d" % (count // 100)})

    def test_watches_end_with_their_connection(self):
        for _ in range(50):
            with self.server.connect() as client:
                client.call("WATCH", *[f"w{i}" for i in range(100)])
                client.call("MULTI")
                client.call("SET", "w0", 1)
        self.assertEqual(self.transaction(("EXISTS", "w0")), [0])

    def test_client_list_tells(self):
        def fields():
            line = self.client.call("CLIENT", "INFO").decode()
            return dict(word.split("=", 1) for word in line.split())

        self.assertEqual([fields()[name] for name in ("multi", "watch", "flags")], ["-1", "0", "N"])
        other = self.other()
        identity = f"id={other.call('CLIENT', 'ID')} "
        other.call("WATCH", "a", "b", "a")
        other.call("MULTI")
        other.call("PING")
        lines_of_all = self.client.call("CLIENT", "LIST").decode().splitlines()
        line, = [line for line in lines_of_all if line.startswith(identity)]
        for field in (" multi=1 ", " watch=2 ", " flags=x "):
            self.assertIn(field, line)
        other.call("DISCARD")
        lines_of_all = self.client.call("CLIENT", "LIST").decode().splitlines()
        line, = [line for line in lines_of_all if line.startswith(identity)]
        for field in (" multi=-1 ", " watch=0 ", " flags=N "):
            self.assertIn(field, line)

    # Goal: no update is lost between a watch and its EXEC.
    # Method: connections on all workers read, add one and retry if EXEC says so; others move what
    # is watched by INCR. In the end everything adds up.
    def test_concurrent_increments_add_up(self):
        threads, rounds, alone = 4, 100, 300
        retries = [0] * threads
        failures = []

        def watch_and_add(index):
            with self.server.connect() as client:
                for _ in range(rounds):
                    while True:
                        client.call("WATCH", "n")
                        read = client.call("MGET", "n") if index % 2 else [client.call("GET", "n")]
                        client.pipeline(("MULTI",), ("SET", "n", int(read[0] or 0) + 1),
                                        ("INCR", "done"))
                        if client.call("EXEC") is not None:
                            break
                        retries[index] += 1

        def add():
            with self.server.connect() as client:
                for _ in range(alone):
                    client.call("INCR", "n")

        def guarded(work, *args):
            try:
                work(*args)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        workers = [threading.Thread(target=guarded, args=(watch_and_add, i)) for i in range(threads)]
        workers.append(threading.Thread(target=guarded, args=(add,)))
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        self.check(b"%d" % (threads * rounds + alone), "GET", "n")
        self.check(b"%d" % (threads * rounds), "GET", "done")

    # Goal: nobody sees a transaction in part.
    # Method: one connection moves an amount between two keys by transactions, others read both by
    # MGET, by a transaction and by a range: the sum is always the same.
    def test_readers_see_all_or_nothing(self):
        self.check("OK", "MSET", "left", 500, "right", 500)
        stop = threading.Event()
        failures = []

        def move():
            with self.server.connect() as client:
                while not stop.is_set():
                    client.pipeline(("MULTI",), ("DECR", "left"), ("INCR", "right"), ("EXEC",))

        thread = threading.Thread(target=move)
        thread.start()
        try:
            for _ in range(300):
                pairs = [self.client.call("MGET", "left", "right"),
                         self.transaction(("GET", "left"), ("GET", "right")),
                         self.client.call("KRANGE", "-", "+", "WITHVALUES")[1::2]]
                failures += [pair for pair in pairs if sum(map(int, pair)) != 1000]
        finally:
            stop.set()
            thread.join()
        self.assertEqual(failures, [])


class LimitsTest(unittest.TestCase):
    def test_password(self):
        with SkepServer("--requirepass", "sesame") as server, server.connect() as client:
            no_auth = Error("NOAUTH Authentication required.")
            for command in [("MULTI",), ("EXEC",), ("DISCARD",), ("WATCH", "a"), ("UNWATCH",)]:
                reply = client.call(*command)
                self.assertTrue(reply.startswith(("NOAUTH", "EXECABORT")), (command, reply))
            self.assertEqual(client.call("MULTI"), no_auth)
            self.assertEqual(client.call("AUTH", "sesame"), "OK")
            self.assertEqual(client.call("EXEC"), Error("ERR EXEC without MULTI"))

    # Goal: over the memory limit, what needs memory dooms its transaction; what deletes does not.
    def test_memory_limit(self):
        with SkepServer("--maxmemory", "64mb") as server, server.connect() as client:
            client.call("SET", "a", 1)
            self.assertEqual(client.call("CONFIG", "SET", "maxmemory", "1"), "OK")
            self.assertEqual(client.pipeline(("MULTI",), ("SET", "a", 2), ("DEL", "a"), ("EXEC",)),
                             ["OK", Error(OOM), "QUEUED", Error(ABORTED)])
            self.assertEqual(client.pipeline(("MULTI",), ("DEL", "a"), ("EXEC",)),
                             ["OK", "QUEUED", [1]])


if __name__ == "__main__":
    unittest.main()
