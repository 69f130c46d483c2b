#!/usr/bin/env python3
"""Goal: MONITOR shows what Redis 7.0 shows, all of it and in order; who does not read it costs only
itself.
Method: the same commands to skep-server and to the packaged redis-server, and the lines of both
without times and ports; crowds of clients on several workers, whose commands are numbered.
"""

import re
import threading
import unittest

from beside_redis import BesideRedisTest, lines
from resp import Closed, Error, encode
from skep_process import SANITIZED, SkepServer

WORKERS = ("--workers", "3")
COMMANDS = 200 if SANITIZED else 1000
LINE = re.compile(rb"\+\d{10}\.\d{6} \[(\d+) [^\]]+\] (.*)\r\n", re.DOTALL)

CONVERSATION = r'''
    SET a "x\x00\"y\n\r\t\a\b\xff\\ ~"
    get a
    GET
    NOSUCH a
    LPUSH a x
    SET a b NX XX
    SET "" ""
    AUTH secret
    AUTH default secret
    MULTI
    SET a 1
    GET a
    EXEC
    MULTI
    DISCARD
    MULTI
    NOSUCH
    EXEC
    CONFIG GET port
    CONFIG NOSUCH
    ~CLIENT LIST
    ~CLIENT ID
    CLIENT SETNAME me
    CLIENT UNPAUSE
    CLIENT KILL ID 999
    ACL WHOAMI
    ACL USERS
    SLOWLOG RESET
    LATENCY RESET
    SELECT 3
    DBSIZE
    SELECT 0
    PUBLISH a b
    SADD s 1 2 3
    ~SMEMBERS s
    SUNIONSTORE t s
    BLPOP nobody 0.001
    RPUSH l 1
    BLPOP l 0
    SORT l STORE m
    KEYS nosuch*
    SCAN 0 COUNT 1000 MATCH nosuch
    WATCH a
    UNWATCH
    WATCH a
    SET a 2
    MULTI
    SET zz 1
    EXEC
    SUBSCRIBE x
    PING
    UNSUBSCRIBE x
    EVALSHA
    WAIT 0 0
    ROLE
    FLUSHDB
    RESET
    ECHO end
'''


class MonitorTest(BesideRedisTest):
    def monitor(self, server):
        monitor = server.connect()
        self.addCleanup(monitor.close)
        self.assertEqual(monitor.call("MONITOR"), "OK")
        return monitor

    def read_until(self, monitor, mark):
        found = []
        while True:
            raw = monitor.read_reply()[1]
            keyspace, words = LINE.fullmatch(raw).groups()
            if mark in words:
                return found
            found.append((keyspace, words))

    # Goal: the same lines as Redis, of the same commands.
    # Method: after each command another client sends one that marks its end. A pipeline has the
    # same lines as single commands.
    def test_beside_redis(self):
        servers = (self.redis, self.skep)
        pair = self.connect_both()
        monitors = [self.monitor(server) for server in servers]
        others = [server.connect() for server in servers]
        for step, (_, command) in enumerate(lines(CONVERSATION)):
            got = []
            for connection, other, monitor in zip(pair, others, monitors):
                connection.send(encode(*command))
                connection.read_reply()
                mark = b"mark-%d" % step
                other.call("ECHO", mark)
                got.append(self.read_until(monitor, mark))
            with self.subTest(command=command):
                self.assertEqual(got[1], got[0])
        for other in others:
            other.close()

    def test_a_pipeline(self):
        pair = self.connect_both()
        monitors = [self.monitor(server) for server in (self.redis, self.skep)]
        commands = [["SET", "a", "1"], ["SELECT", "2"], ["INCR", "a"], ["SELECT", "0"], ["MGET", "a", "b"],
                    ["MULTI"], ["INCR", "a"], ["EXEC"], ["DEL", "a"], ["ECHO", "the-end"]]
        got = []
        for connection, monitor in zip(pair, monitors):
            connection.pipeline(*commands)
            got.append(self.read_until(monitor, b"the-end"))
        self.assertEqual(got[1], got[0])

    def test_what_a_monitor_may_do(self):
        got = []
        for server in (self.redis, self.skep):
            monitor = self.monitor(server)
            replies = []
            for command in (["GET", "a"], ["SET", "a", "1"], ["MULTI"], ["GET", "a"], ["DISCARD"]):
                monitor.send(encode(*command))
                reply = monitor.read_reply()[1]
                replies.append(reply)
                if reply[:1] != b"-":
                    monitor.read_reply()  # its own line
            got.append(replies)
        self.assertEqual(got[1], got[0])


class CrowdTest(unittest.TestCase):
    def setUp(self):
        self.server = SkepServer(*WORKERS)
        self.addCleanup(self.server.stop)

    def connect(self):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        return connection

    # Goal: no command is lost or doubled, and each client's come in order, on all workers.
    def test_all_commands_of_all_workers(self):
        clients = 6
        monitor = self.connect()
        monitor.call("MONITOR")

        def work(client, number):
            for begin in range(0, COMMANDS, 20):
                client.pipeline(*(["SET", f"k{number}", i] for i in range(begin, begin + 20)))

        threads = [threading.Thread(target=work, args=(self.connect(), i)) for i in range(clients)]
        for thread in threads:
            thread.start()
        seen = {number: [] for number in range(clients)}
        for _ in range(clients * COMMANDS):
            words = LINE.fullmatch(monitor.read_reply()[1])[2]
            number, i = re.fullmatch(rb'"SET" "k(\d)" "(\d+)"', words).groups()
            seen[int(number)].append(int(i))
        for thread in threads:
            thread.join()
        for found in seen.values():
            self.assertEqual(found, list(range(COMMANDS)))

    # Goal: RESET and the end of the connection end it, and others are not told any more.
    def test_reset_ends_it(self):
        monitor, other = self.connect(), self.connect()
        monitor.call("MONITOR")
        monitor.send(encode("RESET"))
        while monitor.read() != "RESET":
            pass
        other.call("SET", "a", 1)
        self.assertEqual(monitor.call("GET", "a"), b"1")

    # Goal: a monitor that does not read is closed by the limits of its class, and nobody else
    # waits for it.
    def test_who_does_not_read_is_closed(self):
        monitor, other = self.connect(), self.connect()
        other.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1048576 0 0")
        monitor.call("MONITOR")
        value = "v" * 50_000
        for _ in range(400):
            self.assertEqual(other.call("SET", "a", value), "OK")
        with self.assertRaises((Closed, ConnectionError)):
            while True:
                monitor.read_reply()

    # Goal: a line has a bounded length, and passwords are in none.
    def test_long_lines_and_passwords(self):
        monitor, other = self.connect(), self.connect()
        monitor.call("MONITOR")
        other.call("SET", "a", b"\x00" * 1_000_000)
        line = monitor.read_reply()[1]
        self.assertLess(len(line), 4 * 65536 + 1000)
        self.assertTrue(line.endswith(b'"...\r\n'))
        other.call("AUTH", "default", "secret")
        self.assertIn(b'"AUTH" "(redacted)" "(redacted)"', monitor.read_reply()[1])
        other.call("HELLO", 2, "AUTH", "default", "secret")
        self.assertNotIn(b"secret", monitor.read_reply()[1])
        self.assertIsInstance(other.call("MONITOR", "x"), Error)


if __name__ == "__main__":
    unittest.main()
