#!/usr/bin/env python3
"""Functions of elements as clients see them: FN, VUPDATE, VREDUCE, VFILTER, KREDUCE."""

import os
import struct
import subprocess
import unittest

from resp import NOT_A_BOUND, Error
from skep_process import PATIENCE_S, ServerTest, SkepServer

SYNTAX = "ERR syntax error"
NO_KEY = "ERR no such key"
LENGTH = "ERR the value's length is not a multiple of the element's"


def packed(kind, *numbers):
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


class UpdateTest(ServerTest):
    def test_one_operand(self):
        self.check("OK", "SET", "v", packed("i", 1, 2, 3))
        self.check(3, "VUPDATE", "v", "add", "i32", 10)
        self.check(packed("i", 11, 12, 13), "GET", "v")
        self.check(packed("i", 11, 12, 13), "vupdate", "v", "SUB", "I32", 10, "return", "old")
        self.check(packed("i", 2, 4, 6), "VUPDATE", "v", "mul", "i32", 2, "RETURN", "NEW")
        self.check(3, "VUPDATE", "v", "max", "i32", 5, "RETURN", "NONE")
        self.check(packed("i", 5, 5, 6), "GET", "v")
        self.check(3, "VUPDATE", "v", "cas", "i32", 5, -1)
        self.check(packed("i", -1, -1, 6), "GET", "v")

    def test_one_operand_for_each(self):
        self.check("OK", "SET", "v", packed("d", 1, 2))
        self.check(packed("d", 1.5, 1), "VUPDATE", "v", "add", "f64", "VECTOR",
                   packed("d", 0.5, -1), "RETURN", "NEW")
        self.check(Error("ERR the vector of operands does not fit the value's length"),
                   "VUPDATE", "v", "add", "f64", "VECTOR", packed("d", 1))
        self.check(packed("d", 1.5, 1), "GET", "v")

    def test_counters_and_sequences(self):
        self.check(packed("q", 0), "VUPDATE", "n", "add", "i64", 1, "RETURN", "OLD", "CREATE", 1)
        self.check(packed("q", 1), "VUPDATE", "n", "add", "i64", 1, "RETURN", "OLD", "CREATE", 1)
        # TPC-C's S_QUANTITY.
        self.check("OK", "SET", "stock", packed("i", 19))
        self.check(packed("i", 100), "VUPDATE", "stock", "addwrap", "i32", -10, 10, 91,
                   "RETURN", "NEW")

    def test_a_deadline_stays(self):
        self.check("OK", "SET", "v", packed("i", 1), "EX", 100)
        self.check(1, "VUPDATE", "v", "add", "i32", 1)
        self.assertGreater(self.client.call("TTL", "v"), 90)

    def test_what_is_refused_changes_nothing(self):
        value = packed("i", 1, 2)
        self.check("OK", "SET", "v", value)
        refused = [
            ("ERR unknown type 'i128'", "add", "i128", 1),
            ("ERR unknown update function 'plus' of i32", "plus", "i32", 1),
            ("ERR unknown update function 'and' of f32", "and", "f32", 1),
            ("ERR unknown update function 'sum' of i32", "sum", "i32", 1),
            ("ERR too few operands", "add", "i32"),
            ("ERR too few operands", "cas", "i32", 1),
            ("ERR '2147483648' is not a number of type i32, or out of range",
             "add", "i32", 2147483648),
            ("ERR '-1' is not a number of type u8, or out of range", "add", "u8", -1),
            ("ERR 'x' is not a number of type f32, or out of range", "add", "f32", "x"),
            (SYNTAX, "add", "i32", 1, "RETURN"),
            (SYNTAX, "add", "i32", 1, "RETURN", "BOTH"),
            (SYNTAX, "add", "i32", 1, "CREATE", 0),
            (SYNTAX, "add", "i32", 1, 2),
        ]
        for error, *words in refused:
            self.check(Error(error), "VUPDATE", "v", *words)
        self.check(value, "GET", "v")
        self.check("OK", "SET", "odd", "123")
        self.check(Error(LENGTH), "VUPDATE", "odd", "add", "i16", 1)
        self.check(b"123", "GET", "odd")
        self.check(Error(NO_KEY), "VUPDATE", "none", "add", "i32", 1)
        self.check(Error("ERR value exceeds the maximum size (67108864 bytes)"),
                   "VUPDATE", "none", "add", "i64", 1, "CREATE", 4294967295)
        self.check(0, "EXISTS", "none")

    def test_in_a_transaction(self):
        self.check("OK", "SET", "v", packed("i", 1))
        self.check("OK", "MULTI")
        self.check("QUEUED", "VUPDATE", "v", "add", "i32", 1, "RETURN", "NEW")
        self.check("QUEUED", "VREDUCE", "v", "sum", "i32")
        self.check("QUEUED", "VUPDATE", "v", "add", "i32", "x")
        self.check("QUEUED", "VUPDATE", "v", "add", "i32", 1)
        self.check([packed("i", 2), 2,
                    Error("ERR 'x' is not a number of type i32, or out of range"), 1], "EXEC")
        self.check(packed("i", 3), "GET", "v")


