#!/usr/bin/env python3
"""Goal: tidy.py finds each kind of fault, at its line, and nothing in a clean tree.
Method: a small clean tree; each test plants one fault in a copy of it and names the one finding."""

import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402

CLEAN = {
    "include/skep/store.h": "// store.h: the door.\n#pragma once\n",
    "src/base/CMakeLists.txt": "skep_library(base SOURCES clock.cc)\nskep_test(t SOURCES clock_test.cc)\n",
    "src/base/clock.h": "// clock.h: time.\n#pragma once\n#include <cstdint>\n",
    "src/base/clock.cc": '#include "base/clock.h"\n// As clock.h says. <gone.h>\n',
    "src/base/clock_test.cc": '#include "sim/sim_clock.h"\n',
    "src/engine/CMakeLists.txt": "skep_library(engine SOURCES store.cc)\n",
    "src/keyspace/CMakeLists.txt": "skep_library(keyspace SOURCES factory.cc)\n",
    "src/keyspace/factory.cc": "\n",
    "src/rma/CMakeLists.txt": "skep_library(rma SOURCES fabric_bench.cc)\n",
    "src/rma/fabric_bench.cc": "\n",
    "bench/CMakeLists.txt": "skep_library(bench SOURCES engine_spec.cc)\n",
    "bench/engine_spec.cc": "\n",
    "src/engine/engine.h": '// engine.h: an index.\n#pragma once\n#include "skep/store.h"\n',
    "src/btree/btree_engine.h": '// btree_engine.h: a tree.\n#pragma once\n#include "engine/engine.h"\n',
    "src/engine/store.cc": '#include "base/arena.h"\nconst char* s = "// not gone.h";\n',
    "docs/page.md": "See [the door](../include/skep/store.h#x), `engine/engine.h`, "
                    "https://example.org/a.h and *_test.cc.\n",
}


def function(lines):
    return "void F() {\n" + "  G();\n" * (lines - 2) + "}\n"


