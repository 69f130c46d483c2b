#!/usr/bin/env python3
"""tidy.py: what no compiler says about the tree. Usage: tidy.py ROOT

Prints one line `file:line: what is wrong` a finding and exits 1 if there is any.

  built       every .cc and .c file and test script is named by a CMakeLists.txt at or above its folder
  header      a header's first line names it, and it has #pragma once
  leftovers   no note-to-self words in code
  references  a file that a comment or a page names exists
  length      no page is longer than PAGE_LINES_MAX, no other file than LINES_MAX, no function than
              FUNCTION_LINES_MAX, but for those of LONGER_FILES and LONGER_FUNCTIONS, which only shrink;
              no line of C and C++ is longer than COLUMNS_MAX: clang-format leaves comments as they
              are, so that drawings and tables stay
  mutexes     the mutexes of base/mutex.h, which clang's thread-safety analysis knows, and no others
  includes    includes point the way of docs/architecture.md; engines know no sockets, no clocks
  own header  a.cc includes a.h before anything else, so that it compiles alone
  exceptions  a file that is excepted from a rule here exists
  mutants     what tests/mutants breaks is there, and every row of docs/papers has one that breaks it

That the other headers compile alone is the build target skep_headers_alone, which `make lint` builds.
"""

import os
import re
import sys
from pathlib import PurePosixPath

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "mutants"))
import mutants  # noqa: E402

LINES_MAX = 550
PAGE_LINES_MAX = 900
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

# Files and functions that were longer when the rules came, and how long they are. Whoever makes one
# shorter says so here; none gets longer, and none is added.
LONGER_FILES = {
    "python/skep.py": 836,
    "src/base/arena_test.cc": 716,
    "src/btree/tree_liveness_test.cc": 680,
    "src/btree/tree_regression_test.cc": 701,
    "src/durable/faults_test.cc": 642,
    "src/durable/log.cc": 692,
    "src/durable/repair_test.cc": 669,
    "src/hashleaf/engine_test.cc": 588,
    "src/model/model_engine.cc": 750,
    "src/server/packed_session_fuzz.cc": 715,
    "src/sim/network_conformance_test.cc": 558,
    "tests/c_api/c_api_test.c": 837,
}
LONGER_FUNCTIONS = {
    ("src/engine/testing/conformance_watch_test.cc", "TEST_P(WatchConformance, SeesEveryChangeAndNothingElse)"): 143,
    ("src/engine/testing/failing_allocation_test.cc", "AllAsks"): 163,
    ("src/engine/testing/failing_allocation_test.cc", "push_back"): 72,
    ("src/hashleaf/engine_test.cc", "TEST_P(HashleafEngineTest, AgreesWithModel)"): 82,
    ("src/hashleaf/engine_test.cc", "TEST_P(HashleafEngineTest, SharedReads)"): 71,
    ("src/hashleaf/engine_test.cc", "TEST_P(HashleafEngineTest, ThreadsMeetInSplitsAndMerges)"): 85,
    ("src/store/memory_failure_test.cc", "TEST_P(FailingCall, IsRefusedAndLeavesTheStoreAsItWas)"): 78,
    ("tests/c_api/c_api_pointers_test.c", "test_null_pointers"): 146,
}

SKIPPED_FOLDERS = {".git", ".cache", "build", "node_modules", "__pycache__"}
SKIPPED_FILES = {"package-lock.json", "LICENSE"}
TEXT_SUFFIXES = {".h", ".cc", ".c", ".py", ".sh", ".cmake", ".md", ".txt", ".in", ".json", ".svg", ".toml", ""}
CODE_SUFFIXES = {".h", ".cc", ".c", ".py", ".sh", ".cmake", ""}

