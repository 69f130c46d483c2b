#!/usr/bin/env python3
"""Goal: statements, tables, parsers and checksums do what the P4-16 specification and v1model say.
Method: small programs, each with one packet or two. Arithmetic of 8 to 64 bits is compared with C's, by ctypes."""

import ctypes
import os
import random
import struct
import unittest
import zlib

from interpreter import operators
from interpreter.checksums import csum16
from interpreter.p4types import Bits
from interpreter.source import P4Error
from p4_testing import d_after, head, load, switch_of

SEED = int(os.environ.get("SKEP_SEED", random.SystemRandom().randrange(1 << 32)))
ONE_TABLE = """
    action set_m(bit<8> value) {{ meta.m = value; }}
    table t {{
        key = {{ {key} }}
        actions = {{ send; set_d; set_m; NoAction; }}
        default_action = set_d(999);
        {more}
    }}"""


def with_table(key, more="", apply="t.apply();"):
    return {"locals": ONE_TABLE.format(key=key, more=more), "apply": apply}


def entry(match, value, priority=None):
    said = {"match": match, "action": "Ingress.set_d", "parameters": {"value": value}}
    return said if priority is None else said | {"priority": priority}


def of_table(*entries):
    return {"tables": {"Ingress.t": {"entries": list(entries)}}}


def d_of(switch, packet):
    return struct.unpack(">I", switch.process(packet)[1][4:8])[0]


class Arithmetic(unittest.TestCase):
    def test_agrees_with_c(self):
        rng = random.Random(SEED)
        for _ in range(3000):
            width = rng.choice((8, 16, 32, 64))
            signed = rng.random() < 0.5
            type_ = Bits(width, signed)
            to_c = getattr(ctypes, f"c_{'' if signed else 'u'}int{width}")
            a, b = (rng.choice((type_.low(), type_.high(), 0, 1, rng.randint(type_.low(), type_.high())))
                    for _ in range(2))
            for operator, value in (("+", a + b), ("-", a - b), ("*", a * b), ("&", a & b), ("|", a | b),
                                    ("^", a ^ b)):
                self.assertEqual(operators.binary(operator, type_, type_, a, b), to_c(value).value,
                                 f"seed {SEED}: {a} {operator} {b} of {type_}")
            places = rng.randrange(width)
            self.assertEqual(operators.binary("<<", type_, Bits(8), a, places), to_c(a << places).value)
            self.assertEqual(operators.binary(">>", type_, Bits(8), a, places), to_c(a >> places).value)
            self.assertEqual(operators.unary("-", type_, a), to_c(-a).value)
            self.assertEqual(operators.unary("~", type_, a), to_c(~a).value)

    def assert_d(self, expression, wanted, **packet):
        self.assertEqual(d_after(f"hdr.head.d = {expression};", **packet), wanted, expression)

    def test_wraps(self):
        self.assert_d("(bit<32>)(hdr.head.a + 1)", 0, a=255)
        self.assert_d("(bit<32>)(hdr.head.a - 1)", 255, a=0)
        self.assert_d("(bit<32>)(hdr.head.a * 3)", 44, a=100)
        self.assert_d("(bit<32>)(-hdr.head.a)", 255, a=1)

    def test_saturates(self):
        self.assert_d("(bit<32>)(hdr.head.a |+| 200)", 255, a=100)
        self.assert_d("(bit<32>)(hdr.head.a |-| 200)", 0, a=100)
        self.assert_d("(bit<32>)(bit<8>)((int<8>)hdr.head.a |+| 100)", 127, a=100)
        self.assert_d("(bit<32>)(bit<8>)((int<8>)hdr.head.a |-| 100)", 128, a=0x9c)

    def test_shifts(self):
        self.assert_d("(bit<32>)(hdr.head.a << 4)", 0x30, a=0xf3)
        self.assert_d("(bit<32>)(hdr.head.a >> 4)", 0x0f, a=0xf3)
        self.assert_d("(bit<32>)(bit<8>)((int<8>)hdr.head.a >> 4)", 0xff, a=0xf3)
        self.assert_d("(bit<32>)(hdr.head.a << hdr.head.b)", 0, a=0xf3, b=200)
        self.assert_d("(bit<32>)(bit<8>)((int<8>)hdr.head.a >> hdr.head.b)", 0xff, a=0xf3, b=200)

    def test_slices_and_concatenations(self):
        self.assert_d("(bit<32>)hdr.head.c[11:4]", 0x23, c=0x1234)
        self.assert_d("hdr.head.a ++ hdr.head.c ++ hdr.head.b", 0x01123402, a=1, b=2, c=0x1234)
        self.assertEqual(d_after("hdr.head.d[15:8] = hdr.head.a;", a=0xab, d=0x11223344), 0x1122ab44)
        self.assertEqual(d_after("hdr.head.d = (bit<32>)hdr.head.d[15:8][3:0];", d=0x11223344), 3)
        self.assert_d("(bit<32>)(bit<16>)((int<8>)hdr.head.a ++ hdr.head.b)", 0xff01, a=0xff, b=1)

    def test_casts(self):
        self.assert_d("(bit<32>)(bit<8>)hdr.head.c", 0x34, c=0x1234)
        self.assert_d("(bit<32>)(int<32>)(int<8>)hdr.head.a", 0xffffff80, a=0x80)
        self.assert_d("(bit<32>)(bit<1>)(hdr.head.a == 3)", 1, a=3)
        self.assert_d("(bool)hdr.head.a[0:0] ? 32w7 : 8", 7, a=1)

    def test_comparisons_know_the_sign(self):
        self.assert_d("hdr.head.a < hdr.head.b ? 32w1 : 0", 0, a=0x80, b=1)
        self.assert_d("(int<8>)hdr.head.a < (int<8>)hdr.head.b ? 32w1 : 0", 1, a=0x80, b=1)
        self.assert_d("hdr.head.a >= 128 ? 32w1 : 0", 1, a=0x80)
        self.assert_d("hdr.head.a != hdr.head.b ? 32w1 : 0", 0, a=5, b=5)

    def test_binds_as_the_grammar_says(self):
        self.assert_d("hdr.head.a & 1 == 1 ? 32w1 : 0", 1, a=3)  # of C it would be a & (1 == 1)
        self.assert_d("(bit<32>)(hdr.head.a | 8w1 ^ 8w3 & 8w2)", 0x83, a=0x80)
        self.assert_d("32w1 + 2 * 3", 7)
        self.assert_d("32w20 - 5 - 3", 12)
        self.assert_d("32w1 << 2 + 1", 8)
        with self.assertRaisesRegex(P4Error, r"'\+' of bit<16> and bit<8>"):  # (8w1 ++ 8w2) + 8w3: of one level
            self.assert_d("(bit<32>)(8w1 ++ 8w2 + 8w3)", 0)

    def test_constants_are_of_any_size(self):
        self.assert_d("(1 << 40) / (1 << 38) + 7 % 4", 7)
        self.assert_d("0xffff_ffff", 0xffffffff)
        self.assert_d("32w0b1010 + 8 - 0d3 + 0o17", 30)
        self.assertEqual(d_after("hdr.head.d = kX;", top="const int kY = 5; const bit<32> kX = kY * 3;"), 15)


