#!/usr/bin/env python3
"""Goal: GETs that go through switches are answered rightly, by the server of their range, with the
hint of their leaf; while leaves split, while tables are stale, and when processes end.
Method: a FatTree of network namespaces, with the program attached in its switches, two servers, and a
client that asks the address of all servers together.

Usage: switch_test.py SKEP_NETINDEX. Needs root."""

import signal
import struct
import sys
import tempfile
import threading
import unittest

import packed
from fat_tree import FatTree
from resp import Connection
from skep_process import BINARY, Process
from xdp_namespaces import why_not

NETINDEX = ""
PORT = 7379
SERVICE = "10.200.0.1"
PLACES = ((0, 0), (1, 1))  # of the servers
CLIENT = (3, 1)
BORDER = 10_000
KEYS = 20_000
ASKS_MAX = 100_000  # until a controller must have renewed its tables


def address_of(place):
    return f"10.{place[0]}.{place[1]}.2"


def key_of(number):
    return b"%08d" % number


class Asker:
    """GETs of one key a datagram, to the address of all servers."""

    def __init__(self, namespace):
        # Answers come from the server's own address.
        self.socket = namespace.udp_socket()
        self.socket.settimeout(0.2)
        self.asked = 0

    def close(self):
        self.socket.close()

    def send(self, key, hint, to=SERVICE):
        self.asked += 1
        payload = packed.request(packed.GET, key, hint=hint)
        self.socket.sendto(
            packed.MAGIC + struct.pack("<BBHQQ", 1, 0, 0, 7, 0) +
            struct.pack("<IIBBHI", len(payload), self.asked, packed.BATCH, 0, 0, 1) + payload,
            (to, PORT))

    def reply(self):
        """The outcome and the server of the answer to what was sent last; None: there is none."""
        try:
            while True:
                reply, (server, _) = self.socket.recvfrom(65536)
                if reply[28:32] == struct.pack("<I", self.asked):
                    return packed.outcomes(reply[40:], 1)[0], server
        except TimeoutError:
            return None

    def get(self, key, hint=bytes(8), **options):
        while True:
            self.send(key, hint, **options)
            if reply := self.reply():
                return reply


class Base(unittest.TestCase):
    MODE = "generic"
    MORE = ()
    border = BORDER  # where the second server's keys begin

    @classmethod
    def setUpClass(cls):
        cls.tree = FatTree((*PLACES, CLIENT))
        cls.addClassCleanup(cls.tree.end)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skep-switch-")
        self.addCleanup(self.folder.cleanup)
        self.servers = []
        for place in PLACES:
            path = f"{self.folder.name}/server{place[0]}"
            self.start(self.tree.hosts[place], BINARY, "--bind", address_of(place), "--port",
                       str(PORT), "--protected-mode", "no", "--udp", "yes", "--unixsocket",
                       path, *self.server_options(place)).wait_for_line(
                           rb"ready to accept connections on unix")
            self.servers.append(Connection(path))
            self.addCleanup(self.servers[-1].close)
        self.give_ranges()
        self.asker = Asker(self.tree.hosts[CLIENT])
        self.addCleanup(self.asker.close)
        for first in range(0, KEYS, 1000):
            self.load(range(first, first + 1000))

    def server_options(self, _place):
        return ()

    def give_ranges(self):
        """Before keys are loaded: these servers take any key."""

    def start(self, namespace, *command):
        process = Process(namespace.command(*command), self.folder.name)
        self.addCleanup(process.end)
        return process

    def load(self, numbers):
        """Keys of one server, with values that tell them."""
        server = self.servers[numbers[0] >= self.border]
        server.call("MSET", *[word for i in numbers for word in (key_of(i), b"value of %d" % i)])

    def start_switch(self, namespace, name, *duties):
        interfaces = [word for name in self.tree.interfaces(namespace)
                      for word in ("--interface", name)]
        switch = self.start(namespace, NETINDEX, "switch", *interfaces, "--socket",
                            f"{self.folder.name}/{name}", "--service", SERVICE, "--port", str(PORT),
                            "--mode", self.MODE, *duties, *self.MORE)
        switch.wait_for_line(rb"ready: ")
        return switch

    def start_controller(self, *switches):
        """It reaches servers from a host; switches by their sockets in the file system."""
        words = [word for switch in switches for word in ("--switch", switch)]
        controller = self.start(self.tree.hosts[CLIENT], NETINDEX, *self.controller_command(),
                                "--interval", "50", *words)
        controller.wait_for_line(rb"skep-netindex: ready")
        return controller

    def controller_command(self):
        first, second = (f"{address_of(place)}:{PORT}" for place in PLACES)
        return "controller", "--server", first, "--server", f"{BORDER:08d}={second}"

    def start_all(self):
        """The switches of the ways between the client and both servers, and the controller."""
        folder = self.folder.name
        self.core = self.start_switch(self.tree.core, "core", "--first")
        roles = [f"core:{folder}/core"]
        for place in PLACES:
            server = f"{address_of(place)}:{PORT}"
            self.start_switch(self.tree.aggregations[place[0]], f"aggregation{place[0]}")
            self.start_switch(self.tree.edges[place], f"edge{place[0]}", "--last")
            roles += [f"{role}:{folder}/{role}{place[0]}={server}" for role in ("aggregation", "edge")]
        self.start_switch(self.tree.edges[CLIENT], "edge", "--last")
        self.controller = self.start_controller(*roles)

    def expect(self, number, asker=None, **options):
        """The answer is right, and of the right server; whether the hint was, too."""
        outcome, server = (asker or self.asker).get(key_of(number), **options)
        self.assertEqual(outcome.get("value"), b"value of %d" % number)
        self.assertEqual(server, address_of(PLACES[number >= self.border]))
        return "hint" not in outcome

    def expect_each_query_at_its_leaf(self):
        self.start_all()
        # A hint of the client that names no leaf: the answer says so, unless a switch replaces it.
        wrong = struct.pack("<Q", 9 << 48 | 12345)
        for number in range(0, KEYS, 13):
            self.assertTrue(self.expect(number, hint=wrong), number)
            self.assertTrue(self.expect(number), number)
        # To a server's own address: for its keys the same, for others the server's answer.
        own = address_of(PLACES[1])
        self.assertTrue(self.expect(KEYS - 1, hint=wrong, to=own))
        outcome, _ = self.asker.get(key_of(1), hint=wrong, to=own)
        self.assertNotIn("value", outcome)
        self.assertIn("hint", outcome)
        outcome, _ = self.asker.get(b"absent")
        self.assertNotIn("value", outcome)


