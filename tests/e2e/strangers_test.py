#!/usr/bin/env python3
"""Clients that have no business here: web pages, and clients without the password."""

import re
import socket
import struct
import unittest

from packed import AUTH, BATCH, MAGIC, PING, PUT, REMEMBER, Client, Datagrams, request
from resp import Error, encode
from skep_process import PATIENCE_S, SANITIZED, ServerTest, SkepServer

KIB = 1 << 10
MIB = 1 << 20
# What a stranger may hold: some KiB that came, some that are to go, and the server's account of it.
STRANGER_BYTES_MAX = 24 * KIB

POST = (b"POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 60\r\n\r\nFLUSHALL\r\nCONFIG SET requirepass owned\r\nSET stolen 1\r\n")
# How a browser begins to speak to https://localhost:6379. Session tickets, and the names of a
# host, are another server's choice.
TLS = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(set(range(256)) - set(b"\"'"))
       + b"\r\nFLUSHALL\r\nCONFIG SET requirepass owned\r\nSET stolen 1\r\n")
# The headers that pages can make a browser send, in some orders and cases.
HTTP = (POST,
        TLS,
        b"post / HTTP/1.1\r\n\r\nFLUSHALL\r\n",
        b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\nFLUSHALL\r\n",
        # Of a page whose name leads to this machine: it may use any method.
        b"DEL /path HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"SET /path HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PUT / HTTP/1.1\r\nhOsT: localhost:6379\r\nX: y\r\n\r\nFLUSHALL\r\n",
        b"OPTIONS / HTTP/1.1\r\nAccept: */*\r\nHost: a\r\n\r\nFLUSHALL\r\n",
        encode("POST", "/", "HTTP/1.1") + encode("FLUSHALL"),
        encode("Host:", "x") + encode("FLUSHALL"))


def used_memory(client):
    return int(re.search(rb"used_memory:(\d+)", client.call("INFO", "memory")).group(1))


def drain(connection):
    """Returns what still comes until the server closes the connection."""
    received = b""
    try:
        while data := connection.recv(1 << 16):
            received += data
    except ConnectionResetError:
        pass
    return received


class WebPageTest(unittest.TestCase):
    # Goal: a page in a browser on the same machine can run no command: a request of HTTP ends its
    # connection at POST or Host:, before its body, in one packet and split at every byte.
    # Method: requests as browsers send them, to a server without a password; the data must be there
    # afterwards, and the log must tell of it, not once for each of them.
    def test_http_runs_nothing(self):
        with SkepServer() as server, server.connect() as client:
            client.call("MSET", "mine", 1, "/path", 2)
            for text in HTTP:
                with self.subTest(text=text), socket.create_connection(("127.0.0.1", server.port),
                                                                       PATIENCE_S) as page:
                    page.sendall(text)
                    self.assertNotIn(b"+OK", drain(page))
            for text, at in [(text, at) for text in (POST, TLS) for at in range(1, len(text))]:
                with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as page:
                    page.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    try:
                        page.sendall(text[:at])
                        page.sendall(text[at:])
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    self.assertEqual(drain(page), b"")
            self.assertEqual(client.call("MGET", "mine", "/path"), [b"1", b"2"])
            self.assertEqual(client.call("EXISTS", "stolen"), 0)
            self.assertEqual(client.call("CONFIG", "GET", "requirepass")[1], b"")
            server.wait_for_line(rb"SECURITY ATTACK.*127\.0\.0\.1:\d+")
            lines = server.output().count(b"SECURITY ATTACK")
            self.assertEqual(lines, 1, "the log would fill the disk")

    # Goal: a crowd that speaks HTTP, reads nothing and does not go costs nothing, of a server without
    # a password too.
    def test_a_crowd_of_http_holds_nothing(self):
        with SkepServer("--maxclients", 2000) as server, server.connect() as client:
            before = used_memory(client)
            crowd = []
            for i in range(100 if SANITIZED else 600):
                page = socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)
                self.addCleanup(page.close)
                crowd.append(page)
                try:
                    page.sendall(HTTP[i % len(HTTP)] * 50)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertLess(used_memory(client) - before, 2 * MIB)
            for page in crowd:
                drain(page)  # ends
            self.assertLess(used_memory(client) - before, 64 * KIB)
            self.assertEqual(client.call("DBSIZE"), 0)

    # Goal: what a connection has sent before is its own; what has such a name as a key stays usable.
    def test_only_as_a_command(self):
        with SkepServer() as server, server.connect() as client:
            self.assertEqual(client.call("SET", "POST", "Host:"), "OK")
            self.assertEqual(client.call("GET", "POST"), b"Host:")
            self.assertEqual(client.call("SET", "/path", "HTTP/1.1"), "OK")
            client.send(b"SET line HTTP\r\nSET line HTTP/1.1 EX 100\r\n")
            self.assertEqual([client.read(), client.read()], ["OK", "OK"])
            client.send(encode("SET", "a", 1) + b"Host: x\r\nSET a 2\r\n")
            drain(client.socket)
            with server.connect() as other:
                self.assertEqual(other.call("GET", "a"), b"1")


