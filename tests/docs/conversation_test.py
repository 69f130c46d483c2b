#!/usr/bin/env python3
"""Goal: what README.md and docs/commands.md show is what a user sees.
Method: every block of a page that holds a conversation (`> COMMAND`, then the reply) is typed into
redis-cli, from an empty server at the top of the page, and each reply compared. Tokens of KSCAN differ from
run to run: the page's first mention of one stands for what the server answered.

Usage: conversation_test.py SKEP_SERVER PAGE..."""

import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

from skep_process import end_with_parent  # noqa: E402

PROMPT = re.compile(r"^(?:127\.0\.0\.1:6379)?> (.*)$")
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"\bK[A-Za-z0-9_-]{30,}")
LISTENING = re.compile(r"127\.0\.0\.1:(\d+)")


def conversations(page):
    """The blocks of a page that hold commands: line number, [(command, reply lines)]."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for block in BLOCK.finditer(text):
        exchanges = []
        for line in block.group(1).splitlines():
            if prompt := PROMPT.match(line):
                exchanges.append((prompt.group(1), []))
            elif exchanges:
                exchanges[-1][1].append(line)
        if exchanges:
            yield text.count("\n", 0, block.start()) + 1, exchanges


def redis_cli(port, words):
    done = subprocess.run(["redis-cli", "-p", str(port), "--no-raw", *words], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=30)
    return done.stdout.rstrip("\n").split("\n")


def check(port, page, line, exchanges):
    """Types one conversation. Returns whether every reply is as the page has it."""
    tokens = {}  # as the page has it: as the server gave it
    for command, expected in exchanges:
        words = [tokens.get(word, word) for word in shlex.split(command)]
        answered = redis_cli(port, words)
        shown, got = TOKEN.findall("\n".join(expected)), TOKEN.findall("\n".join(answered))
        tokens.update(zip(shown, got))
        wanted = [TOKEN.sub(lambda t: tokens.get(t.group(), t.group()), x) for x in expected]
        if answered != wanted:
            print(f"{page}:{line}: {command}\n  shown:    {wanted}\n  answered: {answered}")
            return False
    return True


def main():
    server, pages = sys.argv[1], sys.argv[2:]
    process = subprocess.Popen([server, "--port", "0"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True,
                               preexec_fn=end_with_parent)
    try:
        port = next((int(found.group(1)) for text in process.stdout
                     if (found := LISTENING.search(text))), None)
        if port is None:
            sys.exit("the server did not say where it listens")
        count = failures = 0
        for page in pages:
            redis_cli(port, ["FLUSHALL"])
            for line, exchanges in conversations(page):
                failures += not check(port, page, line, exchanges)
                count += len(exchanges)
    finally:
        process.terminate()
        process.communicate()
    print(f"{count} commands, {failures} conversations that differ")
    sys.exit(failures > 0 or count == 0)


if __name__ == "__main__":
    main()
