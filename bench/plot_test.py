#!/usr/bin/env python3
"""Goal: plot.py shows every point where it belongs and nothing else, in well-formed SVG.
Method: small results; positions are read back from the SVG and compared with what they stand for."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def row(engine, workload, mops):
    return {"engine": engine, "workload": workload, "mops": mops}


RESULT = {"threads": 1, "rows": [row("absl", "scan1", 1), row("b<tree", "scan1", 4),
                                 row("absl", "scan10", 2), row("b<tree", "scan10", 8),
                                 row("absl", "scan100", 4), row("b<tree", "scan100", None)]}


class PlotTest(unittest.TestCase):
    def run_plot(self, *arguments, results=(RESULT,)):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write("".join(json.dumps(result) + "\n" for result in results))
            f.flush()
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                plot.main([*arguments, f.name])
            return out.getvalue()

    def svg(self, *arguments, **more):
        return ElementTree.fromstring(self.run_plot(*arguments, **more))

    def shown(self, svg, tag, attribute):
        """The attribute of every marker, by what its tooltip says."""
        return {group.find(SVG + "title").text: float(group.find(SVG + tag).get(attribute))
                for group in svg.iter(SVG + "g")}

    def test_bars_are_as_high_as_their_figures(self):
        svg = self.svg("bar", "--x", "workload", "--y", "mops", "--series", "engine")
        heights = self.shown(svg, "rect", "height")
        self.assertEqual(len(heights), 5, "the point without a figure is left out")
        unit = heights["absl, scan1: 1"]
        self.assertGreater(unit, 0)
        for label, height in heights.items():
            self.assertAlmostEqual(height / unit, float(label.rpartition(" ")[2]), delta=0.05)

    def test_logarithmic_axes_make_equal_ratios_equal_steps(self):
        svg = self.svg("line", "--x", "workload", "--x-match", r"scan(\d+)", "--y", "mops",
                       "--series", "engine", "--log-x", "--log-y")
        for attribute in ("cx", "cy"):
            at = self.shown(svg, "circle", attribute)
            steps = (at["absl, 10: 2"] - at["absl, 1: 1"], at["absl, 100: 4"] - at["absl, 10: 2"])
            self.assertNotEqual(steps[0], 0)
            self.assertAlmostEqual(steps[0], steps[1], delta=0.3)

    def test_points_of_several_objects_are_their_median(self):
        table = self.run_plot("table", "--x", "threads", "--y", "mops",
                              results=[{"threads": 2, "mops": m} for m in (1, 9, 2)])
        self.assertEqual(table, "| threads | mops |\n| --- | ---: |\n| 2 | 2 |\n")

    def test_tables_have_a_line_for_each_x_and_a_column_for_each_series(self):
        table = self.run_plot("table", "--x", "{workload} x{threads}", "--y", "mops",
                              "--series", "engine", "--rename", "b<tree=tree", "--format", "{:g}")
        self.assertEqual(table, "| workload xthreads | absl | tree |\n| --- | ---: | ---: |\n"
                                "| scan1 x1 | 1 | 4 |\n| scan10 x1 | 2 | 8 |\n"
                                "| scan100 x1 | 4 | - |\n")

    def test_tables_have_columns_for_several_figures(self):
        result = {"threads": 2, "rows": [
            {"engine": "a", "x": 1, "mops": 0.12345, "p99_ns": 2500, "probes": [4, 2, 900]},
            {"engine": "b", "x": 1, "mops": 12.345, "p99_ns": 1.5e6, "probes": []}]}
        table = self.run_plot("table", "--x", "x", "--y", "mops=M/s", "--y", "p99_ns/1000=p99, us",
                              "--y", "probes", "--series", "engine", "--omit", "^a M/s$",
                              results=[result])
        self.assertEqual(table, "| x | b M/s | a p99, us | b p99, us | a probes |\n"
                                "| --- | ---: | ---: | ---: | ---: |\n"
                                "| 1 | 12.3 | 2.5 | 1500 | 4 |\n")

    def test_lines_may_turn_back(self):
        result = {"rows": [{"mops": 1, "ns": 1}, {"mops": 3, "ns": 2}, {"mops": 2, "ns": 3}]}
        arguments = ("line", "--x", "mops", "--y", "ns")
        for more, turns in (((), False), (("--in-order",), True)):
            line = self.svg(*arguments, *more, results=[result]).find(SVG + "polyline")
            xs = [float(point.partition(",")[0]) for point in line.get("points").split()]
            self.assertEqual(xs != sorted(xs), turns)

    def test_a_section_of_a_page_is_replaced(self):
        made = {"machine": "M, 2 cores", "date": "2026-11-21", "commit": "abc"}
        results = [{"x": x, "y": x * x, "command": f"skep-bench {x}", **made} for x in (2, 3)]
        mark = "<!-- figures of one -->\n{}<!-- end of one -->\n"
        table = ("\n![one](one.svg)\n\n| x | y |\n| --- | ---: |\n| 2 | 4 |\n| 3 | 9 |\n\n"
                 "```sh\nskep-bench 2\nskep-bench 3\n```\n\nM, 2 cores; 2026-11-21; commit abc.\n\n")
        with tempfile.NamedTemporaryFile("w+", suffix=".md") as page:
            page.write("before\n" + mark.format("old\n") + "after\n")
            page.flush()
            arguments = ("table", "--x", "x", "--y", "y", "--into", page.name, "--image", "one.svg")
            for _ in range(2):
                self.assertEqual(self.run_plot(*arguments, "--section", "one", results=results), "")
                with open(page.name, encoding="utf-8") as f:
                    self.assertEqual(f.read(), "before\n" + mark.format(table) + "after\n")
            with self.assertRaises(SystemExit):
                self.run_plot(*arguments, "--section", "two", results=results)

    def test_where_chooses_points(self):
        svg = self.svg("bar", "--x", "workload", "--y", "mops", "--where", "engine=absl",
                       "--where", "threads=1", "--mark", "limit=20")
        self.assertEqual(len(self.shown(svg, "rect", "height")), 3)
        self.assertIn("limit", [text.text for text in svg.iter(SVG + "text")])

    def test_says_when_there_is_nothing_to_show(self):
        with self.assertRaises(SystemExit):
            self.run_plot("bar", "--x", "workload", "--y", "none")

    def test_ticks_surround_the_numbers(self):
        for low, high in ((0, 1), (3, 3), (0.2, 17), (5, 4000), (0.001, 0.002)):
            for log in (False, True):
                if log and low == 0:
                    continue
                scale = plot.Scale([low, high], log, 0, 100)
                self.assertLessEqual(scale.ticks[0], low * 1.001)
                self.assertGreaterEqual(scale.ticks[-1], high * 0.999)
                self.assertLessEqual(len(scale.ticks), 14)


if __name__ == "__main__":
    unittest.main()
