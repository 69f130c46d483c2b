#!/usr/bin/env python3
"""Goal: `skep-bench net` loads, measures and draws a curve with every protocol, over TCP and unix
sockets, and its JSON has what bench/README.md says. usage: net_test.py path/to/skep-bench path/to/skep-server

Method: the real program against real servers: Skep, and Debian's redis-server and memcached as far as they
are here. The figures mean nothing; that all answers were right does."""

import getpass
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
PROGRAM, os.environ["SKEP_SERVER"] = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]

from skep_process import PATIENCE_S, REDIS_BINARY, Process, RedisServer, SkepServer, needs  # noqa: E402

MEMCACHED = shutil.which("memcached")
OPTIONS = ["name", "protocol", "host", "port", "unix", "fat-root", "one-sided", "connections", "depth", "group", "workload",
           "scan-command", "dist", "records", "key-size", "value-size", "seed", "load", "rate",
           "warm-up", "seconds", "ops", "cpu", "server-pid", "machine", "commit", "date", "command"]
POSITIVE = ["mops", "ops_done", "measured_seconds", "p50_us", "p99_us", "p999_us", "max_us",
            "generator_cpu"]
SMALL = ["--records", "3000", "--ops", "3000", "--seconds", "0", "--warm-up", "0", "--connections", "4"]