@unittest.mock.patch.multiple(tidy, LONGER_FILES={}, LONGER_FUNCTIONS={}, BARE_MUTEXES=set())
class TidyTest(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **changes}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            return tidy.check_tree(root)

    def assert_finds(self, changes, path, line, words):
        found = self.findings(changes)
        self.assertEqual([(p, n) for p, n, _ in found], [(path, line)], found)
        self.assertIn(words, found[0][2])

    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.findings({}), [])

    def test_a_file_that_is_not_built(self):
        self.assert_finds({"src/base/lost_test.cc": "\n"}, "src/base/lost_test.cc", 1, "never built")
        commented = {"src/engine/CMakeLists.txt": "skep_library(engine SOURCES b.cc) # store.cc\n",
                     "src/engine/b.cc": "\n"}
        self.assert_finds(commented, "src/engine/store.cc", 1, "never built")
        longer = {"src/base/ck.cc": "\n"}  # clock.cc ends in ck.cc
        self.assert_finds(longer, "src/base/ck.cc", 1, "never built")

    def test_a_test_script_that_is_not_run(self):
        self.assert_finds({"tests/a_test.sh": "\n"}, "tests/a_test.sh", 1, "never built")
        self.assertEqual(self.findings({"tests/sub/a_test.sh": "\n",
                                        "tests/CMakeLists.txt": "add_test(COMMAND sub/a_test.sh)\n"}), [])

    def test_a_header_without_its_name_or_guard(self):
        self.assert_finds({"src/base/a.h": "// b: odd.\n#pragma once\n"}, "src/base/a.h", 1, "`// a.h: `")
        self.assert_finds({"src/base/a.h": "// a.h: odd.\n"}, "src/base/a.h", 1, "#pragma once")

    def test_a_leftover(self):
        text = CLEAN["src/base/clock.cc"] + "// " + "TO" + "DO: more\n"
        self.assert_finds({"src/base/clock.cc": text}, "src/base/clock.cc", 3, "leftover")

    def test_a_reference_to_a_file_that_is_gone(self):
        text = CLEAN["src/base/clock.cc"]
        self.assert_finds({"src/base/clock.cc": text + "\n// See gone.h.\n"},
                          "src/base/clock.cc", 4, "no file gone.h")
        self.assert_finds({"src/base/clock.cc": text + "/* a\n b: engine/clock.h */\n"},
                          "src/base/clock.cc", 4, "no file engine/clock.h")
        self.assert_finds({"docs/page.md": "[x](gone.html)\n"}, "docs/page.md", 1, "leads nowhere")
        self.assert_finds({"src/base/CMakeLists.txt": CLEAN["src/base/CMakeLists.txt"] + "# a.cmake\n"},
                          "src/base/CMakeLists.txt", 3, "no file a.cmake")

    def test_a_file_that_is_too_long(self):
        self.assert_finds({"docs/long.md": "x\n" * (tidy.PAGE_LINES_MAX + 1)},
                          "docs/long.md", tidy.PAGE_LINES_MAX + 1, "longer than")
        self.assert_finds({"src/base/clock.cc": CLEAN["src/base/clock.cc"] + "\n" * tidy.LINES_MAX},
                          "src/base/clock.cc", tidy.LINES_MAX + 1, "longer than")

    def test_a_file_that_was_too_long_and_only_shrinks(self):
        text = "\n" * 600
        for listed, findings in ((600, []), (590, ["longer than 590"]), (610, ["has 600 lines now"])):
            with unittest.mock.patch.object(tidy, "LONGER_FILES", {"src/base/clock.cc": listed}):
                found = self.findings({"src/base/clock.cc": CLEAN["src/base/clock.cc"] + text[2:]})
                self.assertEqual(len(found), len(findings), found)
                for (_, _, what), words in zip(found, findings):
                    self.assertIn(words, what)

    def test_a_function_that_is_too_long(self):
        clock = CLEAN["src/base/clock.cc"]
        self.assertEqual(self.findings({"src/base/clock.cc": clock + function(70)}), [])
        self.assert_finds({"src/base/clock.cc": clock + function(71)}, "src/base/clock.cc", 3,
                          "F is 71 lines long")
        with unittest.mock.patch.object(tidy, "LONGER_FUNCTIONS", {("src/base/clock.cc", "F"): 71}):
            self.assertEqual(self.findings({"src/base/clock.cc": clock + function(71)}), [])
            self.assert_finds({"src/base/clock.cc": clock + function(72)}, "src/base/clock.cc", 3,
                              "more than 71")
            self.assert_finds({"src/base/clock.cc": clock + function(70)}, "tests/tidy/tidy.py", 1,
                              "which is not longer")

    def test_a_mutex_that_the_analysis_does_not_know(self):
        text = CLEAN["src/engine/store.cc"]
        self.assert_finds({"src/engine/store.cc": text + "std::mutex m;\n"}, "src/engine/store.cc", 3,
                          "base/mutex.h")
        self.assert_finds({"src/engine/store.cc": text + "std::condition_variable_any c;\n"},
                          "src/engine/store.cc", 3, "base/mutex.h")

    def test_a_line_that_is_too_long(self):
        self.assert_finds({"src/base/clock.cc": CLEAN["src/base/clock.cc"] + "// " + "x" * 98 + "\n"},
                          "src/base/clock.cc", 3, "longer than 100 columns")

    def test_an_include_against_the_direction(self):
        for path, include in [("src/base/clock.h", "engine/engine.h"),
                              ("src/engine/engine.h", "wire/resp.h"),
                              ("src/engine/engine.h", "btree/btree_engine.h"),
                              ("src/btree/btree_engine.h", "server/server.h"),
                              ("include/skep/store.h", "base/clock.h")]:
            text = CLEAN[path] + f'#include "{include}"\n'
            self.assert_finds({path: text}, path, len(text.splitlines()), "may include only")

    def test_a_file_that_does_not_begin_with_its_header(self):
        late = {"src/base/clock.cc": '#include <cstdint>\n#include "base/clock.h"\n'}
        self.assert_finds(late, "src/base/clock.cc", 1, "src/base/clock.h")
        never = {"src/base/clock.cc": "int a;\n"}
        self.assert_finds(never, "src/base/clock.cc", 1, "src/base/clock.h")

    def test_only_the_factory_knows_engines(self):
        include = '#include "btree/btree_engine.h"\n'
        self.assertEqual(self.findings({"src/keyspace/factory.cc": include}), [])
        self.assert_finds({"src/engine/store.cc": include}, "src/engine/store.cc", 1,
                          "may include only")

    def test_what_is_for_tests_only(self):
        include = '#include "engine/testing/oracle.h"\n'
        self.assert_finds({"src/engine/store.cc": include}, "src/engine/store.cc", 1, "for tests only")
        self.assertEqual(self.findings({"src/engine/CMakeLists.txt":
                                            "skep_library(engine SOURCES store.cc store_test.cc)\n",
                                        "src/engine/store_test.cc": include}), [])

    def test_a_folder_nobody_told_about(self):
        self.assert_finds({"src/new/a.h": "// a.h: a.\n#pragma once\n"}, "src/new/a.h", 1, "does not know")

    def test_an_engine_with_a_socket_or_a_clock(self):
        for include, words in [("<sys/socket.h>", "a socket"), ('"base/network.h"', "a socket"),
                               ("<chrono>", "a clock"), ('"base/clock.h"', "a clock")]:
            for header in ["src/engine/engine.h", "src/btree/btree_engine.h"]:
                text = CLEAN[header] + f"#include {include}\n"
                self.assert_finds({header: text}, header, 4, words)

    def test_an_exception_for_a_file_that_is_gone(self):
        with unittest.mock.patch.dict(tidy.MAY_ALSO_INCLUDE, {"src/base/gone.cc": {"wire"}}):
            self.assert_finds({}, "tests/tidy/tidy.py", 1, "excepts src/base/gone.cc")

    def test_mutants_that_do_not_match(self):
        mutant = {"page": "docs/papers/a.md", "row": "ticks", "file": "src/base/clock.cc", "old": "return 1;",
                  "new": "return 2;", "binary": "t", "test": "Clock.Ticks"}
        page = "x\n\n| mechanism | test |\n|---|---|\n| ticks once | `clock_test.cc` Ticks |\n"
        tree = {"src/base/clock.cc": CLEAN["src/base/clock.cc"] + "int f() { return 1; }\n",
                "src/base/clock_test.cc": CLEAN["src/base/clock_test.cc"] + "TEST(Clock, Ticks) {}\n",
                "docs/papers/a.md": page}

        def with_mutant(**changes):
            lines = [f'{field} = "{text}"' for field, text in {**mutant, **changes}.items()]
            return {**tree, "tests/mutants/a.toml": "[[mutant]]\n" + "\n".join(lines) + "\n"}

        self.assertEqual(self.findings(with_mutant()), [])
        toml = "tests/mutants/a.toml"
        for changes, words in [({"old": "return 3;"}, "0 times"), ({"old": "n"}, "times, not once"),
                               ({"new": "return 1;"}, "no other than the original"),
                               ({"test": "Clock.Tocks"}, "no test Clock.Tocks"),
                               ({"binary": "u"}, "no test binary u")]:
            found = self.findings(with_mutant(**changes))
            self.assertIn((toml, 1), [(path, line) for path, line, _ in found], changes)
            self.assertTrue(any(words in what for _, _, what in found), (changes, found))
        self.assert_finds({**with_mutant(), toml: with_mutant()[toml] + "extra = 1\n"}, toml, 1, "extra")
        twice = {**with_mutant(), toml: with_mutant()[toml] + with_mutant(new="return 4;")[toml]}
        self.assertIn("another mutant", self.findings(twice)[0][2])
        # A row that names a test, and nothing shows that it fails; or the page names another one.
        self.assert_finds({**tree, "tests/mutants/a.toml": "\n"}, "docs/papers/a.md", 5, "no mutant")
        other = page.replace("`clock_test.cc` Ticks", "`clock_test.cc` Others")
        self.assert_finds({**with_mutant(), "docs/papers/a.md": other}, "docs/papers/a.md", 5, "does not name")
        without = '[[without]]\npage = "docs/papers/a.md"\nrow = "ticks"\nwhy = "because"\n'
        self.assertEqual(self.findings({**tree, toml: without}), [])

    def test_a_file_with_its_mutants(self):
        # An expression may end in a brace.
        mutants = [{"file": "a.cc", "old": "a < B{1}", "new": "true"}, {"file": "a.cc", "old": "G();", "new": ""}]
        expression, statement = (tidy.mutants.number_of(mutant) for mutant in mutants)
        text = "// a.cc: a.\n#include <a>\nvoid F() {\n  if (a < B{1}) G();\n}\n"
        self.assertEqual(
            tidy.mutants.with_mutants(text, mutants),
            '// a.cc: a.\n\n#include "mutant.h"\n#include <a>\nvoid F() {\n'
            f"  if ((::skep::IsMutant({expression}) ? (true) : (a < B{{1}}))) "
            f"if (::skep::IsMutant({statement})) {{  }} else {{ G(); }}\n}}\n")


if __name__ == "__main__":
    unittest.main()
