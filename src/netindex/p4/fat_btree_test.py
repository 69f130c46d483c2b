#!/usr/bin/env python3
"""Goal: fat_btree.p4 does with packets what switch_packet.h says.
Method: random trees and the bank of each are made here, Algorithm 1 once more by plain recursion. Packets go through
one, two or three switches; what they must leave as is computed from the tree, checksums from the whole packet. That
the C++ functions give the same bytes is fat_btree_compare_test.py."""

import bisect
import os
import random
import struct
import unittest
import zlib

from bank import FIRST, LAST, config_of
from interpreter.checksums import csum16
from p4_testing import FAT_BTREE, Switch, check_file, load

SEED = int(os.environ.get("SKEP_SEED", random.SystemRandom().randrange(1 << 32)))
GREATEST = (1 << 64) - 1
CLIENT, SERVICE, PORT, ROCE = 0x0a000001, 0x0a000064, 6379, 4791
SERVERS = [{"address": 0x0a000100 + i, "rkey": 0x11000000 + i} for i in range(3)]
PROGRAM = check_file(FAT_BTREE)


class Node:
    """A node for keys in (low, high]. A leaf has no children."""

    def __init__(self, rng, low, high, is_leaf):
        self.address = rng.randrange(1 << 48, 1 << 64) if is_leaf else rng.randrange(1, 1 << 48)
        self.low, self.high, self.is_leaf = low, high, is_leaf
        self.children, self.pivots = [], []

    def grow(self, rng, are_leaves):
        count = rng.randrange(1, 17) if self.high - self.low > 100 else 1
        self.pivots = sorted({rng.randrange(self.low + 1, self.high) for _ in range(count - 1)})
        bounds = [self.low, *self.pivots, self.high]
        self.children = [Node(rng, a, b, are_leaves) for a, b in zip(bounds, bounds[1:])]

    def child(self, key):
        """Ranges are (pivot, next pivot]: a key that equals a pivot belongs to the left."""
        return self.children[bisect.bisect_left(self.pivots, key)]


def random_uppers(rng):
    """The greatest keys of all ranges but the last: of small numbers, of those below 2^48, and of all."""
    most = 1 << rng.choice((16, 48, 64))
    return sorted({rng.randrange(most) for _ in range(rng.choice((0, 1, 12, 60)))})


def encode(uppers):
    """Algorithm 1 of the paper, 16 bits a stage. `uppers`: of each range but the last."""
    stages = [[], [], [], []]
    count = [1, 0, 0, 0]

    def range_of(key):
        return bisect.bisect_left(uppers, key)

    def build(stage, table, prefix):
        shift = 48 - 16 * stage
        inside = {u >> shift & 0xffff for u in uppers if u >> shift + 16 == prefix >> shift + 16}
        edges = sorted({0, 0x10000} | inside | {i + 1 for i in inside})
        for low, after in zip(edges, edges[1:]):
            begin, end = prefix | low << shift, (prefix | after - 1 << shift) + (1 << shift) - 1
            if range_of(begin) == range_of(end):
                result = {"is_table": False, "result": range_of(begin)}
            else:
                result = {"is_table": True, "result": count[stage + 1]}
                count[stage + 1] += 1
                build(stage + 1, result["result"], begin)
            last = stages[stage][-1] if stages[stage] else {}
            if last.get("table") == table and last["high"] == low - 1 and result.items() <= last.items():
                last["high"] = after - 1
            else:
                stages[stage].append({"table": table, "low": low, "high": after - 1, **result})

    build(0, 0, 0)
    return stages


