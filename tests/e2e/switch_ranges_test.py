#!/usr/bin/env python3
"""Goal: GETs that go through switches to servers of a range map are answered rightly while ranges
move: with stale tables, without a controller, and without ZooKeeper.
Method: the FatTree of switch_test.py; servers that know the map, ZooKeeper at the client's host. What
was moved is written anew at its new server, so an answer of the old one would be seen.

Usage: switch_ranges_test.py SKEP_NETINDEX. Needs root."""

import signal
import subprocess
import sys
import threading
import time
import unittest

import switch_test
from resp import Error
from skep_process import PATIENCE_S, ROOT, needs, zookeeper_jar
from switch_test import ASKS_MAX, BORDER, CLIENT, KEYS, PLACES, PORT, Base, address_of, key_of
from xdp_namespaces import why_not

WRONG_RANGE = 10
SESSION_MS = 2000
MOVED = 5_000  # the second server's keys begin here after a move


def place_of(server):
    return f"{address_of(PLACES[server])}:{PORT}"


@needs(zookeeper_jar(), "libzookeeper-java")
class SwitchRangesTest(Base):
    def setUp(self):
        script = self.tree.hosts[CLIENT].command(str(ROOT / "scripts" / "zookeeper"), "1",
                                                 address_of(CLIENT))
        self.zookeeper = switch_test.Process(script, "/tmp")
        self.addCleanup(self.zookeeper.end)
        self.zk = self.zookeeper.wait_for_line(rb"^ready: (\S+)").group(1).decode()
        super().setUp()

    def server_options(self, place):
        return ("--ranges", f"zk={self.zk},name=users,at={address_of(place)}:{PORT},"
                f"session={SESSION_MS}")

    def controller_command(self):
        return "--zk", self.zk, "--name", "users", "controller"

    def ctl(self, *words):
        subprocess.run(self.tree.hosts[CLIENT].command(
            switch_test.NETINDEX, "--zk", self.zk, "--name", "users", "ctl", *words),
                       check=True, timeout=PATIENCE_S)

    def give_ranges(self):
        self.ctl("set", place_of(0), f"{key_of(BORDER).decode()}={place_of(1)}")
        for server, number in ((0, 0), (1, BORDER)):
            self.await_served(server, number)

    def await_served(self, server, number):
        deadline = time.monotonic() + PATIENCE_S
        while isinstance(self.servers[server].call("GET", key_of(number)), Error):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def move(self):
        """Keys from MOVED on go to the second server, and get other values."""
        self.ctl("move", key_of(MOVED).decode(), place_of(1))
        self.border = MOVED
        for number in range(MOVED, BORDER):
            self.assertEqual(self.servers[1].call("SET", key_of(number), b"moved %d" % number), "OK")

    def value_of(self, number):
        moved = MOVED <= number < BORDER and self.border == MOVED
        return (b"moved %d" if moved else b"value of %d") % number

    def ask(self, number):
        """The server of the right answer; None: the server that was asked has no such range now."""
        outcome, server = self.asker.get(key_of(number))
        if "value" not in outcome:
            self.assertEqual(outcome.get("status", (None,))[0], WRONG_RANGE, outcome)
            return None
        self.assertEqual(outcome["value"], self.value_of(number))
        return server

    def expect_all_right(self):
        """Of some keys, the moved ones among them."""
        for number in range(0, KEYS, 61):
            self.assertEqual(self.ask(number), address_of(PLACES[number >= self.border]), number)

    def test_switches_follow_a_move(self):
        self.start_all()
        self.expect_all_right()
        moves = threading.Thread(target=self.ctl,
                                 args=("move", key_of(MOVED).decode(), place_of(1)))
        moves.start()
        asked = 0
        while moves.is_alive():
            asked += 1
            self.ask(asked * 7 % KEYS)
        moves.join()
        self.move()  # done already; the values
        for _ in range(ASKS_MAX):
            if self.ask(MOVED) and self.ask(BORDER - 1):
                break
        self.expect_all_right()

    def test_stale_tables_are_never_wrong(self):
        """Without a controller queries go on to the old server, which refuses them."""
        self.start_all()
        self.controller.signal(signal.SIGKILL)
        self.controller.wait()
        self.move()
        for number in range(0, KEYS, 61):
            is_stale = MOVED <= number < BORDER
            expected = None if is_stale else address_of(PLACES[number >= BORDER])
            self.assertEqual(self.ask(number), expected, number)
        # The next controller gives the tables of the map as it is now.
        self.zookeeper_is_asked_again()

    def zookeeper_is_asked_again(self):
        folder = self.folder.name
        roles = [f"core:{folder}/core"]
        for place in PLACES:
            roles += [f"{role}:{folder}/{role}{place[0]}={address_of(place)}:{PORT}"
                      for role in ("aggregation", "edge")]
        self.start_controller(*roles)
        self.expect_all_right()

    def test_without_zookeeper_nothing_is_served(self):
        """A server whose lease has ended refuses what switches send to it."""
        self.start_all()
        self.expect_all_right()
        self.zookeeper.end()
        for _ in range(ASKS_MAX):
            outcome, _ = self.asker.get(key_of(1))
            if "value" not in outcome:
                break
        self.assertNotIn("value", outcome)
        self.assertIn("status", outcome)


if __name__ == "__main__":
    switch_test.NETINDEX = sys.argv[1]
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
