#!/usr/bin/env python3
"""CLIENT PAUSE, UNPAUSE and REPLY: which commands wait, and which replies are not sent."""

import select
import time
import unittest

from beside_redis import BesideRedisTest
from resp import encode
from skep_process import PATIENCE_S, ServerTest

LONG_MS = 1000 * PATIENCE_S  # nobody waits for its end
QUIET_S = 0.3  # how long a reply that must not come is waited for


class PauseTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.other = self.server.connect()
        self.addCleanup(self.other.close)
        self.addCleanup(lambda: self.other.call("CLIENT", "UNPAUSE"))

    def blocked(self):
        text = self.client.call("INFO", "clients").decode()
        return int(text.split("blocked_clients:")[1].split("\r\n")[0])

    def wait_for_blocked(self, count):
        deadline = time.monotonic() + PATIENCE_S
        while self.blocked() != count:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def assert_waits(self, connection):
        self.assertEqual(select.select([connection.socket], [], [], QUIET_S)[0], [])

    # Goal: with WRITE only those that write wait, and transactions that do; none is lost, and the
    # order of a connection's commands stays.
    def test_writes_wait(self):
        self.check("OK", "CLIENT", "PAUSE", LONG_MS, "WRITE")
        self.other.send(encode("GET", "a") + encode("SET", "a", 1) + encode("GET", "a"))
        self.assertIsNone(self.other.read())
        self.wait_for_blocked(1)
        self.check(None, "GET", "a")
        third = self.server.connect()
        self.addCleanup(third.close)
        self.assertEqual(third.pipeline(["MULTI"], ["GET", "a"], ["EXEC"]), ["OK", "QUEUED", [None]])
        self.check("OK", "CLIENT", "UNPAUSE")
        self.assertEqual([self.other.read(), self.other.read()], ["OK", b"1"])
        self.assertEqual(third.pipeline(["MULTI"], ["GET", "a"], ["DEL", "a"]),
                         ["OK", "QUEUED", "QUEUED"])
        self.check("OK", "CLIENT", "PAUSE", LONG_MS, "WRITE")
        third.send(encode("EXEC"))
        self.wait_for_blocked(1)
        self.check(b"1", "GET", "a")
        self.check("OK", "CLIENT", "UNPAUSE")
        self.assertEqual(third.read(), [b"1", 1])
        self.wait_for_blocked(0)

    # Goal: with ALL everything waits but CLIENT; a pause ends by itself; a client that goes away
    # while it waits is forgotten.
    def test_all_wait(self):
        self.check("OK", "CLIENT", "PAUSE", LONG_MS)
        gone = self.server.connect()
        gone.send(encode("PING"))
        self.other.send(encode("PING"))
        self.assert_waits(self.other)
        self.assertGreater(self.client.call("CLIENT", "ID"), 0)
        gone.close()
        self.check("OK", "CLIENT", "UNPAUSE")
        self.assertEqual(self.other.read(), "PONG")
        began = time.monotonic()
        self.check("OK", "CLIENT", "PAUSE", 200)
        self.assertEqual(self.other.call("PING"), "PONG")
        self.assertGreaterEqual(time.monotonic() - began, 0.199)
        self.wait_for_blocked(0)

    # Goal: a later pause makes one longer and stricter, never shorter or laxer.
    def test_pauses_add_up(self):
        self.check("OK", "CLIENT", "PAUSE", LONG_MS, "WRITE")
        self.check("OK", "CLIENT", "PAUSE", 1, "ALL")
        time.sleep(0.01)
        self.other.send(encode("GET", "a"))
        self.assert_waits(self.other)
        self.check("OK", "CLIENT", "PAUSE", 1, "WRITE")
        self.assert_waits(self.other)
        self.check("OK", "CLIENT", "UNPAUSE")
        self.assertIsNone(self.other.read())


class ReplyTest(BesideRedisTest):
    # Goal: the replies that come are those of Redis, whatever way a command runs.
    # Method: all is sent at once, and so that commands share batches; then also bit by bit.
    CONVERSATION = [
        ("SET", "a", 1), ("CLIENT", "REPLY", "SKIP"), ("GET", "a"), ("GET", "a"),
        ("CLIENT", "REPLY", "SKIP"), ("MSET", "b", 1, "c", 2), ("MGET", "b", "c"),
        ("CLIENT", "REPLY", "SKIP"), ("NOSUCH",), ("ECHO", "1"),
        ("CLIENT", "REPLY", "SKIP"), ("KEYS", "*"), ("ECHO", "2"),
        ("CLIENT", "REPLY", "OFF"), ("GET", "a"), ("MGET", "b", "c"), ("INCR", "a"), ("NOSUCH",),
        ("CLIENT", "REPLY", "SKIP"), ("KEYS", "*"), ("CLIENT", "ID"), ("MULTI",), ("INCR", "a"),
        ("EXEC",), ("CLIENT", "REPLY", "ON"), ("GET", "a"), ("CLIENT", "REPLY", "SKIP"),
        ("CLIENT", "REPLY", "ON"), ("CLIENT", "REPLY", "OFF"), ("GET", "a"), ("ECHO", "3"),
        ("CLIENT", "REPLY", "ON"), ("ECHO", "end")]

    def test_conversation(self):
        for at_once in (True, False):
            answers = []
            for connection in self.connect_both():
                commands = [encode(*command) for command in self.CONVERSATION]
                for piece in [b"".join(commands)] if at_once else commands:
                    connection.send(piece)
                replies = []
                while not replies or replies[-1] != b"$3\r\nend\r\n":
                    replies.append(connection.read_reply()[1])
                answers.append(replies)
            self.assertEqual(answers[1], answers[0])

    # Goal: a reply of many turns is left out as a whole.
    def test_long_replies(self):
        for connection in self.connect_both():
            connection.pipeline(*(["SET", f"key:{i}", "v"] for i in range(3000)))
            connection.send(encode("CLIENT", "REPLY", "SKIP") + encode("KEYS", "*")
                            + encode("ECHO", "end"))
            self.assertEqual(connection.read_reply()[1], b"$3\r\nend\r\n")


if __name__ == "__main__":
    unittest.main()