class World:
    """A tree, and the switches of a way through so many hops."""

    def __init__(self, rng, hops):
        self.rng = rng
        self.uppers = random_uppers(rng)
        bounds = [0, *self.uppers, GREATEST]
        self.nodes = level = [Node(rng, a, b, rng.random() < 0.1) for a, b in zip(bounds, bounds[1:])]
        self.server_of = [i * len(SERVERS) // len(self.nodes) for i in range(len(self.nodes))]
        self.layers = []
        for _ in range(3 * hops):
            inner = [node for node in level if not node.is_leaf]
            self.layers.append(rng.sample(inner, min(12, len(inner))))
            for node in self.layers[-1]:
                node.grow(rng, rng.random() < 0.3)
            level = [child for node in self.layers[-1] for child in node.children]
        self.switches = [self.switch(hop, hops) for hop in range(hops)]

    def switch(self, hop, hops):
        bank = {"duties": (FIRST if hop == 0 else 0) | (LAST if hop == hops - 1 else 0),
                "service": SERVICE, "port": PORT,
                "servers": SERVERS, "stages": encode(self.uppers) if hop == 0 else [],
                "ranges": [{"address": node.address, "server": server} for node, server in
                           zip(self.nodes, self.server_of)] if hop == 0 else [],
                "layers": [[self.of_node(node) for node in layer] for layer in self.layers[3 * hop:3 * hop + 3]]}
        switch = Switch(PROGRAM)
        load(switch, config_of(bank))
        return switch

    @staticmethod
    def of_node(node):
        """Short nodes repeat the last pivot and the last child."""
        children = [child.address for child in node.children]
        pivots = node.pivots or [GREATEST]
        return {"address": node.address, "pivots": [0] + (pivots + 15 * pivots[-1:])[:15],
                "children": (children + 16 * children[-1:])[:16]}

    def send(self, packet, hops=9):
        for switch in self.switches[:hops]:
            port, packet = switch.process(packet)
            assert port == 1
        return packet

    def range_of(self, key):
        return bisect.bisect_left(self.uppers, key)

    def server(self, key):
        return SERVERS[self.server_of[self.range_of(key)]]

    def address(self, key, layers):
        node = self.nodes[self.range_of(key)]
        for layer in self.layers[:layers]:
            node = node.child(key) if node in layer else node
        return node.address

    def keys(self):
        """Keys at and around borders, zero, the greatest, and some at random, below 2^48 too."""
        borders = self.uppers + [pivot for layer in self.layers for node in layer for pivot in node.pivots]
        near = [key + d for key in self.rng.sample(borders, min(4, len(borders))) for d in (-1, 0, 1)]
        return [0, 1, GREATEST, GREATEST - 1, self.rng.randrange(1 << 48), self.rng.randrange(1 << 64),
                *(key for key in near if 0 <= key <= GREATEST)]


# Packets.

def udp_frame(to, port, payload, with_checksum=True):
    udp = struct.pack(">HHHH", 5555, port, 8 + len(payload), 0) + payload
    source_and_to = struct.pack(">II", CLIENT, to)
    if with_checksum:
        check_sum = csum16(source_and_to + struct.pack(">HH", 17, len(udp)) + udp) or 0xffff
        udp = udp[:6] + struct.pack(">H", check_sum) + udp[8:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 7, 0x4000, 64, 17, 0) + source_and_to
    ip = ip[:10] + struct.pack(">H", csum16(ip)) + ip[12:]
    return bytes.fromhex("020000000001020000000002") + b"\x08\0" + ip + udp


def get_frame(key, hint=0, to=SERVICE, port=PORT, with_checksum=True, message=5):
    head = struct.pack("<IBBHQQ", 0x504b53d5, 1, 0, 0, 99, 0)
    header = struct.pack("<IIBBHI", 11 + len(key), message, 1, 0, 0, 1)
    return udp_frame(to, port, head + header + b"\x80\x10" + struct.pack("<Q", hint) + bytes([len(key)]) + key,
                     with_checksum)


def icrc(frame):
    """The ICRC of a frame with one READ, of the whole of it: what may change on the way counts as ones."""
    covered = bytearray(b"\xff" * 8 + frame[14:70])
    for at in (15, 22, 24, 25, 40, 41, 46):
        covered[8 + at - 14] = 0xff
    return struct.pack("<I", zlib.crc32(bytes(covered)))


def read_frame(va, rkey=0, to=SERVICE):
    bth = bytes([0x0c, 0x40]) + b"\xff\xff" + struct.pack(">II", 17, 0x80000123)
    frame = udp_frame(to, ROCE, bth + struct.pack(">QII", va, rkey, 256) + b"\0\0\0\0", False)
    return frame[:70] + icrc(frame)


def one_node(pivot):
    """A switch with a node of two children: hint 1 << 48, and 2 << 48 of the keys above the pivot."""
    nodes = [{"address": 5, "pivots": [0] + [pivot] * 15, "children": [1 << 48] + [2 << 48] * 15}]
    switch = Switch(PROGRAM)
    load(switch, config_of({
        "duties": FIRST | LAST, "service": SERVICE, "port": PORT, "servers": SERVERS[:1],
        "ranges": [{"address": 5, "server": 0}], "stages": encode([]), "layers": [nodes, [], []]}))
    return switch


def as_server_sees(address):
    return 0 if address >> 48 == 0 else address


class FatBtree(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(SEED)
        self.addCleanup(lambda: self._outcome.success or print("SKEP_SEED =", SEED))

    def worlds(self, count=2):
        for hops in (1, 2, 3):
            for _ in range(count):
                yield hops, World(self.rng, hops)

    def test_a_get_gets_the_hint_of_its_node(self):
        for hops, world in self.worlds():
            for key in world.keys():
                hint = as_server_sees(world.address(key, 3 * hops))
                key_bytes = key.to_bytes(8, "big") + bytes(self.rng.randrange(5))
                came = world.send(get_frame(key_bytes, self.rng.choice((0, 77, 3 << 48))))
                self.assertEqual(came, get_frame(key_bytes, hint, world.server(key)["address"]), f"key {key:#x}")

    def is_above(self, key_bytes, *pivots):
        """Whether the program finds the key above each of these pivots."""
        for pivot in pivots:
            switch = one_node(pivot)
            yield switch.process(get_frame(key_bytes))[1][84:92] == struct.pack("<Q", 2 << 48)

    def test_pivots_are_compared_by_halves(self):
        """Also those that differ in one half alone, and in the highest bits of both."""
        numbers = [high << 32 | low for high in (0, 0x7fffffff, 0x80000000, 0xffffffff)
                   for low in (0, 0x80000000, 0xffffffff)]
        numbers += [0x59A4737582A775AB, 0xDDAEE7764589DB15]  # the paper's
        for pivot in numbers:
            switch = one_node(pivot)
            for key in numbers:
                came = switch.process(get_frame(key.to_bytes(8, "big")))[1]
                self.assertEqual(came[84:92], struct.pack("<Q", (1 + (key > pivot)) << 48), f"{key:#x}, {pivot:#x}")

    def test_a_key_is_the_number_of_its_first_eight_bytes(self):
        """A key is above the number before its own, and not above its own. Shorter ones have zeros behind them."""
        for length in range(1, 11):
            key_bytes = self.rng.randbytes(length - 1) + bytes([self.rng.randrange(1, 256)])
            number = int.from_bytes((key_bytes + bytes(8))[:8], "big")
            self.assertEqual(list(self.is_above(key_bytes, number - 1, number)), [True, False], key_bytes.hex())

    def test_a_read_gets_address_and_rkey(self):
        for hops, world in self.worlds():
            for key in world.keys():
                server = world.server(key)
                sent = read_frame(key)
                for hop in range(1, hops):
                    between = world.send(sent, hop)
                    self.assertEqual(between[74:], struct.pack(
                        ">QQHH", key, world.address(key, 3 * hop), SERVERS.index(server), 0))
                    self.assertEqual(csum16(between[14:34]), 0)
                    self.assertEqual(struct.unpack(">H", between[16:18])[0], len(between) - 14)
                    self.assertEqual(struct.unpack(">H", between[38:40])[0], len(between) - 34)
                self.assertEqual(world.send(sent),
                                 read_frame(world.address(key, 3 * hops), server["rkey"], server["address"]))

    def test_a_server_is_asked_for_its_own_keys_only(self):
        world = World(self.rng, 1)
        for key in world.keys():
            key_bytes, own = key.to_bytes(8, "big"), world.server(key)["address"]
            hint = as_server_sees(world.address(key, 3))
            for server in SERVERS:
                to = server["address"]
                get, read = get_frame(key_bytes, 9 << 48, to), read_frame(key, to=to)
                self.assertEqual(world.send(get), get_frame(key_bytes, hint, to) if to == own else get)
                self.assertEqual(world.send(read) == read, to != own)

    def test_a_checksum_of_udp_is_none_or_right(self):
        world = World(self.rng, 1)
        frame = get_frame(b"k", with_checksum=False)
        self.assertEqual(world.send(frame)[40:42], b"\0\0")
        # Of all ids one makes the checksum 0, which is sent as ffff.
        answers = world.send(get_frame(b"k", message=0))
        sum_of_0 = 0xffff - struct.unpack(">H", answers[40:42])[0]
        message = 0xffff - sum_of_0
        came = world.send(get_frame(b"k", message=message >> 8 | (message & 0xff) << 8))
        self.assertEqual(came[40:42], b"\xff\xff")

    def test_only_the_last_hop_clears_what_no_server_knows(self):
        world = World(self.rng, 3)
        frame = get_frame(b"k", 77, SERVERS[0]["address"])
        self.assertEqual(world.switches[1].process(frame)[1], frame)
        self.assertEqual(world.switches[2].process(frame)[1], get_frame(b"k", 0, SERVERS[0]["address"]))
        of_a_server = get_frame(b"k", 3 << 48 | 9, SERVERS[0]["address"])
        self.assertEqual(world.switches[2].process(of_a_server)[1], of_a_server)

    def test_the_rest_passes_as_it_is(self):
        world = World(self.rng, 1)
        of_both = [(12, 0x81), (14, 0x46), (14, 0x65), (23, 6), (20, 0x20), (21, 1), (17, 9), (39, 9), (37, 1),
                   (30, 11)]
        of_gets = [(42, 0), (46, 2), (47, 1), (66, 1), (67, 1), (74, 2), (75, 16), (75, 32), (76, 1), (77, 1),
                   (78, 2), (81, 1), (82, 0x81), (82, 0), (83, 0x11), (92, 0), (92, 9), (92, 128)]
        of_reads = [(42, 0x0a), (65, 1)]
        for frame, changes in ((get_frame(b"12345678"), of_both + of_gets), (read_frame(7), of_both + of_reads)):
            self.assertNotEqual(world.send(frame), frame)
            for at, value in changes:
                changed = frame[:at] + bytes([value]) + frame[at + 1:]
                self.assertEqual(world.send(changed), changed, f"byte {at} is {value}")
            for length in range(14, len(frame)):
                self.assertEqual(world.send(frame[:length]), frame[:length], f"{length} bytes")
        bare = read_frame(7)
        self.assertEqual(World(self.rng, 2).switches[1].process(bare)[1], bare)

    def test_routes_choose_port_and_host(self):
        switch = Switch(PROGRAM)
        load(switch, {"tables": {"Ingress.route": {"entries": [
            {"match": {"hdr.ip.destination": [0x0a000000, 8]}, "action": "Ingress.send", "parameters": {"port": 2}},
            {"match": {"hdr.ip.destination": [0x0a000100, 24]}, "action": "Ingress.send_to",
             "parameters": {"port": 3, "host": 0x020000000009}}]}}})
        frame = udp_frame(0x0a000105, 9, b"x")
        self.assertEqual(switch.process(frame), (3, bytes.fromhex("020000000009") + frame[6:]))
        self.assertEqual(switch.process(udp_frame(0x0a020000, 9, b"x"))[0], 2)
        self.assertIsNone(switch.process(udp_frame(0x0b000000, 9, b"x")))
        self.assertIsNone(switch.process(b"no frame"))
        self.assertIsNone(switch.process(bytes(12) + b"\x86\xdd" + bytes(40)))


class Encoder(unittest.TestCase):
    def test_stages_find_the_range_of_each_key(self):
        rng = random.Random(SEED)
        for _ in range(20):
            uppers = random_uppers(rng)
            stages = encode(uppers)
            for key in [0, GREATEST, *uppers, *(u + 1 for u in uppers), *(rng.randrange(1 << 64) for _ in range(9))]:
                result = {"is_table": True, "result": 0}
                for stage in range(4):
                    if result["is_table"]:
                        chunk = key >> (48 - 16 * stage) & 0xffff
                        result = next(e for e in stages[stage]
                                      if e["table"] == result["result"] and e["low"] <= chunk <= e["high"])
                self.assertEqual(result["result"], bisect.bisect_left(uppers, min(key, GREATEST)))


if __name__ == "__main__":
    unittest.main()
