"""Text -> tokens (section "Lexical constructs" of the P4-16 specification).

`>>` is two tokens, as in the specification's grammar: `register<bit<8>>` ends two lists of types.
"""

import re
from dataclasses import dataclass

from .source import P4Error, Place, beyond_subset

# Words that are never a name. Of those that a place in the grammar makes a keyword (apply, key, actions, ...)
# the parser takes care.
RESERVED = frozenset("""abstract action bool bit break const continue control default else enum error exit extern
    false for header header_union if in inout int list match_kind out package parser pragma return select string
    struct switch table this transition true tuple typedef valueset varbit void _""".split())

INCLUDES = ("core.p4", "v1model.p4")
DIGITS_MAX = 1000

TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>\#[^\n]*)
  | (?P<number>[0-9]\w*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>&&&|\.\.\.|\|\+\||\|-\||\.\.|<<|&&|\|\||==|!=|>=|<=|\+\+|[-+*/%|&^~()\[\]{}<>!:,?.=;@])
""", re.VERBOSE | re.DOTALL | re.ASCII)
NUMBER = re.compile(r"(?:(?P<width>[0-9]+)(?P<sign>[ws]))?(?P<digits>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
                    r"|0[dD][0-9_]+|[0-9][0-9_]*)")
BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
INCLUDE = re.compile(r'#\s*include\s*(?:<(?P<known>[^>]*)>|"(?P<own>[^"/]*)")\s*(?://.*)?$')


@dataclass(frozen=True)
class Token:
    kind: str  # name, number, string, mark, end
    text: str
    place: Place
    offset: int  # of the text in the file
    value: tuple = ()  # of a number: value, width or None, whether signed


def decode(data, file):
    """The text of a file's bytes."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as bad:
        raise P4Error(Place(file, data.count(b"\n", 0, bad.start) + 1, 1), "the file is not UTF-8") from None


class Lexer:
    """The tokens of a program, and the names of the files <..> that it includes. `read` gives the bytes of the other
    files that it includes by their names, or raises OSError."""

    def __init__(self, read):
        self.read = read
        self.tokens = []
        self.includes = []
        self.own = set()

    def take(self, text, file):
        """Adds the tokens of a text."""
        offset, line, line_begin = 0, 1, 0
        while offset < len(text):
            place = Place(file, line, offset - line_begin + 1)
            match = TOKEN.match(text, offset)
            if match is None or text.startswith("/*", offset) and match.lastgroup == "mark":
                raise P4Error(place, bad_character(text, offset))
            kind, said = match.lastgroup, match.group()
            if kind == "directive":
                self.include(said, place)
            elif kind == "number":
                self.tokens.append(Token(kind, said, place, offset, number(said, place)))
            elif kind != "blank":
                self.tokens.append(Token(kind, said, place, offset))
            line += said.count("\n")
            if "\n" in said:
                line_begin = offset + said.rindex("\n") + 1
            offset = match.end()
        return Place(file, line, offset - line_begin + 1)

    def include(self, directive, place):
        match = INCLUDE.match(directive)
        if match is None:
            raise beyond_subset(place, f"the directive {directive.split()[0]}")
        known, own = match.group("known"), match.group("own")
        if known is not None and known not in INCLUDES:
            raise beyond_subset(place, f"an include of <{known}>")
        if known is not None:
            self.includes.append(known)
        elif own in self.own:
            raise beyond_subset(place, f"a second include of {own}")
        else:
            self.own.add(own)
            self.take(self.text_of(own, place), own)

    def text_of(self, name, place):
        try:
            return decode(self.read(name), name)
        except OSError as problem:
            raise P4Error(place, f"{name}: {problem.strerror}") from None


def tokens(text, file, read):
    """(tokens, the last of kind `end`; names of the files <..> that are included)"""
    lexer = Lexer(read)
    end = lexer.take(text, file)
    lexer.tokens.append(Token("end", "the end of the file", end, len(text)))
    return lexer.tokens, lexer.includes


def bad_character(text, offset):
    if text.startswith("/*", offset):
        return "the comment has no end"
    if text[offset] == '"':
        return "the string has no end"
    return f"no token begins with {text[offset]!r}"


def number(said, place):
    """(value, width or None, whether it is signed) of a literal."""
    match = NUMBER.fullmatch(said)
    if match is None:
        raise P4Error(place, f"{said[:40]} is no number")
    if len(said) > DIGITS_MAX:
        raise P4Error(place, f"the number has more than {DIGITS_MAX} digits")
    digits = match.group("digits").replace("_", "")
    base = BASES.get(digits[1:2].lower(), 10)
    digits = digits[2:] if digits[1:2].lower() in BASES else digits
    if not digits:
        raise P4Error(place, f"{said} is no number")
    width = match.group("width")
    return int(digits, base), None if width is None else int(width), match.group("sign") == "s"
