#!/usr/bin/env python3
"""Goal: hot GETs that the driver's hook answers are the server's answers, after every way to write, and
never those of a server that is gone.
Method: a server and its helper in a network namespace, clients in another, real datagrams between
them; writes over a connection. INFO tells whether the hook has answered.

Usage: xdp_test.py SKEP_NETINDEX. Needs root."""

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import packed
from resp import Connection, Error
from skep_process import BINARY, PATIENCE_S, Process
from xdp_namespaces import ETHTOOL_STXCSUM, INTERFACE, SERVER, Networks, why_not

NETINDEX = ""
PORT = 7379
ASKS_MAX = 20_000  # until a key must be hot


class Asker:
    """GETs of one key a datagram, on a socket of the client's network."""

    def __init__(self, networks):
        self.socket = networks.client.udp_socket((SERVER, PORT))
        self.socket.settimeout(0.2)
        self.asked = 0

    def close(self):
        self.socket.close()

    def reply(self, key, keyspace=0, flags=0):
        """The bytes of the answer; asks again until it comes."""
        payload = packed.request(packed.GET, key)
        while True:
            self.asked += 1
            self.socket.send(
                packed.MAGIC + struct.pack("<BBHQQ", 1, 0, 0, 7, 0) +
                struct.pack("<IIBBHI", len(payload), self.asked, packed.BATCH, flags, keyspace, 1) +
                payload)
            try:
                while True:
                    reply = self.socket.recv(65536)
                    if reply[28:32] == struct.pack("<I", self.asked):
                        return reply
            except TimeoutError:
                continue

    def get(self, key, **options):
        outcome = packed.outcomes(self.reply(key, **options)[40:], 1)[0]
        return outcome.get("value") if outcome["verdict"] == packed.DONE else None


