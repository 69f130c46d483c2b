#!/usr/bin/env python3
"""Goal: fat_btree.p4 fits into a switch, and a program that does not is told why.
Method: small programs, each with one thing too much; the stages of others are as they must be."""

import unittest

from interpreter import budget
from interpreter.check import check_file
from p4_testing import FAT_BTREE, program_of

TABLE = """action add_{0}(bit<8> x) {{ meta.m = meta.m + x; }}
    table t_{0} {{ actions = {{ add_{0}; }} default_action = add_{0}(1); }}"""
OTHER = """action set_{0}() {{ meta.{1} = 1; }}
    table o_{0} {{ actions = {{ set_{0}; }} default_action = set_{0}(); }}"""


def report_of(**gaps):
    return budget.of(program_of(**gaps))


def stages_of(**gaps):
    """The stage of each thing of the ingress."""
    return {name: stage for stage, names in report_of(**gaps).stages["ingress"].items() for name in names}


class Budget(unittest.TestCase):
    def assert_too_much(self, message, **gaps):
        self.assertRegex("\n".join(report_of(**gaps).problems), message)

    def test_the_switch_fits(self):
        report = budget.of(check_file(FAT_BTREE))
        self.assertEqual(report.problems, [])
        self.assertEqual([max(stages) for stages in report.stages.values()], [12, 7])
        self.assertIn("too much", budget.text(budget.Report(problems=["x"])))
        self.assertNotIn("too much", budget.text(report))

    def test_tables_that_wait_for_each_other(self):
        for count, is_too_much in ((12, False), (13, True)):
            gaps = {"locals": "".join(TABLE.format(i) for i in range(count)),
                    "apply": "".join(f"t_{i}.apply();" for i in range(count))}
            report = report_of(**gaps)
            self.assertEqual(max(report.stages["ingress"]), count)
            self.assertEqual(bool(report.problems), is_too_much, report.problems)
        self.assert_too_much("t_12 of ingress is in stage 13 of 12", **gaps)

    def test_tables_that_do_not_wait_are_side_by_side(self):
        fields = " ".join(f"bit<8> f_{i};" for i in range(17))
        gaps = {"metadata": fields, "locals": "".join(OTHER.format(i, f"f_{i}") for i in range(17)),
                "apply": "".join(f"o_{i}.apply();" for i in range(17))}
        self.assertEqual([len(names) for _, names in sorted(report_of(**gaps).stages["ingress"].items())], [16, 1])

    def test_what_is_read_must_have_been_written(self):
        found = stages_of(apply="meta.m = hdr.head.a; hdr.head.b = meta.m; hdr.head.a = 3;")
        self.assertEqual(found, {"meta.m =": 1, "hdr.head.b =": 2, "hdr.head.a =": 1})

    def test_what_is_written_must_not_be_read_later(self):
        found = stages_of(apply="meta.m = hdr.head.a; hdr.head.c[7:0] = meta.m; "
                                "meta.n[7:0] = hdr.head.c[7:0] ^ hdr.head.b; hdr.head.b = 5;")
        self.assertEqual([found["meta.n ="], found["hdr.head.b ="]], [3, 3])

    def test_a_header_is_its_fields(self):
        found = stages_of(apply="hdr.head.a = 3; head_t other = hdr.head; hdr.tail.setInvalid();"
                                "meta.flag = hdr.tail.isValid();")
        self.assertEqual([found["other ="], found["meta.flag ="]], [2, 2])

    def test_branches_do_not_wait_for_each_other(self):
        found = stages_of(apply="meta.m = 1; if (meta.m == 1) { hdr.head.a = 1; } else { hdr.head.a = 2; } "
                                "hdr.head.b = hdr.head.a;")
        self.assertEqual(found, {"meta.m =": 1, "hdr.head.a =": 2, "hdr.head.b =": 3})

    def test_what_depends_on_a_hit_waits_for_the_table(self):
        locals_ = "table t { key = { hdr.head.a : exact; } actions = { drop; NoAction; } }"
        for apply in ("if (t.apply().hit) { hdr.head.b = 1; }",
                      "switch (t.apply().action_run) { drop: { hdr.head.b = 1; } }"):
            self.assertEqual(stages_of(locals=locals_, apply=apply), {"t": 1, "hdr.head.b =": 2})

    def test_parameters_of_controls_are_their_arguments(self):
        found = stages_of(before="control S(in bit<8> x, inout bit<8> y) { apply { y = x; } }",
                          locals="S() one; S() two;",
                          apply="one.apply(hdr.head.a, meta.m); two.apply(meta.m, hdr.head.b);")
        self.assertEqual(found, {"one.meta.m =": 1, "two.hdr.head.b =": 2})

    def test_parameters_of_actions_are_their_arguments(self):
        found = stages_of(locals="action x(inout bit<8> p) { p = p + 1; }", apply="x(meta.m); hdr.head.b = meta.m;")
        self.assertEqual(found, {"x()": 1, "hdr.head.b =": 2})

    def test_operations_one_after_the_other(self):
        found = stages_of(apply="meta.m = hdr.head.a + hdr.head.b + 1; hdr.head.a = meta.m[3:0] ++ meta.m[7:4];")
        self.assertEqual(found, {"meta.m =": 2, "hdr.head.a =": 3})
        self.assert_too_much(
            "the action x of a table takes 2 stages",
            locals="action x() { meta.m = hdr.head.a + 1; hdr.head.b = meta.m; }"
                   "table t { actions = { x; } default_action = x(); }",
            apply="t.apply();")

    def test_wide_ranges(self):
        for width, is_too_much in ((20, False), (21, True)):
            locals_ = f"table t {{ key = {{ meta.n[{width - 1}:0] : range; }} actions = {{ drop; NoAction; }} }}"
            self.assertEqual(bool(report_of(locals=locals_, apply="t.apply();").problems), is_too_much)
        self.assert_too_much("a range of 21 bits, more than 20", locals=locals_, apply="t.apply();")

    def test_wide_arithmetic(self):
        for apply in ("meta.w = meta.w + 1;", "if (meta.w == 5) { drop(); }",
                      "if (hdr.head.a == 1 && meta.w < 3) { drop(); }",
                      "meta.w = ~meta.w;", "meta.flag = meta.w > 7;"):
            self.assert_too_much("of 33 bits, more than 32", metadata="bit<33> w;", apply=apply)
        for apply in ("meta.w = (bit<33>)(meta.n + 1);", "meta.w = meta.n ++ 1w0;", "meta.w[31:0] = meta.n;"):
            self.assertEqual(report_of(metadata="bit<33> w;", apply=apply).problems, [])

    def test_what_no_switch_computes(self):
        self.assert_too_much("a product", apply="meta.n = meta.n * meta.n;")
        self.assert_too_much("a shift by a value", apply="meta.n = meta.n << meta.m;")

    def test_memory_of_a_stage(self):
        exact = "table t {{ key = {{ meta.n : exact; }} actions = {{ set_d; NoAction; }} size = {}; }}"
        ternary = "table t {{ key = {{ meta.n : ternary; }} actions = {{ drop; NoAction; }} size = {}; }}"
        most = budget.SRAM_BITS_MAX // (32 + 32 + budget.ENTRY_BITS)
        for text, size, what in ((exact, most, "SRAM"), (ternary, budget.TCAM_ROWS_MAX, "TCAM")):
            self.assertEqual(report_of(locals=text.format(size), apply="t.apply();").problems, [])
            self.assert_too_much(f"stage 1 needs .* {what}", locals=text.format(size + 1), apply="t.apply();")

    def test_both_pipelines_share_the_memory(self):
        report = report_of(apply="hdr.head.a = 1;", egress="hdr.head.a = 2;")
        self.assertEqual([list(stages) for stages in report.stages.values()], [[1], [1]])


if __name__ == "__main__":
    unittest.main()
