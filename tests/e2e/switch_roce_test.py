#!/usr/bin/env python3
"""Goal: an RDMA READ with a key in place of an address comes back with a node on the way to that key,
through one, two and three switches; and what is damaged on the way stays damaged.
Method: a FatTree of network namespaces with the program attached, two servers that have a tree in their
memory, and a client, which goes on with ordinary READs to the key's value.

Usage: switch_roce_test.py SKEP_NETINDEX ROCE_TREE. Needs root."""

import struct
import subprocess
import sys
import tempfile
import unittest

from fat_tree import FatTree
from roce import Memory, Reader
from skep_process import PATIENCE_S, Process
from xdp_namespaces import why_not

NETINDEX, ROCE_TREE = "", ""
SERVICE = "10.200.0.1"
PLACES = ((0, 0), (1, 1))  # of the servers
CLIENT = (3, 1)
KEYS = 30_000


def address_of(place):
    return f"10.{place[0]}.{place[1]}.2"


class RoceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = FatTree((*PLACES, CLIENT))
        cls.addClassCleanup(cls.tree.end)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skep-roce-")
        self.addCleanup(self.folder.cleanup)
        self.roles = []

    def start_switch(self, namespace, role, *duties):
        path = f"{self.folder.name}/{len(self.roles)}"
        interfaces = [word for name in self.tree.interfaces(namespace)
                      for word in ("--interface", name)]
        switch = Process(namespace.command(NETINDEX, "switch", *interfaces, "--socket", path,
                                           "--service", SERVICE, *duties), self.folder.name)
        self.addCleanup(switch.end)
        switch.wait_for_line(rb"ready: ")
        self.roles.append(f"{role}:{path}")

    def start_ends(self):
        """Gives switches their tables, starts the servers' memory and a client."""
        subprocess.run([ROCE_TREE, self.folder.name, str(KEYS),
                        ",".join(f"{address_of(place)}:1" for place in PLACES), *self.roles],
                       check=True, timeout=PATIENCE_S)
        self.memories = []
        for number, place in enumerate(PLACES):
            with open(f"{self.folder.name}/memory{number}", "rb") as file:
                memory = Memory(self.tree.hosts[place], address_of(place), (number + 1) << 40,
                                4096 + number, file.read())
            self.addCleanup(memory.stop)
            self.memories.append(memory)
        with open(f"{self.folder.name}/keys", encoding="ascii") as file:
            self.values = dict(tuple(map(int, line.split())) for line in file)
        self.reader = Reader(self.tree.hosts[CLIENT], address_of(CLIENT))
        self.addCleanup(self.reader.close)

    def look_up(self, key):
        """The value of the key, and how many READs it took."""
        node, server = self.reader.read(SERVICE, key, 0)
        reads = 1
        while True:
            words = struct.unpack("<32Q", node)
            pivots, children = words[1:16], words[16:]
            if children[15] == 2**64 - 1:
                found = [child for pivot, child in zip(pivots, children) if pivot == key]
                return (found or [None])[0], reads
            child = children[sum(key > pivot for pivot in pivots)]
            number = (child >> 40) - 1
            self.assertEqual(server, address_of(PLACES[number]))
            node, server = self.reader.read(server, child, 4096 + number)
            reads += 1

    def expect_all(self, reads_max):
        most = 0
        keys = sorted(self.values)[::KEYS // 150]
        for key in keys:
            value, reads = self.look_up(key)
            self.assertEqual(value, self.values[key])
            most = max(most, reads)
        self.assertEqual(most, reads_max)
        self.assertIsNone(self.look_up(keys[0] + 1)[0])
        self.assertEqual(sum(memory.damaged + memory.refused for memory in self.memories), 0)
        self.assertTrue(all(memory.answered > 0 for memory in self.memories))

    # The trees have a thousand leaves, 16 to a node, a fat root of 8 ranges: up to two levels of
    # inner nodes below it, and the leaves.
    def test_one_hop(self):
        self.start_switch(self.tree.core, "core", "--first", "--last")
        self.start_ends()
        self.expect_all(3)

    def test_two_hops(self):
        self.start_switch(self.tree.core, "core", "--first")
        for place in PLACES:
            self.start_switch(self.tree.edges[place], "aggregation", "--last")
        self.start_ends()
        self.expect_all(1)

    def test_three_hops(self):
        self.start_switch(self.tree.core, "core", "--first")
        for place in PLACES:
            self.start_switch(self.tree.aggregations[place[0]], "aggregation")
            self.start_switch(self.tree.edges[place], "edge", "--last")
        self.start_ends()
        self.expect_all(1)
        # A switch mends the ICRC by difference, so it makes no wrong one right.
        self.assertIsNone(self.reader.read(SERVICE, 1, 0, tries=1, damage=1))
        self.assertEqual(sum(memory.damaged for memory in self.memories), 1)
        # A READ that was sent again is answered again.
        self.reader.psn = (self.reader.psn - 1) % (1 << 24)
        self.look_up(max(self.values))
        self.reader.psn = (self.reader.psn - 1) % (1 << 24)
        self.look_up(max(self.values))
        self.assertGreater(sum(memory.repeated for memory in self.memories), 0)


if __name__ == "__main__":
    NETINDEX, ROCE_TREE = sys.argv[1:3]
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
