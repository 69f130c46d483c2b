#!/usr/bin/env python3
"""mutants.py: breaks one mechanism at a time, and wants its test to fail.

    mutants.py ROOT [--build FOLDER] [--only REGEX] [--list]

A mutant is an entry of a *.toml file beside this one. (Another kind, `[[without]]`, has a page, a row and
why it needs none: what it says cannot be changed without the compiler noticing, say.)

    [[mutant]]
    page = "docs/papers/kv-direct.md"    # the page whose table has the row, and the row's beginning
    row = "reservation station"
    file = "src/hash/point_run.cc"       # what is broken: `old` occurs there once
    old = "window_.seen.IsOnce(key)"
    new = "true"
    binary = "hash_station_test"         # the target that is built, and what of it must fail
    test = "ReservationStation.TheTableIsWrittenOnceForEachKey"

`old` and `new` are an expression each; or statements, of which `old` ends in `;`. So all mutants are built
at once, into one copy of the sources (build/mutants; nothing in ROOT is ever broken), as

    (IsMutant(7) ? (new) : (old))        if (IsMutant(7)) { new } else { old }

and the environment variable SKEP_MUTANT tells a test binary which one it is. Each test must pass as
none of them, and fail as its own. Exits 1 if a mutant lives, or cannot be tried.

problems() is what can be said without building anything; tidy.py asks for it on every run.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zlib

FOLDER = "tests/mutants"
FIELDS = {"page", "row", "file", "old", "new", "binary", "test"}
WITHOUT_FIELDS = {"page", "row", "why"}
# How long a test may take as it is. A mutant may make its test stand still; that counts as found when it
# takes this much longer than that.
SOUND_SECONDS = 1200
MORE_SECONDS = int(os.environ.get("SKEP_MUTANT_TEST_SECONDS", "60"))
# Each folder's sources are one file for the compiler: they are compiled once here.
BUILD = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DCMAKE_UNITY_BUILD=ON",
         "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0", "-DSKEP_TEST_FLAGS=-O0"]

# Pages whose every row with a test needs a mutant.
PAPERS = re.compile(r"^docs/papers/[^/]+\.md$")


def parse(path, text, kind="mutant"):
    """The entries of a file, each with the file and line that it comes from."""
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip() == f"[[{kind}]]"]
    return [entry | {"at": (path, line)} for line, entry in zip(lines, tomllib.loads(text).get(kind, []))]


def read(root):
    """All mutants."""
    mutants = []
    for name in sorted(n for n in os.listdir(os.path.join(root, FOLDER)) if n.endswith(".toml")):
        with open(os.path.join(root, FOLDER, name), encoding="utf-8") as f:
            mutants += parse(f"{FOLDER}/{name}", f.read())
    return mutants


def rows(text):
    """(line, cells, head) of every row of a page's tables; `head` are the names of its columns."""
    head = None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if head is None:
            head = cells
        elif not re.match(r"^\|[-:| ]+\|$", line):
            yield number, cells, head


def problems(texts):
    """(file, line, what) of every entry that does not match. `texts`: the tree's files by path."""
    tests = "\n".join(text for path, text in texts.items() if path.endswith("_test.cc"))
    lists = "\n".join(text for path, text in texts.items() if path.endswith("CMakeLists.txt"))
    mutants = []
    without = []
    for path, text in texts.items():
        if path.startswith(FOLDER + "/") and path.endswith(".toml"):
            mutants += parse(path, text)
            without += parse(path, text, "without")
    for entry in mutants + without:
        fields = WITHOUT_FIELDS if "why" in entry else FIELDS
        if wrong := (fields ^ (entry.keys() - {"at"})):
            yield *entry["at"], f"it must have {', '.join(sorted(fields))}, not more or less: {sorted(wrong)}"
            return
        if not any(cells[0].startswith(entry["row"]) for _, cells, _ in rows(texts.get(entry["page"], ""))):
            yield *entry["at"], f"{entry['page']} has no row that begins with: {entry['row']}"
    for mutant in mutants:
        yield from ((*mutant["at"], what) for what in problems_of(mutant, texts, tests, lists))
    yield from overlaps(texts, mutants)
    for page, text in texts.items():
        if PAPERS.match(page):
            yield from rows_without_mutant(page, text, [m for m in mutants + without if m["page"] == page])


