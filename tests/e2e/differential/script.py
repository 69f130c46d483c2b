"""script.py: steps, and how they are written down.

A step is what one logical client sends at once: one command, or several in a pipeline. Steps are
written one command a line, as redis-cli reads them; `2> ` before it says which client sends it.

    1> WATCH a
    2> SET a "x\\x00y"
    1> MULTI
"""

import re
from dataclasses import dataclass

WORD = re.compile(r'"((?:\\.|[^"\\])*)"|(\S+)')
ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
PLAIN = re.compile(rb"[\w:.*?+<>\[\]^-]+", re.ASCII)
ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


@dataclass(frozen=True)
class Step:
    client: int
    commands: tuple  # of commands, each a tuple of bytes
    inline: bool = False  # sent as a line instead of as an array
    expires: bool = False  # gives a key a deadline that passes at once


def name(command):
    return command[0].upper().decode("latin-1") if command else ""


def quote(word):
    """The word as redis-cli and inline requests take it."""
    if PLAIN.fullmatch(word):
        return word
    return b'"' + b"".join(
        b"\\" + bytes([c]) if c in b'"\\' else bytes([c]) if 32 <= c < 127 else b"\\x%02x" % c
        for c in word) + b'"'


def line(command):
    return b" ".join(map(quote, command))


def parse(text):
    """The command of one line."""
    return tuple(ESCAPE.sub(unescape, quoted.encode()) if quoted or not plain else plain.encode()
                 for quoted, plain in WORD.findall(text))


def unescape(found):
    if found[1]:
        return bytes.fromhex(found[1].decode())
    return ESCAPED.get(found[2], found[2])


def parse_steps(lines):
    """Steps of one command each. Lines without a client are client 1's."""
    for text in lines:
        client, command = re.fullmatch(r"(?:(\d)> )?(.*)", text).groups()
        yield Step(int(client or 1), (parse(command),))


def show(steps):
    """The steps as text; a pipeline's later commands are marked with `|`."""
    lines = []
    several = len({step.client for step in steps}) > 1
    for step in steps:
        for i, command in enumerate(step.commands):
            mark = f"{step.client}> " if several else ""
            lines.append(mark + ("| " if i else "") + line(command).decode("latin-1")
                         + ("   (inline)" if step.inline else ""))
    return "\n".join(lines)
