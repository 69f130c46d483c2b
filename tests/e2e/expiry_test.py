#!/usr/bin/env python3
"""Deadlines of keys as clients see them: every option, every error text, every boundary.

Keys that are to be there have a deadline far away; keys that are to go are polled until they have
gone. Nothing is timed."""

import time
import unittest

from resp import NOT_A_BOUND, RANGE_SYNTAX, Error
from skep_process import PATIENCE_S, ServerTest

SYNTAX = Error("ERR syntax error")
NOT_AN_INTEGER = Error("ERR value is not an integer or out of range")
NOT_COMPATIBLE = Error("ERR NX and XX, GT or LT options at the same time are not compatible")
GT_AND_LT = Error("ERR GT and LT options at the same time are not compatible")

# In 2100: later than any run of this test, and in whole seconds.
FAR_S = 4102444800
FAR_MS = FAR_S * 1000
# The last deadline there is (documented difference: Redis goes on to 2^63).
DEADLINE_MAX_MS = (1 << 56) - 1


def invalid(command):
    return Error(f"ERR invalid expire time in '{command}' command")


class ExpiryTest(ServerTest):
    def deadline(self, expected, key):
        """The deadline of a key in milliseconds; None: it has none."""
        self.check(-1 if expected is None else expected, "PEXPIRETIME", key)

    def near(self, left_ms, key):
        """Expects a key to have at most so long to live, and to have been given it in the last minutes."""
        left = self.client.call("PTTL", key)
        self.assertLessEqual(left, left_ms)
        self.assertGreater(left, left_ms - 1000 * PATIENCE_S)

    def until_gone(self, key):
        end = time.monotonic() + PATIENCE_S
        while self.client.call("GET", key) is not None:
            self.assertLess(time.monotonic(), end, f"{key} is still there")


