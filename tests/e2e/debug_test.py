#!/usr/bin/env python3
"""DEBUG: what test suites of Redis ask for is done if it is allowed."""

import unittest

from resp import Error
from skep_process import SkepServer


class DebugTest(unittest.TestCase):
    def test_it_is_refused(self):
        with SkepServer() as server, server.connect() as client:
            for words in [("SLEEP", 0), ("NOSUCH",), ("HELP",)]:
                self.assertRegex(client.call("DEBUG", *words), "^ERR DEBUG command not allowed")
            self.assertIsInstance(client.call("CONFIG", "SET", "enable-debug-command", "yes"), Error)

    def test_subcommands(self):
        for who in ("local", "yes"):
            with SkepServer("--enable-debug-command", who) as server, server.connect() as client:
                self.check_subcommands(client)

    def check_subcommands(self, client):
        wrong = Error("ERR unknown subcommand or wrong number of arguments for 'nosuch'. Try DEBUG "
                      "HELP.")
        self.assertEqual(client.call("DEBUG", "nosuch"), wrong)
        self.assertEqual(client.call("DEBUG", "SLEEP", "0.001"), "OK")
        self.assertIsInstance(client.call("DEBUG", "SLEEP", "-1"), Error)
        self.assertIsInstance(client.call("DEBUG", "SLEEP", "nan"), Error)
        self.assertEqual(client.call("DEBUG", "ERROR", "OOPS x\r\ny"), Error("OOPS x  y"))
        self.assertEqual(client.call("DEBUG", "STRINGMATCH-LEN", 5, "a*a"), 1)
        self.assertEqual(client.call("DEBUG", "STRINGMATCH-LEN", 5, "b*"), 0)
        self.assertEqual(client.call("DEBUG", "POPULATE", 3, "k", 20), "OK")
        self.assertEqual(client.call("MGET", "k:0", "k:2"),
                         [b"value:0" + bytes(13), b"value:2" + bytes(13)])
        self.assertEqual(client.call("DBSIZE"), 3)
        client.call("ZADD", "z", 1, "a", 2, "b")
        client.call("COPY", "z", "y")
        digests = client.call("DEBUG", "DIGEST-VALUE", "z", "y", "k:0", "nosuch")
        self.assertEqual([len(d) for d in digests], [40] * 4)
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(len(set(digests)), 3)
        self.assertEqual(digests[3], "0" * 40)
        self.assertRegex(client.call("DEBUG", "OBJECT", "z"), "encoding:listpack")
        self.assertEqual(client.call("DEBUG", "OBJECT", "nosuch"), Error("ERR no such key"))
        self.assertEqual(client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0), "OK")
        for words in [("RELOAD",), ("LOADAOF",), ("PAUSE-CRON", 0)]:
            self.assertEqual(client.call("DEBUG", *words), "OK")
        self.assertEqual(client.call("DEBUG", "DIGEST-VALUE", "z")[0], digests[0])
        self.check_digest(client)
        client.call("HELLO", 3)
        for kind, reply in [("integer", 12345), ("true", True), ("map", {0: False, 1: True, 2: False}),
                            ("double", 3.141), ("null", None), ("string", b"Hello World")]:
            self.assertEqual(client.call("DEBUG", "PROTOCOL", kind), reply)
        client.call("MULTI")
        self.assertIsInstance(client.call("DEBUG", "SLEEP", 0), Error)
        client.call("DISCARD")
        client.call("HELLO", 2)

    # Goal: the digest of all keys is that of what they hold, however that came about, and every
    # difference changes it.
    # Method: each kind of value, small and in parts, is made in two ways and then changed.
    def check_digest(self, client):
        def digest():
            return client.call("DEBUG", "DIGEST")

        def made_by(*commands):
            client.call("FLUSHALL")
            client.pipeline(*commands)
            self.assertEqual(client.call("EXISTS", "k"), 1)
            return digest()

        client.call("FLUSHALL")
        self.assertEqual(digest(), "0" * 40)
        seen = {digest()}
        for count in (2, 2000):
            members = [f"member:{i:06}" for i in range(count)]
            pairs = [word for m in members for word in (m, m[::-1])]
            back = [word for m in reversed(members) for word in (m, m[::-1])]
            scores = [word for i, m in enumerate(members) for word in (i, m)]
            for one, other, change in [
                    (["SADD", "k", *members], ["SADD", "k", *members[::-1]], ["SADD", "k", "x"]),
                    (["HSET", "k", *pairs], ["HSET", "k", *back], ["HSET", "k", members[0], "x"]),
                    (["ZADD", "k", *scores], ["ZADD", "k", *scores], ["ZINCRBY", "k", 0.5, members[1]]),
                    (["RPUSH", "k", *members], ["LPUSH", "k", *members[::-1]], ["LSET", "k", 0, "x"]),
                    (["SET", "k", members[-1]], ["APPEND", "k", members[-1]], ["APPEND", "k", "x"]),
                    (["SET", "k", 1], ["INCR", "k"], ["EXPIRE", "k", 1000])]:
                with self.subTest(command=one[0], count=count):
                    first = made_by(one)
                    self.assertEqual(made_by(other), first)
                    self.assertEqual(client.call("DEBUG", "RELOAD"), "OK")
                    self.assertEqual(digest(), first)
                    changed = made_by(one, change)
                    self.assertNotEqual(changed, first)
                    if one[0] != "SET":
                        self.assertNotIn(first, seen)
                    seen |= {first, changed}
        # A key is what it is called, and in which database it is.
        client.call("FLUSHALL")
        client.call("MSET", *[word for i in range(1000) for word in (f"key:{i}", i)])
        many = digest()
        client.call("RENAME", "key:7", "key:x")
        self.assertNotEqual(digest(), many)
        client.call("RENAME", "key:x", "key:7")
        self.assertEqual(digest(), many)
        client.call("SELECT", 3)
        client.call("SET", "key:7", 7)
        self.assertNotEqual(digest(), many)
        client.call("SELECT", 0)
        client.call("DEL", "key:7")
        self.assertNotEqual(digest(), many)
        client.call("FLUSHALL")


if __name__ == "__main__":
    unittest.main()
