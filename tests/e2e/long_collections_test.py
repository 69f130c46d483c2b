#!/usr/bin/env python3
"""Goal: the reply of a command that reads many members of a large collection is made in portions: no turn
has the work of more than a few, other clients are served in between, all of it is of one version, and
it takes little memory.
Method: HGETALL, SMEMBERS, LRANGE, ZRANGE and their kin on collections of 120,000 members beside a plain
model; clients that do not read while others write; the work of turns as INFO counts it.
"""

import random
import unittest

from one_server import OneServerTest
from resp import Closed, encode

MEMBERS = 120_000
# INFO tells the class of the turn with the most work: a portion, the reply made of it, and what other
# clients' commands have.
TURN_BYTES_MAX = 2 << 20


def receive(connection, count):
    """The next bytes of a connection that has read whole replies only."""
    data = b""
    while len(data) < count:
        part = connection.socket.recv(count - len(data))
        if not part:
            raise Closed
        data += part
    return data


def member(i):
    return b"member:%06d" % i + b"x" * (i % 13)


class LongCollectionsTest(OneServerTest):
    def load(self, command, key, words_of, members=MEMBERS):
        for begin in range(0, members, 1000):
            words = [word for i in range(begin, begin + 1000) for word in words_of(i)]
            self.client.call(command, key, *words)

    def load_hash(self, key="h"):
        self.load("HSET", key, lambda i: (member(i), b"v%d" % i))
        return {member(i): b"v%d" % i for i in range(MEMBERS)}

    def ask(self, *commands):
        """A client that has sent commands in a pipeline."""
        asking = self.server.connect()
        self.addCleanup(asking.close)
        asking.send(b"".join(encode(*command) for command in commands))
        return asking

    def expect_bounded(self, *words, bytes_max=TURN_BYTES_MAX):
        """The reply; no turn on the way to it had much work."""
        self.client.call("CONFIG", "RESETSTAT")
        reply = self.client.call(*words)
        self.assertLessEqual(self.info("turn_bytes_max"), bytes_max, words[0])
        return reply

    def test_hashes(self):
        model = self.load_hash()
        flat = self.expect_bounded("HGETALL", "h")
        self.assertEqual(dict(zip(flat[::2], flat[1::2])), model)
        self.assertEqual(len(flat), 2 * len(model))
        keys = self.expect_bounded("HKEYS", "h")
        self.assertEqual(sorted(keys), sorted(model))
        self.assertEqual([model[key] for key in keys], self.expect_bounded("HVALS", "h"))
        self.client.call("HELLO", 3)
        self.assertEqual(self.client.call("HGETALL", "h"), model)

    def test_several_reads_of_one_collection(self):
        """In one pipeline, so that they come in one batch of a turn."""
        model = self.load_hash()
        self.load("RPUSH", "l", lambda i: (member(i),))
        self.client.call("CONFIG", "RESETSTAT")
        replies = self.client.pipeline(("HGETALL", "h"), ("HGETALL", "h"), ("LRANGE", "l", 0, -1),
                                       ("HVALS", "h"), ("LRANGE", "l", 0, -1))
        for flat in replies[:2]:
            self.assertEqual(dict(zip(flat[::2], flat[1::2])), model)
        self.assertEqual(replies[2], [member(i) for i in range(MEMBERS)])
        self.assertEqual(replies[4], replies[2])
        self.assertEqual(sorted(replies[3]), sorted(model.values()))
        self.assertLessEqual(self.info("turn_bytes_max"), TURN_BYTES_MAX)

    def test_elements_of_very_different_lengths(self):
        """A few long elements beside each other, which the mean length does not tell of."""
        for begin in range(0, MEMBERS, 1000):
            self.client.call("RPUSH", "l", *range(begin, begin + 1000))
            entries = [word for i in range(begin, begin + 1000) for word in (i, f"m{i:06}")]
            self.client.call("ZADD", "z", *entries)
            if begin == 60_000:
                for i in range(100):
                    self.client.call("RPUSH", "l", b"%03d" % i + b"x" * 50_000)
                    self.client.call("ZADD", "z", begin, b"%03d" % i + b"x" * 50_000)
        elements = self.expect_bounded("LRANGE", "l", 0, -1)
        self.assertEqual(len(elements), MEMBERS + 100)
        self.assertEqual(elements[61_000][:3], b"000")
        # A rank is looked for among the members that are counted together: here all long ones.
        entries = self.expect_bounded("ZRANGE", "z", 0, -1, bytes_max=4 * TURN_BYTES_MAX)
        self.assertEqual(len(entries), MEMBERS + 100)

    def test_fields_that_are_due_are_left_out(self):
        model = self.load_hash()
        due = [member(i) for i in range(0, MEMBERS, 1000)]
        self.client.call("HPEXPIRE", "h", 1, "FIELDS", len(due), *due)
        lasting = [member(i) for i in range(1, MEMBERS, 1000)]
        self.client.call("HEXPIRE", "h", 1000, "FIELDS", len(lasting), *lasting)
        for field in due:
            del model[field]
        self.until(lambda: self.client.call("HLEN", "h") == len(model))
        self.client.call("HELLO", 3)
        self.assertEqual(self.expect_bounded("HGETALL", "h"), model)

    def test_sets(self):
        self.load("SADD", "s", lambda i: (member(i),))
        members = self.expect_bounded("SMEMBERS", "s")
        self.assertEqual(members, sorted(member(i) for i in range(MEMBERS)))
        self.client.call("HELLO", 3)
        self.assertEqual(self.client.call("SMEMBERS", "s"), members)

    def test_lists(self):
        self.load("RPUSH", "l", lambda i: (member(i),))
        model = [member(i) for i in range(MEMBERS)]
        random.seed(35)
        ranges = [(0, -1), (-MEMBERS, MEMBERS), (-MEMBERS - 5, -2), (5, 4), (MEMBERS, -1), (1, 60_000)]
        ranges += [(random.randrange(MEMBERS), -random.randrange(1, MEMBERS)) for _ in range(4)]
        for first, last in ranges:
            from_, to = max(first + MEMBERS if first < 0 else first, 0), last + MEMBERS if last < 0 else last
            self.assertEqual(self.expect_bounded("LRANGE", "l", first, last), model[from_:to + 1])

    def test_lists_of_elements_of_many_sizes(self):
        random.seed(36)
        model = [random.randbytes(random.choice((1, 50, 3000, 100_000))) for _ in range(1500)]
        for begin in range(0, len(model), 50):
            self.client.call("RPUSH", "l", *model[begin:begin + 50])
        self.assertEqual(self.client.call("LRANGE", "l", 0, -1), model)
        self.client.call("SADD", "s", *model)
        self.assertEqual(self.client.call("SMEMBERS", "s"), sorted(set(model)))

    def test_sorted_sets(self):
        # Three members have each score.
        self.load("ZADD", "z", lambda i: (b"%d" % (i // 3), member(i)))
        model = [member(i) for i in range(MEMBERS)]
        call = self.expect_bounded
        self.assertEqual(call("ZRANGE", "z", 0, -1), model)
        self.assertEqual(call("ZRANGE", "z", 7, -70_000), model[7:50_001])
        self.assertEqual(call("ZREVRANGE", "z", 0, -1), model[::-1])
        self.assertEqual(call("ZRANGE", "z", 3, 90_000, "REV"), model[::-1][3:90_001])
        self.assertEqual(call("ZRANGEBYSCORE", "z", "-inf", "+inf"), model)
        self.assertEqual(call("ZRANGEBYSCORE", "z", "(10", "30000"), model[33:90_003])
        self.assertEqual(call("ZRANGEBYSCORE", "z", "10", "(30000", "LIMIT", 5, -1), model[35:90_000])
        self.assertEqual(call("ZRANGE", "z", 10, "inf", "BYSCORE", "LIMIT", 5, 60_000), model[35:60_035])
        self.assertEqual(call("ZREVRANGEBYSCORE", "z", "(30000", "10"), model[30:90_000][::-1])
        self.assertEqual(call("ZREVRANGEBYSCORE", "z", 30_000, "(10", "LIMIT", 2, 50_000),
                         model[33:90_003][::-1][2:50_002])
        self.assertEqual(call("ZRANGEBYSCORE", "z", "5", "+inf", "LIMIT", -1, 5), [])
        with_scores = call("ZRANGE", "z", 0, -1, "WITHSCORES")
        self.assertEqual(with_scores[::2], model)
        self.assertEqual(with_scores[1::2], [b"%d" % (i // 3) for i in range(MEMBERS)])
        self.client.call("HELLO", 3)
        pairs = self.client.call("ZRANGE", "z", 0, -1, "REV", "WITHSCORES")
        self.assertEqual(pairs, [[member(i), i // 3] for i in range(MEMBERS - 1, -1, -1)])

    def test_a_reply_is_of_one_version(self):
        """Whatever others do to the key while the client does not read."""
        changes = (
            ("HSET", "h", *[word for i in range(0, MEMBERS, 40) for word in (member(i), b"other")]),
            ("HDEL", "h", *[member(i) for i in range(0, MEMBERS, 7)]),
            ("RENAME", "h", "g"),
            ("SET", "h", "a string"),
            ("DEL", "h"),
            ("FLUSHALL",),
        )
        for change in changes:
            with self.subTest(change=change[:2]):
                self.client.call("DEL", "h", "g")
                model = self.load_hash()
                asking = self.ask(("HLEN", "h"), ("HGETALL", "h"))
                # The reply of HLEN, and the first byte of the long one.
                self.assertEqual(receive(asking, len(b":%d\r\n*" % MEMBERS)), b":%d\r\n*" % MEMBERS)
                self.client.call(*change)
                asking.send(encode("PING"))
                self.assertEqual(receive(asking, 8), b"%d\r\n" % (2 * MEMBERS))
                flat = [asking.read() for _ in range(2 * MEMBERS)]
                self.assertEqual(asking.read(), "PONG")
                self.assertEqual(dict(zip(flat[::2], flat[1::2])), model)

    def test_a_pipeline_is_answered_in_order(self):
        model = self.load_hash()
        asking = self.ask(("SET", "a", "1"), ("HSET", "h", "new", "field"), ("HGETALL", "h"), ("INCR", "a"),
                          ("DEL", "h"), ("HGETALL", "h"), ("HKEYS", "a"), ("CLIENT", "REPLY", "SKIP"),
                          ("HGETALL", "h"), ("GET", "a"))
        self.assertEqual(asking.read(), "OK")
        self.assertEqual(asking.read(), 1)
        flat = asking.read()
        self.assertEqual(dict(zip(flat[::2], flat[1::2])), {**model, b"new": b"field"})
        self.assertEqual(asking.read(), 2)
        self.assertEqual(asking.read(), 1)
        self.assertEqual(asking.read(), [])
        self.assertIn("WRONGTYPE", str(asking.read()))
        self.assertEqual(asking.read(), b"2")

    def test_replies_that_are_not_sent(self):
        self.load_hash()
        asking = self.ask(("CLIENT", "REPLY", "SKIP"), ("HGETALL", "h"), ("HLEN", "h"),
                          ("CLIENT", "REPLY", "OFF"), ("HGETALL", "h"), ("CLIENT", "REPLY", "ON"))
        self.assertEqual(asking.read(), MEMBERS)
        self.assertEqual(asking.read(), "OK")

    def test_clients_that_do_not_read_take_little(self):
        self.load_hash()
        before = self.info("used_memory")
        asking = [self.ask(("HGETALL", "h"), ("HGETALL", "h")) for _ in range(16)]
        for one in asking:
            self.assertEqual(receive(one, 1), b"*")
        # Each takes a portion, what it may leave unread, as much that was sent, and as much again, as
        # buffers grow: less than its two replies, which have 10 MiB.
        self.assertLess(self.info("used_memory") - before, 16 * (6 << 20))
        self.client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.until(lambda: self.info("connected_clients") == 1)
        self.until(lambda: self.info("used_memory") < before + (1 << 20))
        for one in asking:
            with self.assertRaises((Closed, OSError)):
                receive(one, 64 << 20)

    # Goal: of a reply that is made at once, what was sent takes no memory any more.
    def test_what_was_sent_is_freed(self):
        elements = [random.randbytes(60_000) for _ in range(400)]
        for begin in range(0, len(elements), 50):
            self.client.call("RPUSH", "l", *elements[begin:begin + 50])
        whole = b"".join(encode(*elements).split(b"\r\n", 1)[1:])
        asking = self.ask(("MULTI",), ("LRANGE", "l", 0, -1), ("EXEC",))
        head = b"+OK\r\n+QUEUED\r\n*1\r\n*400\r\n"
        self.assertEqual(receive(asking, len(head)), head)
        self.until(lambda: self.info("mem_clients_normal") > len(whole) // 2)
        at_first, used_at_first = self.info("mem_clients_normal"), self.info("used_memory")
        took = 0
        for _ in range(4):
            self.assertTrue(receive(asking, 4 << 20) == whole[took:took + (4 << 20)])
            took += 4 << 20
            # The system's buffers for the connection have some of what the server has sent.
            self.until(lambda: self.info("mem_clients_normal") < at_first - took + (5 << 20))
            self.assertLess(self.info("used_memory"), used_at_first - took + (5 << 20))
        self.assertTrue(receive(asking, len(whole) - took) == whole[took:])
        self.until(lambda: self.info("mem_clients_normal") < 1 << 20)


if __name__ == "__main__":
    unittest.main()
