#!/usr/bin/env python3
"""Runs a C program against a folder of its own, and perhaps a server: PROGRAM [SKEP_SERVER]."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack

PROGRAM = sys.argv[1]
os.environ["SKEP_SERVER"] = sys.argv[2] if len(sys.argv) > 2 else ""
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

from skep_process import BINARY, PATIENCE_S, SkepServer  # noqa: E402

with ExitStack() as stack:
    command = [PROGRAM, stack.enter_context(tempfile.TemporaryDirectory(prefix="skep-c-"))]
    if BINARY:
        server = stack.enter_context(
            SkepServer("--keyspace", "1=hash", "--requirepass", "sesame"))
        command.append(f"127.0.0.1:{server.port}")
    subprocess.run(command, check=True, timeout=PATIENCE_S)
