#!/usr/bin/env python3
"""What one client may do to the server and to the others: limits, slow readers, passwords."""

import re
import time
import unittest

from resp import Closed, Error, encode
from skep_process import PATIENCE_S, SANITIZED, ServerTest, SkepServer

MIB = 1 << 20


class SlowReaderTest(ServerTest):
    # Goal: a reader that never reads costs bounded memory and delays nobody.
    # Method: several connections ask for far more than the server may keep and never read; others
    # go on. Under sanitizers memory says nothing, so only the service is checked.
    def test_a_reader_that_never_reads(self):
        self.check("OK", "SET", "big", b"x" * MIB)
        self.check("OK", "SET", "n", "")
        self.client.pipeline(*(["SET", b"key:%04d" % i, b"v" * 10_000] for i in range(2000)))
        before = self.server.rss_bytes()
        deaf = []
        for request in (encode("GET", "big") * 500,
                        encode("KRANGE", "-", "+", "WITHVALUES") * 100,
                        encode("MGET", *["big"] * 50) * 4):
            connection = self.server.connect()
            self.addCleanup(connection.close)
            connection.send(request)
            deaf.append(connection)
        for i in range(500):
            self.assertEqual(self.client.call("SET", "n", i), "OK")
            self.assertEqual(self.client.call("GET", "n"), b"%d" % i)
        self.assertEqual(self.client.call("KCOUNT", "PREFIX", "key:"), 2000)
        if not SANITIZED:
            self.assertLess(self.server.rss_bytes() - before, 300 * MIB)
        # Those that come round still get everything, in order.
        for _ in range(500):
            self.assertEqual(len(deaf[0].read()), MIB)
        self.assertEqual(len(deaf[1].read()), 2 * 2002)

    # Goal: a reply of any size is served whole and of one version while others write.
    def test_huge_replies(self):
        count = 2_000 if SANITIZED else 50_000
        value = b"v" * 1000
        for start in range(0, count, 1000):
            self.client.pipeline(*(["SET", b"key:%06d" % i, value]
                                   for i in range(start, start + 1000)))
        with self.server.connect() as reader:
            reader.send(encode("KRANGE", "-", "+", "WITHVALUES"))
            for i in range(0, count, 97):
                self.assertEqual(self.client.call("SET", b"key:%06d" % i, "new"), "OK")
                self.assertEqual(self.client.call("SET", b"key:%06d:new" % i, "new"), "OK")
            reply = reader.read()
            keys = reply[::2]
            self.assertEqual(keys, sorted(set(keys)))
            olds = {key: old for key, old in zip(keys, reply[1::2]) if len(key) == 10}
            self.assertEqual(len(olds), count)
            # One version: if a new key is there, so is everything written before it.
            seen = [i for i in range(0, count, 97) if b"key:%06d:new" % i in set(keys)]
            self.assertEqual(seen, list(range(0, 97 * len(seen), 97)))
            for i in range(0, count, 97):
                if olds[b"key:%06d" % i] == b"new":
                    self.assertLessEqual(i, 97 * len(seen))
                else:
                    self.assertNotIn(i, seen)

    # Goal: how many commands of a pipeline run at once, before the size of their replies is known,
    # does not grow by what has no such reply.
    # Method: a value that comes in hundreds of pieces, and commands that run alone; then a pipeline
    # of large replies. The first sixteen of them are one batch, the others almost one each.
    def test_a_large_argument_is_not_a_long_pipeline(self):
        def batches():
            return int(re.search(rb"total_batches:(\d+)", self.client.call("INFO", "stats")).group(1))

        value = b"v" * (8 * MIB)
        self.check("OK", "SET", "large", value)
        self.client.pipeline(*[("INFO", "server")] * 200)
        before = batches()
        replies = self.client.pipeline(*[("GET", "large")] * 40)
        self.assertTrue(all(reply == value for reply in replies))
        self.assertGreater(batches() - before, 12)

    # Goal: a pipeline longer than the server reads at once, whose replies are large, is answered whole:
    # the connection is not read for a while, and that is not taken for its end.
    def test_a_long_pipeline_with_large_replies(self):
        self.client.call("SET", "large", b"x" * 1_000_000)
        with self.server.connect() as slow:
            slow.send(encode("GET", "large") * 4000)
            for _ in range(100):
                self.assertEqual(len(slow.read()), 1_000_000)

    def test_output_buffer_limit_closes_the_connection(self):
        self.check("OK", "SET", "big", b"x" * (8 * MIB))
        self.check("OK", "CONFIG", "SET", "client-output-buffer-limit", "1mb")
        self.addCleanup(self.client.call, "CONFIG", "SET", "client-output-buffer-limit", "1gb")
        with self.server.connect() as deaf:
            deaf.send(encode("MGET", *["big"] * 4))
            with self.assertRaises(Closed):
                deaf.read()
        self.assertEqual(self.client.call("PING"), "PONG")


