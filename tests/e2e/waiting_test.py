#!/usr/bin/env python3
"""Goal: commands that wait for a key lose nothing and give nothing to two, whoever comes and goes.
Method: what blocking_test.py cannot compare with Redis: many workers and clients, clients that go
away, limits, a kill with the log on.
"""

import random
import re
import shutil
import tempfile
import threading
import time
import unittest

from resp import Closed, Error, encode
from skep_process import PATIENCE_S, SANITIZED, ServerTest, SkepServer

PAUSE_S = 0.0005


class WaitingTest(ServerTest):
    OPTIONS = ("--workers", "4")

    def connect(self):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        return connection

    def blocked(self):
        text = self.client.call("INFO", "clients").decode()
        return int(text.split("blocked_clients:")[1].split("\r\n")[0])

    def wait_for_blocked(self, count):
        until = time.monotonic() + PATIENCE_S
        while self.blocked() != count:
            self.assertLess(time.monotonic(), until)
            time.sleep(PAUSE_S)

    # Goal: what is pipelined behind a command that waits is done after it, in order.
    # Method: more than is read ahead follows it; also what a pusher pipelines behind a push sees
    # that the waiter was served.
    def test_pipelines(self):
        waiter = self.connect()
        commands = [["SET", f"key{i % 7}", "v" * 1000] for i in range(3000)]
        data = b"".join(encode(*each) for each in [["BLPOP", "k", 0], *commands, ["ECHO", "end"]])
        sender = threading.Thread(target=waiter.send, args=(data,))
        sender.start()
        self.wait_for_blocked(1)
        self.check(0, "EXISTS", "key0")
        self.assertEqual(self.client.pipeline(["RPUSH", "k", "a"], ["LLEN", "k"], ["RPUSH", "k", "b"],
                                              ["LRANGE", "k", 0, -1]), [1, 0, 1, [b"b"]])
        self.assertEqual(waiter.read(), [b"k", b"a"])
        self.assertEqual([waiter.read() for _ in commands], ["OK"] * len(commands))
        self.assertEqual(waiter.read(), b"end")
        sender.join()
        self.check(0, "EXISTS", "no")

    # Goal: a waiter is counted, is told in CLIENT LIST, counts as memory, and is forgotten when it
    # goes; replies that are not wanted are not sent.
    def test_what_is_known_of_waiters(self):
        waiter = self.connect()
        number = waiter.call("CLIENT", "ID")
        keys = [b"key-%d" % i + b"x" * 1000 for i in range(200)]
        waiter.send(encode("BLPOP", *keys, 0))
        # The waiter's worker tells CLIENT LIST of it at the end of its turn, and INFO before.
        deadline = time.monotonic() + PATIENCE_S
        line = ""
        while " flags=b " not in line and time.monotonic() < deadline:
            line = self.client.call("CLIENT", "LIST", "ID", number).decode()
        self.assertIn(" flags=b ", line)
        self.assertIn(" cmd=blpop ", line)
        self.assertGreater(int(re.search(r"tot-mem=(\d+)", line)[1]), 400_000)
        waiter.close()
        self.wait_for_blocked(0)
        self.check(1, "RPUSH", keys[0], "stays")
        self.check(1, "LLEN", keys[0])
        silent = self.connect()
        silent.send(encode("CLIENT", "REPLY", "SKIP") + encode("BLPOP", "k", 0) + encode("ECHO", "x"))
        self.wait_for_blocked(1)
        self.check(1, "RPUSH", "k", "gone")
        self.assertEqual(silent.read(), b"x")
        self.check(0, "LLEN", "k")

    def test_limits(self):
        reply = self.client.call("BLPOP", *range(16385), 1)
        self.assertEqual(reply, Error("ERR a command can wait for 16384 keys at most"))
        self.check(None, "BLPOP", *range(16384), "0.001")
        self.wait_for_blocked(0)

    # Goal: a paused write waits as any does, and then waits for its key.
    def test_pause(self):
        waiter = self.connect()
        self.check("OK", "CLIENT", "PAUSE", 1000 * PATIENCE_S, "WRITE")
        waiter.send(encode("BLPOP", "k", 0))
        self.wait_for_blocked(1)
        self.check(0, "CLIENT", "UNBLOCK", waiter_id(self.client))
        self.check("OK", "CLIENT", "UNPAUSE")
        self.wait_for_blocked(1)
        self.check(1, "RPUSH", "k", "a")
        self.assertEqual(waiter.read(), [b"k", b"a"])

    # Goal: elements go to one client each, whatever worker it is of and whoever goes away.
    # Method: more clients than workers and cores; consumers take what comes, of several keys, with
    # and without timeouts, and now and then one is killed while it waits.
    def test_many_clients(self):
        keys = [b"q%d" % i for i in range(3)]
        producers, consumers, each = 6, 12, 150 if SANITIZED else 400
        taken, lost = [], []

        def produce(number):
            rng = random.Random(number)
            with self.server.connect() as connection:
                for i in range(0, each, 3):
                    words_ = [f"{number}:{j}" for j in range(i, min(i + 3, each))]
                    if rng.random() < 0.3:
                        connection.pipeline(["MULTI"], ["RPUSH", rng.choice(keys), *words_], ["EXEC"])
                    else:
                        connection.call("RPUSH", rng.choice(keys), *words_)

        def consume(number):
            rng = random.Random(1000 + number)
            connection = self.server.connect()
            while True:
                verb = rng.choice(["BLPOP", "BRPOP", "BLMPOP"])
                some = rng.sample(keys, 2)
                if verb == "BLMPOP":
                    reply = connection.call(verb, 0, 3, b"stop", *some, "LEFT", "COUNT", 2)
                else:
                    reply = connection.call(verb, b"stop", *some, rng.choice(["0", "0.01"]))
                if reply is None:
                    continue
                if reply[0] == b"stop":
                    if isinstance(reply[1], list) and len(reply[1]) > 1:
                        connection.call("RPUSH", "stop", *reply[1][1:])  # it was for another one
                    break
                taken.extend(reply[1] if isinstance(reply[1], list) else [reply[1]])
            connection.close()

        def come_and_go():
            for _ in range(each):
                connection = self.server.connect()
                number = connection.call("CLIENT", "ID")
                connection.send(encode("BLPOP", *keys, 0))
                self.other.call("CLIENT", "KILL", "ID", number)
                try:
                    lost.append(connection.read()[1])
                except (Closed, OSError):
                    pass
                connection.close()

        self.other = self.connect()
        threads = [threading.Thread(target=produce, args=(i,)) for i in range(producers)]
        eaters = [threading.Thread(target=consume, args=(i,)) for i in range(consumers)]
        for thread in threads + eaters:
            thread.start()
        for thread in threads:
            thread.join()
        until = time.monotonic() + PATIENCE_S
        while self.client.call("EXISTS", *keys) > 0:
            self.assertLess(time.monotonic(), until)
        self.client.call("RPUSH", "stop", *range(consumers))
        for thread in eaters:
            thread.join()
        self.assertEqual(sorted(taken),
                         sorted(b"%d:%d" % (i, j) for i in range(producers) for j in range(each)))
        # Those who are killed while they wait take nothing with them.
        threads = [threading.Thread(target=come_and_go)]
        threads[0].start()
        threads[0].join()
        self.check(3, "RPUSH", keys[0], 1, 2, 3)
        self.check(3, "LLEN", keys[0])

    # Goal: a server that ends does not wait for those who wait.
    def test_shutdown(self):
        server = SkepServer()
        waiter = server.connect()
        waiter.send(encode("BLPOP", "k", 0))
        time.sleep(0.05)
        server.stop()
        self.assertTrue(waiter.is_closed())
        waiter.close()