class XdpTest(unittest.TestCase):
    MODE = "generic"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skep-xdp-")
        self.addCleanup(self.folder.cleanup)
        self.path = f"{self.folder.name}/xdp"
        self.networks = Networks()
        self.addCleanup(self.networks.end)
        self.servers = 0

    def start(self, *command):
        process = Process(self.networks.server.command(*command), self.folder.name)
        self.addCleanup(process.end)
        return process

    def start_helper(self, *options):
        helper = self.start(NETINDEX, "xdp", "--interface", INTERFACE, "--socket", self.path,
                            "--port", str(PORT), "--mode", self.MODE, *options)
        helper.wait_for_line(rb"ready: ")
        return helper

    def server_command(self, *options, xdp=True, bind=SERVER):
        self.servers += 1
        self.unixsocket = f"{self.folder.name}/server{self.servers}"
        return [BINARY, "--bind", bind, "--port", str(PORT), "--protected-mode", "no", "--udp",
                "yes", "--unixsocket", self.unixsocket, *(["--xdp", self.path] if xdp else []),
                *options]

    def start_server(self, *options, **more):
        server = self.start(*self.server_command(*options, **more))
        server.wait_for_line(rb"ready to accept connections on unix")
        self.client = Connection(self.unixsocket)
        self.addCleanup(self.client.close)
        return server

    def start_all(self, *options):
        self.helper = self.start_helper()
        self.server = self.start_server(*options)
        self.asker = Asker(self.networks)
        self.addCleanup(self.asker.close)

    def info(self, client=None):
        text = (client or self.client).call("INFO", "xdp").decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def hits(self, client=None):
        return int(self.info(client)["xdp_hits"])

    def ask_until_hit(self, key, expected, **options):
        """Asks until the hook answers; every answer must be the expected one."""
        before = self.hits()
        for _ in range(ASKS_MAX):
            self.assertEqual(self.asker.get(key, **options), expected)
            if self.hits() > before:
                return
        self.fail(f"the hook never answered: {self.info()}")

    def expect_no_hit(self, key, expected, **options):
        before = self.hits()
        for _ in range(60):
            self.assertEqual(self.asker.get(key, **options), expected)
        self.assertEqual(self.hits(), before)

    def refusal(self, *options, **more):
        """What a server says that does not start."""
        done = subprocess.run(self.networks.server.command(*self.server_command(*options, **more)),
                              check=False, capture_output=True, timeout=PATIENCE_S)
        self.assertNotEqual(done.returncode, 0)
        return (done.stdout + done.stderr).decode()

    def test_answers_as_the_server(self):
        self.start_all()
        self.assertEqual(self.info()["xdp_mode"], self.MODE)
        for key, value in ((b"k", b""), (b"user:1:name", b"ada"), (b"x" * 64, b"v" * 127)):
            self.client.call("SET", key, value)
            servers = self.asker.reply(key)
            self.ask_until_hit(key, value)
            before = self.hits()
            hooks = self.asker.reply(key)
            self.assertEqual(self.hits(), before + 1)
            # All but the id of the message.
            self.assertEqual(hooks[:28] + hooks[32:], servers[:28] + servers[32:])
        self.ask_until_hit(b"k", b"", flags=2)
        info = self.info()
        self.assertEqual(info["xdp_interface"], INTERFACE)
        self.assertGreaterEqual(int(info["xdp_fills"]), 3)
        self.assertGreater(int(info["xdp_misses"]), 0)

    def test_leaves_the_rest_to_the_server(self):
        self.start_all()
        self.client.call("SET", "long", b"v" * 128)
        self.client.call("SET", "mortal", "v", "PX", 10_000_000)
        self.client.call("SET", b"y" * 65, "v")
        self.client.call("SET", "k", "v")
        self.expect_no_hit(b"long", b"v" * 128)
        self.expect_no_hit(b"mortal", b"v")
        self.expect_no_hit(b"y" * 65, b"v")
        self.expect_no_hit(b"absent", None)
        self.expect_no_hit(b"k", None, keyspace=1)
        self.ask_until_hit(b"k", b"v")
        self.expect_no_hit(b"k", b"v", flags=4)
        self.assertIn("xdp_hits", self.client.call("INFO").decode())

    def test_another_keyspace(self):
        self.start_all("--keyspace", "1=hash", "--keyspace", "2=hashleaf,key=8,value=8")
        for keyspace in (1, 2):
            key, value = b"key-%04d" % keyspace, b"value-%02d" % keyspace
            self.client.call("SELECT", keyspace)
            self.client.call("SET", key, value)
            self.ask_until_hit(key, value, keyspace=keyspace)
            self.client.call("SET", key, b"another.")
            self.assertEqual(self.asker.get(key, keyspace=keyspace), b"another.")

    def test_checksums(self):
        """A sender that leaves none to the device, and a datagram that was damaged on its way."""
        self.start_all()
        self.networks.client.ethtool("client", ETHTOOL_STXCSUM, 0)
        self.client.call("SET", "k", "v")
        self.ask_until_hit(b"k", b"v")

    def test_every_way_to_write(self):
        self.start_all()
        # The value before, a command, the value after.
        writes = [
            ("1", ("SET", "k", "2"), b"2"), ("1", ("SETEX", "k", 10_000, "2"), b"2"),
            ("1", ("DEL", "k"), None), ("1", ("GETDEL", "k"), None), ("1", ("UNLINK", "k"), None),
            ("1", ("MSET", "a", "1", "k", "2"), b"2"), ("3", ("INCR", "k"), b"4"),
            ("1", ("APPEND", "k", "2"), b"12"), ("1", ("GETSET", "k", "2"), b"2"),
            ("1", ("RENAME", "k", "other"), None), ("1", ("RENAME", "other", "k"), b"2"),
            ("1", ("EXPIRE", "k", -1), None), ("1", ("KDELRANGE", "[j", "[l"), None),
            ("1", ("KDELRANGE", "-", "+"), None), ("1", ("FLUSHDB",), None),
            ("1", ("FLUSHALL",), None)]
        for before, command, expected in writes:
            self.client.call("MSET", "other", "2", "k", before)
            self.ask_until_hit(b"k", before.encode())
            self.assertNotIsInstance(self.client.call(*command), Error, command)
            self.assertEqual(self.client.call("GET", "k"), expected, command)
            self.assertEqual(self.asker.get(b"k"), expected, command)
        self.client.call("SET", "k", "1")
        self.client.call("EXPIRE", "k", 10_000)
        self.expect_no_hit(b"k", b"1")
        self.client.call("PERSIST", "k")
        self.ask_until_hit(b"k", b"1")
        self.client.call("EXPIRE", "k", 10_000)
        self.expect_no_hit(b"k", b"1")
        self.client.call("SET", "k", "1")
        self.ask_until_hit(b"k", b"1")
        self.client.pipeline(("MULTI",), ("SET", "k", "2"), ("EXEC",))
        self.assertEqual(self.asker.get(b"k"), b"2")

    def test_many_ranges_of_keys(self):
        """A range delete that takes away subtrees."""
        self.start_all()
        for first in range(0, 20_000, 1000):
            self.client.call("MSET", *[word for i in range(first, first + 1000)
                                       for word in (f"key:{i:06}", "v" * 40)])
        self.ask_until_hit(b"key:010000", b"v" * 40)
        self.client.call("KDELRANGE", "[key:000100", "[key:019000")
        self.assertIsNone(self.asker.get(b"key:010000"))

    def test_a_history_of_one_key(self):
        """One connection counts up; askers see no older count than was acknowledged when they asked."""
        self.start_all()
        acknowledged, problems = [0], []
        self.client.call("SET", "count", 0)
        self.ask_until_hit(b"count", b"0")
        before, rounds = self.hits(), 40
        reader_client = Connection(self.unixsocket)
        self.addCleanup(reader_client.close)

        def ask():
            asker = Asker(self.networks)
            last = 0
            while acknowledged[0] < rounds * 50 and not problems:
                floor = max(acknowledged[0], last)
                last = int(asker.get(b"count"))
                if last < floor:
                    problems.append((last, floor))
            asker.close()

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, rounds * 50 + 1):
            self.client.call("SET", "count", number)
            acknowledged[0] = number
            # Each round but the last, in which the askers end, goes on once the hook has answered in it.
            ends = number == rounds * 50
            while number % 50 == 0 and not ends and self.hits() == before and not problems:
                pass
            before = self.hits() if number % 50 == 0 else before
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_a_server_that_is_gone_leaves_no_answers(self):
        self.start_all("--dir", f"{self.folder.name}/data")
        self.client.call("SET", "k", "old")
        self.ask_until_hit(b"k", b"old")
        for number, xdp in ((signal.SIGKILL, False), (signal.SIGTERM, True), (signal.SIGKILL, True)):
            value = b"%d %d" % (number, xdp)
            self.server.signal(number)
            self.server.wait()
            self.server = self.start_server("--dir", f"{self.folder.name}/data", xdp=xdp)
            self.client.call("SET", "k", value)
            self.assertEqual(self.asker.get(b"k"), value)
            if xdp:
                self.ask_until_hit(b"k", value)

    def test_ends_with_its_helper(self):
        self.start_all()
        self.client.call("SET", "k", "v")
        self.ask_until_hit(b"k", b"v")
        self.helper.signal(signal.SIGKILL)
        self.helper.wait()
        self.server.wait_for_line(rb"the helper is gone")
        self.assertEqual(self.info()["xdp_mode"], "detached")
        self.expect_no_hit(b"k", b"v")
        # The socket of the killed one lies there still.
        self.start_helper()
        self.server.signal(signal.SIGTERM)
        self.server.wait()
        self.start_server()
        self.client.call("SET", "k", "w")
        self.ask_until_hit(b"k", b"w")

    def test_says_why_it_does_not_start(self):
        self.assertIn("there is no helper", self.refusal())
        self.start_all()
        password = self.client.call("CONFIG", "SET", "requirepass", "secret")
        self.assertIn("unset requirepass, or xdp", password)
        self.assertIn("another program, or server, has the hook", self.refusal())
        self.assertIn("unset requirepass, or xdp", self.refusal("--requirepass", "secret"))
        self.assertIn("udp yes", self.refusal("--udp", "no"))
        self.server.signal(signal.SIGTERM)
        self.server.wait()
        self.assertIn("the helper answers on port", self.refusal("--port", str(PORT + 1)))
        self.assertIn("bind has no address of", self.refusal(bind="127.0.0.1"))


class NativeXdpTest(XdpTest):
    """In the driver's own hook: that of a veth sends only to another end with a program."""
    MODE = "native"

    def setUp(self):
        super().setUp()
        path = f"{self.folder.name}/other-end"
        helper = Process(self.networks.client.command(
            NETINDEX, "xdp", "--interface", "client", "--mode", "native", "--socket", path),
                         self.folder.name)
        self.addCleanup(helper.end)
        helper.wait_for_line(rb"ready: ")
        # A program that nobody has turned on passes everything on.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.connect(path)
            _, files, _, _ = socket.recv_fds(asked, 1024, 2)
        for file in files:
            self.addCleanup(os.close, file)


if __name__ == "__main__":
    NETINDEX = sys.argv[1]
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
