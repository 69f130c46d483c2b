#!/usr/bin/env python3
"""The bytes on the wire: shapes of replies, splits, pipelines, half commands, garbage."""

import random
import re
import unittest

from resp import Closed, Error, Simple, encode
from skep_process import SANITIZED, ServerTest


class ShapeTest(ServerTest):
    def test_hello(self):
        flat = self.client.call("HELLO")
        self.assertEqual(flat[::2], [b"server", b"version", b"proto", b"id", b"mode", b"role",
                                     b"modules"])
        self.assertEqual((flat[5], flat[9], flat[11], flat[13]), (2, b"standalone", b"master", []))
        hello = self.client.call("HELLO", 3, "SETNAME", "me")
        self.assertEqual(list(hello), flat[::2])
        self.assertEqual(hello[b"proto"], 3)
        self.assertEqual(hello[b"id"], self.client.call("CLIENT", "ID"))
        self.check(b"me", "CLIENT", "GETNAME")
        self.assertIsInstance(self.client.call("HELLO", 2), list)

    def test_nulls_and_maps_by_protocol(self):
        for protocol, null, config in ((2, b"$-1\r\n", b"*2\r\n"), (3, b"_\r\n", b"%1\r\n")):
            self.client.call("HELLO", protocol)
            self.client.send(encode("GET", "nosuch") + encode("CONFIG", "GET", "timeout"))
            self.assertEqual(self.client.read_reply()[1], null)
            self.assertTrue(self.client.read_reply()[1].startswith(config))

    def test_client(self):
        self.check("OK", "CLIENT", "SETNAME", "tester")
        self.check("OK", "CLIENT", "SETINFO", "LIB-NAME", "a-lib")
        self.check("OK", "CLIENT", "SETINFO", "lib-ver", "1.2")
        number = self.client.call("CLIENT", "ID")
        info = self.client.call("CLIENT", "INFO").decode()
        for part in (f"id={number} ", "name=tester ", "db=0 ", "addr=127.0.0.1:",
                     f"laddr=127.0.0.1:{self.server.port} ", "lib-name=a-lib", "lib-ver=1.2",
                     "cmd=client|info ", "resp=2"):
            self.assertIn(part, info)
        with self.server.connect() as other:
            self.assertGreater(other.call("CLIENT", "ID"), number)
            everyone = other.call("CLIENT", "LIST").decode()
            self.assertEqual(everyone.count("\n"), everyone.count("id="))
            self.assertIn("name=tester", everyone)
        self.assertIsInstance(self.client.call("CLIENT", "SETINFO", "nosuch", "x"), Error)

    def test_command(self):
        names = [name.decode() for name in self.client.call("COMMAND", "LIST")]
        commands = [name for name in names if "|" not in name]
        self.assertEqual(self.client.call("COMMAND", "COUNT"), len(commands))
        self.assertLessEqual({"get", "set", "krange", "kcount", "kdelrange", "kfloor", "kceil",
                              "kfirst", "klast", "kscan", "scan", "shutdown"}, set(names))
        get, krange, nothing = self.client.call("COMMAND", "INFO", "GET", "krange", "nosuch")
        self.assertEqual(get[:6], [b"get", 2, get[2], 1, 1, 1])
        self.assertIn("readonly", get[2])
        self.assertIn("fast", get[2])
        self.assertEqual((krange[:2], nothing), ([b"krange", -3], None))
        docs = self.client.call("COMMAND", "DOCS", "krange", "nosuch")
        self.assertEqual(docs[0], b"krange")
        self.assertIn(b"summary", docs[1])
        config = dict(zip(*[iter(self.client.call("COMMAND", "DOCS", "config")[1])] * 2))
        get = dict(zip(*[iter(config[b"subcommands"])] * 2))[b"config|get"]
        self.assertEqual(get[get.index(b"summary") + 1],
                         b"Return the options that match, and their values.")
        self.assertEqual(len(self.client.call("COMMAND")), len(commands))

    def test_info(self):
        info = self.client.call("INFO").decode()
        fields = dict(re.findall(r"^([a-z_]+):(.*?)\r$", info, re.MULTILINE))
        for field in ("redis_version", "tcp_port", "uptime_in_seconds", "connected_clients",
                      "used_memory", "maxmemory", "total_commands_processed",
                      "total_connections_received"):
            self.assertIn(field, fields)
        self.assertEqual(fields["tcp_port"], str(self.server.port))
        self.assertRegex(info, r"(?m)^# Server\r$")
        self.check("OK", "SET", "a", 1)
        self.assertRegex(self.client.call("INFO", "keyspace").decode(), "db0:keys=1")
        self.assertNotIn(b"# Server", self.client.call("INFO", "clients"))

    # Goal: what the engine of each used database tells of itself is there, also what holds memory
    # back: a scan that nobody finishes. What takes the system time is there only by name.
    def test_info_of_engines(self):
        def fields(*sections):
            info = self.client.call("INFO", *sections).decode()
            return {name: int(value) for name, value in
                    re.findall(r"(?m)^((?:db\d+|used_memory_huge)[a-z_]*):(\d+)\r$", info)}

        self.check("OK", "SELECT", 3)
        for i in range(500):
            self.check("OK", "SET", f"key{i}", b"v" * 100)
        self.check("OK", "SELECT", 0)
        engine = fields("engine")
        self.assertEqual((engine["db3_items"], engine["db3_snapshots"]), (500, 0))
        self.assertGreater(engine["db3_leaves"], 1)
        self.assertEqual(engine["db3_height"], 2)
        self.assertNotIn("db1_leaves", engine)
        self.check("OK", "SELECT", 3)
        self.client.call("KSCAN", "-", "+", "COUNT", 1)
        for i in range(500):
            self.check("OK", "SET", f"key{i}", b"w" * 100)
        engine = fields("engine")
        self.assertEqual((engine["db3_snapshots"], engine["db3_snapshot_behind"]), (1, 500))
        self.assertGreater(engine["db3_chain_buffers"], 0)
        for sections in ((), ("all",), ("default",)):
            self.assertIn("db3_leaves", fields(*sections))
            self.assertNotIn("used_memory_huge", fields(*sections))
        for section in ("HugePages", "everything"):
            self.assertIn("used_memory_huge", fields(section))

    # Goal: every error reply is counted once, whoever found the error: the decoder, the table of
    # commands, the command before it ran or the store; nothing else is.
    def test_error_count(self):
        def errors():
            info = self.client.call("INFO", "stats").decode()
            return int(re.search(r"total_error_replies:(\d+)", info).group(1))

        self.check("OK", "SET", "text", "abc")
        for command in (["INCR", "text"], ["NOSUCH"], ["GET"], ["KRANGE", "x", "y"],
                        ["INCRBY", "text", "x"], ["HELLO", 9], ["CONFIG", "SET", "nosuch", "x"]):
            before = errors()
            self.assertIsInstance(self.client.call(*command), Error, command)
            self.assertEqual(errors(), before + 1, command)
        before = errors()
        for command in (["GET", "nosuch"], ["SETNX", "text", 1], ["DEL", "nosuch"]):
            self.assertNotIsInstance(self.client.call(*command), Error, command)
        self.assertEqual(errors(), before)

    # Goal: matching takes time with the length of the pattern, so there is a longest one.
    def test_pattern_limit(self):
        too_long = Error("ERR pattern exceeds the maximum size (1024 bytes)")
        self.check("OK", "SET", b"k" * 1024, 1)
        self.check([b"k" * 1024], "KEYS", b"k" * 1024)
        self.check(too_long, "KEYS", b"k" * 1025)
        self.check([b"0", [b"k" * 1024]], "SCAN", 0, "MATCH", b"k" * 1023 + b"*")
        self.check(too_long, "SCAN", 0, "MATCH", b"k" * 1024 + b"*")

    def test_time(self):
        before, after = self.client.call("TIME"), self.client.call("TIME")
        self.assertEqual([len(before), len(after)], [2, 2])
        self.assertLess(int(before[1]), 1_000_000)