def waiter_id(client):
    """The id of the client that runs BLPOP, or has it to run."""
    return client.call("CLIENT", "ID") + 1


class PasswordTest(unittest.TestCase):
    def test_before_login_nobody_waits(self):
        server = SkepServer("--requirepass", "secret")
        self.addCleanup(server.stop)
        with server.connect() as stranger:
            for command in (["BLPOP", "k", 0], ["LMPOP", 1, "k", "LEFT"], ["BZPOPMIN", "k", 0]):
                self.assertEqual(stranger.call(*command), Error("NOAUTH Authentication required."))


class CrashTest(unittest.TestCase):
    # Goal: after a kill no element is there twice, and none is gone that nobody was given.
    # Method: clients push and wait while the server is killed; then every element whose push was
    # acknowledged was either taken, or is in the list, or was on its way to the one client that was
    # waiting then.
    def test_kill(self):
        folder = tempfile.mkdtemp(prefix="skep-blocking-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = SkepServer("--dir", folder, "--workers", "3")
        pushed, taken = [], []
        waiters = 4

        def push(number):
            connection = server.connect()
            try:
                for i in range(1_000_000):
                    element = b"%d:%d" % (number, i)
                    connection.call("RPUSH", "k", element, element + b"+")
                    pushed.extend([element, element + b"+"])
            except (Closed, OSError):
                connection.close()

        def take(number):
            connection = server.connect()
            try:
                while True:
                    if number % 2:
                        taken.append(connection.call("BLPOP", "k", 0)[1])
                    else:
                        taken.append(connection.call("BLMOVE", "k", f"moved{number}", "LEFT", "RIGHT",
                                                     0))
            except (Closed, OSError):
                connection.close()

        threads = [threading.Thread(target=target, args=(i,))
                   for target, count in ((push, 2), (take, waiters)) for i in range(count)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + PATIENCE_S
        while len(taken) < 300:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        server.popen.kill()
        for thread in threads:
            thread.join()
        server.wait()
        server._discard()
        server = SkepServer("--dir", folder)
        try:
            with server.connect() as client:
                left = client.call("LRANGE", "k", 0, -1)
                moved = [element for i in range(0, waiters, 2)
                         for element in client.call("LRANGE", f"moved{i}", 0, -1)]
        finally:
            server.stop()
        popped = [element for element in taken if element not in set(moved)]
        there = left + moved + popped
        self.assertEqual(len(there), len(set(there)))
        self.assertLessEqual(len(set(pushed) - set(there)), waiters)
        self.assertLessEqual(set(taken), set(there))


if __name__ == "__main__":
    unittest.main()