class Statements(unittest.TestCase):
    def test_and_and_or_stop_early(self):
        self.assertEqual(d_after("if (hdr.tail.isValid() && hdr.tail.x == 1) { hdr.head.d = 1; }"), 0)
        self.assertEqual(d_after("if (!hdr.tail.isValid() || hdr.tail.x == 1) { hdr.head.d = 1; }"), 1)

    def test_if_and_else(self):
        text = """if (hdr.head.a == 1) hdr.head.d = 1;
                  else if (hdr.head.a == 2) hdr.head.d = 2; else { hdr.head.d = 3; }"""
        self.assertEqual([d_after(text, a=a) for a in (1, 2, 3)], [1, 2, 3])

    def test_return_ends_the_control_and_exit_the_block(self):
        before = """control S(inout bit<32> x, in bit<8> y) {
            apply { x = 1; if (y == 0) return; if (y == 1) exit; x = 2; }
        }"""
        apply = "s.apply(hdr.head.d, hdr.head.a); hdr.head.d = hdr.head.d + 10;"
        found = [d_after(apply, a=a, before=before, locals="S() s;") for a in (0, 1, 2)]
        self.assertEqual(found, [11, 1, 12])  # what was written is copied out at an exit, too

    def test_arguments_are_copied_in_and_out(self):
        local = "action x(in bit<32> p, inout bit<32> q, out bit<32> r) { q = q + p; hdr.head.d = 0; r = p; }"
        self.assertEqual(d_after("bit<32> r; x(hdr.head.d, hdr.head.d, r); hdr.head.d = hdr.head.d + r;",
                                 d=5, locals=local), 15)

    def test_arguments_that_are_headers_are_copied(self):
        before = "control S(in head_t x, inout head_t y) { apply { y.d = 5; y.d = x.d + 1; } }"
        self.assertEqual(d_after("s.apply(hdr.head, hdr.head);", d=1, before=before, locals="S() s;"), 2)

    def test_headers_are_copied_whole(self):
        self.assertEqual(d_after("head_t other; other = hdr.head; other.d = 9; hdr.head.d = other.d + hdr.head.d;",
                                 d=1), 10)

    def test_arguments_have_names(self):
        self.assertEqual(d_after(
            "x(q = 1, p = 2);", locals="action x(bit<32> p, bit<32> q) { hdr.head.d = p << 4 | q; }"),
                         0x21)

    def test_whole_headers_pass_through_controls(self):
        before = """control S(inout headers_t hdr) {
            action grow() { hdr.tail.setValid(); hdr.tail.x = 7; hdr.tail.y = 8; }
            apply { grow(); }
        }"""
        out = switch_of(before=before, locals="S() s;", apply="s.apply(hdr);").process(head(1))
        self.assertEqual(out[1], head(1) + b"\0\7\0\10")

    def test_undefined_values_have_no_effect(self):
        for text in ("hdr.head.d = (bit<32>)hdr.tail.x;", "hdr.tail.x = 1;", "bit<32> x; hdr.head.d = x;",
                     "hdr.tail.setValid(); hdr.head.d = (bit<32>)hdr.tail.x;", "hdr.tail.setValid();"):
            with self.assertRaises(P4Error, msg=text):
                d_after(text)

    def test_metadata_begin_as_zeros(self):
        self.assertEqual(d_after("hdr.head.d = meta.n + (bit<32>)(bit<1>)meta.flag;"), 0)

    def test_an_enum_and_an_error(self):
        self.assertEqual(d_after("e_t e = e_t.B; if (e == e_t.B && e != e_t.A) { hdr.head.d = 3; }",
                                 top="enum e_t { A, B }"), 3)
        self.assertEqual(d_after("if (standard.parser_error == error.NoError) { hdr.head.d = 4; }"), 4)


