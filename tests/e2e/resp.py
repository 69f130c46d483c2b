"""resp.py: a connection that sends any bytes and reads replies exactly as they came.

A reply is a Reply: its bytes, and its value in Python:

  +OK            Simple("OK")            %1 ...     dict
  -ERR x         Error("ERR x")          ~1 ...     list (a set keeps its order here)
  :1             1                       _          None
  $1 / $-1       b"x" / None             #t         True
  *1 ... / *-1   [...] / None            ,1.5       1.5

Requests are RESP arrays of bulk strings; raw bytes go with send().
"""

import socket


# How a command that takes a range says how one is written.
RANGE_SYNTAX = ("a bound is [a (with a), (a (without a), - or + (the ends); or PREFIX p instead of "
                "both")
NOT_A_BOUND = "ERR min or max not valid string range item: " + RANGE_SYNTAX


class Simple(str):
    """A status reply."""


class Error(str):
    """An error reply; compares equal to its text."""


class Closed(Exception):
    """The server closed the connection."""


def encode(*args):
    """The command as a RESP array. Arguments are bytes, str or int."""
    parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


class Connection:
    """One client. `address` is a port of 127.0.0.1 or the path of a unix socket."""

    def __init__(self, address, timeout=120):
        if isinstance(address, int):
            self.socket = socket.create_connection(("127.0.0.1", address), timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        self._received = bytearray()
        self._used = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *args):
        """Sends one command; the value of its reply."""
        self.send(encode(*args))
        return self.read()

    def pipeline(self, *commands):
        """Sends many commands at once; the values of their replies."""
        self.send(b"".join(encode(*command) for command in commands))
        return [self.read() for _ in commands]

    def read(self):
        return self.read_reply()[0]

    def read_reply(self):
        """The next reply: its value and its bytes."""
        value = self._value()
        raw = bytes(self._received[:self._used])
        del self._received[:self._used]
        self._used = 0
        return value, raw

    def is_closed(self):
        """Waits for the end of the stream; False if more bytes or the timeout come first."""
        try:
            return not self._received and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def _fill(self):
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError as error:
            raise Closed(bytes(self._received)) from error
        if not data:
            raise Closed(bytes(self._received))
        self._received += data

    def _line(self):
        while (end := self._received.find(b"\r\n", self._used)) < 0:
            self._fill()
        line = bytes(self._received[self._used:end])
        self._used = end + 2
        return line

    def _bytes(self, count):
        while len(self._received) < self._used + count + 2:
            self._fill()
        data = bytes(self._received[self._used:self._used + count])
        assert self._received[self._used + count:self._used + count + 2] == b"\r\n"
        self._used += count + 2
        return data

    def _value(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Simple(rest.decode())
        if kind == b"-":
            return Error(rest.decode("latin-1"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind in (b"*", b"~", b">"):
            return None if rest == b"-1" else [self._value() for _ in range(int(rest))]
        if kind == b"%":
            return {_hashable(self._value()): self._value() for _ in range(int(rest))}
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"=":
            return self._bytes(int(rest))[4:]
        raise AssertionError(f"not a RESP reply: {line!r}")


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value