# What each folder may include, by the first part of the path in quotes; of two folders that a file is
# in, the one that stands first decides. The public headers are `skep`. Test files may also include
# TESTS_MAY_ALSO_INCLUDE, whatever their folder.
MAY_INCLUDE = {
    "include": {"skep"},
    "src/base": {"skep", "base"},
    "src/types": {"skep", "base", "types"},
    "src/engine/testing": {"skep", "base", "engine", "keyspace"},
    # Registers the functions of collections.
    "src/engine": {"skep", "base", "types", "engine"},
    "src/btree": {"skep", "base", "engine", "btree"},
    "src/hash": {"skep", "base", "engine", "hash"},
    "src/hashleaf": {"skep", "base", "engine", "hashleaf"},
    "src/model": {"skep", "base", "engine", "model"},
    # Stops writes of the tree in their middle.
    "src/collections/testing": {"skep", "base", "types", "engine", "keyspace", "collections", "btree"},
    "src/collections": {"skep", "base", "types", "engine", "collections"},
    "src/keyspace": {"skep", "base", "engine", "collections", "keyspace"},
    # Reads and writes collections in RDB files.
    "src/durable": {"skep", "base", "types", "engine", "keyspace", "durable"},
    "src/wire": {"skep", "base", "engine", "wire"},
    # Reads leaves one-sided.
    "src/client": {"skep", "base", "engine", "wire", "rma", "netindex", "client"},
    "src/store": {"skep", "base", "engine", "keyspace", "durable", "client", "wire", "store"},
    "src/sim": {"skep", "base", "sim"},
    "src/zookeeper": {"skep", "base", "zookeeper"},
    "src/ofi": {"skep", "base", "rma", "ofi"},
    "src/rma/testing": {"skep", "base", "rma", "ofi"},
    "src/rma": {"skep", "base", "rma"},
    "src/pool/testing": {"skep", "base", "engine", "keyspace", "rma", "ofi", "pool"},
    # Stands above src/durable, which stands above src/keyspace and, by the factory, src/pool.
    "src/pool/disk": {"skep", "base", "engine", "rma", "durable", "pool"},
    "src/pool": {"skep", "base", "engine", "rma", "pool"},
    "src/ranges/testing": {"skep", "base", "engine", "keyspace", "ranges"},
    "src/ranges": {"skep", "base", "engine", "client", "pool", "ranges"},
    # Stands above the switches, whose tables it makes, and the client by which it asks servers.
    "src/netindex/controller": {"skep", "base", "engine", "wire", "client", "netindex"},
    "src/netindex/leaves": {"skep", "base", "engine", "btree", "rma", "netindex"},
    "src/netindex": {"skep", "base", "engine", "netindex"},
    "src/server": {"skep", "base", "types", "engine", "keyspace", "wire", "durable", "netindex", "ranges", "server"},
    "bench/kv_direct": {"skep", "base", "hash", "bench"},
    "bench/hetero_kv": {"skep", "base", "engine", "hashleaf", "keyspace", "store", "bench"},
    "bench/hstore": {"skep", "base", "engine", "rma", "pool", "bench"},
    "bench/fat_btree": {"skep", "base", "netindex", "bench"},
    "bench/net": {"skep", "base", "client", "wire", "bench"},
    "bench": {"skep", "base", "engine", "keyspace", "wire", "bench"},
    "tools/netindex": {"skep", "base", "ranges", "netindex", "tools"},
    "tools/pool": {"skep", "base", "engine", "keyspace", "rma", "pool", "tools"},
    "tools": {"skep", "base", "types", "engine", "wire", "durable", "pool", "server", "bench", "tools"},
}
# What single files may include beyond their folder, and why.
MAY_ALSO_INCLUDE = {
    # The one place that knows engines by name.
    "src/keyspace/factory.cc": {"btree", "hash", "hashleaf", "model", "pool", "ranges"},
    # Compares all fabrics.
    "src/rma/fabric_bench.cc": {"ofi"},
    "bench/engine_spec.cc": {"hash"},  # asks for the best options of a table
}
FREE_FOLDERS = ("tests", "examples")  # may include anything
TEST_FILE = re.compile(r"^src/(.*_(test|fuzz|bench)(_\w+)?\.(cc|h)|.*/testing/[^/]+)$")
TESTS_MAY_ALSO_INCLUDE = {"sim", "model"}
# What is there for tests only, and for a folder that measures whole pools in one process.
TESTING = re.compile(r"(^|/)testing/")
MAY_INCLUDE_TESTING = ("bench/hstore",)