class ReadTest(ServerTest):
    def test_reduce(self):
        self.check("OK", "SET", "v", packed("b", -1, 100, 100))
        self.check(199, "VREDUCE", "v", "sum", "i8")
        self.check(200, "VREDUCE", "v", "sum", "i8", 1)
        self.check(-1, "VREDUCE", "v", "min", "i8")
        self.check(100, "VREDUCE", "v", "max", "i8")
        self.check(3, "VREDUCE", "v", "count", "i8")
        self.check(1, "VREDUCE", "v", "any", "i8")
        self.check(455, "VREDUCE", "v", "sum", "u8")
        self.check("OK", "SET", "f", packed("f", 0.5, 0.25))
        self.check(b"0.75", "VREDUCE", "f", "sum", "f32")
        self.check("OK", "SET", "u", packed("Q", 2**64 - 1))
        self.check(str(2**64 - 1).encode(), "VREDUCE", "u", "max", "u64")

    def test_of_nothing(self):
        self.check("OK", "SET", "v", "")
        self.check(0, "VREDUCE", "v", "sum", "i8")
        self.check(None, "VREDUCE", "v", "min", "i8")
        self.check(7, "VREDUCE", "v", "min", "i8", 7)
        self.check(b"", "VFILTER", "v", "eq", "i8", 1)
        self.check(Error(NO_KEY), "VREDUCE", "none", "sum", "i8")
        self.check(Error(NO_KEY), "VFILTER", "none", "eq", "i8", 1)

    def test_filter(self):
        self.check("OK", "SET", "v", packed("h", 5, -5, 500))
        self.check(packed("h", 5, 500), "VFILTER", "v", "gt", "i16", 0)
        self.check(packed("h", -5), "VFILTER", "v", "eq", "i16", -5)
        self.check(b"", "VFILTER", "v", "lt", "i16", -100)
        self.check(Error("ERR unknown filter function 'add' of i16"), "VFILTER", "v", "add", "i16", 1)
        self.check(Error(LENGTH), "VFILTER", "v", "eq", "i32", 1)

    def test_fn_list(self):
        functions = {(f[b"kind"], f[b"name"]): f for f in
                     ({e[i]: e[i + 1] for i in range(0, 8, 2)} for e in self.client.call("FN", "LIST"))}
        add = functions[b"update", b"add"]
        self.assertEqual(add[b"operands"], 1)
        self.assertEqual(add[b"types"], [b"i8", b"i16", b"i32", b"i64", b"u8", b"u16", b"u32", b"u64",
                                         b"f32", b"f64"])
        self.assertEqual(functions[b"update", b"addwrap"][b"operands"], 3)
        self.assertNotIn(b"f32", functions[b"update", b"and"][b"types"])
        self.assertIn((b"reduce", b"sum"), functions)
        self.assertIn((b"filter", b"le"), functions)


