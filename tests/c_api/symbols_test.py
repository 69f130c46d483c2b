#!/usr/bin/env python3
"""Goal: the shared library shows the functions of the header, all of them and nothing else.
Method: nm tells what it shows. Usage: symbols_test.py HEADER LIBRARY"""

import re
import subprocess
import sys

header, library = sys.argv[1:]
with open(header, encoding="utf-8") as f:
    code = re.sub(r"//[^\n]*", "", f.read())
declared = set(re.findall(r"\b(skep_\w+)\(", code))
listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True,
                        stdout=subprocess.PIPE, text=True).stdout
shown = {line.split()[0].split("@")[0] for line in listed.splitlines()}
print("declared and not shown:", sorted(declared - shown))
print("shown and not declared:", sorted(shown - declared))
sys.exit(declared != shown or not declared)