SOCKETS = re.compile(
    r"^(sys/(socket|epoll|un|select)|netinet/.*|arpa/.*|netdb|poll|base/network\w*)(\.h)?$")
CLOCKS = re.compile(r"^(chrono|ctime|time\.h|sys/time\.h|base/clock\.h)$")
# Folder, what it must not include, the files that may all the same and why.
FORBIDDEN = [
    ("src/engine", SOCKETS, "a socket", {}),
    ("src/engine", CLOCKS, "a clock", {}),
    ("src/model", SOCKETS, "a socket", {}),
    ("src/model", CLOCKS, "a clock", {}),
    ("src/keyspace", SOCKETS, "a socket", {}),
    ("src/keyspace", CLOCKS, "a clock", {}),
    ("src/btree", SOCKETS, "a socket", {}),
    ("src/btree", CLOCKS, "a clock", {}),
    ("src/hash", SOCKETS, "a socket", {}),
    ("src/hash", CLOCKS, "a clock", {}),
    ("src/hashleaf", SOCKETS, "a socket", {}),
    ("src/hashleaf", CLOCKS, "a clock", {}),
    ("src/wire", SOCKETS, "a socket", {}),
    ("src/wire", CLOCKS, "a clock", {}),
]

# Files that comments name and that exist only in a build or elsewhere.
NOT_IN_TREE = {"mine.cc", "CTestTestfile.cmake", "skep-config.cmake", "skep-targets.cmake"}

LEFTOVER = re.compile(r"\b(" + "|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK"]) + r")\b")
# Files that need the standard's mutexes.
BARE_MUTEXES = {
    "src/server/log.cc",  # spdlog's sinks are compiled for std::mutex
}
# The last line of what stands before a function's body.
FUNCTION_END_OF_HEAD = re.compile(
    r"^((?:  )?)(?!\s|(?:namespace|class|struct|union|enum|extern|if|for|while|switch|do|else|try|case|default)\b"
    r"|\}|#|//)[^=]*\)[^;=]*\{$")
