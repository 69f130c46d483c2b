#!/usr/bin/env python3
"""Goal: a real P4 compiler takes fat_btree.p4.
Method: p4c-bm2-ss or p4test, if one is in PATH, compiles it, and the programs of refusals_test.py, too: those
that it takes although the interpreter says that they are wrong are listed. No compiler is packaged for Debian
12, so this test is skipped, with code 77, where there is none."""

import os
import shutil
import subprocess
import sys
import tempfile

import faults_of_declarations
import faults_of_expressions
from p4_testing import FAT_BTREE, text_of

COMPILERS = ("p4c-bm2-ss", "p4test")


def compiles(compiler, path):
    run = subprocess.run([compiler, "--std", "p4-16", path], capture_output=True, text=True, check=False,
                         cwd=os.path.dirname(path))
    return run.returncode == 0, run.stderr


def main():
    compiler = next((found for found in map(shutil.which, COMPILERS) if found), None)
    if compiler is None:
        print(f"SKIPPED: none of {', '.join(COMPILERS)} is in PATH")
        sys.exit(77)
    for name in taken_all_the_same(compiler):
        print(f"{os.path.basename(compiler)} takes: {name}")
    taken, said = compiles(compiler, FAT_BTREE)
    sys.exit(0 if taken else f"fat_btree.p4 is refused:\n{said}")


def taken_all_the_same(compiler):
    """The names of the faults that the compiler sees nothing in."""
    faults = faults_of_expressions.FAULTS | faults_of_declarations.FAULTS
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.p4")
        for name, (gaps, message) in faults.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text_of(**gaps))
            if "not in the subset" not in message and compiles(compiler, path)[0]:
                yield name


if __name__ == "__main__":
    main()
