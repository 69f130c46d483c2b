#!/usr/bin/env python3
"""Goal: what a compiler for v1model refuses is refused, with a message that says why, at the line of the fault.
Method: a list of faults. Each is put into a program that is right without it; the line with the fault ends in
`//!`."""

import unittest

import faults_of_declarations
import faults_of_expressions
from interpreter.check import check
from interpreter.lexer import decode
from interpreter.source import P4Error
from p4_testing import program_of, text_of

FAULTS = faults_of_expressions.FAULTS | faults_of_declarations.FAULTS


class Refusals(unittest.TestCase):
    def test_the_program_is_right_without_a_fault(self):
        self.assertEqual(program_of().warnings, [])

    def test_every_fault_is_refused_at_its_line(self):
        self.assertGreater(len(FAULTS), 200)
        for name, (gaps, message) in FAULTS.items():
            with self.subTest(name):
                text = text_of(**gaps)
                lines = [number for number, line in enumerate(text.splitlines(), 1)
                         if line.rstrip().endswith("//!")]
                with self.assertRaises(P4Error) as caught:
                    check(text, "test.p4")
                self.assertIn(message, str(caught.exception))
                if lines:
                    self.assertEqual([caught.exception.place.line], lines, str(caught.exception))

    def test_without_includes_nothing_is_known(self):
        for text, message in (("", "has no main"), ("packet_in x;", "expected a declaration"),
                              ("#include <core.p4>\nV1Switch() main;", "expected a declaration")):
            with self.assertRaises(P4Error) as caught:
                check(text, "test.p4")
            self.assertIn(message, str(caught.exception))

    def test_nesting_has_a_limit(self):
        for text in ("(" * 500 + "1" + ")" * 500, "1" + "+1" * 500, "-" * 500 + "1", "meta" + ".m" * 500):
            with self.assertRaises(P4Error) as caught:
                program_of(apply=f"meta.m = {text};")
            self.assertRegex(str(caught.exception), "more than 60|has no member")
        with self.assertRaisesRegex(P4Error, "nested more than 60"):
            program_of(apply="{" * 500 + "}" * 500)

    def test_a_fault_in_an_included_file_is_there(self):
        files = {"a.p4": b"const bit<8> kOne = 1;\n#include \"b.p4\"\n", "b.p4": b"\nconst bit<8> kTwo = kThree;\n",
                 "twice.p4": b"#include \"twice.p4\"\n"}
        for name, message in (("a.p4", "b.p4:2:21: error: there is no declaration of kThree"),
                              ("twice.p4", "twice.p4:1:1: error: a second include of twice.p4")):
            with self.assertRaises(P4Error) as caught:
                check(f'#include "{name}"\n', "test.p4", files.__getitem__)
            self.assertIn(message, str(caught.exception))

    def test_bytes_that_are_no_text_are_refused(self):
        with self.assertRaisesRegex(P4Error, "x.p4:2:1: error: the file is not UTF-8"):
            decode(b"// fine\n\xff", "x.p4")


class Warnings(unittest.TestCase):
    """What a compiler only warns of."""

    def assert_warns(self, message, **gaps):
        self.assertIn(message, "\n".join(program_of(**gaps).warnings))

    def test_a_number_that_does_not_fit(self):
        self.assert_warns("256 does not fit into bit<8>: it is 0", apply="meta.m = 256;")
        self.assert_warns("-1 does not fit into bit<8>: it is 255", apply="meta.m = -1;")
        self.assert_warns("300 does not fit into bit<8>: it is 44", apply="meta.m = 8w300;")

    def test_a_name_that_hides_another(self):
        self.assert_warns("meta hides a declaration outside", apply="bit<8> meta = 1;")

    def test_a_state_without_a_transition(self):
        self.assert_warns("it rejects", states="state start { }")

    def test_a_state_that_is_not_reached(self):
        self.assert_warns("no transition leads to the state lost",
                          states="state start { transition accept; } state lost { transition accept; }")

    def test_a_variable_that_is_not_written(self):
        message = "x may be read before it is written"
        for apply in ("bit<8> x; meta.m = x;", "bit<8> x; if (meta.flag) { x = 1; } meta.m = x + 1;",
                      "bit<8> x; if (meta.flag) { x = 1; } else { meta.m = 2; } meta.m = x;",
                      "bit<8> x; x[3:0] = 1; meta.m = x;", "bit<8> x; if (x == 1) { meta.m = 1; }",
                      "bit<8> x; y(x); meta.m = x;",
                      "bit<8> x; switch (t.apply().action_run) { drop: { x = 1; } } meta.m = x;"):
            self.assert_warns(message, apply=apply, locals="action y(in bit<8> p) { } table t { actions = { drop; } }")
        for apply in ("bit<8> x = 1; meta.m = x;", "bit<8> x; if (meta.flag) { x = 1; } else { x = 2; } meta.m = x;",
                      "bit<8> x; if (meta.flag) { x = 1; } else { return; } meta.m = x;", "bit<8> x; y(x); meta.m = x;",
                      "bit<8> x; switch (t.apply().action_run) { drop: { x = 1; } default: { x = 2; } } meta.m = x;",
                      "bit<32> x; r.read(x, 1); meta.n = x;", "bit<8> x; { x = 1; } meta.m = x;"):
            self.assertEqual(program_of(apply=apply, locals="""action y(out bit<8> p) { p = 1; }
                register<bit<32>>(4) r; table t { actions = { drop; } }""").warnings, [], apply)

    def test_a_parameter_that_is_not_written(self):
        self.assert_warns("p may not have been written when its block ends", locals="action x(out bit<8> p) { }")
        self.assert_warns("y may be read before", states="""state start { bit<8> y; meta.m = y; transition accept; }""")

    def test_a_case_behind_the_default(self):
        self.assert_warns("no value comes to this case",
                          states="state start { transition select(meta.m) { default: accept; 1: reject; } }")


if __name__ == "__main__":
    unittest.main()
