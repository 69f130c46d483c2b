#!/usr/bin/env python3
"""Goal: no change makes a GET, a scan of 24 or 100 or an update of the tree, a GET that is alone in its batch, or a
GET, an update or an insert of the hash table take more than 5 % more instructions, unless somebody writes
the new figure here.
usage: instructions_test.py path/to/skep-bench [NAME ...]

Method: callgrind counts those of `skep-bench compare` with few operations and with many; the difference
is what an operation takes, with the benchmark's share of it: its generator, and the copy of the operation
that warms the caches. Of `load` it is the items that are few and many, and each is read back. The same
program gives the same count of the tree to three parts in a thousand. Callgrind shows the program a processor without
AVX-512, and one with AVX2 only if the machine has it; on one that has not, the counts say nothing, and the
test is skipped."""

import os
import re
import subprocess
import sys

ALLOWED = 1.05
# A count above that is taken again, so often in all, and the least one counts: a hash table draws its
# seed at random, so that its chains, and with them its counts, differ by up to seven parts in a hundred.
TRIES = 4
FEW = 10_000
MANY = 50_000
ITEMS = 20_000
# Enough for a directory of leaves, which leads single requests.
ITEMS_OF_SINGLES = 100_000
# Instructions an operation, of GCC 12 and glibc 2.36 on x86-64: engine, workload, keys. Operations come in
# batches of 64, those named single one at a time; these are read back in batches, which is in the count.
LIMITS = {
    "get": ("btree", "get", "binary", 1955),
    "get-hex": ("btree", "get", "hex", 2730),
    "get-user": ("btree", "get", "user", 3345),
    "get-single": ("btree", "get", "binary", 4215),
    "scan": ("btree", "scan24", "binary", 4489),
    "scan-100": ("btree", "scan100", "binary", 8445),
    "update": ("btree", "update", "binary", 3527),
    "hash-get": ("hash", "get", "binary", 1215),
    "hash-update": ("hash", "update", "binary", 1335),
    "hash-load": ("hash", "load", "binary", 2440),
}
COLLECTED = re.compile(r"Collected : (\d+)")


def instructions(program, engine, workload, keys, single, ops):
    # The benchmark begins itself again to set this, which callgrind would not follow.
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    items = ITEMS_OF_SINGLES if single else ITEMS
    items += ops if workload == "load" else 0
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "compare",
         "--engines", engine, "--peers", "none", "--workloads", workload, "--keys", keys,
         "--items", str(items), "--ops", str(ops), "--repeats", "1", "--batch", "1" if single else "64"],
        env=environment, capture_output=True, text=True, check=False, timeout=120)
    found = COLLECTED.search(run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"callgrind failed: {run.stdout}{run.stderr}")
    return int(found[1])


def an_operation(program, engine, workload, keys, single):
    counts = [instructions(program, engine, workload, keys, single, ops) for ops in (FEW, MANY)]
    return (counts[1] - counts[0]) / (MANY - FEW)


def main():
    program, *names = sys.argv[1:]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read()
    if " avx2 " not in flags or " bmi2 " not in flags:
        print("SKIPPED: the machine has no AVX2 or no BMI2, with which the figures were taken")
        return 0
    grown = 0
    for name in names or LIMITS:
        engine, workload, keys, limit = LIMITS[name]
        measured = float("inf")
        for _ in range(TRIES):
            measured = min(measured, an_operation(program, engine, workload, keys, name.endswith("-single")))
            if measured <= limit * ALLOWED:
                break
        print(f"{name:10} {measured:8.0f} instructions an operation, {measured / limit:.3f} of {limit}")
        grown += measured > limit * ALLOWED
        if measured * ALLOWED < limit:
            print(f"{name:10} takes fewer now: write {measured:.0f} into {os.path.basename(__file__)}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
