#!/usr/bin/env python3
"""Goal: the tests see when the P4 program or its interpreter is broken.
Method: a copy of this folder with one change in it, for each line of a list; the test that the line names must pass
without the change, and fail with it."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS_MAX = 300

# (file, the test that fails, what is there once, what is put there)
MUTANTS = [
    # The program.
    ("fat_btree_parser.p4", "fat_btree.FatBtree.test_a_key_is_the_number",
     "meta.key_low = hdr.key_half.value ++ hdr.key_byte.value ++ 8w0;",
     "meta.key_low = hdr.key_half.value ++ 8w0 ++ hdr.key_byte.value;"),
    ("fat_btree_parser.p4", "fat_btree.FatBtree.test_the_rest_passes",
     "0 &&& 0x3fff",
     "0 &&& 0x1fff"),
    ("fat_btree_parser.p4", "fat_btree.FatBtree.test_the_rest_passes",
     "0 &&& 0x30,",
     "0 &&& 0x10,"),
    ("fat_btree_tree.p4", "fat_btree.FatBtree.test_pivots_are_compared_by_halves",
     "(0, _, 1) : take_key_low();",
     "(0, _, 1) : take_sub_low();"),
    ("fat_btree_tree.p4", "fat_btree.FatBtree.test_pivots_are_compared_by_halves",
     "(_, 1, _) : take_key_high();",
     "(_, 1, _) : take_sub_high();"),
    ("fat_btree_tree.p4", "fat_btree.FatBtree.test_pivots_are_compared_by_halves",
     "sub_high = high - key_high;",
     "sub_high = key_high - high;"),
    ("fat_btree_tree.p4", "fat_btree.FatBtree.test_a_get_gets_the_hint_of_its_node",
     "inner : exact @name(\"table\"); key_low[15:0] : range",
     "inner : exact @name(\"table\"); key_low[31:16] : range"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_the_rest_passes",
     "meta.payload_excess != 11",
     "meta.payload_excess != 12"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_the_rest_passes",
     "meta.ip_excess != kIpBytes",
     "false"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_server_is_asked_for_its_own_keys_only",
     "hdr.ip.destination != meta.server_address\n",
     "true\n"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_checksum_of_udp_is_none_or_right",
     "if (hdr.udp.check == 0) {",
     "if (hdr.udp.check == 1) {"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_checksum_of_udp_is_none_or_right",
     "if (hdr.udp.check != 0) {",
     "if (true) {"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_only_the_last_hop_clears",
     "if (meta.is_last == 1 && meta.address_high[31:16] == 0) {",
     "if (meta.address_high[31:16] == 0) {"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_read_gets_address_and_rkey",
     "meta.destination_changes, 160w0, meta",
     "meta.destination_changes, 152w0, meta"),
    ("fat_btree_headers.p4", "fat_btree.FatBtree.test_a_read_gets_address_and_rkey",
     "0xe9ec3db1",
     "0xe9ec3db0"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_read_gets_address_and_rkey",
     "hdr.udp.bytes = hdr.udp.bytes - kTemporaryBytes;",
     "hdr.udp.bytes = hdr.udp.bytes;"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_a_read_gets_address_and_rkey",
     "meta.not_ip_bytes = ~hdr.ip.bytes;",
     "meta.not_ip_bytes = hdr.ip.bytes;"),
    ("fat_btree.p4", "fat_btree.FatBtree.test_the_rest_passes",
     "|| (meta.kind == kBareRead && meta.is_first == 0)",
     ""),
    ("fat_btree_tree.p4", "budget.Budget.test_the_switch_fits",
     "        if (is_wanted == 1) {",
     "        stage_1.apply();\n        if (is_wanted == 1) {"),
    # The interpreter.
    ("interpreter/p4types.py", "language.Arithmetic.test_wraps",
     "value &= (1 << self.width) - 1",
     "value &= (1 << self.width + 1) - 1"),
    ("interpreter/operators.py", "language.Arithmetic.test_saturates",
     "return min(max(value, left.low()), left.high())",
     "return left.wrap(value)"),
    ("interpreter/parse_expressions.py", "language.Arithmetic.test_binds_as_the_grammar_says",
     "(\"==\", \"!=\"), (\"<\", \">\", \"<=\", \">=\"), (\"|\",), (\"^\",), (\"&\",),",
     "(\"|\",), (\"^\",), (\"&\",), (\"==\", \"!=\"), (\"<\", \">\", \"<=\", \">=\"),"),
    ("interpreter/check_expressions.py", "refusals.Refusals.test_every_fault",
     "return to.width == from_.width or to.signed == from_.signed",
     "return True"),
    ("interpreter/check_expressions.py", "refusals.Refusals.test_every_fault",
     "if not 0 <= low <= high < base.width:",
     "if not 0 <= low <= high <= base.width:"),
    ("interpreter/check.py", "refusals.Refusals.test_every_fault",
     "if \"start\" not in node.states_by_name:",
     "if not node.states_by_name:"),
    ("interpreter/check_calls.py", "refusals.Refusals.test_every_fault",
     "            self.check_lvalue(value)\n        else:\n            self.assignable",
     "        else:\n            self.assignable"),
    ("interpreter/tables.py", "language.Tables.test_the_highest_priority_wins",
     "key=lambda entry: -entry.priority",
     "key=lambda entry: entry.priority"),
    ("interpreter/tables.py", "language.Tables.test_the_longest_prefix_wins",
     "high.bit_count()",
     "-high.bit_count()"),
    ("interpreter/values.py", "language.Statements.test_undefined_values_have_no_effect",
     "if value is UNDEFINED:\n            raise P4Error(place",
     "if False:\n            raise P4Error(place"),
    ("interpreter/evaluate.py", "language.Statements.test_arguments_that_are_headers_are_copied",
     "passed = copied(self.value(value, frame))",
     "passed = self.value(value, frame)"),
    ("interpreter/switch.py", "language.Packets.test_verify_and_select_tell_errors",
     "raise Reject(\"NoMatch\")",
     "return \"accept\""),
    ("interpreter/checksums.py", "language.Packets.test_checksums_with_the_payload",
     "data += b\"\\0\" * (len(data) % 2)",
     "data = data[:len(data) & ~1]"),
    ("interpreter/runtime.py", "language.Runtime.test_what_does_not_fit_is_refused",
     "(priority > 0) != state.needs_priority",
     "priority < 0"),
    ("interpreter/budget.py", "budget.Budget.test_what_is_written_must_not_be_read_later",
     "last_of(self.read_at, use.writes)",
     "0"),
    ("interpreter/budget.py", "budget.Budget.test_what_depends_on_a_hit",
     "self.earliest.append(stage + 1)",
     "self.earliest.append(1)"),
    ("interpreter/check_written.py", "refusals.Warnings.test_a_variable_that_is_not_written",
     "return a & b",
     "return a | b"),
    ("interpreter/lexer.py", "refusals.Refusals.test_every_fault",
     "if len(said) > DIGITS_MAX:",
     "if False:"),
]


def passes(folder, test):
    script, suite, name = test.split(".")
    run = subprocess.run([sys.executable, f"{script}_test.py", suite, "-k", name], cwd=folder, capture_output=True,
                         text=True, check=False, timeout=SECONDS_MAX, env=os.environ | {"SKEP_SEED": "1"})
    return run.returncode == 0 and "Ran 0 tests" not in run.stderr


class Mutants(unittest.TestCase):
    def test_each_is_found(self):
        tests = {}
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "p4")
            shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
            for file, test, old, new in MUTANTS:
                with self.subTest(file=file, old=old):
                    if test not in tests:
                        tests[test] = passes(folder, test)
                    self.assertTrue(tests[test], f"{test} fails without the mutant")
                    self.try_one(os.path.join(folder, file), old, new, lambda: passes(folder, test))

    def try_one(self, path, old, new, still_passes):
        with open(path, encoding="utf-8") as f:
            sound = f.read()
        self.assertEqual(sound.count(old), 1, "the text that is replaced is there once")
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(sound.replace(old, new))
            self.assertFalse(still_passes(), "the mutant lives")
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(sound)


if __name__ == "__main__":
    unittest.main()
