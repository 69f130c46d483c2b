#!/usr/bin/env python3
"""Goal: a pool of memory made of real processes and a real ZooKeeper serves Redis clients, goes on when
an index server dies, and its tools tell the truth.
Method: scripts/zookeeper, skep-pool memory and index, skep-server in front, all of them killed in turn.

Usage: pool_test.py SKEP_POOL LIBSKEP"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from resp import Error
from skep_process import (PATIENCE_S, REPORT, Process, SkepServer, library_environment, needs,
                          zookeeper_jar)

POOL, LIBRARY = "", ""
ROOT = Path(__file__).resolve().parents[2]


class Pool:
    """A pool with its own ZooKeeper, in a folder of its own."""

    def __init__(self, fabric="mem", memory_servers=1, chunk_bytes="256mb", index=(), keeps=False):
        self.folder = tempfile.mkdtemp(prefix="skep-pool-")
        self.fabric = fabric
        self.processes = []
        self.count = 0
        zookeeper = self._start([str(ROOT / "scripts" / "zookeeper")])
        self.zk = zookeeper.wait_for_line(rb"^ready: (\S+)").group(1).decode()
        self.memory = [self.start("memory", "--bytes", chunk_bytes) for _ in range(memory_servers)]
        for server in self.memory:
            server.wait_for_line(rb"^registered")
        self.index = [self.start("index", *index, *self.kept(i, keeps)) for i in range(2)]
        for server in self.index:
            server.wait_for_line(rb"^epoch 1: ")

    def _start(self, command):
        process = Process(command, self.folder)
        self.processes.append(process)
        return process

    def kept(self, number, keeps=True):
        """The options of the index server that has this directory."""
        return ("--dir", f"{self.folder}/index-{number}") if keeps else ()

    def options(self):
        return ["--zk", self.zk, "--name", "test", "--fabric", self.fabric]

    def start(self, kind, *options):
        self.count += 1
        listen = f"unix:{self.folder}/{self.count}" if self.fabric == "mem" else "127.0.0.1:0"
        return self._start([POOL, *self.options(), kind, "--listen", listen, *options])

    def engine(self):
        return f"pool,zk={self.zk},name=test,fabric={self.fabric},timeout=120000"

    def ctl(self, command, *options):
        """(exit status, standard output, standard error)."""
        timeout = () if "--timeout" in options else ("--timeout", "100000")
        done = subprocess.run([POOL, *self.options(), "ctl", command, *options, *timeout],
                              check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def status(self):
        code, out, err = self.ctl("status", "--json")
        return json.loads(out) if code == 0 else {"error": err + out}

    def server_of_role(self, role):
        """The index server's process with this role."""
        pattern = rb"^epoch \d+: " + role
        return next(s for s in self.index if re.search(pattern, s.output(), re.MULTILINE))

    def close(self):
        """Ends all; fails if one that was not killed does not end as it should."""
        bad = []
        for process in reversed(self.processes):
            process.signal(signal.SIGTERM)
            code = process.wait()
            output = process.output()
            process.popen.stdout.close()
            if code not in (0, -signal.SIGKILL) or REPORT.search(output):
                bad.append(f"exit code {code}:\n{output.decode(errors='replace')}")
        shutil.rmtree(self.folder)
        assert not bad, "\n".join(bad)


def kill(process):
    process.popen.send_signal(signal.SIGKILL)
    process.popen.wait(PATIENCE_S)