# A function's, or a test's with what is in its parentheses.
FUNCTION_NAME = re.compile(r"\bTEST(?:_P|_F)?\([^)]*\)|[\w:~]+(?:<[^()]*>)?(?=\()")
BARE_MUTEX = re.compile(r"std::(?:recursive_|timed_|shared_)?mutex\b|std::condition_variable(?:_any)?\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
REFERENCE = re.compile(
    r"(?<![\w./<*{}$@~-])((?:[\w-][\w.-]*/)*[\w-][\w.-]*\.(?:h|cc|py|sh|md|cmake(?:\.in)?|txt|litmus))"
    r"(?![\w>*/-])(?!\.\w)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# A string, a character, a digit separator (none is a comment), or a comment.
CPP_TOKEN = re.compile(
    r'R"([^()\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<=[0-9a-fA-F])\'(?=[0-9a-fA-F])'
    r"|'(?:\\.|[^'\\\n]){1,4}'|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)


class File:
    def __init__(self, root, path):
        self.path = path  # relative to the root, with slashes
        self.name = PurePosixPath(path).name
        self.folder = str(PurePosixPath(path).parent)
        self.suffix = PurePosixPath(path).suffix
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            self.text = f.read()
        self.lines = self.text.splitlines()

    def is_in(self, folder):
        return self.path.startswith(folder + "/")

    def is_code(self):
        return self.suffix in CODE_SUFFIXES or self.name == "CMakeLists.txt"

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def read_tree(root):
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(d for d in folders if d not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            if PurePosixPath(name).suffix in TEXT_SUFFIXES and name not in SKIPPED_FILES:
                files.append(File(root, path))
    return files


def check_built(files):
    lists = {f.folder: strip_hash_comments(f.text) for f in files if f.name == "CMakeLists.txt"}
    for f in files:
        is_script = re.search(r"_test\.(py|sh)$", f.name)
        if f.suffix not in (".cc", ".c") and not is_script:
            continue
        if not any(names(lists.get(str(above)), PurePosixPath(f.path).relative_to(above))
                   for above in PurePosixPath(f.path).parents):
            yield f.path, 1, "no CMakeLists.txt names this file: it is never built or run"


def strip_hash_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def names(cmake_text, path):
    """Whether a CMakeLists.txt names the path relative to its own folder."""
    return cmake_text is not None and re.search(
        r"(?<![\w.-])(?:\$\{CMAKE_CURRENT_SOURCE_DIR\}/)?" + re.escape(str(path)) + r"(?![\w.])",
        cmake_text) is not None


def check_header(files):
    for f in files:
        if f.suffix != ".h":
            continue
        first = f.lines[0] if f.lines else ""
        if not first.startswith(f"// {f.name}: "):
            yield f.path, 1, f"the first line must begin with `// {f.name}: `"
        if "#pragma once" not in f.lines:
            yield f.path, 1, "no #pragma once"


def check_leftovers(files):
    for f in files:
        if not f.is_code():
            continue
        for number, line in enumerate(f.lines, 1):
            if found := LEFTOVER.search(line):
                yield f.path, number, f"leftover {found.group(1)}"


def comments(f):
    """Pairs of offset and text: what people read and no compiler checks."""
    if f.suffix in (".h", ".cc", ".c"):
        for token in CPP_TOKEN.finditer(f.text):
            if token.group("comment"):
                yield token.start(), token.group("comment")
    elif f.suffix == ".md":
        yield 0, f.text
    elif f.is_code() or f.suffix == ".txt":
        for token in re.finditer(r"(?:^|(?<=\s))#[^\n]*", f.text):
            yield token.start(), token.group()


def check_references(files):
    known = set()
    for f in files:
        parts = f.path.split("/")
        known.update("/".join(parts[i:]) for i in range(len(parts)))
    paths = {f.path for f in files} | {str(p) for f in files for p in PurePosixPath(f.path).parents}
    for f in files:
        if f.is_in("tests/tidy"):  # speaks of files that are not there
            continue
        for offset, text in comments(f):
            for found in REFERENCE.finditer(text):
                name = found.group(1)
                if name not in known and PurePosixPath(name).name not in NOT_IN_TREE:
                    yield f.path, f.line_of(offset + found.start()), f"there is no file {name}"
        if f.suffix == ".md":
            for found in LINK.finditer(f.text):
                target = found.group(1)
                if "://" in target or target.startswith("mailto:"):
                    continue
                resolved = os.path.normpath(os.path.join(f.folder, target))
                if resolved not in paths and not resolved.endswith("LICENSE"):
                    yield f.path, f.line_of(found.start()), f"the link leads nowhere: {target}"


def check_length(files):
    for f in files:
        most = LONGER_FILES.get(f.path, LINES_MAX if f.is_code() else PAGE_LINES_MAX)
        if len(f.lines) > most:
            yield f.path, most + 1, f"longer than {most} lines: look for a second idea"
        elif f.path in LONGER_FILES and len(f.lines) < most:
            yield f.path, 1, f"has {len(f.lines)} lines now: LONGER_FILES has to say so"
        if f.suffix in (".h", ".cc", ".c"):
            for number, line in enumerate(f.lines, 1):
                if len(line) > COLUMNS_MAX:
                    yield f.path, number, f"longer than {COLUMNS_MAX} columns"


def functions(f):
    """Name, line and number of lines of each function of a C++ file in clang-format's layout."""
    for number, line in enumerate(f.lines):
        found = FUNCTION_END_OF_HEAD.match(line)
        if not found:
            continue
        first = number
        while first > 0 and f.lines[first - 1].endswith((",", "(")):
            first -= 1
        closing = found.group(1) + "}"
        end = next((i for i in range(number + 1, len(f.lines)) if f.lines[i].startswith(closing)), number)
        name = FUNCTION_NAME.search("".join(f.lines[first:number + 1]))
        yield name.group() if name else line.strip(), number + 1, end - number + 1


def check_functions(files):
    longer = set()
    for f in files:
        if f.suffix not in (".h", ".cc", ".c"):
            continue
        for name, number, lines in functions(f):
            most = LONGER_FUNCTIONS.get((f.path, name), FUNCTION_LINES_MAX)
            if lines > FUNCTION_LINES_MAX:
                longer.add((f.path, name))
            if lines > most:
                yield f.path, number, f"{name} is {lines} lines long, more than {most}"
    for path, name in LONGER_FUNCTIONS.keys() - longer:
        if path in {f.path for f in files}:
            yield "tests/tidy/tidy.py", 1, f"LONGER_FUNCTIONS has {name} of {path}, which is not longer"


def check_mutexes(files):
    for f in files:
        if f.suffix not in (".h", ".cc") or f.path.split("/")[0] not in ("src", "bench", "tools"):
            continue
        if f.path.startswith("src/base/") or f.path in BARE_MUTEXES:
            continue
        for number, line in enumerate(f.lines, 1):
            if found := BARE_MUTEX.search(line):
                yield f.path, number, f"{found.group()}: base/mutex.h has one that the analysis knows"


def check_includes(files):
    for f in files:
        if f.suffix not in (".h", ".cc") or f.path.split("/")[0] in FREE_FOLDERS:
            continue
        allowed = next((may for folder, may in MAY_INCLUDE.items() if f.is_in(folder)), None)
        if allowed is None:
            yield f.path, 1, "tests/tidy/tidy.py does not know what this folder may include"
            continue
        allowed = allowed | MAY_ALSO_INCLUDE.get(f.path, set())
        if TEST_FILE.search(f.path):
            allowed = allowed | TESTS_MAY_ALSO_INCLUDE
        for number, line in enumerate(f.lines, 1):
            if found := INCLUDE.match(line):
                yield from check_one_include(f, number, found.group(1), found.group(2), allowed)


def check_one_include(f, number, quoted, system, allowed):
    # Without a folder: a file that the build generates for this one.
    if quoted is not None and "/" in quoted and quoted.split("/")[0] not in allowed:
        yield f.path, number, f'"{quoted}": {f.folder} may include only {", ".join(sorted(allowed))}'
    if quoted is not None and TESTING.search(quoted) and not TEST_FILE.search(f.path):
        if not any(f.is_in(folder) for folder in MAY_INCLUDE_TESTING):
            yield f.path, number, f'"{quoted}" is for tests only'
    for folder, pattern, what, excepted in FORBIDDEN:
        if f.is_in(folder) and pattern.match(quoted or system) and f.path not in excepted:
            if not TEST_FILE.search(f.path):
                yield f.path, number, f"{folder} must not include {what}: {quoted or system}"


def check_own_header(files):
    headers = {f.path for f in files if f.suffix == ".h"}
    for f in files:
        header = f.path.removesuffix(".cc") + ".h"
        if f.suffix != ".cc" or header not in headers:
            continue
        included = ((number, found.group(1) or found.group(2))
                    for number, line in enumerate(f.lines, 1) if (found := INCLUDE.match(line)))
        number, first = next(included, (1, ""))
        if not first or not ("/" + header).endswith("/" + first):
            yield f.path, number, f"the first include must be {header}"


def check_exceptions(files):
    excepted = set(MAY_ALSO_INCLUDE).union(*(exceptions for _, _, _, exceptions in FORBIDDEN))
    excepted |= BARE_MUTEXES | LONGER_FILES.keys() | {path for path, _ in LONGER_FUNCTIONS}
    for path in excepted - {f.path for f in files}:
        yield "tests/tidy/tidy.py", 1, f"excepts {path} from a rule, which is not there"


def check_mutants(files):
    return mutants.problems({f.path: f.text for f in files})


CHECKS = [check_built, check_header, check_leftovers, check_references, check_length,
          check_functions, check_mutexes,
          check_includes, check_own_header, check_exceptions, check_mutants]


def check_tree(root):
    files = read_tree(root)
    return sorted(finding for check in CHECKS for finding in check(files))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tidy.py ROOT")
    findings = check_tree(sys.argv[1])
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