class RangeTest(ServerTest):
    def test_kreduce(self):
        for i in range(3000):
            self.client.call("SET", f"k{i:04}", packed("i", i, 1))
        self.client.call("SET", "other", "123")
        self.check(3000 * 2999 // 2 + 3000, "KREDUCE", "PREFIX", "k", "sum", "i32")
        self.check(2999, "KREDUCE", "[k0000", "[k9", "max", "i32")
        self.check(0, "KREDUCE", "[k0000", "(k0001", "min", "i32")
        self.check(15, "KREDUCE", "[k0001", "[k0003", "sum", "i32", 6)
        self.check(0, "KREDUCE", "PREFIX", "none", "sum", "i32")
        self.check(None, "KREDUCE", "PREFIX", "none", "min", "i32")
        self.check(Error(LENGTH), "KREDUCE", "-", "+", "sum", "i32")
        self.check(Error("ERR unknown reduce function 'add' of i32"),
                   "KREDUCE", "-", "+", "add", "i32")
        self.check(Error(NOT_A_BOUND),
                   "KREDUCE", "k", "+", "sum", "i32")


class KeyspaceTest(ServerTest):
    """A keyspace with an engine of its own."""

    OPTIONS = ("--keyspace", "1=hash")

    def test_functions_in_both(self):
        for keyspace in (0, 1):
            self.check("OK", "SELECT", keyspace)
            self.check(2, "VUPDATE", "v", "add", "i16", 7, "CREATE", 2)
            self.check(packed("h", 7, 7), "GET", "v")
            self.check(14, "VREDUCE", "v", "sum", "i16")
            self.check(packed("h", 7, 7), "VFILTER", "v", "gt", "i16", 6)
            self.check(1, "DBSIZE")

    def test_order_is_refused_where_there_is_none(self):
        no_order = Error("ERR this engine has no order")
        self.check("OK", "SELECT", 1)
        self.check("OK", "SET", "a", 1)
        self.check(no_order, "KRANGE", "-", "+")
        self.check(no_order, "KCOUNT", "-", "+")
        self.check(no_order, "KDELRANGE", "-", "+")
        self.check(no_order, "KREDUCE", "-", "+", "sum", "u8")
        self.check(no_order, "KFIRST")
        self.check(b"1", "GET", "a")
        self.check("OK", "SELECT", 0)
        self.check([], "KRANGE", "-", "+")
        self.assertIn(b"1=hash", self.client.call("CONFIG", "GET", "keyspace"))


class LibraryTest(unittest.TestCase):
    """Functions of users, in a shared object."""

    LIBRARY = os.environ["SKEP_FUNCTIONS"]

    def test_functions_of_a_library(self):
        with SkepServer("--function-library", self.LIBRARY) as server, server.connect() as client:
            self.assertEqual(client.call("SET", "v", packed("f", -1, 2)), "OK")
            self.assertEqual(client.call("VUPDATE", "v", "relu", "f32", 0, "RETURN", "NEW"),
                             packed("f", 0, 2))
            self.assertEqual(client.call("VREDUCE", "v", "squares", "f32"), b"4")
            self.assertEqual(client.call("SET", "n", packed("q", 3, 4, 6)), "OK")
            self.assertEqual(client.call("VFILTER", "n", "multiple", "i64", 3), packed("q", 3, 6))
            smallest = packed("q", -2**63)
            self.assertEqual(client.call("SET", "n", smallest), "OK")
            self.assertEqual(client.call("VFILTER", "n", "multiple", "i64", -1), smallest)
            self.assertEqual(client.call("VFILTER", "n", "multiple", "i64", 0), b"")

    def test_a_library_that_is_none_is_told_before_anything_is_served(self):
        for path in ("/nowhere/functions.so", __file__):
            run = subprocess.run([os.environ["SKEP_SERVER"], "--port", "0", "--function-library",
                                  path], capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(run.returncode, 1)
            self.assertIn(b"--function-library", run.stderr)
        twice = subprocess.run([os.environ["SKEP_SERVER"], "--port", "0", "--function-library",
                                self.LIBRARY, "--function-library", self.LIBRARY],
                               capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(twice.returncode, 1)
        self.assertIn(b"says that it has failed", twice.stderr)


if __name__ == "__main__":
    unittest.main()
