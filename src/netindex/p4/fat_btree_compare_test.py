#!/usr/bin/env python3
"""Goal: fat_btree.p4 makes of every packet the same bytes as the C functions (switch_packet.h).
Method: switch_vectors prints the tables of random switches, and packets before and behind each of them; the tables go
into the program, and the packets through it. Usage: fat_btree_compare_test.py SWITCH_VECTORS"""

import json
import os
import random
import subprocess
import sys
import unittest

from bank import config_of
from p4_testing import FAT_BTREE, Switch, check_file, load

SEEDS = [int(os.environ["SKEP_SEED"])] if "SKEP_SEED" in os.environ else [
    random.SystemRandom().randrange(1 << 32) for _ in range(2)]


def hops_of(seed):
    """(tables of a switch, packets before and behind it), of each switch of the random ways of a seed."""
    said = subprocess.run([VECTORS, str(seed)], check=True, capture_output=True).stdout
    for way in json.loads(said):
        for hop, bank in enumerate(way["hops"]):
            yield bank, [tuple(bytes.fromhex(frame.removeprefix("0x")) for frame in packet[hop:hop + 2])
                         for packet in way["packets"]]


class Compare(unittest.TestCase):
    def test_packets_leave_with_the_same_bytes(self):
        program = check_file(FAT_BTREE)
        same = changed = 0
        for seed in SEEDS:
            for bank, packets in hops_of(seed):
                switch = Switch(program)
                load(switch, config_of(bank))
                for before, behind in packets:
                    with self.subTest(seed=seed, before=before.hex()):
                        self.assertEqual(switch.process(before)[1].hex(), behind.hex())
                    same += before == behind
                    changed += before != behind
        print(f"{changed} packets that a switch changes, {same} that it passes as they are")
        self.assertGreater(changed, same // 2)


if __name__ == "__main__":
    VECTORS = sys.argv.pop(1)
    unittest.main()