def problems_of(mutant, texts, tests, lists):
    found = texts.get(mutant["file"], "").count(mutant["old"])
    if found != 1:
        yield f"{mutant['file']} has the text that is to be replaced {found} times, not once"
    if mutant["old"] == mutant["new"]:
        yield "the mutant is no other than the original"
    if not mutant["old"].rstrip().endswith(";"):
        yield from (f"neither an expression nor statements: {mutant[field]}"
                    for field in ("old", "new") if not is_expression(mutant[field]))
    suite, test = mutant["test"].split(".")
    if not re.search(r"TEST\w*\(\s*" + re.escape(suite.split("/")[-1]) + r"\s*,\s*" + test + r"\s*\)",
                     tests):
        yield f"there is no test {mutant['test']}"
    if not re.search(r"skep_\w*test\w*\(\s*" + mutant["binary"] + r"\b", lists):
        yield f"there is no test binary {mutant['binary']}"


def is_expression(text):
    """Checks as far as possible without parsing: brackets match, and no operator is cut off."""
    bare = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', "0", text).strip()
    return (bare != "" and not re.match(r"(\|\||&&|return\b|if\b)", bare)
            and all(bare.count(a) == bare.count(b) for a, b in ("()", "[]", "{}")))


def overlaps(texts, mutants):
    """Whether two mutants change one place, so that they cannot be built at once."""
    places = {}
    for mutant in mutants:
        begin = texts.get(mutant["file"], "").find(mutant["old"])
        if begin < 0:
            continue
        end = begin + len(mutant["old"])
        for other_begin, other_end in places.setdefault(mutant["file"], []):
            if begin < other_end and other_begin < end:
                yield *mutant["at"], f"another mutant replaces a part of the same text of {mutant['file']}"
        places[mutant["file"]].append((begin, end))


def rows_without_mutant(page, text, mutants):
    """Rows of tables that name tests which no mutant makes fail."""
    for number, cells, head in rows(text):
        if "test" not in head or not re.search(r"_test\.cc`", cells[head.index("test")]):
            continue
        of_row = [m for m in mutants if cells[0].startswith(m["row"])]
        if not of_row:
            yield page, number, "no mutant in tests/mutants breaks this row and is found by its test"
        for m in of_row:
            if "test" in m and m["test"].split(".")[-1].removesuffix("/*") not in cells[head.index("test")]:
                yield page, number, f"the row does not name {m['test']}, which its mutant dies of"


IS_MUTANT = '''// mutant.h: which mutant this process is: none, or that of SKEP_MUTANT.
#pragma once
#include <cstdlib>
namespace skep {
inline bool IsMutant(int number) {
  static const int own = [] {
    const char* const said = std::getenv("SKEP_MUTANT");
    return said == nullptr ? -1 : std::atoi(said);
  }();
  return own == number;
}
}  // namespace skep
'''


def number_of(mutant):
    """A number that does not depend on other mutants, so that a new one costs the compiler its own file."""
    return zlib.crc32("\0".join((mutant["file"], mutant["old"], mutant["new"])).encode()) >> 1


def with_mutants(text, mutants):
    """A file with all of these in it."""
    places = sorted(((text.index(m["old"]), m) for m in mutants), reverse=True,
                    key=lambda place: place[0])
    for begin, mutant in places:
        old, new, number = mutant["old"], mutant["new"], number_of(mutant)
        if old.rstrip().endswith(";"):
            both = f"if (::skep::IsMutant({number})) {{ {new} }} else {{ {old} }}"
        else:
            both = f"(::skep::IsMutant({number}) ? ({new}) : ({old}))"
        text = text[:begin] + both + text[begin + len(old):]
    # Behind the first include: a header's first lines say what it is.
    first = re.search(r"^\s*#\s*include", text, re.MULTILINE).start()
    return text[:first] + '\n#include "mutant.h"\n' + text[first:]