class Tables(unittest.TestCase):
    def test_exact(self):
        switch = switch_of(of_table(entry({"hdr.head.a": 1, "hdr.head.b": 2}, 5)),
                           **with_table("hdr.head.a : exact; hdr.head.b : exact;"))
        self.assertEqual([d_of(switch, head(1, 2)), d_of(switch, head(2, 1))], [5, 999])

    def test_the_longest_prefix_wins(self):
        switch = switch_of(of_table(entry({"hdr.head.c": [0x1200, 8]}, 1), entry({"hdr.head.c": [0x1234, 16]}, 2),
                                    entry({}, 3)), **with_table("hdr.head.c : lpm;"))
        self.assertEqual([d_of(switch, head(c=c)) for c in (0x1234, 0x1235, 0x1300)], [2, 1, 3])

    def test_the_highest_priority_wins(self):
        switch = switch_of(of_table(entry({"hdr.head.c": [0x1200, 0xff00]}, 1, 7),
                                    entry({"hdr.head.c": [0x34, 0xff]}, 2, 9)),
                           **with_table("hdr.head.c : ternary;"))
        self.assertEqual([d_of(switch, head(c=c)) for c in (0x1234, 0x1235, 0x2234, 0)], [2, 1, 2, 999])

    def test_ranges_include_both_ends(self):
        switch = switch_of(of_table(entry({"hdr.head.a": 1, "hdr.head.c": [10, 20]}, 1, 1)),
                           **with_table("hdr.head.a : exact; hdr.head.c : range;"))
        self.assertEqual([d_of(switch, head(1, c=c)) for c in (9, 10, 20, 21)], [999, 1, 1, 999])
        self.assertEqual(d_of(switch, head(2, c=10)), 999)

    def test_two_matches_of_one_priority_are_refused(self):
        switch = switch_of(of_table(entry({"hdr.head.c": [1, 9]}, 1, 1), entry({"hdr.head.c": [9, 12]}, 2, 1)),
                           **with_table("hdr.head.c : range;"))
        self.assertEqual(d_of(switch, head(c=12)), 2)
        with self.assertRaisesRegex(P4Error, "of one priority"):
            switch.process(head(c=9))

    def test_the_first_of_const_entries_wins(self):
        more = "const entries = { (0x34 &&& 0xff) : set_d(1); 0x1234 : set_d(2); _ : set_d(3); }"
        switch = switch_of(**with_table("hdr.head.c : ternary;", more))
        self.assertEqual([d_of(switch, head(c=c)) for c in (0x1234, 0x1235)], [1, 3])

    def test_const_entries_of_each_kind(self):
        more = "const entries = { (1, 0x1200 &&& 0xff00) : set_d(1); (1, 0x1234) : set_d(2); }"
        switch = switch_of(**with_table("hdr.head.a : exact; hdr.head.c : lpm;", more))
        self.assertEqual([d_of(switch, head(1, c=c)) for c in (0x1234, 0x1235, 0x1300)], [2, 1, 999])
        more = "const entries = { 5 .. 7 : set_d(1); 9 : set_d(2); }"
        switch = switch_of(**with_table("hdr.head.c : range;", more))
        self.assertEqual([d_of(switch, head(c=c)) for c in (5, 7, 8, 9)], [1, 1, 999, 2])

    def test_hit_and_miss(self):
        apply = "if (t.apply().hit) { meta.m = 1; } else { meta.m = 2; } hdr.head.b = meta.m;"
        switch = switch_of(of_table(entry({"hdr.head.a": 1}, 5)), **with_table("hdr.head.a : exact;", apply=apply))
        self.assertEqual([switch.process(head(a))[1][1] for a in (1, 2)], [1, 2])
        apply = "if (t.apply().miss) { hdr.head.b = 1; }"
        switch = switch_of(of_table(entry({"hdr.head.a": 1}, 5)), **with_table("hdr.head.a : exact;", apply=apply))
        self.assertEqual([switch.process(head(a))[1][1] for a in (1, 2)], [0, 1])

    def test_a_switch_falls_through(self):
        apply = "switch (t.apply().action_run) { set_m: set_d: { hdr.head.b = 1; } default: { hdr.head.b = 2; } }"
        config = of_table({"match": {"hdr.head.a": 1}, "action": "Ingress.set_m", "parameters": {"value": 1}},
                          {"match": {"hdr.head.a": 2}, "action": "NoAction"})
        switch = switch_of(config, **with_table("hdr.head.a : exact;", apply=apply))
        self.assertEqual([switch.process(head(a))[1][1] for a in (1, 2, 3)], [1, 2, 1])

    def test_a_table_without_a_key_has_its_default(self):
        gaps = {"locals": "table t { actions = { set_d; } default_action = set_d(4); }", "apply": "t.apply();"}
        self.assertEqual(d_of(switch_of(**gaps), head()), 4)
        config = {"tables": {"Ingress.t": {"default_action": {
            "action": "Ingress.set_d", "parameters": {"value": "0x10"}}}}}
        self.assertEqual(d_of(switch_of(config, **gaps), head()), 16)

    def test_each_control_has_its_own(self):
        before = """control S(inout bit<32> x) {
            action set(bit<32> value) { x = value; }
            table t { key = { x : exact; } actions = { set; NoAction; } }
            apply { t.apply(); }
        }"""
        config = {"tables": {f"Ingress.{name}.t": {"entries": [
            {"match": {"x": was}, "action": f"Ingress.{name}.set", "parameters": {"value": becomes}}]}
            for name, was, becomes in (("one", 0, 5), ("two", 5, 6))}}
        self.assertEqual(d_of(switch_of(config, before=before, locals="S() one; S() two;",
                                        apply="one.apply(hdr.head.d); two.apply(hdr.head.d);"), head()), 6)

    def test_counters_count(self):
        more = "counters = c;"
        gaps = with_table("hdr.head.a : exact;", more, "t.apply(); n.count((bit<32>)hdr.head.a);")
        gaps["locals"] = ("direct_counter(CounterType.packets_and_bytes) c; counter(2, CounterType.packets) n;"
                          + gaps["locals"])
        switch = switch_of(of_table(entry({"hdr.head.a": 1}, 5)), **gaps)
        for a in (1, 1, 2):
            switch.process(head(a))
        counts = list(switch.instances["ingress"].objects.values())
        self.assertEqual(counts, [{0: [2, 16]}, [[0, 0], [2, 16]]])

    def test_registers_remember(self):
        gaps = {"locals": "register<bit<32>>(2) r;",
                "apply": "bit<32> x; r.read(x, 1); hdr.head.d = x; r.write(1, x + 1); r.write(2, 7);"}
        switch = switch_of({"registers": {"Ingress.r": {"1": 40}}}, **gaps)
        self.assertEqual([d_of(switch, head()) for _ in range(3)], [40, 41, 42])
        gaps["apply"] = "bit<32> x; r.read(x, 2);"
        with self.assertRaisesRegex(P4Error, "element 2 of a register of 2"):
            switch_of(**gaps).process(head())