class StrangersTest(ServerTest):
    """Clients without the password."""

    OPTIONS = ("--requirepass", "secret", "--maxmemory", "64mb", "--udp", "yes", "--maxclients", 2000)

    def setUp(self):
        self.client = self.server.connect()
        self.addCleanup(self.client.close)
        self.assertEqual(self.client.call("AUTH", "secret"), "OK")

    def stranger(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def flood(self, connection, data):
        """Sends as much as the server takes without reading a reply."""
        connection.setblocking(False)
        try:
            for _ in range(16):
                connection.send(data)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass

    # Goal: what hundreds of strangers can make the server hold is bounded, whatever they send, and
    # they cost those who have the password nothing.
    # Method: crowds of each kind send all that is taken and read nothing; the server's account of
    # its memory is asked in between, and writes must go on where the limit is small.
    def test_memory_of_hundreds(self):
        hello = MAGIC + struct.pack("<BBHQ", 1, 1, 0, 7)

        def message(kind, payload):
            return struct.pack("<IIBBHI", len(payload), 1, kind, 0, 0, 0) + payload

        count = 100 if SANITIZED else 300
        floods = {
            "a command that never ends": b"*3\r\n$3\r\nSET\r\n$16000\r\n" + b"x" * 15_000,
            "many arguments": b"*10\r\n" + b"$4000\r\n%s\r\n" % (b"x" * 4000) * 9,
            "an inline command that never ends": b"x" * (64 * KIB),
            "a header of HTTP that never ends": b"GET / HTTP/1.1\r\nX-Long: " + b"x" * (64 * KIB),
            "requests of HTTP without a host": b"GET /a HTTP/1.1\r\nAccept: */*\r\n\r\n" * 500,
            "requests of HTTP": POST * 50,
            "errors nobody reads": b"GET a\r\n" * 9000,
            "long errors nobody reads": (b"n" * 120 + b" " + b"o" * 120 + b"\r\n") * 250,
            "AUTH, again and again": encode("AUTH", "wrong") * 2000,
            "echoes nobody reads": hello + message(PING, b"x" * 3000) * 20,
            "a message that never ends": hello + message(PING, b"x" * 60_000)[:15_000],
            "passwords": hello + message(AUTH, b"x" * 3000) * 20,
        }
        before = used_memory(self.client)
        for name, data in floods.items():
            with self.subTest(name=name):
                crowd = [self.stranger() for _ in range(count)]
                for connection in crowd:
                    self.flood(connection, data)
                most = 0
                for i in range(20):
                    most = max(most, used_memory(self.client) - before)
                    self.assertEqual(self.client.call("SET", "mine", i), "OK")
                self.assertLess(most, count * STRANGER_BYTES_MAX)
                for connection in crowd:
                    connection.close()

    # Goal: the system's own account of the memory agrees.
    @unittest.skipIf(SANITIZED, "sanitizers keep what is freed")
    def test_resident_memory(self):
        before = self.server.rss_bytes()
        crowd = [self.stranger() for _ in range(800)]
        for connection in crowd:
            self.flood(connection, b"GET a\r\n" * 9000)
        self.client.call("SET", "mine", 1)
        self.assertLess(self.server.rss_bytes() - before, len(crowd) * STRANGER_BYTES_MAX + 8 * MIB)

    # Goal: who sends more than the few KiB before AUTH is closed, not kept.
    def test_closed_beyond_it(self):
        for data in (b"x" * (5 * KIB), b"*2\r\n$4\r\nAUTH\r\n$4090\r\n" + b"x" * (5 * KIB),
                     b"*11\r\n", b"*2\r\n$4\r\nAUTH\r\n$5000\r\n", b'"' + b"x" * (5 * KIB),
                     MAGIC + struct.pack("<BBHQ", 1, 1, 0, 7)
                     + struct.pack("<IIBBHI", 5 * KIB, 1, PING, 0, 0, 0)):
            with self.subTest(data=data[:40]):
                connection = self.stranger()
                connection.sendall(data)
                drain(connection)  # ends

    # Goal: who does read may go on for ever: nothing adds up, and the password still opens.
    def test_a_stranger_that_reads(self):
        with self.server.connect() as client:
            for _ in range(300):
                replies = client.pipeline(*[["GET", "a"]] * 20)
                self.assertEqual(replies, [Error("NOAUTH Authentication required.")] * 20)
            self.assertEqual(client.call("AUTH", "secret"), "OK")
            self.assertEqual(client.call("SET", "large", b"x" * MIB), "OK")
            self.assertEqual(len(client.call("GET", "large")), MIB)
        client = Client(self.server.port)
        for _ in range(300):
            self.assertEqual(client.call(PING, b"p" * 1000)[1], b"p" * 1000)
        client.call(AUTH, b"secret")
        self.assertEqual(client.call(PING, b"p" * MIB)[1], b"p" * MIB)
        client.close()

    # Goal: AUTH and what needs it may come in one packet, of any size.
    def test_a_pipeline_behind_the_password(self):
        with self.server.connect() as client:
            value = b"v" * 50_000
            replies = client.pipeline(["AUTH", "secret"], ["SET", "k", value],
                                      ["EXISTS", *["k"] * 50], ["GET", "k"])
            self.assertEqual(replies, ["OK", "OK", 50, value])

    # Goal: a password that may be set can be given: it fits into what strangers may send.
    def test_the_longest_password(self):
        too_long = self.client.call("CONFIG", "SET", "requirepass", "p" * 1025)
        self.assertRegex(too_long, "requirepass is longer than 1024 bytes")
        longest = "p" * 1024
        self.addCleanup(self.client.call, "CONFIG", "SET", "requirepass", "secret")
        self.assertEqual(self.client.call("CONFIG", "SET", "requirepass", longest), "OK")
        with self.server.connect() as client:
            self.assertEqual(client.call("HELLO", 2, "AUTH", "default", longest, "SETNAME", "n" * 256)[:2],
                             [b"server", b"skep"])
        client = Client(self.server.port)
        client.call(AUTH, longest.encode())
        client.close()

    # Goal: datagrams of strangers are small, and so are their answers; a large one is not answered.
    def test_datagrams(self):
        datagrams = Datagrams(self.server.port)
        self.assertEqual(datagrams.call(PING, b"p" * 1000), b"p" * 1000)
        head = MAGIC + struct.pack("<BBHQQ", 1, 0, 0, 0, 0)
        large = struct.pack("<IIBBHI", 30_000, 9, PING, 0, 0, 0) + b"x" * 30_000
        # They come in their order on one machine, so nothing of the large ones follows the small one.
        for _ in range(50):
            datagrams.socket.send(head + large)
        small = struct.pack("<IIBBHI", 5, 10, PING, 0, 0, 0) + b"small"
        datagrams.socket.settimeout(PATIENCE_S)
        datagrams.socket.send(head + small)
        self.assertEqual(datagrams.socket.recv(1 << 16)[24:], small)
        before = used_memory(self.client)
        for _ in range(2000):
            datagrams.socket.send(head + struct.pack("<IIBBHI", 3000, 9, PING, 0, 0, 0) + b"x" * 3000)
        self.assertLess(used_memory(self.client) - before, MIB)
        datagrams.close()

    # Goal: nor is anything kept of strangers whose datagrams ask to be remembered, each under an id
    # of its own.
    def test_datagrams_under_many_ids(self):
        put = request(PUT, b"of a stranger", b"v" * 3000)
        before = used_memory(self.client)
        for i in range(2000):
            datagrams = Datagrams(self.server.port, client_id=i + 1)
            datagrams.send(BATCH, put, count=1, flags=REMEMBER)
            datagrams.send(AUTH, b"wrong")
            datagrams.close()
        last = Datagrams(self.server.port)
        self.assertEqual(last.call(PING, b"behind them"), b"behind them")
        last.close()
        self.assertLess(used_memory(self.client) - before, 64 * KIB)
        self.assertEqual(self.client.call("EXISTS", "of a stranger"), 0)


if __name__ == "__main__":
    unittest.main()