class Scratch:
    """A copy of the sources, and its build."""

    def __init__(self, root, folder, mutants):
        self.root = os.path.abspath(root)
        self.tree = os.path.join(folder, "tree")
        self.build_folder = os.path.join(folder, "build")
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=self.root, check=True, capture_output=True).stdout
        wanted = {}
        for file in listed.decode().split("\0"):
            if file and os.path.isfile(os.path.join(self.root, file)):
                with open(os.path.join(self.root, file), "rb") as f:
                    wanted[file] = f.read()
        wanted["src/mutant.h"] = IS_MUTANT.encode()
        for file in sorted({m["file"] for m in mutants}):
            of_file = [m for m in mutants if m["file"] == file]
            wanted[file] = with_mutants(wanted[file].decode(), of_file).encode()
        self.write(wanted)

    def write(self, wanted):
        """Leaves files alone whose bytes are right, so that nothing is built for them."""
        for path, _, names in os.walk(self.tree):
            for name in names:
                if os.path.relpath(os.path.join(path, name), self.tree) not in wanted:
                    os.remove(os.path.join(path, name))
        for file, data in wanted.items():
            path = os.path.join(self.tree, file)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    if f.read() == data:
                        continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
            source = os.path.join(self.root, file)
            if os.path.isfile(source):
                shutil.copymode(source, path)

    def configure(self):
        self.call("cmake", "-S", self.tree, "-B", self.build_folder, *BUILD)

    def build(self, binary):
        self.call("cmake", "--build", self.build_folder, "--target", binary)

    def call(self, *command):
        run = subprocess.run(command, cwd=self.tree, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit((run.stdout + run.stderr)[-6000:])

    def run(self, binary, test, number, seconds):
        """(whether the test passes, what it says). It must be there: no test at all does not pass."""
        suite, name = test.split(".")
        filters = ":".join([test, f"*/{test}/*", f"{test}/*", f"{suite}/*.{name}", f"*/{suite}/*.{name}"])
        with subprocess.Popen(
                [os.path.join(self.build_folder, "bin", binary), f"--gtest_filter={filters}", "--gtest_fail_fast"],
                cwd=self.tree, env=os.environ | {"SKEP_MUTANT": str(number)}, text=True, errors="replace",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said, _ = process.communicate()
                return False, said + f"\nnot done after {seconds:.0f} s"
        return process.returncode == 0 and re.search(r"\[  PASSED  \] [1-9]", said) is not None, said


def last_failure(said):
    """One line of what a test said that tells why it failed."""
    lines = said.splitlines()
    for number, line in enumerate(lines):
        if line.endswith(": Failure"):
            return line + " " + " ".join(part.strip() for part in lines[number + 1:number + 5])[:160]
    for line in lines:
        if re.search(r"terminate|not done after|check failed|CHECK", line):
            return line.strip()
    return "died without a word" if said.strip() else "said nothing"


def try_one(scratch, mutant, sound):
    """Returns whether the mutant dies. `sound` has the tests that pass without it, and their times."""
    key = (mutant["binary"], mutant["test"])
    name = f"{mutant['page']}: {mutant['row']}"
    if key not in sound:
        begin = time.monotonic()
        sound[key] = *scratch.run(*key, -1, SOUND_SECONDS), time.monotonic() - begin
    if not sound[key][0]:
        print(f"NOT SOUND  {name}\n           {mutant['test']} fails without the mutant\n"
              + sound[key][1][-2000:], flush=True)
        return False
    lives, said = scratch.run(*key, number_of(mutant), 2 * sound[key][2] + MORE_SECONDS)
    print(f"{'LIVES     ' if lives else 'dies      '} {name}\n           {mutant['file']}: "
          f"{' '.join(mutant['old'].split())[:90]}\n           {mutant['test']}"
          + ("" if lives else f": {last_failure(said)}"), flush=True)
    return not lives


def try_all(scratch, mutants):
    """Returns how many mutants live, or could not be tried."""
    sound = {}
    bad = 0
    scratch.configure()
    for binary in sorted({m["binary"] for m in mutants}):
        of_binary = [m for m in mutants if m["binary"] == binary]
        print(f"building {binary}, for {len(of_binary)} mutants", flush=True)
        scratch.build(binary)
        bad += sum(not try_one(scratch, mutant, sound) for mutant in of_binary)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--build", default="build/mutants")
    parser.add_argument("--only", default="", help="mutants whose page, row, file or test matches")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    everyone = read(options.root)
    mutants = [m for m in everyone
               if any(re.search(options.only, m[field]) for field in ("page", "row", "file", "test"))]
    if options.list:
        for m in mutants:
            print(f"{m['page']}: {m['row']}: {m['file']} -> {m['binary']} {m['test']}")
        return
    if not mutants:
        sys.exit("there is no such mutant")
    bad = try_all(Scratch(options.root, os.path.abspath(options.build), everyone), mutants)
    print(f"{len(mutants)} mutants, {bad} that live or could not be tried")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