class LimitTest(unittest.TestCase):
    def test_maxclients(self):
        with SkepServer("--maxclients", 5) as server:
            clients = [server.connect() for _ in range(5)]
            for client in clients:
                self.assertEqual(client.call("PING"), "PONG")
            with server.connect() as refused:
                self.assertEqual(refused.read(), Error("ERR max number of clients reached"))
                self.assertTrue(refused.is_closed())
            clients.pop().close()
            # The place is free once the server has seen the end of the other.
            deadline = time.monotonic() + PATIENCE_S
            while True:
                with server.connect() as client:
                    try:
                        reply = client.call("PING")
                    except (Closed, BrokenPipeError):
                        reply = None
                if reply == "PONG":
                    break
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(clients[0].call("CONFIG", "SET", "maxclients", 6), "OK")
            for client in clients:
                client.close()

    def test_query_buffer_limit(self):
        with SkepServer("--client-query-buffer-limit", "1mb") as server, server.connect() as client:
            self.assertEqual(client.call("SET", "a", b"x" * 900_000), "OK")
            with server.connect() as greedy:
                try:
                    greedy.send(b"*2\r\n$3\r\nSET\r\n$10000000\r\n" + b"x" * (4 * MIB))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertTrue(greedy.is_closed())
            self.assertEqual(client.call("STRLEN", "a"), 900_000)

    def test_argument_limit(self):
        with SkepServer("--proto-max-bulk-len", "1mb") as server, server.connect() as client:
            self.assertEqual(client.call("SET", "a", b"x" * MIB), "OK")
            client.send(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (MIB + 1))
            self.assertEqual(client.read(), Error("ERR Protocol error: invalid bulk length"))
            self.assertTrue(client.is_closed())

    def test_idle_connections_are_closed(self):
        with SkepServer("--timeout", 1) as server:
            with server.connect(timeout=PATIENCE_S) as idle:
                self.assertTrue(idle.is_closed())

    # Goal: over maxmemory writes are refused with Redis's words, reads and deletes go on, and what
    # deletes give back can be used again.
    def test_maxmemory(self):
        oom = "OOM command not allowed when used memory > 'maxmemory'."
        with SkepServer("--maxmemory", "30mb") as server, server.connect() as client:
            stored = 0
            while (reply := client.call("SET", f"key{stored}", b"x" * 100_000)) == "OK":
                stored += 1
                self.assertLess(stored, 400)
            self.assertEqual(reply, Error(oom))
            self.assertGreater(stored, 100)
            self.assertEqual(client.call("CONFIG", "SET", "maxmemory", "10mb"), "OK")
            for command in (["SET", "a", 1], ["APPEND", "key0", "x"], ["INCR", "n"],
                            ["MSET", "a", 1, "b", 2], ["GETSET", "key0", 1], ["SETNX", "a", 1]):
                self.assertEqual(client.call(*command), Error(oom), command)
            self.assertEqual(client.call("EXISTS", "a", "b", "n"), 0)
            self.assertEqual(client.call("STRLEN", "key0"), 100_000)
            self.assertEqual(client.call("DEL", "key0", "key1"), 2)
            self.assertEqual(client.call("KDELRANGE", "-", "+"), stored - 2)
            self.assertEqual(client.call("SET", "a", b"x" * 100_000), "OK")
            self.assertEqual(client.call("CONFIG", "SET", "maxmemory", 1), "OK")
            self.assertEqual(client.call("SET", "b", 1), Error(oom))
            self.assertEqual(client.call("CONFIG", "SET", "maxmemory", 0), "OK")
            self.assertEqual(client.call("SET", "b", 1), "OK")