@needs(zookeeper_jar(), "libzookeeper-java")
class PoolTest(unittest.TestCase):
    def pool(self, **options):
        pool = Pool(**options)
        self.addCleanup(pool.close)
        return pool

    def connect(self, pool):
        """A client of a server in front of the pool."""
        server = SkepServer("--keyspace", f"0={pool.engine()}")
        self.addCleanup(server.stop)
        client = server.connect()
        self.addCleanup(client.close)
        return client

    def test_redis_clients(self):
        for fabric in ("mem", "tcp"):
            with self.subTest(fabric=fabric):
                pool = self.pool(fabric=fabric)
                client = self.connect(pool)
                self.check_commands(client)
                self.check_refusals(client)

    def check_commands(self, client):
        self.assertEqual(client.call("SET", "b", "2"), "OK")
        self.assertEqual(client.call("GET", "b"), b"2")
        self.assertEqual(client.call("SET", "b", "3", "NX"), None)
        self.assertEqual(client.call("SET", "b", "3", "XX"), "OK")
        self.assertEqual(client.call("SET", "b", "4", "IFEQ", "3"), "OK")
        self.assertEqual(client.call("SET", "c", "5", "IFEQ", "3"), None)
        self.assertEqual(client.call("MSET", "a", "1", "d", "4"), "OK")
        self.assertEqual(client.call("MGET", "a", "b", "c", "d"), [b"1", b"4", None, b"4"])
        self.assertEqual(client.call("EXISTS", "a", "b", "c"), 2)
        self.assertEqual(client.call("KCOUNT", "-", "+"), 3)
        self.assertEqual(client.call("KRANGE", "-", "+", "WITHVALUES"),
                         [b"a", b"1", b"b", b"4", b"d", b"4"])
        self.assertEqual(client.call("KRANGE", "-", "+", "LIMIT", "1", "1"), [b"b"])
        self.assertEqual(client.call("KRANGE", "-", "+", "REV", "LIMIT", "0", "1"), [b"d"])
        cursor, keys = client.call("SCAN", "0")
        self.assertEqual((cursor, sorted(keys)), (b"0", [b"a", b"b", b"d"]))
        self.assertEqual(client.call("INCRBY", "a", "41"), 42)
        self.assertEqual(client.call("APPEND", "a", "!"), 3)
        self.assertEqual(client.call("DEL", "a", "c", "d"), 2)
        self.assertEqual(client.call("DBSIZE"), 1)
        info = client.call("INFO", "pool").decode()
        self.assertRegex(info, r"(?m)^# Pool\r$")
        for name in ("rounds", "calls", "reads", "written_bytes", "items", "chunks", "serves",
                     "threads_cpu_us"):
            self.assertRegex(info, rf"db0_pool_{name}:[1-9]")
        self.assertEqual(client.call("SET", "big", b"x" * (1 << 20)), "OK")
        self.assertEqual(client.call("GET", "big"), b"x" * (1 << 20))
        self.assertEqual(client.call("DEL", "big"), 1)

    def check_refusals(self, client):
        for words in (["SET", "k", "v", "EX", "10"], ["EXPIRE", "b", "10"], ["FLUSHDB"],
                      ["KDELRANGE", "-", "+"], ["SET", "k", b"x" * ((1 << 20) + 1)],
                      ["SET", b"k" * 5000, "v"]):
            answer = client.call(*words)
            self.assertIsInstance(answer, Error, words[0])
        self.assertEqual(client.call("GET", "b"), b"4")
        self.assertEqual(client.call("MULTI"), "OK")
        self.assertEqual(client.call("SET", "k", "v"), "QUEUED")
        self.assertIsInstance(client.call("EXEC"), Error)
        self.assertEqual(client.call("EXISTS", "k"), 0)

    def test_both_index_servers_die(self):
        pool = self.pool(keeps=True)
        client = self.connect(pool)
        for first in (0, 1):
            for i in range(200):
                self.assertEqual(client.call("SET", f"{first}:{i}", f"value {i}"), "OK")
            for server in pool.index:
                kill(server)
            pool.index[first] = pool.start("index", *pool.kept(first))
            self.assertEqual(client.call("GET", f"{first}:7"), b"value 7")
            pool.index[first].wait_for_line(rb"^epoch \d+: both roles")
            pool.index[1 - first] = pool.start("index", *pool.kept(1 - first))
            pool.index[1 - first].wait_for_line(rb"^epoch \d+: sorted server")
            self.assertEqual(client.call("SET", "more", "1"), "OK")
        kill(pool.index[1])
        self.assertEqual(client.call("KCOUNT", "-", "+"), 401)
        self.assertEqual(client.call("SET", "more", "2"), "OK")
        self.assertEqual(pool.ctl("verify")[:2],
                         (0, "401 items read: both indexes and all checksums agree\n"))
        lines = subprocess.run([POOL, *pool.options(), "index", "--listen", f"unix:{pool.folder}/x",
                                *pool.kept(0)], check=False, capture_output=True, text=True,
                               timeout=PATIENCE_S)
        self.assertEqual(lines.returncode, 1)
        self.assertIn("a server has it open: end it first", lines.stderr)

    def test_an_index_server_dies(self):
        for role in (rb"hash server", rb"sorted server"):
            with self.subTest(role=role):
                pool = self.pool()
                client = self.connect(pool)
                for i in range(100):
                    self.assertEqual(client.call("SET", f"k{i:03}", i), "OK")
                kill(pool.server_of_role(role))
                self.assertEqual(client.call("SET", "after", "1"), "OK")
                self.assertEqual(client.call("GET", "k042"), b"42")
                self.assertEqual(client.call("KCOUNT", "-", "+"), 101)
                self.assertEqual(pool.ctl("verify")[0], 0)
                self.replace_and_kill_the_other(pool, client)

    def replace_and_kill_the_other(self, pool, client):
        """A pool that was mended survives the death of the server that had been alone."""
        survivor = next(s for s in pool.index if s.popen.poll() is None)
        pool.index.append(pool.start("index"))
        pool.index[-1].wait_for_line(rb"^epoch \d+: sorted server")
        self.assertEqual(client.call("SET", "mended", "1"), "OK")
        kill(survivor)
        self.assertEqual(client.call("SET", "alone", "1"), "OK")
        self.assertEqual(client.call("KCOUNT", "-", "+"), 103)
        self.assertEqual(pool.ctl("verify")[1],
                         "103 items read: both indexes and all checksums agree\n")

    def test_a_server_that_hangs_begins_anew(self):
        pool = self.pool()
        client = self.connect(pool)
        self.assertEqual(client.call("SET", "before", "1"), "OK")
        hash_server = pool.server_of_role(rb"hash server")
        hash_server.signal(signal.SIGSTOP)
        self.assertEqual(client.call("SET", "after", "1"), "OK")
        hash_server.signal(signal.SIGCONT)
        hash_server.wait_for_line(rb"^another server has taken its place")
        hash_server.wait_for_line(rb"^epoch \d+: sorted server")
        self.assertEqual(client.call("KCOUNT", "-", "+"), 2)

    def test_zookeeper_dies(self):
        pool = self.pool()
        client = self.connect(pool)
        self.assertEqual(client.call("SET", "before", "1"), "OK")
        pool.processes[0].popen.send_signal(signal.SIGTERM)
        pool.processes[0].popen.wait(PATIENCE_S)
        self.assertEqual(client.call("SET", "after", "1"), "OK")
        self.assertEqual(client.call("KCOUNT", "-", "+"), 2)
        code, _, err = pool.ctl("status", "--timeout", "100")
        self.assertEqual(code, 1)
        self.assertIn("ZooKeeper does not answer", err)

    def await_status(self, pool, is_so):
        """The first status that is so."""
        for _ in range(int(PATIENCE_S * 10)):
            status = pool.status()
            if "error" not in status and is_so(status):
                return status
            time.sleep(0.1)
        self.fail(f"it has not come to that: {status}")

    def memory_server(self, pool, process):
        """What the status says of this memory server."""
        number = int(re.search(rb"memory server (\d+) of", process.output()).group(1))
        return lambda status: next(s for s in status["servers"] if s["id"] == number)

    def test_memory_servers_die(self):
        """Each that was there at first, one after the other, and nothing is lost."""
        for fabric in ("mem", "tcp"):
            with self.subTest(fabric=fabric):
                pool = self.pool(fabric=fabric, memory_servers=2)
                client = self.connect(pool)
                for i in range(300):
                    self.assertEqual(client.call("SET", f"k{i:03}", b"x" * 20000 + b"%d" % i), "OK")
                first, second = pool.memory
                gone = self.memory_server(pool, first)
                kill(first)
                self.assertEqual(client.call("SET", "after", "1"), "OK")
                self.assertEqual(client.call("GET", "k042"), b"x" * 20000 + b"42")
                self.await_status(pool, lambda s: gone(s)["standing"] == "gone")
                pool.start("memory", "--bytes", "256mb").wait_for_line(rb"^registered")
                self.await_status(pool, lambda s: s["under_replicated_chunks"] == 0
                                  and s["free_chunks"] > 100 and s["chunks"] == 256)
                kill(second)
                self.assertEqual(client.call("KCOUNT", "-", "+"), 301)
                for i in range(300):
                    self.assertEqual(client.call("GET", f"k{i:03}"), b"x" * 20000 + b"%d" % i)
                self.assertEqual(client.call("SET", "after", "2"), "OK")
                self.assertEqual(pool.ctl("verify")[0], 0)

    def test_a_memory_server_is_drained(self):
        pool = self.pool(memory_servers=3)
        # A process that has written, and has nothing to do since.
        script = f"""
import skep, sys
with skep.connect("pool://{pool.zk}/test", fabric="mem", timeout_ms=60000) as store:
    store["k000"] = "1"
    print("written", flush=True)
    sys.stdin.read()
"""
        idle = subprocess.Popen([sys.executable, "-c", script], env=library_environment(LIBRARY),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(idle.communicate)
        self.assertEqual(idle.stdout.readline(), b"written\n")
        client = self.connect(pool)
        for i in range(300):
            self.assertEqual(client.call("SET", f"k{i:03}", b"x" * 20000), "OK")
        number = re.search(rb"memory server (\d+) of", pool.memory[0].output()).group(1).decode()
        code, out, err = pool.ctl("drain", number)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"memory server {number} is drained\n", out)
        pool.memory[0].wait_for_line(rb"^drained: the pool has all items elsewhere")
        self.assertEqual(pool.memory[0].wait(), 0)
        self.assertEqual(len(client.call("KRANGE", "-", "+")), 300)
        self.assertEqual(pool.ctl("verify")[0], 0)
        self.assertEqual(pool.ctl("drain", "7"),
                         (1, "", "skep-pool: memory server 7 is no server of the pool\n"))

    def test_a_memory_server_that_hangs_begins_anew(self):
        pool = self.pool(fabric="tcp", memory_servers=2)
        client = self.connect(pool)
        self.assertEqual(client.call("SET", "before", "1"), "OK")
        gone = self.memory_server(pool, pool.memory[0])
        pool.memory[0].signal(signal.SIGSTOP)
        self.assertEqual(client.call("GET", "before"), b"1")
        self.assertEqual(client.call("SET", "after", "1"), "OK")
        self.await_status(pool, lambda s: gone(s)["standing"] == "gone")
        pool.memory[0].signal(signal.SIGCONT)
        pool.memory[0].wait_for_line(rb"^the pool has taken it for dead")
        pool.memory[0].wait_for_line(rb"^memory server \d+ of pool test: 268435456 bytes")
        self.await_status(pool, lambda s: s["under_replicated_chunks"] == 0 and s["chunks"] == 256)
        self.assertEqual(client.call("MGET", "before", "after"), [b"1", b"1"])

    def test_losses_are_told(self):
        """At one replica: errors, or misses."""
        for on_loss in ("error", "miss"):
            with self.subTest(on_loss=on_loss):
                pool = self.pool(memory_servers=2,
                                 index=("--replicas", "1", "--on-loss", on_loss))
                client = self.connect(pool)
                # Ten chunks: on each server there are some.
                for i in range(1000):
                    self.assertEqual(client.call("SET", f"k{i:04}", b"x" * 20000), "OK")
                gone = self.memory_server(pool, pool.memory[0])
                kill(pool.memory[0])
                self.await_status(pool, lambda s: gone(s)["standing"] == "gone")
                answers = [client.call("GET", f"k{i:04}") for i in range(1000)]
                kept = sum(answer == b"x" * 20000 for answer in answers)
                self.assertTrue(0 < kept < 1000, kept)
                if on_loss == "miss":
                    self.assertEqual(answers.count(None), 1000 - kept)
                    self.await_status(pool, lambda s: s["lost_chunks"] == 0)
                    self.assertEqual(client.call("DBSIZE"), kept)
                else:
                    lost = [answer for answer in answers if isinstance(answer, Error)]
                    self.assertEqual(len(lost), 1000 - kept)
                    self.assertIn("lost with its memory server", str(lost[0]))
                for i in range(1000):
                    self.assertEqual(client.call("SET", f"k{i:04}", b"y"), "OK")
                self.assertEqual(client.call("KCOUNT", "-", "+"), 1000)

    def test_a_full_pool(self):
        pool = self.pool(memory_servers=2, chunk_bytes="64mb")
        client = self.connect(pool)
        value = b"x" * 100_000
        count, answer = 0, "OK"
        while answer == "OK":
            answer = client.call("SET", f"k{count:05}", value)
            count += 1
            self.assertLess(count, 1000)
        self.assertIsInstance(answer, Error)
        self.assertTrue(str(answer).startswith("OOM"), answer)
        self.assertGreater(count, 400)
        self.assertEqual(client.call("GET", "k00000"), value)
        for i in range(0, count - 1, 2):
            self.assertEqual(client.call("DEL", f"k{i:05}"), 1)
        for i in range(100):
            self.assertEqual(client.call("SET", f"n{i:05}", value), "OK", i)
        status = pool.status()
        self.assertEqual(status["items"], (count - 1) // 2 + 100)
        self.assertGreater(status["chunks_cleaned"], 0)
        self.assertEqual(pool.ctl("verify")[0], 0)

    def test_a_cache_evicts(self):
        pool = self.pool(memory_servers=2, chunk_bytes="64mb", index=("--evict", "oldest"))
        client = self.connect(pool)
        value = b"x" * 100_000
        for i in range(2000):
            self.assertEqual(client.call("SET", f"k{i:05}", value), "OK", i)
        # The cleaner may have moved some of the oldest items to a younger chunk.
        oldest = [client.call("GET", f"k{i:05}") for i in range(100)]
        self.assertGreater(oldest.count(None), 50)
        self.assertEqual(client.call("GET", "k01999"), value)
        self.assertGreater(client.call("DBSIZE"), 300)
        self.assertGreater(pool.status()["items_evicted"], 1000)
        self.assertEqual(pool.ctl("verify")[0], 0)

    def test_tools(self):
        pool = self.pool(memory_servers=2)
        client = self.connect(pool)
        for i in range(2500):
            client.call("SET", f"k{i:04}", "v" * i)
        code, out, _ = pool.ctl("status")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^hash server +\d+  answers")
        self.assertRegex(out, r"(?m)^sorted server +\d+  answers")
        self.assertRegex(out, r"(?m)^memory server +\d+  answers, open +256  unix:")
        self.assertIn("2500 items", out)
        status = pool.status()
        self.assertEqual((status["items"], status["chunks"], status["serves"]), (2500, 256, True))
        self.assertEqual(sorted(s["role"] for s in status["servers"]),
                         ["hash server", "memory server", "memory server", "sorted server"])
        code, out, _ = pool.ctl("verify")
        self.assertEqual((code, out), (0, "2500 items read: both indexes and all checksums agree\n"))
        code, out, _ = pool.ctl("verify", "--json")
        self.assertEqual((code, json.loads(out)["items"]), (0, 2500))

    def test_library(self):
        pool = self.pool()
        script = f"""
import skep
with skep.connect("pool://{pool.zk}/test", fabric="mem", timeout_ms=60000) as store:
    store["a"] = "1"
    store["b"] = "2"
    assert store["a"] == b"1"
    assert list(store.scan()) == [(b"a", b"1"), (b"b", b"2")]
    assert store.add("n", 5) == 5
    try:
        store.snapshot()
        assert False
    except skep.NotSupported:
        pass
"""
        subprocess.run([sys.executable, "-c", script], check=True, env=library_environment(LIBRARY),
                       timeout=PATIENCE_S)

    def test_misuse(self):
        def run(*words):
            done = subprocess.run([POOL, *words], check=False, capture_output=True, text=True,
                                  timeout=PATIENCE_S)
            return done.returncode, done.stdout + done.stderr

        folder = tempfile.mkdtemp(prefix="skep-pool-")
        self.addCleanup(shutil.rmtree, folder)
        self.assertEqual(run("--help")[0], 0)
        self.assertEqual(run()[0], 2)
        self.assertEqual(run("--fabric", "ether", "ctl", "status")[0], 2)
        self.assertEqual(run("--name", "a/b", "ctl", "status")[0], 1)
        self.assertEqual(run("memory")[0], 2)
        code, text = run("memory", "--listen", "nonsense")
        self.assertEqual(code, 1)
        self.assertIn("cannot serve at nonsense", text)
        self.assertEqual(run("memory", "--listen", f"unix:{folder}/m", "--bytes", "5")[0], 1)
        code, text = run("--fabric", "tcp", "memory", "--listen", "0.0.0.0:0")
        self.assertEqual(code, 1)
        self.assertIn("--advertise", text)
        self.assertIn("others cannot", run("--fabric", "tcp", "memory", "--listen", "127.0.0.1:0",
                                           "--advertise", "0.0.0.0:7000")[1])
        self.assertIn("--advertise node7:7101", run("--fabric", "tcp", "memory", "--listen",
                                                    "127.0.0.1:0", "--advertise", "node7:7101")[1])
        config = os.path.join(folder, "pool.toml")
        tables = '[index]\nlisten = "of-index"\n[memory]\nlisten = "of-memory"\n'
        Path(config).write_text(tables)
        for kind in ("index", "memory"):
            self.assertIn(f"cannot serve at of-{kind}", run("--config", config, kind)[1])
        for text, expected in (('zk = "127.0.0.1:1"\n[memory]\nlisten = "nonsense"\n', 1),
                               ("zk = \n", 2), ("no-such = 1\n", 2), ("[memory]\nno-such = 1\n", 2)):
            Path(config).write_text(text)
            self.assertEqual(run("--config", config, "memory")[0], expected, text)


if __name__ == "__main__":
    POOL, LIBRARY = sys.argv[1:3]
    # A program that exits with nothing to say prints no list of the suppressions that it used either.
    os.environ["LSAN_OPTIONS"] = (f"suppressions={Path(__file__).parent / 'zookeeper.supp'}"
                                  ":print_suppressions=0")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