class Memcached(Process):
    """Debian's memcached on a unix socket."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="skep-bench-memcached-")
        self.path = f"{folder}/socket"
        super().__init__([MEMCACHED, "-s", self.path, "-t", "1", "-u", getpass.getuser()], folder)
        deadline = time.monotonic() + PATIENCE_S
        while not self.answers():
            if self.popen.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("memcached did not start")
            time.sleep(0.01)

    def answers(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.path) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.terminate()
        self.wait()
        self.popen.stdout.close()
        shutil.rmtree(self.folder)


class NetTest(unittest.TestCase):
    def run_net(self, *options):
        run = subprocess.run([PROGRAM, "net", "--json", *map(str, options)], capture_output=True,
                             text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.count("\n"), 1)
        return json.loads(run.stdout)

    def check(self, *options):
        """A run without misses and errors; its object."""
        result = self.run_net(*options)
        self.assertEqual([name for name in OPTIONS if name not in result], [])
        self.check_figures(result)
        return result

    def check_figures(self, figures):
        for name in POSITIVE:
            self.assertGreater(figures[name], 0, name)
        self.assertEqual((figures["misses"], figures["errors"], figures["first_error"]), (0, 0, ""))
        self.assertLessEqual(figures["p50_us"], figures["p99_us"])
        self.assertLessEqual(figures["p99_us"], figures["p999_us"])
        self.assertLessEqual(figures["p999_us"], figures["max_us"])

    def check_points(self, *target):
        """Loads the server; then reads, writes, both, groups, and an open loop."""
        self.check(*target, *SMALL, "--load")
        self.check(*target, *SMALL, "--get-percent", 0, "--depth", 8)
        self.check(*target, *SMALL, "--get-percent", 50, "--group", 32, "--dist", "zipfian")
        self.check(*target, *SMALL, "--workload", "d")
        self.check(*target, *SMALL, "--workload", "f", "--depth", 3)
        result = self.check(*target, *SMALL, "--rate", 20000, "--depth", 4)
        self.assertIsNotNone(result["late_p99_us"])

    def test_skep(self):
        with SkepServer() as server:
            target = ["--port", server.port, "--server-pid", server.popen.pid]
            self.check_points(*target)
            result = self.check(*target, *SMALL, "--scan", 24, "--cpu", min(os.sched_getaffinity(0)))
            self.assertGreater(result["items_scanned"], 20 * result["ops_done"])
            self.assertGreaterEqual(result["server_cpu_us_per_op"], 0)
            self.assertGreater(result["server_rss_bytes"], 1 << 20)
            self.check(*target, *SMALL, "--workload", "e")
            self.check(*target, *SMALL, "--scan", 3, "--scan-command", "mget")

    def test_fat_root(self):
        with SkepServer() as server:
            target = ["--port", server.port, "--protocol", "packed", "--fat-root"]
            self.check(*target, *SMALL, "--load")
            result = self.check(*target, *SMALL, "--get-percent", 50, "--group", 16, "--depth", 4)
            self.assertGreater(result["fat_root_links"], 0)
            self.assertGreaterEqual(result["fat_root_bytes"], 16 * result["fat_root_links"])
            self.assertGreater(result["fat_root_hinted"], 0)
            self.assertLess(result["fat_root_stale"], result["fat_root_hinted"])

    def test_fat_root_of_datagrams(self):
        with SkepServer("--udp", "yes") as server:
            target = ["--port", server.port, "--protocol", "packed"]
            self.check(*target, *SMALL, "--load")
            result = self.check(*target, "--fat-root", "--udp", *SMALL, "--get-percent", 100, "--group", 16)
            self.assertGreater(result["fat_root_links"], 1)
            self.assertGreaterEqual(result["fat_root_hinted"], result["ops_done"])
            self.assertEqual(result["fat_root_stale"], 0)

    def test_datagrams(self):
        with SkepServer("--udp", "yes") as server:
            target = ["--port", server.port, "--protocol", "packed"]
            self.check(*target, *SMALL, "--load")
            self.check(*target, *SMALL, "--udp", "--depth", 4)
            self.check(*target, *SMALL, "--udp", "--get-percent", 50, "--group", 8)
            self.check(*target, *SMALL, "--udp", "--rate", 20000)

    def test_curve(self):
        with SkepServer() as server, tempfile.TemporaryDirectory() as folder:
            result = self.check("--port", server.port, "--records", 1000, "--load", "--seconds", 0.1,
                                "--warm-up", 0.02, "--curve", "20,50", "--name", "skep")
            self.assertEqual([row["percent"] for row in result["rows"]], [20, 50])
            for row in result["rows"]:
                self.check_figures(row)
                self.assertAlmostEqual(row["rate"] / (result["mops"] * 1e4 * row["percent"]), 1, 2)
            figures, chart = f"{folder}/curve.json", f"{folder}/curve.svg"
            pathlib.Path(figures).write_text(json.dumps(result) + "\n", encoding="utf-8")
            subprocess.run([ROOT / "bench/plot.py", "line", "--x", "mops", "--y", "p99_us", "--in-order",
                            "--log-y", "--series", "name", "--out", chart, figures], check=True)
            self.assertEqual(len(ElementTree.parse(chart).findall(".//{*}circle")), 2)

    def test_errors_end_the_run(self):
        with SkepServer() as server:
            target = ["--port", server.port, *SMALL]
            self.check(*target, "--load", "--value-size", "20")
            run = subprocess.run([PROGRAM, "net", *map(str, target)], capture_output=True, text=True,
                                 check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn("the server answered: a key or value of another size", run.stderr)
            self.assertGreater(self.run_net(*target, "--allow-errors")["errors"], 0)
            absent = self.run_net(*target, "--key-size", "20")
            self.assertGreaterEqual(absent["misses"], absent["ops_done"])
            self.assertEqual(absent["hits"], 0)

    @needs(REDIS_BINARY, "redis-tools")
    def test_redis(self):
        server = RedisServer()
        self.addCleanup(server.stop)
        target = ["--unix", f"{server.folder}/socket", "--server-pid", server.popen.pid]
        self.check_points(*target)
        by_order = ["--scan", 24, "--scan-command", "zrangebylex"]
        result = self.check(*target, *SMALL, *by_order, "--load")
        self.assertGreater(result["items_scanned"], 20 * result["ops_done"])
        refused = subprocess.run([PROGRAM, "net", *map(str, target), *SMALL, "--scan", "3"],
                                 capture_output=True, text=True, check=False)
        self.assertIn("ERR unknown command 'KRANGE'", refused.stderr)

    @needs(MEMCACHED, "memcached")
    def test_memcached(self):
        with Memcached() as server:
            for protocol in ("memcached-text", "memcached-meta"):
                with self.subTest(protocol):
                    self.check_points("--protocol", protocol, "--unix", server.path)


if __name__ == "__main__":
    unittest.main()