class StreamTest(ServerTest):
    # Goal: replies do not depend on how the bytes arrive.
    # Method: a conversation of all request forms in two pieces, cut at every byte; then byte by byte.
    def test_any_split(self):
        requests = (encode("SET", "a", "x\r\ny") + b"GET a\r\n" + encode("MGET", "a", "nosuch") +
                    b"\r\n*0\r\n" + encode("KRANGE", "-", "+", "WITHVALUES") + b'ECHO "b c"\n' +
                    encode("SET", "", ""))
        expected = ["OK", b"x\r\ny", [b"x\r\ny", None], [b"a", b"x\r\ny"], b"b c", "OK"]
        with self.server.connect() as client:
            for cut in range(1, len(requests)):
                client.send(requests[:cut])
                # Another connection's round trip, so that the first piece is read before the second.
                self.client.call("PING")
                client.send(requests[cut:])
                self.assertEqual([client.read() for _ in expected], expected, cut)
                self.assertEqual(client.call("DEL", "a", ""), 2)
            for byte in requests:
                client.send(bytes([byte]))
            self.assertEqual([client.read() for _ in expected], expected)

    def test_long_pipelines_keep_their_order(self):
        count = 2_000 if SANITIZED else 20_000
        self.assertEqual(self.client.pipeline(*(["INCR", "n"] for _ in range(count))),
                         list(range(1, count + 1)))

    # Goal: a range sees the connection's earlier writes and not its later ones, in one pipeline.
    def test_ranges_see_what_came_before_them(self):
        commands, expected = [], []
        for i in range(200):
            commands += [["SET", b"k%03d" % i, i], ["KCOUNT", "-", "+"], ["DBSIZE"], ["KLAST"],
                         ["MGET", b"k%03d" % i, b"k%03d" % (i + 1)]]
            expected += ["OK", i + 1, i + 1, b"k%03d" % i, [b"%d" % i, None]]
        self.assertEqual(self.client.pipeline(*commands), expected)

    def test_large_values_and_replies(self):
        value = random.randbytes(20 << 20)
        self.check("OK", "SET", "big", value)
        # Not assertEqual: it would print them.
        self.assertTrue(self.client.call("GET", "big") == value)
        self.assertTrue(self.client.call("MGET", "big", "big") == [value, value])
        self.check(len(value), "STRLEN", "big")

    def test_values_beyond_the_engine_limit_are_refused(self):
        reply = self.client.call("SET", "big", b"x" * (65 << 20))
        self.assertIsInstance(reply, Error)
        self.check(0, "EXISTS", "big")
        reply = self.client.call("SET", b"k" * ((64 << 10) + 1), "x")
        self.assertIsInstance(reply, Error)
        self.check(0, "DBSIZE")
        self.check("OK", "SET", b"k" * (64 << 10), "x")

    # Goal: connections that stop in the middle of a command disturb nobody and take nothing away.
    # Method: every prefix of a command, some connections closed, some left open.
    def test_half_sent_commands(self):
        request = encode("SET", "half", "value") + b"GET half"
        left = []
        for cut in range(1, len(request)):
            client = self.server.connect()
            client.send(request[:cut])
            if cut % 2 == 0:
                client.close()
            else:
                left.append((cut, client))
        self.assertEqual(self.client.call("PING"), "PONG")
        for cut, client in left:
            client.send(request[cut:] + b"\r\n")
            self.assertEqual([client.read(), client.read()], [Simple("OK"), b"value"])
            client.close()

    # Goal: no bytes bring the server down or disturb another connection.
    # Method: random bytes, and well-formed requests with random bytes changed, from a printed seed.
    def test_garbage(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for _ in range(300):
            data = bytearray(encode("SET", "a", "b") * 3 + encode("KRANGE", "-", "+", "LIMIT", 0, 1))
            if rng.random() < .3:
                data = bytearray(rng.randbytes(rng.randrange(1, 2000)))
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with self.server.connect() as client:
                try:
                    client.send(data)
                    client.send(encode("QUIT"))
                    for _ in range(rng.randrange(3)):
                        client.socket.settimeout(.05)  # a half-sent command has no reply
                        client.read()
                except (Closed, OSError, AssertionError) as end:
                    self.assertNotIsInstance(end, AssertionError, seed)
            self.assertEqual(self.client.call("PING"), "PONG", seed)

    def test_a_closed_peer_gets_its_replies_first(self):
        with self.server.connect() as client:
            client.send(encode("SET", "a", 1) + encode("GET", "a"))
            client.socket.shutdown(1)
            self.assertEqual([client.read(), client.read()], ["OK", b"1"])
            self.assertTrue(client.is_closed())


if __name__ == "__main__":
    unittest.main()
