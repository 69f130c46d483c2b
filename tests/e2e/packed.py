"""A client of the packed protocol, written from docs/packed-protocol.md alone."""

import socket
import struct

from skep_process import PATIENCE_S

MAGIC = b"\xd5SKP"
BATCH, ATOMIC, AUTH, PING, KEYSPACE, OPEN_SNAPSHOT, CLOSE_SNAPSHOT = range(1, 8)
TOP = 13
GET, PUT, INSERT, UPDATE, DELETE = range(5)
APPLY, SCAN, COUNT, REQUIRE_ABSENT = 7, 11, 12, 15
DONE, ABSENT, EXISTS, MISMATCH, ABORTED, REFUSED = range(6)
SYNC, REMEMBER, AT_SNAPSHOT = 1, 8, 16
NOT_APPLIED, FAILED = 1, 2
NO_UPPER_BOUND = 32


class Refused(Exception):
    pass


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def counted(data):
    return varint(len(data)) + data


def request(op, key=b"", value=None, flags=0, limit=None, hint=b"", operand=b""):
    """One request that leaves nothing out."""
    fields = (1 if flags else 0) | (4 if limit is not None else 0) | (16 if hint else 0)
    out = bytes([op | (128 if fields else 0)])
    if fields:
        out += bytes([fields])
    if flags:
        out += bytes([flags])
    if limit is not None:
        out += varint(limit)
    out += hint + operand + varint(len(key))
    if value is not None:
        out += varint(len(value))
    return out + key + (value or b"")


def function(kind, element, name):
    """The operand of the first APPLY of a message."""
    return varint(0) + bytes([kind, element]) + counted(name)


def part(first, last):
    """The operand of a GET of a part of a value (flag 4)."""
    return struct.pack("<qq", first, last)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        part = self.data[self.at:self.at + count]
        assert len(part) == count
        self.at += count
        return part

    def rest(self):
        return self.take(len(self.data) - self.at)

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def status(self):
        return self.byte(), self.varint(), self.take(self.varint()).decode()


def outcomes(payload, count):
    """A dictionary for each outcome."""
    reader, found, size = Reader(payload), [], 0
    for _ in range(count):
        first = reader.byte()
        outcome = {"verdict": first & 7, "present": bool(first & 32), "more": bool(first & 64)}
        extras = reader.byte() if first & 128 else 0
        if first & 8:
            size = size if first & 16 else reader.varint()
            outcome["value"] = reader.take(size)
        if extras & 1:
            zigzag = reader.varint()
            outcome["integer"] = (zigzag >> 1) ^ -(zigzag & 1)
        if extras & 2:
            runs = [(reader.varint(), reader.varint(), reader.varint())
                    for _ in range(reader.varint())]
            outcome["items"] = [(reader.take(key), reader.take(value))
                                for items, key, value in runs for _ in range(items)]
        if extras & 4:
            outcome["status"] = reader.status()
        for bit, name in ((8, "deadline"), (16, "version")):
            if extras & bit:
                outcome[name] = reader.varint()
        if extras & 32:
            outcome["hint"] = reader.take(8)
        found.append(outcome)
    assert reader.at == len(payload)
    return found


class Datagrams:
    """A socket for messages that are datagrams."""

    def __init__(self, port, client_id=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(0.2)
        self.client_id, self.instance, self.last_id = client_id, 0, 0

    def close(self):
        self.socket.close()

    def send(self, kind, payload=b"", count=0, flags=0, message=None):
        """Asks once; what was sent."""
        self.last_id = message if message is not None else self.last_id + 1
        datagram = MAGIC + struct.pack("<BBHQQ", 1, 0, 0, self.client_id, self.instance)
        datagram += struct.pack("<IIBBHI", len(payload), self.last_id, kind, flags, 0, count) + payload
        self.socket.send(datagram)
        return datagram

    def call(self, kind, payload=b"", **options):
        """Asks until there is an answer."""
        datagram = self.send(kind, payload, **options)
        for attempt in range(100):
            if attempt > 0:
                self.socket.send(datagram)
            try:
                reply = self.socket.recv(1 << 16)
            except TimeoutError:
                continue
            magic, version, why, _, client_id, self.instance = struct.unpack("<4sBBHQQ", reply[:24])
            assert (magic, version, why, client_id) == (MAGIC, 1, 0, self.client_id)
            size, answered, _, flags, _, _ = struct.unpack("<IIBBHI", reply[24:40])
            assert size == len(reply) - 40
            if answered != self.last_id:
                continue
            if flags & FAILED:
                raise Refused(Reader(reply[40:]).status())
            return reply[40:]
        raise ConnectionError("no answer")

    def batch(self, *requests, **options):
        return outcomes(self.call(BATCH, b"".join(requests), count=len(requests), **options),
                        len(requests))


class Client:
    def __init__(self, port, client_id=0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.sendall(MAGIC + struct.pack("<BBHQ", 1, 1, 0, client_id))
        magic, self.version, _, self.keyspaces, _, _, _, self.features, _ = struct.unpack(
            "<4sBBHIIQII8x", self._take(40))
        assert magic == MAGIC and self.version == 1
        self.last_id = 0

    def close(self):
        self.socket.close()

    def _take(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the server has hung up")
            data += part
        return data

    def send(self, kind, payload, count=0, flags=0, keyspace=0, message=None):
        self.last_id = message if message is not None else self.last_id + 1
        self.socket.sendall(struct.pack("<IIBBHI", len(payload), self.last_id, kind, flags,
                                        keyspace, count) + payload)
        return self.last_id

    def take(self):
        """id, kind, flags, count and payload of the next reply."""
        size, message, kind, flags, _, count = struct.unpack("<IIBBHI", self._take(16))
        return message, kind, flags, count, self._take(size)

    def call(self, kind, payload=b"", **options):
        message = self.send(kind, payload, **options)
        answered, answered_kind, flags, _, reply = self.take()
        assert (answered, answered_kind) == (message, kind)
        if flags & FAILED:
            raise Refused(Reader(reply).status())
        return flags, reply

    def batch(self, *requests, kind=BATCH, **options):
        """The outcomes; of an atomic batch that was not applied too."""
        _, reply = self.call(kind, b"".join(requests), count=len(requests), **options)
        return outcomes(reply, len(requests))