class SwitchTest(Base):
    def test_each_query_comes_to_its_leaf(self):
        self.expect_each_query_at_its_leaf()

    def test_answers_are_right_while_leaves_split(self):
        """A key that was acknowledged is found; stale hints bring new tables, and right hints."""
        self.start_all()
        loaded = [KEYS]

        def insert():
            while loaded[0] < 3 * KEYS:
                self.load(range(loaded[0], loaded[0] + 500))
                loaded[0] += 500

        thread = threading.Thread(target=insert)
        thread.start()
        right = asked = 0
        while thread.is_alive() or asked < 3000:
            asked += 1
            right += self.expect(loaded[0] - 1 - asked * 7 % loaded[0])
        thread.join()
        self.assertLess(right, asked)
        for number in range(ASKS_MAX):
            self.expect(number * 7 % loaded[0])
            if b"tables 2:" in self.controller.output():
                break
        for _ in range(ASKS_MAX):
            if all(self.expect(number) for number in range(0, loaded[0], 997)):
                return
        self.fail("hints never became right again")

    def test_stale_tables_are_never_wrong(self):
        """Without a controller, and with a server that was emptied and filled again."""
        self.start_all()
        self.controller.signal(signal.SIGTERM)
        self.controller.wait()
        for server in self.servers:
            server.call("FLUSHALL")
        outcome, _ = self.asker.get(key_of(5))
        self.assertNotIn("value", outcome)
        for first in range(0, KEYS, 1000):
            self.load(range(first, first + 1000))
        right = [self.expect(number) for number in range(0, KEYS, 101)]
        self.assertIn(False, right)

    def test_a_switch_that_was_gone_gets_its_tables_again(self):
        self.start_all()
        self.core.signal(signal.SIGKILL)
        self.core.wait()
        # The address of all servers is nobody's.
        self.asker.send(key_of(1), bytes(8))
        self.assertIsNone(self.asker.reply())
        self.start_switch(self.tree.core, "core", "--first")
        self.assertTrue(self.expect(1))

    def test_one_switch_alone(self):
        """A core that has the fat root and all nodes."""
        self.start_switch(self.tree.core, "core", "--first", "--last")
        self.start_controller(f"only:{self.folder.name}/core")
        for number in range(0, KEYS, 97):
            self.assertTrue(self.expect(number), number)


class TcAsP4Test(Base):
    """In the system's receive path, by 16-bit tables and 32-bit halves."""
    MODE = "tc"
    MORE = ("--as-p4",)

    def test_each_query_comes_to_its_leaf(self):
        self.expect_each_query_at_its_leaf()


if __name__ == "__main__":
    NETINDEX = sys.argv[1]
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
