"""roce.py: two ends of RoCEv2 in software, for tests: one that has memory and answers RDMA READs, and
one that asks. Each is a raw socket in a network namespace.

A READ is checked as a network card does it: opcode, length, rkey, bounds, ICRC (by zlib, whose CRC-32
is the same), PSN. One thing differs: a PSN above the expected one is no error, since a query's server
is chosen on the way, so that the PSNs of one client are spread over several servers. A PSN below it is
a READ that was sent again; it is answered again.
"""

import os
import socket
import struct
import threading
import zlib

from xdp_namespaces import enter

PORT = 4791
READ, READ_RESPONSE = 0x0C, 0x10
NODE_BYTES = 256
QUEUE_PAIR = 0x11


def icrc_of(packet):
    """Of a packet from IP's header on, without its last 4 bytes."""
    masked = bytearray(packet[:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


def raw_socket(namespace, protocol):
    home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(namespace.path, os.O_RDONLY)
    try:
        enter(there)
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    finally:
        enter(home)
        os.close(home)
        os.close(there)


def packet_of(source, destination, payload):
    """A whole IP packet around BTH and what follows it, with its ICRC."""
    size = 28 + len(payload) + 4
    head = struct.pack(">BBHHHBBH4s4sHHHH", 0x45, 0, size, 7, 0x4000, 64, 17, 0,
                       socket.inet_aton(source), socket.inet_aton(destination), 49152, PORT, size - 20,
                       0)
    packet = head + payload + bytes(4)
    return packet[:-4] + icrc_of(packet)


class End:
    def __init__(self, namespace, address):
        self.address = address
        self.sender = raw_socket(namespace, socket.IPPROTO_RAW)
        self.receiver = raw_socket(namespace, socket.IPPROTO_UDP)
        self.receiver.settimeout(0.2)
        # The system would complain of packets to a port that nobody has.
        self.holder = namespace.udp_socket()
        self.holder.bind((address, PORT))

    def close(self):
        for one in (self.sender, self.receiver, self.holder):
            one.close()

    def send(self, to, payload):
        self.sender.sendto(packet_of(self.address, to, payload), (to, 0))

    def receive(self):
        """A packet to the port; None: there was none for a while."""
        try:
            while True:
                packet = self.receiver.recv(65536)
                if struct.unpack(">H", packet[22:24])[0] == PORT:
                    return packet
        except TimeoutError:
            return None


class Memory(End):
    """Memory that clients read, from `base` on."""

    def __init__(self, namespace, address, base, rkey, memory):
        super().__init__(namespace, address)
        self.base, self.rkey, self.memory = base, rkey, memory
        self.expected = {}  # PSN by client
        self.answered = self.repeated = self.damaged = self.refused = 0
        self.stops = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def stop(self):
        self.stops = True
        self.thread.join()
        self.close()

    def run(self):
        while not self.stops:
            if packet := self.receive():
                self.answer(packet)

    def answer(self, packet):
        if len(packet) != 60 or icrc_of(packet) != packet[-4:]:
            self.damaged += 1
            return
        opcode, _, _, pair, psn = struct.unpack(">BBHII", packet[28:40])
        va, rkey, length = struct.unpack(">QII", packet[40:56])
        at = va - self.base
        if (opcode, pair, rkey) != (READ, QUEUE_PAIR, self.rkey) or not (
                0 <= at <= len(self.memory) - length):
            self.refused += 1
            return
        client, psn = packet[12:16], psn & 0xFFFFFF
        behind = (self.expected.get(client, psn) - psn) % (1 << 24)
        if 0 < behind < 1 << 23:
            self.repeated += 1
        else:
            self.expected[client] = (psn + 1) % (1 << 24)
        self.answered += 1
        self.send(socket.inet_ntoa(client),
                  struct.pack(">BBHIII", READ_RESPONSE, 0x40, 0xFFFF, QUEUE_PAIR, psn, self.answered) +
                  self.memory[at:at + length])


class Reader(End):
    def __init__(self, namespace, address):
        super().__init__(namespace, address)
        self.psn = 0xFFFFF0  # goes round soon

    def read(self, to, va, rkey, tries=50, damage=0):
        """The bytes of a node, and the server that answers; None: nobody does."""
        payload = struct.pack(">BBHIIQII", READ, 0x40, 0xFFFF, QUEUE_PAIR, 1 << 31 | self.psn, va, rkey,
                              NODE_BYTES)
        packet = bytearray(packet_of(self.address, to, payload))
        packet[-1] ^= damage
        psn, self.psn = self.psn, (self.psn + 1) % (1 << 24)
        for _ in range(tries):
            self.sender.sendto(packet, (to, 0))
            while reply := self.receive():
                assert icrc_of(reply) == reply[-4:], "a wrong ICRC"
                opcode, answered = reply[28], struct.unpack(">I", reply[36:40])[0]
                if opcode == READ_RESPONSE and answered == psn:
                    return reply[44:-4], socket.inet_ntoa(reply[12:16])
        return None
