#!/usr/bin/env python3
"""Commands about parts and bits of values: what they read and write at one instant, and what a log
gives back of them."""

import shutil
import signal
import tempfile
import threading
import time
import unittest

from resp import Error
from skep_process import SANITIZED, ServerTest, SkepServer


class InstantTest(ServerTest):
    OPTIONS = ("--workers", "2")
    ROUNDS = 20 if SANITIZED else 100

    # Goal: BITOP and COPY take effect at one instant, though they read and then write.
    # Method: two clients give a and b equal values, always both at once, while two others combine
    # and copy them. At every instant the two are equal, so their exclusive or is zeros; a copy is a
    # value that was written. Between a and b stand many keys that are absent, so that a write often
    # comes between the reads of the two. A client that is told to try again has changed nothing.
    def test_bitop_and_copy(self):
        stop = threading.Event()
        self.client.call("MSET", "a", "0" * 100, "b", "0" * 100)
        between = [f"between:{i}" for i in range(200)]
        wrong = []
        done = []

        def write(letter):
            with self.server.connect() as client:
                value = letter * 100
                while not stop.is_set():
                    client.call("MSET", "a", value, "b", value)
                    time.sleep(0.0003)

        def read(number):
            out = f"out{number}"
            with self.server.connect() as client:
                for _ in range(self.ROUNDS):
                    replies = client.pipeline(*[["BITOP", "XOR", out, "a", *between, "b"],
                                                 ["GET", out]] * 5)
                    for stored, value in zip(replies[::2], replies[1::2]):
                        if not isinstance(stored, Error):
                            done.append(out)
                            if (stored, value) != (100, bytes(100)):
                                wrong.append((stored, value))
                    replies = client.pipeline(["COPY", "a", out, "REPLACE"], ["GET", out])
                    if not isinstance(replies[0], Error) and len(set(replies[1])) != 1:
                        wrong.append(replies)

        writers = [threading.Thread(target=write, args=(letter,)) for letter in "xy"]
        readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
        for thread in writers + readers:
            thread.start()
        for thread in readers:
            thread.join()
        stop.set()
        for thread in writers:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(set(done), {"out0", "out1"})

    # Goal: no value beyond the limit is made, whatever is asked for, and the error names the limit.
    def test_limits(self):
        limit = 64 << 20
        too_large = Error(f"ERR value exceeds the maximum size ({limit} bytes)")
        self.check(too_large, "SETRANGE", "a", limit, "x")
        self.check(too_large, "SETBIT", "a", 8 * limit, 1)
        self.check(too_large, "BITFIELD", "a", "SET", "u8", 8 * limit - 7, 1)
        self.check([0], "BITFIELD", "a", "GET", "u8", 8 * limit)
        self.check(0, "EXISTS", "a")
        self.check(limit, "SETRANGE", "a", limit - 1, "x")
        self.check(Error("ERR LCS: the product of the lengths exceeds 16777216"), "LCS", "a", "a")


class RecoveryTest(unittest.TestCase):
    # Goal: what these commands have written is there after a kill.
    # Method: values small and large, so that the log has some as values and others as functions;
    # what is read before the kill must be read after it.
    def test_kill(self):
        keys = ["range", "bit", "field", "float", "or", "copy", "restored"]
        with tempfile.TemporaryDirectory(prefix="skep-strings-") as folder:
            server = SkepServer("--dir", folder)
            self.addCleanup(shutil.rmtree, server.folder, ignore_errors=True)
            self.addCleanup(server.end)
            with server.connect() as client:
                for command in (
                        ["SET", "range", "x" * 10_000], ["SETRANGE", "range", 5000, "middle"],
                        ["SETRANGE", "range", 20_000, "end"], ["SETBIT", "bit", 100_000, 1],
                        ["SETBIT", "bit", 7, 1], ["SET", "field", "y" * 10_000],
                        ["BITFIELD", "field", "SET", "i64", 80, -5, "OVERFLOW", "SAT", "INCRBY",
                         "u8", "#1", 300], ["SET", "float", "0.1", "EX", 100_000],
                        ["INCRBYFLOAT", "float", "0.2"], ["BITOP", "OR", "or", "range", "bit"],
                        ["COPY", "float", "copy"]):
                    self.assertNotIsInstance(client.call(*command), Error, command)
                client.call("RESTORE", "restored", 0, client.call("DUMP", "range"))
                before = client.call("MGET", *keys)
                deadline = client.call("PEXPIRETIME", "copy")
            server.signal(signal.SIGKILL)
            server.wait()
            with SkepServer("--dir", folder) as again, again.connect() as client:
                self.assertEqual(client.call("MGET", *keys), before)
                self.assertEqual(client.call("PEXPIRETIME", "copy"), deadline)
                self.assertEqual(before[keys.index("float")], b"0.3")
                self.assertGreater(deadline, 0)


if __name__ == "__main__":
    unittest.main()
