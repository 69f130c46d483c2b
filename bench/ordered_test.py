#!/usr/bin/env python3
"""Goal: scripts/bench-ordered runs every step and puts its table and chart into the page; what has run
is not run again unless asked for; a step that fails leaves nothing that looks like a result.
usage: ordered_test.py path/to/skep-bench

Method: the real program on very few items, into a folder of its own and a copy of docs/ordered.md; so
the steps of the script and the sections of the page are the same ones."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTION = re.compile(r"<!-- figures of (\w+) -->\n(.*?)<!-- end of \1 -->\n", re.DOTALL)


class OrderedTest(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "page.md"
        shutil.copy(ROOT / "docs/ordered.md", self.page)

    def run_script(self, **variables):
        small = {"RECORDS": "400", "OPS": "100", "REPEATS": "1", "LIMITS": "0", "BENCH": self.program,
                 "FIGURES": str(self.folder / "figures"), "PAGE": str(self.page)}
        return subprocess.run([ROOT / "scripts/bench-ordered"], env={**os.environ, **small, **variables},
                              capture_output=True, text=True, check=False)

    def sections(self):
        return dict(SECTION.findall(self.page.read_text(encoding="utf-8")))

    def test_every_section_is_filled_and_every_chart_is_drawn(self):
        run = self.run_script()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        sections = self.sections()
        ran = re.findall(r"^(\w+): \d+ s$", run.stdout, re.MULTILINE)
        self.assertEqual(sorted(ran), sorted(sections))
        for step, text in sections.items():
            self.assertRegex(text, r"\| ---: \|\n\| .*\d", step)
            self.assertIn("```sh\nskep-bench compare --json --items ", text)
            self.assertRegex(text, r"cores; \d{4}-\d\d-\d\d; commit .")
            chart = self.folder / "figures" / f"{step}.svg"
            self.assertEqual(chart.exists(), f"(figures/{step}.svg)" in text)
            if chart.exists():
                ElementTree.parse(chart)

    def test_steps_are_kept_until_they_are_asked_for_again(self):
        self.run_script(STEPS="one snapshot")
        figures = self.folder / "figures"
        before = {step: (figures / f"{step}.json").stat().st_mtime_ns for step in ("one", "snapshot")}
        self.assertFalse((figures / "f13.json").exists())
        page = self.page.read_text(encoding="utf-8")
        self.assertEqual(self.run_script(STEPS="one snapshot").returncode, 0)
        self.assertEqual(self.page.read_text(encoding="utf-8"), page)
        self.run_script(STEPS="one snapshot", AGAIN="one")
        after = {step: (figures / f"{step}.json").stat().st_mtime_ns for step in ("one", "snapshot")}
        self.assertNotEqual(after["one"], before["one"])
        self.assertEqual(after["snapshot"], before["snapshot"])

    def test_a_step_that_fails_leaves_no_result(self):
        page = self.page.read_text(encoding="utf-8")
        self.assertNotEqual(self.run_script(STEPS="one", OPS="0").returncode, 0)
        self.assertFalse((self.folder / "figures/one.json").exists())
        self.assertEqual(self.page.read_text(encoding="utf-8"), page)
        unknown = self.run_script(STEPS="two")
        self.assertIn("no step two", unknown.stderr)
        self.assertNotEqual(unknown.returncode, 0)


if __name__ == "__main__":
    OrderedTest.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