class SetTest(ExpiryTest):
    def test_set_options(self):
        self.check("OK", "SET", "k", 1, "EX", 10000)
        self.near(10_000_000, "k")
        self.check("OK", "SET", "k", 1, "px", 500_000)
        self.near(500_000, "k")
        self.check("OK", "SET", "k", 1, "EXAT", FAR_S)
        self.deadline(FAR_MS, "k")
        self.check("OK", "SET", "k", 1, "pxat", FAR_MS + 1)
        self.deadline(FAR_MS + 1, "k")
        self.check("OK", "SET", "k", 2, "KeepTTL")
        self.deadline(FAR_MS + 1, "k")
        self.check("OK", "SET", "k", 3)
        self.deadline(None, "k")
        self.check("OK", "SET", "k", 3, "KEEPTTL")
        self.deadline(None, "k")
        self.check("OK", "SET", "new", 3, "KEEPTTL")
        self.deadline(None, "new")

    def test_with_conditions_and_get(self):
        self.check("OK", "SET", "k", 1, "NX", "PXAT", FAR_MS)
        self.check(None, "SET", "k", 2, "PXAT", FAR_MS + 5, "NX")
        self.deadline(FAR_MS, "k")
        self.check(b"1", "SET", "k", 2, "GET", "PXAT", FAR_MS + 5)
        self.deadline(FAR_MS + 5, "k")
        self.check("OK", "SET", "k", 3, "XX", "KEEPTTL")
        self.deadline(FAR_MS + 5, "k")
        self.check(b"3", "SET", "k", 4, "NX", "GET", "EX", 1)
        self.deadline(FAR_MS + 5, "k")
        self.check(None, "SET", "absent", 1, "XX", "EX", 10)
        self.check(0, "EXISTS", "absent")

    def test_what_keeps_a_deadline(self):
        for keeps, command in ((True, ["INCR", "k"]), (True, ["DECRBY", "k", 2]),
                               (True, ["APPEND", "k", "1"]), (True, ["GETEX", "k"]),
                               (False, ["SET", "k", 1]), (False, ["GETSET", "k", 1]),
                               (False, ["MSET", "k", 1]), (False, ["SET", "k", 1, "GET"])):
            self.check("OK", "SET", "k", 7, "PXAT", FAR_MS)
            self.client.call(*command)
            self.deadline(FAR_MS if keeps else None, "k")
        self.check("OK", "SET", "k", 7, "PXAT", FAR_MS)
        self.check("OK", "RENAME", "k", "l")
        self.deadline(FAR_MS, "l")

    def test_deleting_forgets_the_deadline(self):
        self.check("OK", "SET", "k", 7, "PXAT", FAR_MS)
        self.check(1, "DEL", "k")
        self.check(-2, "PTTL", "k")
        self.check(1, "SETNX", "k", 1)
        self.deadline(None, "k")

    def test_a_deadline_that_has_passed_deletes(self):
        for option, at in (("EXAT", 1), ("PXAT", 1), ("PXAT", 1_000_000_000_000)):
            self.check("OK", "SET", "k", 1)
            self.check("OK", "SET", "k", 2, option, at)
            self.check(None, "GET", "k")
            self.check(0, "DBSIZE")

    def test_errors(self):
        for options in (["EX"], ["PX"], ["EXAT"], ["PXAT"], ["EX", 1, "PX", 1], ["PX", 1, "EX", 1],
                        ["EX", 1, "KEEPTTL"], ["KEEPTTL", "EX", 1], ["EXAT", 1, "EX", 1],
                        ["PERSIST"], ["NX", "XX"], ["XX", "NX"], ["EX", "x", "FOO"], ["FOO"],
                        ["EX", 1, "PXAT", 1], ["KEEPTTL", "PXAT", 1]):
            self.check(SYNTAX, "SET", "k", 1, *options)
        for number in ("", "x", "1.5", " 1", "01", 1 << 63):
            self.check(NOT_AN_INTEGER, "SET", "k", 1, "EX", number)
        for option in ("EX", "PX", "EXAT", "PXAT"):
            for number in (0, -1, -(1 << 63)):
                self.check(invalid("set"), "SET", "k", 1, option, number)
        for option, number in (("EX", (1 << 63) - 1), ("PX", (1 << 63) - 1),
                               ("EXAT", (1 << 63) // 1000), ("PXAT", DEADLINE_MAX_MS + 1),
                               ("EXAT", DEADLINE_MAX_MS // 1000 + 1), ("PX", DEADLINE_MAX_MS)):
            self.check(invalid("set"), "SET", "k", 1, option, number)
        self.check(0, "EXISTS", "k")
        self.check("OK", "SET", "k", 1, "PXAT", DEADLINE_MAX_MS)
        self.deadline(DEADLINE_MAX_MS, "k")
        self.check("OK", "SET", "k", 1, "EX", 1, "EX", 10000)
        self.near(10_000_000, "k")

    def test_setex_and_psetex(self):
        self.check("OK", "SETEX", "k", 1000, "v")
        self.near(1_000_000, "k")
        self.check("OK", "PSETEX", "k", 1000_000, "w")
        self.near(1_000_000, "k")
        self.check(b"w", "GET", "k")
        for command in ("setex", "psetex"):
            self.check(NOT_AN_INTEGER, command, "k", "x", "v")
            for number in (0, -1, (1 << 63) - 1, -(1 << 63)):
                self.check(invalid(command), command, "k", number, "v")
            self.check(Error(f"ERR wrong number of arguments for '{command}' command"), command,
                       "k", 1)
        self.check(b"w", "GET", "k")


class ExpireTest(ExpiryTest):
    COMMANDS = {"EXPIRE": (1000, True), "PEXPIRE": (1, True), "EXPIREAT": (1000, False),
                "PEXPIREAT": (1, False)}

    def test_each_sets_the_deadline(self):
        self.check("OK", "SET", "k", "v")
        for command, (unit, from_now) in self.COMMANDS.items():
            self.check(0, command, "absent", 100)
            self.check(1, command, "k", (FAR_MS if not from_now else 1_000_000) // unit)
            if from_now:
                self.near(1_000_000, "k")
            else:
                self.deadline(FAR_MS, "k")
            self.check(b"v", "GET", "k")
            self.check(1, "PERSIST", "k")

    def test_a_time_that_has_passed_deletes(self):
        for command in self.COMMANDS:
            for time_ in (0, -1, -9223372036854775):
                self.check("OK", "SET", "k", "v")
                self.check(1, command, "k", time_)
                self.check(0, "EXISTS", "k")
                self.check(0, command, "k", time_)
        for command in ("PEXPIRE", "PEXPIREAT"):
            self.check("OK", "SET", "k", "v")
            self.check(1, command, "k", -(1 << 63))
            self.check(0, "DBSIZE")

    def test_options(self):
        """The whole matrix: the deadline before, the new one, the options; whether it is set."""
        far, later = FAR_MS, FAR_MS + 1000
        rows = [
            # before, new, option, set
            (None, far, "NX", 1), (far, later, "NX", 0),
            (None, far, "XX", 0), (far, later, "XX", 1), (later, far, "XX", 1),
            (None, far, "GT", 0), (far, later, "GT", 1), (later, far, "GT", 0), (far, far, "GT", 0),
            (None, far, "LT", 1), (far, later, "LT", 0), (later, far, "LT", 1), (far, far, "LT", 0),
            (None, far, "XX GT", 0), (far, later, "XX GT", 1), (later, far, "XX GT", 0),
            (None, far, "LT XX", 0), (far, later, "XX LT", 0), (later, far, "XX LT", 1),
        ]
        for command in ("PEXPIREAT", "EXPIREAT"):
            unit = self.COMMANDS[command][0]
            for before, new, options, done in rows:
                self.check("OK", "SET", "k", "v", *(["PXAT", before] if before else []))
                self.check(done, command, "k", new // unit, *options.lower().split())
                self.deadline(new if done else before, "k")
            for options in ("NX", "XX", "GT", "LT", "XX GT"):
                self.check(0, command, "absent", far // unit, *options.split())
        for option, done in (("NX", 0), ("XX", 1), ("GT", 0), ("LT", 1)):
            self.check("OK", "SET", "k", "v", "PXAT", far)
            self.check(done, "EXPIRE", "k", -5, option)
            self.check(1 - done, "EXISTS", "k")
        self.check("OK", "SET", "k", "v")
        self.check(1, "EXPIRE", "k", -5, "LT")
        self.check(0, "EXISTS", "k")

    def test_errors(self):
        self.check("OK", "SET", "k", "v")
        for command in self.COMMANDS:
            self.check(Error(f"ERR wrong number of arguments for '{command.lower()}' command"),
                       command, "k")
            self.check(Error("ERR Unsupported option FOO"), command, "k", "x", "FOO")
            self.check(Error("ERR Unsupported option FOO"), command, "k", 1, "NX", "XX", "FOO")
            for other in ("XX", "GT", "LT"):
                self.check(NOT_COMPATIBLE, command, "k", 1, "NX", other)
                self.check(NOT_COMPATIBLE, command, "k", 1, other, "NX")
            self.check(NOT_COMPATIBLE, command, "k", 1, "GT", "LT", "NX")
            self.check(GT_AND_LT, command, "k", 1, "GT", "LT")
            self.check(GT_AND_LT, command, "k", "x", "GT", "LT", "XX")
            for number in ("", "x", "1.5", 1 << 63):
                self.check(NOT_AN_INTEGER, command, "k", number)
                self.check(NOT_AN_INTEGER, command, "absent", number, "NX")
            self.check(invalid(command.lower()), command, "k", (1 << 63) - 1)
            self.check(invalid(command.lower()), command, "absent", (1 << 63) - 1)
        for command in ("EXPIRE", "EXPIREAT"):
            self.check(invalid(command.lower()), command, "k", 9223372036854776)
            self.check(invalid(command.lower()), command, "k", -9223372036854776)
        self.check(invalid("pexpireat"), "PEXPIREAT", "k", DEADLINE_MAX_MS + 1)
        self.check(-1, "TTL", "k")
        self.check(1, "PEXPIREAT", "k", DEADLINE_MAX_MS)
        self.deadline(DEADLINE_MAX_MS, "k")
        self.check(DEADLINE_MAX_MS // 1000 + (1 if DEADLINE_MAX_MS % 1000 >= 500 else 0),
                   "EXPIRETIME", "k")

    def test_asking(self):
        for command in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"):
            self.check(-2, command, "absent")
            self.check("OK", "SET", "k", "v")
            self.check(-1, command, "k")
            self.check(Error(f"ERR wrong number of arguments for '{command.lower()}' command"),
                       command)
        for ms, seconds in ((FAR_MS, FAR_S), (FAR_MS + 499, FAR_S), (FAR_MS + 500, FAR_S + 1)):
            self.check(1, "PEXPIREAT", "k", ms)
            self.check(ms, "PEXPIRETIME", "k")
            self.check(seconds, "EXPIRETIME", "k")
        self.check(1, "EXPIRE", "k", 100_000)
        self.assertTrue(100_000 - PATIENCE_S <= self.client.call("TTL", "k") <= 100_000)

    def test_persist(self):
        self.check(0, "PERSIST", "absent")
        self.check("OK", "SET", "k", "v")
        self.check(0, "PERSIST", "k")
        self.check(1, "EXPIRE", "k", 1000)
        self.check(1, "PERSIST", "k")
        self.check(0, "PERSIST", "k")
        self.deadline(None, "k")

    def test_getex(self):
        self.check(None, "GETEX", "absent", "EX", 10)
        self.check("OK", "SET", "k", "v")
        self.check(b"v", "GETEX", "k")
        self.deadline(None, "k")
        self.check(b"v", "GETEX", "k", "PERSIST")
        self.check(b"v", "GETEX", "k", "EX", 1000)
        self.near(1_000_000, "k")
        self.check(b"v", "GETEX", "k", "px", 1000_000)
        self.near(1_000_000, "k")
        self.check(b"v", "GETEX", "k", "EXAT", FAR_S)
        self.deadline(FAR_MS, "k")
        self.check(b"v", "GETEX", "k", "PXAT", FAR_MS + 7)
        self.deadline(FAR_MS + 7, "k")
        self.check(b"v", "GETEX", "k")
        self.deadline(FAR_MS + 7, "k")
        self.check(b"v", "GETEX", "k", "PERSIST")
        self.deadline(None, "k")
        self.check(b"v", "GETEX", "k", "PXAT", 1)
        self.check(0, "EXISTS", "k")

    def test_getex_errors(self):
        for options in (["EX"], ["KEEPTTL"], ["FOO"], ["NX"], ["EX", 1, "PERSIST"],
                        ["PERSIST", "PX", 1], ["EX", 1, "PX", 1]):
            self.check(SYNTAX, "GETEX", "absent", *options)
        # As in Redis, a wrong time does not matter if there is no key.
        for key, wrong, bad in (("absent", None, None),
                                ("k", invalid("getex"), NOT_AN_INTEGER)):
            if key == "k":
                self.check("OK", "SET", "k", "v")
            for number in (0, -1, (1 << 63) - 1):
                self.check(wrong, "GETEX", key, "EX", number)
            self.check(bad, "GETEX", key, "PXAT", "x")
        self.deadline(None, "k")


class GoneTest(ExpiryTest):
    def test_keys_go(self):
        self.check("OK", "SET", "stays", 1, "EX", 10000)
        for command in (["SET", "k", "v", "PX", 20], ["PSETEX", "k", 20, "v"],
                        ["SET", "k", "v", "EX", 1]):
            self.check("OK", *command)
            self.until_gone("k")
            self.check(0, "EXISTS", "k")
            self.check(-2, "TTL", "k")
            self.check(0, "STRLEN", "k")
            self.check("none", "TYPE", "k")
            self.check([None, b"1"], "MGET", "k", "stays")
            self.check([b"stays"], "KRANGE", "-", "+")
            self.check(1, "KCOUNT", "-", "+")
            self.check([b"stays"], "KEYS", "*")
            self.check(0, "DEL", "k")
            self.check(0, "EXPIRE", "k", 100)
            self.check(None, "SET", "k", 1, "XX")

    def test_what_is_gone_counts_as_absent(self):
        def expired():
            self.check("OK", "SET", "k", 41, "PX", 5)
            self.until_gone("k")
        expired()
        self.check(1, "INCR", "k")
        self.check(-1, "TTL", "k")
        expired()
        self.check("OK", "SET", "k", "v", "NX")
        expired()
        self.check(1, "APPEND", "k", "x")
        expired()
        self.check("OK", "SET", "k", "v", "KEEPTTL")
        self.check(-1, "TTL", "k")
        expired()
        self.check(None, "GETSET", "k", "v")
        expired()
        self.check([0, None], "KCAS", "k", 41, 42)
        expired()
        self.check([1, ["OK"]], "KBATCH", "IF", "ABSENT", "k", "IF", "EMPTY", "-", "+",
                   "DO", "PUT", "k", 1)

    def test_a_crowd_goes_at_once(self):
        self.client.pipeline(*(["SET", f"k{i:04}", i] for i in range(2000)))
        self.check(2000, "KEXPIRE", "PREFIX", "k", 30)
        end = time.monotonic() + PATIENCE_S
        seen = 2000
        while seen:
            self.assertLess(time.monotonic(), end)
            seen = self.client.call("KCOUNT", "-", "+")
            self.assertIn(seen, (0, 2000), "one deadline: all or none")
        self.check([], "KRANGE", "-", "+")
        while self.client.call("DBSIZE"):
            self.assertLess(time.monotonic(), end, "they are reclaimed, too")


class RangeTest(ExpiryTest):
    def setUp(self):
        super().setUp()
        self.check("OK", "MSET", "a", 1, "b", 2, "c", 3, "d", 4)

    def with_deadline(self):
        return [key for key in (b"a", b"b", b"c", b"d") if self.client.call("PTTL", key) > 0]

    def test_kexpire(self):
        self.check(2, "KEXPIRE", "[b", "[c", 1_000_000)
        self.assertEqual(self.with_deadline(), [b"b", b"c"])
        self.near(1_000_000, "b")
        self.assertEqual(self.client.call("PEXPIRETIME", "b"), self.client.call("PEXPIRETIME", "c"))
        self.check(0, "KEXPIRE", "[x", "+", 1000)
        self.check(0, "KEXPIRE", "[d", "[a", 1000)
        self.check(1, "KEXPIRE", "PREFIX", "d", 1_000_000)
        self.assertEqual(self.with_deadline(), [b"b", b"c", b"d"])

    def test_limit(self):
        self.check(0, "KEXPIRE", "-", "+", 1_000_000, "LIMIT", 0)
        self.check(3, "KEXPIRE", "-", "+", 1_000_000, "limit", 3)
        self.assertEqual(self.with_deadline(), [b"a", b"b", b"c"])
        self.check(4, "KEXPIRE", "-", "+", 1_000_000, "LIMIT", -1)
        self.check(2, "KEXPIRE", "-", "+", 0, "LIMIT", 2)
        self.check([b"c", b"d"], "KRANGE", "-", "+")

    def test_a_time_that_has_passed_deletes(self):
        self.check(2, "KEXPIRE", "-", "[b", -(1 << 63))
        self.check([b"c", b"d"], "KRANGE", "-", "+")
        self.check(2, "KEXPIRE", "PREFIX", "", 0)
        self.check(0, "DBSIZE")

    def test_larger_than_a_step(self):
        count = 20_000
        for first in range(0, count, 1000):
            words = [w for i in range(first, first + 1000) for w in (f"k{i:06}", "v")]
            self.check("OK", "MSET", *words)
        # Pipelined: what comes behind it sees all of it.
        self.assertEqual(
            self.client.pipeline(["KEXPIRE", "PREFIX", "k", 5_000_000, "LIMIT", count - 1],
                                 ["PTTL", f"k{count - 1:06}"], ["PERSIST", f"k{count - 2:06}"],
                                 ["PERSIST", "k000000"], ["KEXPIRE", "-", "+", 6_000_000]),
            [count - 1, -1, 1, 1, count + 4])
        first = self.client.call("PEXPIRETIME", "a")
        for i in range(0, count, 997):
            self.check(first, "PEXPIRETIME", f"k{i:06}")
        self.check(count + 4, "KEXPIRE", "-", "+", 0)
        self.check(0, "DBSIZE")

    def test_errors(self):
        arity = Error("ERR wrong number of arguments for 'kexpire' command: it takes min max | "
                      f"PREFIX prefix milliseconds [LIMIT count]; {RANGE_SYNTAX}")
        for words in ([], ["-"], ["-", "+"], ["PREFIX", "a"]):
            self.check(arity, "KEXPIRE", *words)
        for words in (["-", "+", 1, "LIMIT"], ["-", "+", 1, "x"], ["-", "+", 1, "COUNT", 1],
                      ["-", "+", 1, "LIMIT", 1, "x"]):
            self.check(SYNTAX, "KEXPIRE", *words)
        self.check(Error(NOT_A_BOUND), "KEXPIRE", "a", "+", 1)
        self.check(NOT_AN_INTEGER, "KEXPIRE", "-", "+", "x")
        self.check(NOT_AN_INTEGER, "KEXPIRE", "-", "+", 1, "LIMIT", "x")
        self.check(invalid("kexpire"), "KEXPIRE", "-", "+", (1 << 63) - 1)
        self.assertEqual(self.with_deadline(), [])


class TransactionTest(ExpiryTest):
    def test_every_command_may_be_queued(self):
        self.check("OK", "MSET", "a", 1, "b", 2)
        commands = [
            (["SET", "c", 1, "PXAT", FAR_MS], "OK"), (["PEXPIRETIME", "c"], FAR_MS),
            (["SET", "c", 1, "EX", 0], invalid("set")), (["SETEX", "d", 1000, "v"], "OK"),
            (["EXPIRE", "c", 5, "NX"], 0), (["EXPIREAT", "a", FAR_S, "GT"], 0),
            (["EXPIREAT", "a", FAR_S, "LT"], 1), (["EXPIRETIME", "a"], FAR_S),
            (["GETEX", "a", "PERSIST"], b"1"), (["TTL", "a"], -1),
            (["GETEX", "a", "EX", "x"], NOT_AN_INTEGER), (["GETEX", "x", "EX", "x"], None),
            (["EXPIRE", "a", 1, "FOO"], Error("ERR Unsupported option FOO")),
            (["KEXPIRE", "-", "[b", 100_000_000_000], 2), (["PERSIST", "b"], 1),
            (["KEXPIRE", "-", "x", 1], Error(NOT_A_BOUND)),
            (["KEXPIRE", "PREFIX", "a", 0], 1), (["PTTL", "a"], -2),
            (["KEXPIRE", "-", "+", -1, "LIMIT", 2], 2), (["KEYS", "*"], [b"d"]),
        ]
        self.check("OK", "MULTI")
        for words, _ in commands:
            self.check("QUEUED", *words)
        self.check([reply for _, reply in commands], "EXEC")


if __name__ == "__main__":
    unittest.main()
