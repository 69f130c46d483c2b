#!/usr/bin/env python3
"""ioredis, the Node client, against the real process. Usage: ioredis_test.py WORK

Installs what tests/e2e/ioredis/package-lock.json names into the folder WORK, then runs
conversation.js. Skipped (exit code 77) without npm, or if its registry cannot be reached.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from skep_process import PATIENCE_S, SkepServer

SKIPPED = 77
SOURCE = Path(__file__).resolve().parent / "ioredis"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")


def install(work):
    """Returns whether the packages are in `work`; false if the registry cannot be reached."""
    work.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "conversation.js"):
        shutil.copy(SOURCE / name, work / name)
    done = subprocess.run(["npm", "ci", "--prefer-offline", "--no-progress"], cwd=work,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        if any(sign in done.stderr for sign in UNREACHABLE):
            return False
        raise SystemExit("npm ci failed")
    return True


def main():
    work = Path(sys.argv[1]).resolve()
    if not shutil.which("npm") or not install(work):
        print("skipped: no npm, or no registry")
        return SKIPPED
    with SkepServer() as server:
        done = subprocess.run(["node", "conversation.js", str(server.port)], cwd=work,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        print(done.stdout + done.stderr)
        assert done.returncode == 0 and "ioredis: ok" in done.stdout, done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
