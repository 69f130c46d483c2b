#!/usr/bin/env python3
"""The ordered keyspace as clients see it: ranges, counts, neighbours, scans."""

import random
import re
import unittest

from resp import NOT_A_BOUND, RANGE_SYNTAX, Error
from skep_process import ServerTest, SkepServer

NOT_AN_INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"


class Model:
    """The sequential oracle: a dict, sorted at every question."""

    def __init__(self):
        self.items = {}

    def range(self, low, high):
        return [(key, self.items[key]) for key in sorted(self.items)
                if above(low, key) and below(high, key)]


def above(low, key):
    return {b"-": True, b"+": False}.get(
        low, key >= low[1:] if low[:1] == b"[" else key > low[1:])


def below(high, key):
    return {b"-": False, b"+": True}.get(
        high, key <= high[1:] if high[:1] == b"[" else key < high[1:])


def random_key(rng):
    return bytes(rng.choice(b"\x00ab\xff") for _ in range(rng.randrange(4)))


def random_bound(rng):
    return rng.choice([b"-", b"+", b"[" + random_key(rng), b"[" + random_key(rng),
                       b"(" + random_key(rng), b"(" + random_key(rng)])


class RangeTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.check("OK", "MSET", "a", 1, "b", 2, "c", 3, "d", 4)

    def test_krange(self):
        self.check([b"a", b"b", b"c", b"d"], "KRANGE", "-", "+")
        self.check([b"b", b"c"], "KRANGE", "[b", "[c")
        self.check([b"c"], "KRANGE", "(b", "[c")
        self.check([b"b"], "KRANGE", "[b", "(c")
        self.check([], "KRANGE", "(b", "(c")
        self.check([], "KRANGE", "[c", "[b")
        self.check([], "KRANGE", "+", "-")
        self.check([], "KRANGE", "+", "+")
        self.check([], "KRANGE", "-", "-")
        self.check([b"a", b"b", b"c", b"d"], "krange", "[", "+")
        self.check([b"d", b"c", b"b", b"a"], "KRANGE", "-", "+", "REV")
        self.check([b"a", b"1", b"b", b"2"], "KRANGE", "-", "[b", "WITHVALUES")
        self.check([b"b", b"2", b"a", b"1"], "KRANGE", "-", "[b", "withvalues", "rev")

    def test_krange_limit(self):
        self.check([b"b", b"c"], "KRANGE", "-", "+", "LIMIT", 1, 2)
        self.check([b"c", b"b"], "KRANGE", "-", "+", "REV", "LIMIT", 1, 2)
        self.check([b"c", b"d"], "KRANGE", "-", "+", "LIMIT", 2, -1)
        self.check([], "KRANGE", "-", "+", "LIMIT", 9, 2)
        self.check([], "KRANGE", "-", "+", "LIMIT", 0, 0)
        self.check([], "KRANGE", "-", "+", "LIMIT", -1, 2)
        self.check([b"d"], "KRANGE", "-", "+", "LIMIT", 3, 1 << 62)
        self.check([b"b", b"2"], "KRANGE", "-", "+", "WITHVALUES", "LIMIT", 1, 1)

    def test_prefix(self):
        self.check("OK", "MSET", "user:1", "Ada", "user:2", "Bob", "user", "x", "usez", "y",
                   b"\xff", "f", b"\xff\xff", "ff")
        self.check([b"user:1", b"user:2"], "KRANGE", "PREFIX", "user:")
        self.check([b"user:2", b"user:1"], "KRANGE", "prefix", "user:", "REV")
        self.check([b"user:2"], "KRANGE", "PREFIX", "user:", "LIMIT", 1, 1)
        self.check([b"\xff", b"\xff\xff"], "KRANGE", "PREFIX", b"\xff")
        self.check(2, "KCOUNT", "PREFIX", "user:")
        self.check(10, "KCOUNT", "PREFIX", "")
        self.check(2, "KDELRANGE", "PREFIX", "user:")
        self.check(8, "DBSIZE")

    def test_kcount_and_kdelrange(self):
        self.check(4, "KCOUNT", "-", "+")
        self.check(2, "KCOUNT", "(a", "(d")
        self.check(0, "KCOUNT", "[d", "[a")
        self.check(1, "KDELRANGE", "(a", "(d", "LIMIT", 1)
        self.check([b"a", b"c", b"d"], "KRANGE", "-", "+")
        self.check(0, "KDELRANGE", "[d", "[a")
        self.check(0, "KDELRANGE", "-", "+", "LIMIT", 0)
        self.check(3, "KDELRANGE", "-", "+")
        self.check(0, "DBSIZE")

    def test_neighbours(self):
        self.check(b"b", "KFLOOR", "b")
        self.check(b"b", "KFLOOR", "bb")
        self.check(b"d", "KFLOOR", b"\xff")
        self.check(None, "KFLOOR", "")
        self.check(b"b", "KCEIL", "b")
        self.check(b"c", "KCEIL", "bb")
        self.check(b"a", "KCEIL", "")
        self.check(None, "KCEIL", "e")
        self.check(b"a", "KFIRST")
        self.check(b"d", "KLAST")
        self.check([b"b", b"2"], "KFLOOR", "b", "WITHVALUE")
        # Either word is taken wherever one of them is.
        self.check([b"b", b"2"], "KFLOOR", "b", "WITHVALUES")
        self.check([b"b", b"2"], "KRANGE", "[b", "[b", "WITHVALUE")
        self.check([b"c", b"3"], "KCEIL", "bb", "withvalue")
        self.check([b"a", b"1"], "KFIRST", "WITHVALUE")
        self.check([b"d", b"4"], "KLAST", "WITHVALUE")
        self.check(None, "KFLOOR", "A", "WITHVALUE")
        self.check(4, "KDELRANGE", "-", "+")
        self.check(None, "KFIRST")
        self.check(None, "KLAST", "WITHVALUE")

    def test_the_keyspace_is_the_selected_one(self):
        self.check("OK", "SELECT", 1)
        self.check([], "KRANGE", "-", "+")
        self.check("OK", "SET", "z", 1)
        self.check(b"z", "KFIRST")
        self.check(1, "KDELRANGE", "-", "+")
        self.check("OK", "SELECT", 0)
        self.check(4, "KCOUNT", "-", "+")

    def test_resp3_shapes(self):
        self.client.call("HELLO", 3)
        self.check([b"a", b"b"], "KRANGE", "-", "[b")
        self.check([[b"a", b"1"], [b"b", b"2"]], "KRANGE", "-", "[b", "WITHVALUES")
        self.check([b"a", b"1"], "KFIRST", "WITHVALUE")
        self.check([b"0", [[b"a", b"1"], [b"b", b"2"]]], "KSCAN", "-", "[b", "WITHVALUES")
        for command in (["GET", "x"], ["KFLOOR", ""], ["KCEIL", "x", "WITHVALUE"]):
            self.client.send(b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) if i else
                                      b"*%d\r\n$%d\r\n%s\r\n" % (len(command), len(w), w.encode())
                                      for i, w in enumerate(command)))
            self.assertEqual(self.client.read_reply()[1], b"_\r\n", command)

    def test_errors(self):
        arity = "ERR wrong number of arguments for '%s' command"
        taken = {"krange": "min max | PREFIX prefix [REV] [LIMIT offset count] [TYPE type] [WITHVALUES]",
                 "kcount": "min max | PREFIX prefix",
                 "kdelrange": "min max | PREFIX prefix [LIMIT count]",
                 "kscan": "min max | PREFIX prefix | NEXT token [REV] [COUNT count] [WITHVALUES] "
                          "[WITHDEADLINES]"}
        for command, words in {
                "krange": [[], ["-"]], "kcount": [[], ["-"], ["-", "+", "x"]],
                "kdelrange": [[], ["-"]], "kfloor": [[]], "kceil": [[]], "kscan": [[], ["-"]]}.items():
            for arguments in words:
                text = arity % command
                if command in taken:
                    text += f": it takes {taken[command]}; {RANGE_SYNTAX}"
                self.check(Error(text), command.upper(), *arguments)
        for command in ("KRANGE", "KCOUNT", "KDELRANGE", "KSCAN"):
            for low, high in (("a", "+"), ("-", "b"), ("", ""), ("--", "+"), ("-", "]b")):
                self.check(Error(NOT_A_BOUND), command, low, high)
        for options in (["NOSUCH"], ["LIMIT"], ["LIMIT", 1], ["WITHDEADLINES"], ["REV", "x"],
                        ["LIMIT", 0, 1, 2], ["COUNT", 1]):
            self.check(Error(SYNTAX), "KRANGE", "-", "+", *options)
        for options in (["LIMIT", "a", 1], ["LIMIT", 0, "b"], ["LIMIT", 0, "1.5"], ["LIMIT", "", 1]):
            self.check(Error(NOT_AN_INTEGER), "KRANGE", "-", "+", *options)
        self.check(Error(NOT_AN_INTEGER), "KDELRANGE", "-", "+", "LIMIT", "x")
        for options in (["LIMIT"], ["REV"], ["WITHVALUES"], ["LIMIT", 1, 2]):
            self.check(Error(SYNTAX), "KDELRANGE", "-", "+", *options)
        self.check(Error(SYNTAX), "KFLOOR", "a", "WITHVALUES", "WITHVALUES")
        self.check(Error(SYNTAX), "KFIRST", "x")
        self.check(Error(SYNTAX), "KSCAN", "-", "+", "COUNT")
        self.check(Error(SYNTAX), "KSCAN", "-", "+", "COUNT", 0)
        self.check(Error(NOT_AN_INTEGER), "KSCAN", "-", "+", "COUNT", "x")
        self.check(4, "DBSIZE")

    # Goal: commands agree with a sorted dict for all bounds, options and keys.
    # Method: random writes and questions from a printed seed, sent in pipelines so that ranges and
    # writes of one connection meet in one batch; keys of few bytes, the lowest and highest included.
    def test_agrees_with_a_sorted_dict(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        self.check(4, "KDELRANGE", "-", "+")
        model = Model()
        for _ in range(150):
            steps = [random_step(rng, model) for _ in range(rng.randrange(1, 30))]
            replies = self.client.pipeline(*(command for command, _ in steps))
            for (command, expected), reply in zip(steps, replies):
                self.assertEqual(reply, expected, (seed, command))


def flat(pairs, with_values):
    return [part for pair in pairs for part in (pair if with_values else pair[:1])]


def random_step(rng, model):
    """A command and what it answers; the model has taken the step."""
    low, high = random_bound(rng), random_bound(rng)
    key = random_key(rng)
    step = rng.randrange(9)
    if step <= 2:
        model.items[key] = b"%d" % rng.randrange(1000)
        return ["SET", key, model.items[key]], "OK"
    if step == 3:
        return ["DEL", key], 0 if model.items.pop(key, None) is None else 1
    if step == 4:
        return ["KCOUNT", low, high], len(model.range(low, high))
    if step == 5:
        limit = rng.randrange(4)
        doomed = model.range(low, high)[:limit]
        for doomed_key, _ in doomed:
            del model.items[doomed_key]
        return ["KDELRANGE", low, high, "LIMIT", limit], len(doomed)
    if step == 6:
        floor = rng.random() < .5
        near = model.range(b"-", b"[" + key)[-1:] if floor else model.range(b"[" + key, b"+")[:1]
        return ["KFLOOR" if floor else "KCEIL", key], near[0][0] if near else None
    reverse, with_values = rng.random() < .5, rng.random() < .5
    pairs = model.range(low, high)[::-1 if reverse else 1]
    options = (["REV"] if reverse else []) + (["WITHVALUES"] if with_values else [])
    if rng.random() < .5:
        offset, count = rng.randrange(5), rng.randrange(-1, 6)
        options += ["LIMIT", offset, count]
        pairs = pairs[offset:] if count < 0 else pairs[offset:offset + count]
    return ["KRANGE", low, high, *options], flat(pairs, with_values)


class ScanTest(ServerTest):
    OPTIONS = ("--databases", 4)

    def fill(self, count, value="v"):
        keys = [b"key:%06d" % i for i in range(count)]
        self.client.pipeline(*(["SET", key, value] for key in keys))
        return keys

    def scan(self, *options):
        """All chunks of a SCAN."""
        cursor, chunks = b"0", []
        while True:
            cursor, chunk = self.client.call("SCAN", cursor, *options)
            chunks.append(chunk)
            if cursor == b"0":
                return chunks

    def kscan(self, *args, between=lambda: None):
        """All chunks of a KSCAN; calls `between` between them."""
        token, chunk = self.client.call("KSCAN", *args)
        chunks = [chunk]
        while token != b"0":
            between()
            token, chunk = self.client.call("KSCAN", "NEXT", token)
            chunks.append(chunk)
        return chunks

    # Goal: a scan's deadlines are those of its version, whatever is done meanwhile.
    def test_kscan_with_deadlines(self):
        at = 4_102_444_800_000
        for i in range(100):
            command = ["SET", f"k{i:02}", i] + (["PXAT", at + i] if i % 3 == 0 else [])
            self.check("OK", *command)
        expected = [(b"k%02d" % i, b"%d" % i, at + i if i % 3 == 0 else -1) for i in range(100)]

        def between():
            self.client.call("KEXPIRE", "-", "+", 10_000_000)
            self.client.call("SET", "k99", "x")
            self.client.call("DEL", "k98")

        scan = ("-", "+", "COUNT", 7, "WITHDEADLINES")
        flat = sum(self.kscan(*scan, "WITHVALUES", between=between), [])
        self.assertEqual(list(zip(flat[0::3], flat[1::3], flat[2::3])), expected)
        self.client.call("FLUSHDB")
        self.check("OK", "SET", "a", 1)
        self.check("OK", "SET", "b", 2, "PXAT", at)
        self.check([b"0", [b"b", at, b"a", -1]], "KSCAN", "-", "+", "REV", "WITHDEADLINES")
        self.client.call("HELLO", 3)
        self.check([b"0", [[b"a", -1], [b"b", at]]], "KSCAN", "-", "+", "WITHDEADLINES")
        self.check([b"0", [[b"b", b"2", at]]], "KSCAN", "[b", "+", "WITHVALUES", "WITHDEADLINES")

    def test_scan_is_ordered_and_complete(self):
        keys = self.fill(1000)
        self.assertEqual(sum(self.scan(), []), keys)
        self.assertEqual(sum(self.scan("COUNT", 7), []), keys)
        self.assertEqual(sum(self.scan("MATCH", "key:0001*", "COUNT", 7), []), keys[100:200])
        self.assertEqual(sum(self.scan("MATCH", "*5", "COUNT", 50), []), keys[5::10])
        self.assertEqual(self.scan("MATCH", "nosuch*"), [[]])

    # Goal: what lives through the whole scan comes exactly once, in order, whatever else changes.
    # Method: between chunks keys behind and before the cursor come and go.
    def test_scan_while_keys_change(self):
        keys = self.fill(500)
        cursor, seen, step = b"0", [], 0
        while step == 0 or cursor != b"0":
            cursor, chunk = self.client.call("SCAN", cursor, "COUNT", 13)
            seen += chunk
            step += 1
            self.client.pipeline(["SET", b"key:%06d:new" % (step * 7), 1], ["SET", b"a%d" % step, 1],
                                 ["DEL", b"a%d" % (step - 1)], ["SET", b"z%d" % step, 1])
        self.assertEqual(seen, sorted(set(seen)))
        self.assertEqual([key for key in seen if key in set(keys)], keys)

    def test_a_lost_scan_reply_can_be_asked_for_again(self):
        keys = self.fill(100)
        cursor, seen = self.client.call("SCAN", 0, "COUNT", 10)
        while cursor != b"0":
            first = self.client.call("SCAN", cursor, "COUNT", 10)
            if first[0] == b"0":
                seen += first[1]
                break
            again = self.client.call("SCAN", cursor, "COUNT", 10)
            self.assertEqual(first[1], again[1])
            cursor = again[0]
            seen += again[1]
        self.assertEqual(seen, keys)

    def test_kscan_reads_one_version(self):
        keys = self.fill(300, "old")
        def change():
            self.client.call("KDELRANGE", "-", "+", "LIMIT", 20)
            self.client.call("MSET", "key:000150", "new", "key:zzz", "new")
        chunks = self.kscan("-", "+", "COUNT", 10, "WITHVALUES", between=change)
        self.assertEqual(sum(chunks, []), [part for key in keys for part in (key, b"old")])
        self.assertTrue(all(len(chunk) <= 20 for chunk in chunks))

    def test_kscan_options(self):
        keys = self.fill(100)
        self.assertEqual(sum(self.kscan("[key:000010", "(key:000090", "COUNT", 7), []), keys[10:90])
        self.assertEqual(sum(self.kscan("PREFIX", "key:00001", "COUNT", 3), []), keys[10:20])
        self.assertEqual(sum(self.kscan("-", "+", "REV", "COUNT", 9), []), keys[::-1])
        self.assertEqual(self.kscan("[b", "[a"), [[]])
        self.assertEqual(len(self.kscan("-", "+", "COUNT", 1000)), 1)

    def test_kscan_may_ask_again(self):
        keys = self.fill(50)
        token, chunk = self.client.call("KSCAN", "-", "+", "COUNT", 20)
        _, lost = self.client.call("KSCAN", "NEXT", token)
        token, again = self.client.call("KSCAN", "NEXT", token)
        self.assertEqual((chunk + again, lost), (keys[:40], keys[20:40]))
        self.assertEqual(self.client.call("KSCAN", "NEXT", token)[1], keys[40:])

    def test_wrong_cursors_and_tokens_are_named(self):
        self.fill(50)
        for command in (["SCAN", 123456789], ["SCAN", "x"], ["KSCAN", "NEXT", 123456789],
                        ["KSCAN", "NEXT", "x"], ["KSCAN", "NEXT", 0], ["KSCAN", "NEXT", -1]):
            reply = self.client.call(*command)
            self.assertIsInstance(reply, Error, command)
            self.assertRegex(reply, r"^ERR invalid (cursor|token)", command)
        token, _ = self.client.call("KSCAN", "-", "+", "COUNT", 10)
        cursor, _ = self.client.call("SCAN", 0)
        self.check("OK", "SELECT", 1)
        self.assertRegex(self.client.call("KSCAN", "NEXT", token), "^ERR invalid token")
        self.assertRegex(self.client.call("SCAN", cursor), "^ERR invalid cursor")

    def test_cursors_and_tokens_expire(self):
        self.fill(50)
        token, _ = self.client.call("KSCAN", "-", "+", "COUNT", 10)
        cursor, _ = self.client.call("SCAN", 0)
        self.check("OK", "CONFIG", "SET", "cursor-ttl-ms", 1)
        self.addCleanup(self.client.call, "CONFIG", "SET", "cursor-ttl-ms", 600000)
        for command in (["KSCAN", "NEXT", token], ["SCAN", cursor]):
            reply = self.client.call(*command)
            while not isinstance(reply, Error):  # each use gives it another millisecond
                reply = self.client.call(*command)
            self.assertRegex(reply, "expired")

    # Goal: scans of others end nobody's scan, however many they begin, on one connection or on many,
    # and what they keep pinned is bounded.
    # Method: a SCAN and a KSCAN under way, while others begin more than the server keeps of either;
    # a write between them, so that each KSCAN reads a version of its own.
    def test_scans_for_ever_end_only_their_own(self):
        keys = self.fill(100)
        cursor, first = self.client.call("SCAN", 0, "COUNT", 10)
        token, chunk = self.client.call("KSCAN", "-", "+", "COUNT", 10)
        self.assertEqual((first, chunk), (keys[:10], keys[:10]))
        with self.server.connect() as greedy:
            for _ in range(80):
                replies = greedy.pipeline(*[["SCAN", 0, "COUNT", 1]] * 1000)
                self.assertFalse(any(isinstance(reply, Error) for reply in replies))
            begun = []
            for i in range(5000):
                begun += greedy.pipeline(["SET", "key:000000", i],
                                         ["KSCAN", "-", "+", "COUNT", 1])[1:]
            pins = int(re.search(rb"keyspace0:.*snapshots=(\d+)",
                                 self.client.call("INFO", "keyspace")).group(1))
            self.assertLessEqual(pins, 1 + 64)
            oldest, newest = begun[0][0], begun[-1][0]
            self.assertRegex(greedy.call("KSCAN", "NEXT", oldest), "^SNAPSHOTTOOOLD")
            self.assertEqual(greedy.call("KSCAN", "NEXT", newest)[1], [keys[1]])
        for _ in range(200):
            with self.server.connect() as other:
                other.pipeline(*[["KSCAN", "-", "+", "COUNT", 1]] * 64, *[["SCAN", 0, "COUNT", 1]] * 400)
        self.assertEqual(self.client.call("KSCAN", "NEXT", token)[1], keys[10:20])
        self.assertEqual(self.client.call("SCAN", cursor, "COUNT", 10)[1], keys[10:20])

    # Goal: a token is a word of bounded length that says where the scan goes on; any change to it is
    # found, and one of another server is not taken.
    def test_tokens_are_signed_and_bounded(self):
        long = b"k" * 65536
        self.check("OK", "MSET", b"a", 1, long[:-1], 2, long, 3)
        token, _ = self.client.call("KSCAN", "-", b"[" + b"z" * 1_000_000, "COUNT", 2)
        self.assertRegex(token, rb"^K[A-Za-z0-9_-]+$")
        self.assertLess(len(token), 180_000)
        self.assertEqual(self.client.call("KSCAN", "NEXT", token), [b"0", [long]])
        token, _ = self.client.call("KSCAN", "-", "+", "COUNT", 1)
        self.assertLess(len(token), 80)
        for wrong in (token[:-1], token + b"A", token[:20] + b"_" + token[21:], b"K", b"", b"0",
                      b"K" * 1_000_000):
            if wrong != token:
                self.assertRegex(self.client.call("KSCAN", "NEXT", wrong), "^ERR invalid token")
        with SkepServer() as other, other.connect() as client:
            self.assertRegex(client.call("KSCAN", "NEXT", token), "^ERR invalid token")
        with self.server.connect() as another:
            self.assertEqual(another.call("KSCAN", "NEXT", token)[1], [long[:-1]])


class SnapshotAgeTest(unittest.TestCase):
    # Goal: a KSCAN older than the snapshot age limit ends with a clear error, not a torn result.
    def test_an_old_kscan_ends_with_an_error(self):
        with SkepServer("--snapshot-age-ms", 50) as server, server.connect() as client:
            client.pipeline(*(["SET", b"k%03d" % i, 1] for i in range(100)))
            token, _ = client.call("KSCAN", "-", "+", "COUNT", 1)
            reply = client.call("KSCAN", "NEXT", token)
            while not isinstance(reply, Error):
                self.assertEqual(reply[1], [b"k001"])
                reply = client.call("KSCAN", "NEXT", token)
            self.assertRegex(reply, "(?i)snapshot")


if __name__ == "__main__":
    unittest.main()