class PasswordTest(ServerTest):
    OPTIONS = ("--requirepass", "secret")
    NOAUTH = Error("NOAUTH Authentication required.")
    WRONG = Error("WRONGPASS invalid username-password pair or user is disabled.")

    def setUp(self):
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def test_nothing_without_it(self):
        for command in (["PING"], ["GET", "a"], ["SET", "a", 1], ["KRANGE", "-", "+"], ["INFO"],
                        ["CONFIG", "GET", "requirepass"], ["SELECT", 1], ["CLIENT", "LIST"],
                        ["COMMAND"], ["FLUSHALL"], ["SHUTDOWN"], ["ECHO", "a"], ["DBSIZE"]):
            self.check(self.NOAUTH, *command)
        self.check(Error("NOAUTH HELLO must be called with the client already authenticated, "
                         "otherwise the HELLO <proto> AUTH <user> <pass> option can be used to "
                         "authenticate the client and select the RESP protocol version at the "
                         "same time"), "HELLO", 3)

    def test_the_right_one(self):
        self.check(self.WRONG, "AUTH", "wrong")
        self.check(self.WRONG, "AUTH", "secre")
        self.check(self.WRONG, "AUTH", "secret2")
        self.check(self.WRONG, "AUTH", "nosuch", "secret")
        self.check(self.WRONG, "AUTH", "")
        self.check(self.NOAUTH, "PING")
        self.check("OK", "AUTH", "secret")
        self.check("PONG", "PING")
        self.check(self.WRONG, "AUTH", "wrong")
        self.check("PONG", "PING")
        self.check("OK", "AUTH", "default", "secret")
        self.check("RESET", "RESET")
        self.check(self.NOAUTH, "PING")
        self.check(self.WRONG, "HELLO", 3, "AUTH", "default", "wrong")
        self.assertIsInstance(self.client.call("HELLO", 3, "AUTH", "default", "secret"), dict)
        self.check("PONG", "PING")

    def test_it_can_be_changed(self):
        self.check("OK", "AUTH", "secret")
        self.check("OK", "CONFIG", "SET", "requirepass", "other")
        self.check("PONG", "PING")
        with self.server.connect() as client:
            self.assertEqual(client.call("AUTH", "secret"), self.WRONG)
            self.assertEqual(client.call("AUTH", "other"), "OK")
        self.check("OK", "CONFIG", "SET", "requirepass", "secret")

    # Goal: an option holds from the command behind the one that sets it, in one packet and for
    # connections that were there before.
    def test_it_can_come_and_go(self):
        with SkepServer() as server, server.connect() as client, server.connect() as older:
            self.assertEqual(older.call("SET", "a", 1), "OK")
            self.assertEqual(client.pipeline(["CONFIG", "SET", "requirepass", "x"], ["AUTH", "x"]),
                             ["OK", "OK"])
            with server.connect() as stranger:
                self.assertEqual(stranger.call("GET", "a"), self.NOAUTH)
                self.assertEqual(older.call("GET", "a"), b"1")
                self.assertEqual(client.call("CONFIG", "SET", "requirepass", ""), "OK")
                self.assertEqual(stranger.call("GET", "a"), b"1")
                # Nor do the limits of strangers hold any more.
                self.assertEqual(stranger.call("SET", "a", b"x" * 20_000), "OK")
                self.assertEqual(stranger.call("EXISTS", *["a"] * 20), 20)
                self.assertIsInstance(stranger.call("HELLO", 3), dict)

    # Goal: a HELLO that is wrong anywhere does nothing at all.
    def test_a_wrong_hello_does_not_log_in(self):
        self.check(Error("ERR Syntax error in HELLO option 'NOPE'"),
                   "HELLO", 3, "AUTH", "default", "secret", "NOPE")
        self.check(self.NOAUTH, "PING")
        self.check(self.WRONG, "HELLO", 3, "SETNAME", "me", "AUTH", "default", "wrong")
        self.check(self.NOAUTH, "PING")
        self.check("OK", "AUTH", "secret")
        self.check(None, "CLIENT", "GETNAME")
        self.assertIsInstance(self.client.call("HELLO"), list, "still protocol 2")

    # Goal: who has no password cannot make the server keep much.
    def test_small_limits_before_it(self):
        for request, text in ((b"*11\r\n", "unauthenticated multibulk length"),
                              (b"*1\r\n$16385\r\n", "unauthenticated bulk length")):
            with self.server.connect() as client:
                client.send(request)
                self.assertEqual(client.read(), Error("ERR Protocol error: " + text))
                self.assertTrue(client.is_closed())


if __name__ == "__main__":
    unittest.main()