class Runtime(unittest.TestCase):
    def test_what_does_not_fit_is_refused(self):
        table = with_table("hdr.head.a : exact; hdr.head.c : range;", "size = 2;")
        good = entry({"hdr.head.a": 1, "hdr.head.c": [1, 2]}, 5, 1)
        other = entry({"hdr.head.a": 2}, 5, 1)
        switch_of(of_table(good, other), **table)
        for config, message in (
                ([], "not an object"), ({"table": {}}, "no 'table' here"), ({"tables": []}, "not an object"),
                ({"tables": {"Ingress.u": {}}}, "no table Ingress.u"),
                ({"tables": {"Ingress.t": []}}, "not an object"),
                ({"tables": {"Ingress.t": {"rows": []}}}, "no 'rows' here"),
                ({"tables": {"Ingress.t": {"entries": {}}}}, "not a list"),
                ({"registers": {"Ingress.r": {}}}, "no register"), (of_table(good, good), "are alike"),
                (of_table(good, other, entry({"hdr.head.a": 3}, 5, 1)), "more than 2 entries"),
                (of_table(good | {"action": "set_d"}), "is no action of"),
                (of_table(good | {"action": 5}), "is no action of"),
                (of_table(good | {"priority": 0}), "a priority above 0"),
                (of_table(good | {"priority": "1"}), "a priority"),
                (of_table(good | {"parameters": {}}), "has the parameters"),
                (of_table(good | {"parameters": {"value": 1 << 32}}), "no number of the type bit<32>"),
                (of_table(good | {"parameters": {"value": -1}}), "no number of the type bit<32>"),
                (of_table(good | {"parameters": {"value": True}}), "no number of the type"),
                (of_table(good | {"parameters": {"value": "x"}}), "no number of the type"),
                (of_table(good | {"match": {"hdr.head.c": [1, 2]}}), "the exact key hdr.head.a is not given"),
                (of_table(good | {"match": {"hdr.head.a": 1, "hdr.head.d": 1}}), "no key hdr.head.d"),
                (of_table(good | {"match": {"hdr.head.a": 1, "hdr.head.c": 3}}), "given by two numbers"),
                (of_table(good | {"match": {"hdr.head.a": 1, "hdr.head.c": [2, 1]}}), "is empty"),
                (of_table(good | {"match": {"hdr.head.a": 256}}), "no number of the type bit<8>")):
            with self.subTest(message), self.assertRaisesRegex(P4Error, message):
                load(switch_of(**table), config)

    def test_prefixes_masks_and_consts(self):
        lpm = with_table("hdr.head.c : lpm;")
        for match, message in (([0x1234, 8], "bits outside"), ([0, 17], "is long")):
            with self.assertRaisesRegex(P4Error, message):
                switch_of(of_table(entry({"hdr.head.c": match}, 1)), **lpm)
        with self.assertRaisesRegex(P4Error, "no priority"):
            switch_of(of_table(entry({"hdr.head.c": [0, 0]}, 1, 3)), **lpm)
        with self.assertRaisesRegex(P4Error, "bits outside"):
            switch_of(of_table(entry({"hdr.head.c": [3, 1]}, 1, 1)), **with_table("hdr.head.c : ternary;"))
        with self.assertRaisesRegex(P4Error, "are const"):
            switch_of(of_table(entry({"hdr.head.c": 3}, 1)),
                      **with_table("hdr.head.c : exact;", "const entries = { 1 : set_d(1); }"))
        with self.assertRaisesRegex(P4Error, "default action of Ingress.t is const"):
            switch_of({"tables": {"Ingress.t": {"default_action": {"action": "Ingress.drop"}}}},
                      locals="table t { actions = { drop; } const default_action = drop(); }", apply="t.apply();")

    def test_keys_that_are_no_numbers(self):
        gaps = with_table("meta.flag : exact;")
        self.assertEqual(d_of(switch_of(of_table(entry({"meta.flag": False}, 5)), **gaps), head()), 5)
        with self.assertRaisesRegex(P4Error, "neither true nor false"):
            switch_of(of_table(entry({"meta.flag": 0}, 5)), **gaps)

    def test_enums_and_errors_are_parameters(self):
        locals_ = """action x(e_t e, error f) { hdr.head.d = e == e_t.B && f == error.NoMatch ? 32w1 : 2; }
                     table t { actions = { x; NoAction; } }"""
        gaps = {"top": "enum e_t { A, B }", "locals": locals_, "apply": "t.apply();"}
        for parameters, wanted in (({"e": "B", "f": "NoMatch"}, 1), ({"e": "A", "f": "NoMatch"}, 2)):
            config = {"tables": {"Ingress.t": {"default_action": {
                "action": "Ingress.x", "parameters": parameters}}}}
            self.assertEqual(d_of(switch_of(config, **gaps), head()), wanted)
        with self.assertRaisesRegex(P4Error, "C is no value of e"):
            switch_of({"tables": {"Ingress.t": {"default_action": {
                "action": "Ingress.x", "parameters": {"e": "C", "f": "NoMatch"}}}}}, **gaps)

    def test_elements_of_registers(self):
        for elements, message in (({"2": 1}, "no element 2"), ({"x": 1}, "no element x"), ({"0": 256}, "no number"),
                                  ([1], "not an object")):
            with self.assertRaisesRegex(P4Error, message):
                switch_of({"registers": {"Ingress.r": elements}}, locals="register<bit<8>>(2) r;")


