#!/usr/bin/env python3
"""Goal: a keyspace whose ranges are at two servers and in a pool serves Redis clients and the library
as one, and says what it cannot do.
Method: scripts/zookeeper, two skep-server, a pool, a map of skep-netindex, a skep-server in front.

Usage: ranges_test.py SKEP_NETINDEX SKEP_POOL LIBSKEP"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from resp import Error
from skep_process import (BINARY, PATIENCE_S, ROOT, Process, SkepServer, free_port,
                          library_environment, needs, zookeeper_jar)

NETINDEX, POOL, LIBRARY = "", "", ""


class Counter:
    """Increments keys by a connection of its own, until it is stopped."""

    def __init__(self, server, keys):
        self.client = server.connect()
        self.keys = keys
        self.counts = dict.fromkeys(keys, 0)
        self.refused = set()
        self.stops = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for key in itertools.cycle(self.keys):
            if self.stops:
                return
            reply = self.client.call("INCR", key)
            if isinstance(reply, Error):
                self.refused.add(str(reply))
            else:
                self.counts[key] += 1

    def stop(self):
        if self.thread.is_alive():
            self.stops = True
            self.thread.join()
            self.client.close()
        return self.counts, self.refused


class FakeSwitch:
    """A process of a switch (src/netindex/switch/switch_request.h) without a switch: keeps what a
    controller gives it."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        self.version, self.borders, self.given = 0, None, threading.Condition()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                request, files, _, _ = socket.recv_fds(peer, 16, 1)
                magic, layout, version = struct.unpack("<QII", request)
                for file in files:
                    with self.given, open(file, "rb"):
                        self.version, self.borders = version, self.borders_of(os.pread(file, 4096, 0))
                        self.given.notify_all()
                peer.send(struct.pack("<QII8Q", magic, 0, self.version, *[0] * 8))

    @staticmethod
    def borders_of(bank):
        """The lower ends of the ranges but the first, of a SwitchBank with few ranges."""
        pivots = struct.unpack_from("<8Q", bank, 576)
        return [struct.pack(">Q", pivot + 1).rstrip(b"\0")
                for pivot in pivots[:struct.unpack_from("<Q", bank)[0] - 1]]

    def wait_for(self, borders):
        with self.given:
            return self.given.wait_for(lambda: self.borders == borders, PATIENCE_S)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@needs(zookeeper_jar(), "libzookeeper-java")
class RangesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="skep-ranges-")
        self.addCleanup(shutil.rmtree, self.folder)
        zookeeper = self.start(str(ROOT / "scripts" / "zookeeper"))
        self.zk = zookeeper.wait_for_line(rb"^ready: (\S+)").group(1).decode()

    def start(self, *command):
        process = Process(list(command), self.folder)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        self.assertEqual(process.end(), 0, process.output())

    def start_pool(self, name):
        pool = [POOL, "--zk", self.zk, "--name", name]
        self.start(*pool, "memory", "--listen", f"unix:{self.folder}/m", "--bytes",
                   "64mb").wait_for_line(rb"^registered")
        index = [self.start(*pool, "index", "--listen", f"unix:{self.folder}/i{i}")
                 for i in range(2)]
        for server in index:
            server.wait_for_line(rb"^epoch 1: ")

    def server(self, *options):
        server = SkepServer(*options)
        self.addCleanup(lambda: server.popen.poll() is None and server.stop())
        return server

    def ctl(self, *words):
        """(exit status, standard output, standard error)."""
        done = subprocess.run([NETINDEX, "--zk", self.zk, "--name", "users", "--timeout", "100000",
                               "ctl", *words],
                              check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def move(self, lower, to):
        """Moves a range to a server, which may not have read the map yet."""
        deadline = time.monotonic() + PATIENCE_S
        code, error = 1, "it does not know the map"
        while "it does not know the map" in error:
            self.assertLess(time.monotonic(), deadline)
            code, _, error = self.ctl("move", lower, to)
        self.assertEqual((code, error), (0, ""))

    def test_one_keyspace(self):
        self.start_pool("middle")
        first, last = self.server(), self.server()
        where = [f"127.0.0.1:{first.port}", "h=pool:middle", f"0x71=127.0.0.1:{last.port}"]
        self.assertEqual(self.ctl("set", *where), (0, "", ""))
        front = self.server("--keyspace", f"0=ranges,zk={self.zk},name=users,timeout=60000")
        client = front.connect()
        self.addCleanup(client.close)
        keys = [f"{chr(c)}{i}" for c in range(ord("a"), ord("z") + 1) for i in range(10)]
        self.assertEqual(client.call("MSET", *[w for key in keys for w in (key, key.upper())]), "OK")
        self.check_redis(client, keys)
        self.check_parts(first.connect(), last.connect())
        self.check_library(keys)

    def check_redis(self, client, keys):
        encoded = [key.encode() for key in keys]
        self.assertEqual(client.call("MGET", *keys), [key.upper() for key in encoded])
        self.assertEqual(client.call("KRANGE", "-", "+"), encoded)
        self.assertEqual(client.call("KRANGE", "-", "+", "REV"), encoded[::-1])
        self.assertEqual(client.call("KRANGE", "[g5", "[q1", "LIMIT", "2", "200"),
                         [key for key in encoded if b"g5" <= key <= b"q1"][2:])
        self.assertEqual(client.call("KCOUNT", "[b", "[x5"), 226)
        self.assertEqual(client.call("DBSIZE"), 260)
        seen, cursor = [], b"0"
        while True:
            cursor, some = client.call("SCAN", cursor, "COUNT", "7")
            seen += some
            if cursor == b"0":
                break
        self.assertEqual(seen, encoded)
        self.assertEqual(client.call("INCRBY", "counter", "7"), 7)
        self.assertEqual(client.call("DEL", "counter", "a0", "z9", "nothing"), 3)
        self.assertEqual(client.call("SET", "m5", "x", "NX"), None)
        self.assertEqual(client.call("MSET", "a0", "A0", "z9", "Z9"), "OK")
        client.call("MULTI")
        client.call("SET", "a", "1")
        self.assertIsInstance(client.call("EXEC"), Error)

    def check_parts(self, first, last):
        self.assertEqual(first.call("KCOUNT", "-", "+"), 70)
        self.assertEqual(last.call("KCOUNT", "-", "+"), 100)
        self.assertEqual(last.call("GET", "q0"), b"Q0")
        first.close()
        last.close()

    def check_library(self, keys):
        script = f"""
import skep
with skep.connect("ranges://{self.zk}/users", fabric="mem", timeout_ms=60000) as store:
    keys = {keys!r}
    assert [k.decode() for k, v in store.scan()] == keys
    assert store["p3"] == b"P3"
    store["q"] = "between"
    assert store["q"] == b"between"
    try:
        store.snapshot()
        assert False
    except skep.NotSupported:
        pass
"""
        subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S,
                       env=library_environment(LIBRARY))

    def test_servers_alone(self):
        """Commands of several keys go key by key, and a server that is gone is told of."""
        first, last = self.server(), self.server()
        self.assertEqual(self.ctl("set", f"127.0.0.1:{first.port}", f"m=127.0.0.1:{last.port}"),
                         (0, "", ""))
        front = self.server("--keyspace", f"3=ranges,zk={self.zk},name=users,timeout=3000")
        client = front.connect()
        self.addCleanup(client.close)
        client.call("SELECT", "3")
        self.assertEqual(client.call("MSET", "ada", "1", "zoe", "2"), "OK")
        self.assertEqual(client.call("MGET", "ada", "bob", "zoe"), [b"1", None, b"2"])
        self.assertEqual(client.call("KRANGE", "-", "+", "WITHVALUES"), [b"ada", b"1", b"zoe", b"2"])
        self.assertEqual(client.call("DBSIZE"), 2)
        self.assertEqual(client.call("DEL", "ada", "zoe", "none"), 2)
        self.assertEqual(client.call("MSET", "ada", "1", "zoe", "2"), "OK")
        last.popen.kill()
        last.popen.wait()
        last.popen.stdout.close()
        self.assertEqual(client.call("GET", "ada"), b"1")
        self.assertIsInstance(client.call("GET", "zoe"), Error)
        self.assertIsInstance(client.call("DBSIZE"), Error)
        self.assertIsInstance(client.call("KRANGE", "-", "+"), Error)
        self.assertEqual(client.call("KRANGE", "-", "(m"), [b"ada"])

    # Goal: clients log in at the servers of the ranges, and are told if their password is wrong.
    def test_servers_with_a_password(self):
        first, last = (self.server("--requirepass", "secret") for _ in range(2))
        self.assertEqual(self.ctl("set", f"127.0.0.1:{first.port}", f"m=127.0.0.1:{last.port}"),
                         (0, "", ""))
        ranges = f"0=ranges,zk={self.zk},name=users,timeout=60000"
        for wrong in (ranges, ranges + ",password=guess"):
            refused = Process([BINARY, "--port", "0", "--keyspace", wrong], self.folder)
            self.assertEqual(refused.wait(), 1)
            self.assertIn(b"the password is wrong", refused.output())
        front = self.server("--keyspace", ranges + ",password=secret")
        client = front.connect()
        self.addCleanup(client.close)
        self.assertEqual(client.call("MSET", "ada", "1", "zoe", "2"), "OK")
        direct = last.connect()
        self.addCleanup(direct.close)
        self.assertEqual(direct.call("AUTH", "secret"), "OK")
        self.assertEqual(direct.call("KRANGE", "-", "+"), [b"zoe"])
        script = f"""
import skep
at = dict(address="ranges://{self.zk}/users", fabric="mem", timeout_ms=60000)
with skep.connect(**at, password="secret") as store:
    assert [k for k, v in store.scan()] == [b"ada", b"zoe"]
for wrong in ("guess", "a,name=b"):
    try:
        skep.connect(**at, password=wrong)
        assert False
    except skep.InvalidArgument:
        pass
"""
        subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S,
                       env=library_environment(LIBRARY))

    def ranged_server(self, *options):
        """A server that knows the map "users", at a port that it had before."""
        port = free_port()
        ranges = f"zk={self.zk},name=users,at=127.0.0.1:{port},session=4000"
        return self.server("--port", str(port), "--ranges", ranges, *options)

    def await_served(self, client, key):
        deadline = time.monotonic() + PATIENCE_S
        while isinstance(client.call("GET", key), Error):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_ranges_are_moved(self):
        """While clients count, ranges go from server to server, and no count is lost or doubled."""
        servers = [self.ranged_server() for _ in range(3)]
        at = [f"127.0.0.1:{server.port}" for server in servers]
        direct = [server.connect() for server in servers]
        for client in direct:
            self.addCleanup(client.close)
        self.assertIn("no lease", str(direct[0].call("GET", "a")))
        self.assertEqual(self.ctl("set", at[0], f"m={at[1]}"), (0, "", ""))
        self.await_served(direct[0], "a")
        self.await_served(direct[1], "z")
        front = self.server("--keyspace", f"0=ranges,zk={self.zk},name=users,timeout=20000")
        client = front.connect()
        self.addCleanup(client.close)
        keys = [f"{chr(c)}{i}" for c in range(ord("a"), ord("z") + 1) for i in range(40)]
        self.assertEqual(client.call("MSET", *[w for key in keys for w in (key, "0")]), "OK")
        self.assertEqual(client.call("SET", "deadline", "soon", "PXAT", 4_000_000_000_000), "OK")
        counter = Counter(front, keys)
        self.addCleanup(counter.stop)
        for lower, server in (("f", 1), ("f", 2), ("", 2), ("", 0), ("f", 1), ("t", 2), ("", 1)):
            self.move(lower, at[server])
        counts, refused = counter.stop()
        self.assertGreater(sum(counts.values()), 0)
        self.assertEqual(client.call("MGET", *keys), [str(counts[key]).encode() for key in keys])
        self.assertEqual(client.call("KCOUNT", "-", "+"), len(keys) + 1)
        self.assertEqual(client.call("PEXPIRETIME", "deadline"), 4_000_000_000_000)
        self.assertLessEqual(refused, {"ERR these keys are being moved to another server, and "
                                       "read-only meanwhile"})
        moved = direct[0].call("SET", "a", "1")
        self.assertIn("WRONGRANGE", str(moved))
        self.assertEqual(direct[0].call("DBSIZE"), 0)
        self.check_misuse(at)

    def check_misuse(self, at):
        self.assertEqual(self.ctl("move", "a", at[1]), (0, "", ""))  # they are there
        for words, why in ((["move", "a", "127.0.0.1:1"], "it does not know the map"),
                           (["move", "a", "pool:b"], "to a skep-server only"),
                           (["cancel", "a"], "no keys from there on are being copied")):
            code, _, error = self.ctl(*words)
            self.assertEqual((code, why in error), (1, True), error)
        self.assertEqual(self.ctl("move", "0xzz", at[1])[0], 2)

    def test_switches_follow_the_map(self):
        """A controller gives its switches the ranges of the map, and those after a move."""
        servers = [self.ranged_server() for _ in range(2)]
        at = [f"127.0.0.1:{server.port}" for server in servers]
        self.assertEqual(self.ctl("set", at[0]), (0, "", ""))
        with contextlib.closing(servers[0].connect()) as direct:
            self.await_served(direct, "m")
        switch = FakeSwitch(f"{self.folder}/switch")
        self.addCleanup(switch.close)
        self.start(NETINDEX, "--zk", self.zk, "--name", "users", "controller", "--interval", "20",
                   "--switch", f"only:{self.folder}/switch")
        self.assertTrue(switch.wait_for([]))
        self.move("m", at[1])
        self.assertTrue(switch.wait_for([b"m"]))

    def test_a_server_that_dies(self):
        """Its range is given to another one once its session has ended; what it logged is there
        again when it comes back to a range."""
        folder = os.path.join(self.folder, "data")
        first, second = self.ranged_server("--dir", folder, "--appendfsync", "always"), self.ranged_server()
        at = [f"127.0.0.1:{server.port}" for server in (first, second)]
        self.assertEqual(self.ctl("set", at[0]), (0, "", ""))
        client = first.connect()
        self.await_served(client, "a")
        self.assertEqual(client.call("SET", "a", "logged"), "OK")
        client.close()
        first.popen.kill()
        first.popen.wait()
        first.popen.stdout.close()
        self.assertEqual(self.ctl("set", "--replace", at[1]), (0, "", ""))
        client = second.connect()
        self.addCleanup(client.close)
        self.await_served(client, "a")
        self.assertEqual(client.call("SET", "b", "new"), "OK")
        code, _, error = self.ctl("move", "", at[0])
        self.assertEqual((code, "does not know the map" in error), (1, True), error)
        ranges = f"zk={self.zk},name=users,at={at[0]},session=4000"
        again = self.server("--port", str(first.port), "--ranges", ranges, "--dir", folder)
        self.move("", at[0])
        client = again.connect()
        self.addCleanup(client.close)
        self.await_served(client, "a")
        self.assertEqual(client.call("MGET", "a", "b"), [None, b"new"])

    def test_a_front_whose_session_has_ended(self):
        """A client that was stopped until ZooKeeper had forgotten it learns of a move at once."""
        servers = [self.ranged_server() for _ in range(2)]
        at = [f"127.0.0.1:{server.port}" for server in servers]
        self.assertEqual(self.ctl("set", at[0]), (0, "", ""))
        with contextlib.closing(servers[0].connect()) as direct:
            self.await_served(direct, "m")
        front = self.server("--keyspace", f"0=ranges,zk={self.zk},name=users,timeout=20000")
        client = front.connect()
        self.addCleanup(client.close)
        self.assertEqual(client.call("SET", "m", "v"), "OK")
        front.popen.send_signal(signal.SIGSTOP)
        self.move("m", at[1])
        time.sleep(8)  # twice what a client's session has
        front.popen.send_signal(signal.SIGCONT)
        self.assertEqual(client.call("GET", "m"), b"v")

    def test_options_of_ranges(self):
        for text, why in (("name=a,at=b:1", "ranges need zk"), ("zk=a:1,name=a,at=b", "ranges are zk"),
                          ("zk=a:1,name=a/b,at=b:1", "ranges are zk"), ("zk=a:1,size=3", "ranges are"),
                          ("zk=a:1,name=a,at=b:1,session=5", "a session is 1000")):
            done = subprocess.run([BINARY, "--port", "0", "--ranges", text], check=False,
                                  capture_output=True, timeout=PATIENCE_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why.encode(), done.stdout + done.stderr)
        done = subprocess.run([BINARY, "--port", "0", "--engine", "hash", "--ranges",
                               "zk=127.0.0.1:1,name=a,at=b:1"], check=False, capture_output=True,
                              timeout=PATIENCE_S)
        self.assertIn(b"must be ordered", done.stdout + done.stderr)

    def test_maps(self):
        self.assertEqual(self.ctl("show"), (
            1, "", "skep-netindex: there is no map of ranges of this name\n"))
        self.assertEqual(self.ctl("set", "pool:a", "m=pool:b", "0x7a00=c:1"), (0, "", ""))
        code, out, _ = self.ctl("show", "--json")
        self.assertEqual((code, json.loads(out)), (0, [
            {"lower_hex": "0x", "where": "pool:a"}, {"lower_hex": "0x6d", "where": "pool:b"},
            {"lower_hex": "0x7a00", "where": "c:1"}]))
        self.assertEqual(self.ctl("set", "pool:x"), (
            1, "", "skep-netindex: there is a map of ranges of this name already\n"))
        self.assertEqual(self.ctl("set", "--replace", "pool:x"), (0, "", ""))
        code, out, _ = self.ctl("show")
        self.assertEqual((code, out.split()), (0, ['""', "pool:x"]))
        for words in (["nowhere"], ["pool:a", "pool:b"], ["pool:a", "m=pool:b", "c=pool:d"],
                      ["pool:a", "0xzz=pool:b"], []):
            self.assertEqual(self.ctl("set", *words)[0], 2, words)

    def test_what_is_not_there(self):
        patient = f"0=ranges,zk={self.zk},name=users,timeout=60000"
        self.assertIn(b"there is no map of ranges of this name", self.failing_server(patient))
        engine = f"0=ranges,zk={self.zk},name=users,timeout=5000"
        # Nobody listens at port 1.
        self.assertEqual(self.ctl("set", "127.0.0.1:1"), (0, "", ""))
        self.assertIn(b"the range at 127.0.0.1:1: ", self.failing_server(engine))
        unordered = self.server("--engine", "hash")
        self.assertEqual(self.ctl("set", "--replace", f"127.0.0.1:{unordered.port}"), (0, "", ""))
        self.assertIn(b"a range must be at an ordered keyspace", self.failing_server(engine))

    def failing_server(self, engine):
        """What a server says that does not start."""
        done = subprocess.run([BINARY, "--bind", "127.0.0.1", "--port", "0",
                               "--keyspace", engine], check=False, capture_output=True,
                              timeout=PATIENCE_S)
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr


if __name__ == "__main__":
    NETINDEX, POOL, LIBRARY = sys.argv[1:4]
    # A program that exits with nothing to say prints no list of the suppressions that it used either.
    os.environ["LSAN_OPTIONS"] = (f"suppressions={Path(__file__).parent / 'zookeeper.supp'}"
                                  ":print_suppressions=0")
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
