#!/usr/bin/env python3
"""Goal: docs/commands.md names every command of Redis that is missing, and none that is there.
Method: the packaged redis-server and skep-server are asked what commands and subcommands they have;
what only Redis has must be what the page's table says.
"""

import re
import unittest
from pathlib import Path

from beside_redis import BesideRedisTest

PAGE = Path(__file__).resolve().parents[2] / "docs/commands.md"
TITLE = "## What of Redis is missing"


def missing_in_page():
    """Names in lower case: of commands, and of subcommands as "client|reply"."""
    section = PAGE.read_text(encoding="utf-8").split(TITLE, 1)[1].split("\n## ", 1)[0]
    names = set()
    for row in re.findall(r"^\| (.+?) \| (.+?) \|", section, re.MULTILINE):
        container = re.match(r"of `([A-Z]+)`", row[0])
        prefix = f"{container.group(1)}|" if container else ""
        for code in re.findall(r"`([^`]+)`", row[1]):
            names |= {(prefix + word).lower() for word in code.split()}
    return names


def names_of(connection):
    """The commands of a server, and their subcommands."""
    docs = connection.call("COMMAND", "DOCS")
    names = set()
    for name, about in zip(docs[::2], docs[1::2]):
        names.add(name.decode())
        about = dict(zip(about[::2], about[1::2]))
        names |= {sub.decode() for sub in about.get(b"subcommands", [])[::2]}
    return names


class MissingTest(BesideRedisTest):
    def test_the_page(self):
        redis, skep = map(names_of, self.connect_both())
        # A subcommand is missing by itself only where its command is there.
        lacks = {name for name in redis - skep if "|" not in name or name.split("|")[0] in skep}
        lacks = {name for name in lacks if not name.endswith("|help")}
        self.assertEqual(missing_in_page(), lacks)


if __name__ == "__main__":
    unittest.main()
