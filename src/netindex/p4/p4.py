#!/usr/bin/env python3
"""p4.py: what can be done with a P4 program without a P4 compiler. docs/p4.md has the formats.

    p4.py check PROGRAM               is it refused? Prints its warnings
    p4.py run PROGRAM TABLES.json     packets from standard input, a line each: PORT HEX
    p4.py budget PROGRAM              what it takes of a switch, and whether that is too much
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from interpreter import budget  # noqa: E402
from interpreter.check import check_file  # noqa: E402
from interpreter.runtime import load  # noqa: E402
from interpreter.source import P4Error  # noqa: E402
from interpreter.switch import Switch  # noqa: E402


def run(program, tables, lines):
    """The lines that packets leave with: PORT HEX, or `drop`."""
    switch = Switch(program)
    with open(tables, encoding="utf-8") as f:
        load(switch, json.load(f))
    for line in lines:
        port, packet = line.split()
        out = switch.process(bytes.fromhex(packet), int(port))
        yield "drop" if out is None else f"{out[0]} {out[1].hex()}"


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("check", "run", "budget") or (arguments[0] == "run") != (
            len(arguments) == 3):
        sys.exit(__doc__)
    try:
        program = check_file(arguments[1])
        for warning in program.warnings:
            print(warning, file=sys.stderr)
        if arguments[0] == "run":
            for line in run(program, arguments[2], sys.stdin):
                print(line)
        elif arguments[0] == "budget":
            report = budget.of(program)
            print(budget.text(report))
            sys.exit(1 if report.problems else 0)
    except (P4Error, OSError, ValueError) as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main(sys.argv[1:])
