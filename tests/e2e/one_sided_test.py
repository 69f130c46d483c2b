#!/usr/bin/env python3
"""A server that shares its leaves (option share-leaves), and a client that reads them: what INFO and CONFIG
tell, why a server does not start, and that reading takes no commands of the server's.

Usage: one_sided_test.py SKEP_BENCH."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = os.path.abspath(sys.argv[1])
del sys.argv[1]

from skep_process import BINARY, PATIENCE_S, ServerTest  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="skep-one-sided-")
PLACE = f"mem:unix:{FOLDER.name}/leaves"


def wait_until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def setUpModule():
    unittest.addModuleCleanup(FOLDER.cleanup)


class OneSidedTest(ServerTest):
    OPTIONS = ("--share-leaves", PLACE)

    def info(self, section, name):
        lines = self.client.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)[name]

    def bench(self, *options):
        run = subprocess.run([BENCH, "net", "--json", "--port", str(self.server.port), "--protocol", "packed",
                              "--records", "3000", "--connections", "1", *map(str, options)],
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def test_tells_of_itself(self):
        self.check([b"share-leaves", PLACE.encode()], "CONFIG", "GET", "share-leaves")
        self.assertEqual(self.info("leaves", "leaves_shared_at"), PLACE)
        self.assertIn("unset requirepass, or share-leaves", self.client.call("CONFIG", "SET", "requirepass", "x"))

    # Goal: GETs are answered without the server's commands, with and without writes between them.
    def test_gets_need_no_commands(self):
        self.bench("--load", "--seconds", 0)
        read = ["--one-sided", PLACE, "--group", 50, "--seconds", 0, "--warm-up", 0]
        before = int(self.info("stats", "total_commands_processed"))
        result = self.bench("--ops", 20_000, *read)
        commands = int(self.info("stats", "total_commands_processed")) - before
        self.assertEqual((result["hits"], result["misses"], result["errors"]), (20_000, 0, 0))
        self.assertGreater(result["one_sided_answered"], 19_000)
        self.assertLess(commands, 1_000)
        mixed = self.bench("--ops", 20_000, "--get-percent", 80, *read)
        self.assertEqual((mixed["misses"], mixed["errors"]), (0, 0))
        self.assertGreater(mixed["one_sided_answered"], 5_000)

    # Goal: a reader that comes and goes is counted.
    def test_counts_readers(self):
        self.bench("--load", "--seconds", 0)
        reader = subprocess.Popen([BENCH, "net", "--port", str(self.server.port), "--protocol", "packed",
                                   "--records", "3000", "--connections", "1", "--seconds", "3600",
                                   "--one-sided", PLACE], stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        wait_until(lambda: self.info("leaves", "leaves_peers") == "1")
        reader.kill()
        wait_until(lambda: self.info("leaves", "leaves_peers") == "0")

    def refusal(self, *options):
        run = subprocess.run([BINARY, "--port", "0", *options], capture_output=True, text=True,
                             timeout=PATIENCE_S, check=False)
        self.assertNotEqual(run.returncode, 0)
        return run.stdout + run.stderr

    def test_says_why_it_does_not_start(self):
        other = f"mem:unix:{FOLDER.name}/other"
        for said, options in [
                ("unset requirepass, or share-leaves", ["--share-leaves", other, "--requirepass", "x"]),
                ("engine hash", ["--share-leaves", other, "--engine", "hash"]),
                ("btree-layout heads", ["--share-leaves", other, "--btree-layout", "paper"]),
                ("protected-mode no", ["--share-leaves", "tcp:0.0.0.0:0"]),
                ("mem:unix:PATH or tcp:HOST:PORT", ["--share-leaves", "ofi:tcp:127.0.0.1:0"]),
                ("cannot share leaves at", ["--share-leaves", "mem:unix:/nowhere/leaves"]),
                ("cannot share leaves at", ["--share-leaves", PLACE])]:
            with self.subTest(options=options):
                self.assertIn(said, self.refusal(*options))


if __name__ == "__main__":
    unittest.main()