class Packets(unittest.TestCase):
    TWO = """state start { packet.extract(hdr.head); transition select(hdr.head.a) { 1: more; default: accept; } }
             state more { packet.extract(hdr.tail); transition accept; }"""

    def test_what_is_not_parsed_follows(self):
        self.assertEqual(switch_of().process(head(1, 2, 3, 4) + b"rest")[1], head(1, 2, 3, 4) + b"rest")

    def test_headers_leave_in_the_order_of_the_struct(self):
        switch = switch_of(states=self.TWO, apply="hdr.head.setInvalid();")
        self.assertEqual(switch.process(head(1) + b"tailrest")[1], b"tailrest")
        switch = switch_of(states=self.TWO, deparser="packet.emit(hdr.tail); packet.emit(hdr.head);")
        self.assertEqual(switch.process(head(1) + b"tailrest")[1], b"tail" + head(1) + b"rest")

    def test_a_packet_that_is_too_short_has_an_error(self):
        apply = """if (standard.parser_error == error.PacketTooShort) { standard.egress_spec = 3; }
                   if (hdr.tail.isValid()) { standard.egress_spec = 4; }"""
        switch = switch_of(states=self.TWO, apply=apply)
        self.assertEqual(switch.process(head(1) + b"ta"), (3, head(1) + b"ta"))
        self.assertEqual(switch.process(head(1) + b"tail"), (4, head(1) + b"tail"))
        self.assertEqual(switch.process(head(2) + b"ta"), (0, head(2) + b"ta"))

    def test_verify_and_select_tell_errors(self):
        apply = """if (standard.parser_error == error.Odd) { hdr.head.d = 1; }
                   if (standard.parser_error == error.NoMatch) { hdr.head.d = 2; }"""
        states = """state start { packet.extract(hdr.head); verify(hdr.head.a != 1, error.Odd);
                    transition select(hdr.head.a) { 2: accept; 3: reject; } }"""
        switch = switch_of(states=states, apply=apply, top="error { Odd }")
        self.assertEqual([d_of(switch, head(a)) for a in (1, 2, 3, 4)], [1, 0, 0, 2])

    def test_select_takes_sets_of_values(self):
        states = """state start { packet.extract(hdr.head); transition select(hdr.head.a, hdr.head.c) {
            (1, _): one; (2 .. 4, 0x1200 &&& 0xff00): two; (_, 7): three; default: accept; } }
            state one { meta.n = 1; transition accept; }
            state two { meta.n = 2; transition accept; }
            state three { meta.n = 3; transition accept; }"""
        switch = switch_of(states=states, apply="hdr.head.d = meta.n;")
        packets = [(1, 9), (2, 0x1234), (4, 0x1234), (5, 0x1234), (2, 0x1334), (9, 7)]
        self.assertEqual([d_of(switch, head(a, c=c)) for a, c in packets], [1, 2, 2, 0, 0, 3])

    def test_lookahead_advance_and_length(self):
        states = """state start { meta.m = packet.lookahead<bit<8>>(); meta.n = packet.length();
                    packet.extract(hdr.head);
                    packet.advance(16); transition accept; }"""
        switch = switch_of(states=states, apply="hdr.head.d = meta.n << 8 | (bit<32>)meta.m;")
        self.assertEqual(switch.process(head(5) + b"abrest")[1], head(5, d=14 << 8 | 5) + b"rest")

    def test_a_parser_that_does_not_end_is_stopped(self):
        switch = switch_of(states="state start { transition again; } state again { transition start; }",
                           apply="if (standard.parser_error == error.ParserTimeout) { standard.egress_spec = 9; }")
        self.assertEqual(switch.process(b"x"), (9, b"x"))

    def test_constants_and_variables_of_a_parser(self):
        switch = switch_of(parser_locals="const bit<8> kOne = 1; bit<8> seen = 0;",
                           apply="hdr.head.d = (bit<32>)meta.m;",
                           states="state start { packet.extract(hdr.head); seen = seen + kOne + hdr.head.a; "
                                  "meta.m = seen; transition accept; }")
        self.assertEqual([d_of(switch, head(5)), d_of(switch, head(6))], [6, 7])

    def test_drop_and_ports(self):
        switch = switch_of(apply="if (hdr.head.a == 1) { drop(); } else { send(5); }",
                           egress="hdr.head.d = (bit<32>)standard.egress_port << 16 | standard.packet_length; "
                                  "if (hdr.head.b == 1) { mark_to_drop(standard); }")
        self.assertIsNone(switch.process(head(1)))
        self.assertIsNone(switch.process(head(2, 1)))
        self.assertEqual(switch.process(head(2), 3), (5, head(2, d=5 << 16 | 8)))

    def test_the_port_of_arrival(self):
        self.assertEqual(switch_of(apply="standard.egress_spec = standard.ingress_port;").process(head(), 3)[0], 3)

    def test_checksums(self):
        data = "{ hdr.head.a, hdr.head.b, hdr.head.d }, hdr.head.c, HashAlgorithm.csum16"
        packet = switch_of(compute=f"update_checksum(hdr.head.a == 1, {data});").process(head(1, 2, 9, 0x03040506))[1]
        self.assertEqual(packet[2:4], struct.pack(">H", csum16(b"\1\2\3\4\5\6")))
        self.assertEqual(csum16(packet), 0)
        apply = "hdr.head.b = hdr.head.b + (bit<8>)standard.checksum_error;"
        verify = switch_of(verify=f"verify_checksum(true, {data});", apply=apply)
        self.assertEqual([verify.process(packet)[1][1], verify.process(head(1, 2, 9))[1][1]], [2, 3])
        never = switch_of(verify=f"verify_checksum(false, {data});", apply=apply)
        self.assertEqual(never.process(head(1, 2, 9))[1][1], 2)

    def test_checksums_with_the_payload(self):
        compute = """update_checksum_with_payload(true, { hdr.head.a, hdr.head.b }, hdr.head.c,
                                                  HashAlgorithm.csum16);"""
        packet = switch_of(compute=compute).process(head(1, 2) + b"abc")[1]
        self.assertEqual(packet[2:4].hex(), "3a9b")  # of 0102, 6162 and 6300

    def test_hashes(self):
        self.assertEqual(d_after("""hash(hdr.head.d, HashAlgorithm.crc32, 32w0, { hdr.head.a, hdr.head.c },
                                         64w0x100000000);""",
                                 a=1, c=2), zlib.crc32(b"\1\0\2"))
        self.assertEqual(d_after("hash(hdr.head.d, HashAlgorithm.crc32, 32w100, { hdr.head.a }, 32w10);", a=1),
                         100 + zlib.crc32(b"\1") % 10)
        self.assertEqual(d_after("hash(hdr.head.d, HashAlgorithm.csum16, 32w7, { hdr.head.c }, 32w0);", c=2), 7)

    def test_csum16_is_that_of_rfc_1071(self):
        self.assertEqual(csum16(bytes.fromhex("0001f203f4f5f6f7")), 0xffff - 0xddf2)


if __name__ == "__main__":
    unittest.main()
