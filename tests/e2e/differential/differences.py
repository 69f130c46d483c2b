"""differences.py: where Skep answers otherwise than Redis 7.0, and why. The list only shrinks.

An entry says precisely which answers it allows: the three patterns match the whole of the command,
as script.py writes it, and of both replies; a group of one may be named in those after it. With
`after` the answers may differ only if a command of this pattern was sent since the client began to
watch keys or its transaction. Each has an example, whose last command must still be answered in
this way: an entry that is not needed any more fails the test.
"""

import re
from dataclasses import dataclass

from .script import line


@dataclass(frozen=True)
class Entry:
    reason: str
    command: bytes
    redis: bytes
    skep: bytes
    example: tuple
    after: bytes = b""
    parts_ways: bool = False  # the two servers hold different things from here on

    def matches(self, command, redis, skep, before):
        """`before` are the commands that `after` is about."""
        if self.after and not any(re.fullmatch(self.after, each, re.IGNORECASE) for each in before):
            return False
        pattern = b"%s\n(?:%s)(?:%s)" % (self.command, self.redis, self.skep)
        answers = b"%s\n%s%s" % (command, redis, skep)
        return re.fullmatch(pattern, answers, re.DOTALL | re.IGNORECASE)


# The past of words.py.
SET_GONE = rb"SET .* (?:EXAT|PXAT) (?:1|999|1262304000(?:000)?)(?: .*)?"

DIFFERENCES = {
    "HELLO names the server": Entry(
        reason="The server is Skep, and has Skep's version. Everything else is the same.",
        command=rb"HELLO.*",
        redis=rb"(?P<size>[*%]\d+\r\n)\$6\r\nserver\r\n\$5\r\nredis\r\n\$7\r\nversion\r\n\$6\r\n"
              rb"7\.0\.\d+(?P<protocol>\r\n\$5\r\nproto\r\n:\d\r\n\$2\r\nid\r\n:)\d+"
              rb"(?P<rest>\r\n\$4\r\nmode\r\n.*)",
        skep=rb"(?P=size)\$6\r\nserver\r\n\$4\r\nskep\r\n\$7\r\nversion\r\n\$\d+\r\n"
             rb"[\d.]+(?P=protocol)\d+(?P=rest)",
        example=("HELLO 3",)),
    "HELLO is done whole or not at all": Entry(
        reason="Redis acts on each option before it has read the next: of two errors it tells the "
               "first, and what came before stays done.",
        command=rb"HELLO \d (?:AUTH|SETNAME) .*",
        redis=rb"-(?:WRONGPASS|ERR Client names cannot contain) [^\r]*\r\n",
        skep=rb"-ERR Syntax error in HELLO option .*",
        example=("HELLO 3 AUTH nobody any nosuch",)),
    "a HELLO that is refused names no client": Entry(
        reason="Redis 7.0 keeps the name of a HELLO whose next option it refuses; Skep, as later "
               "versions of Redis, does not.",
        command=rb"CLIENT GETNAME",
        redis=rb"\$2\r\nme\r\n",
        skep=rb"(?:\$.*|_\r\n)",
        example=('HELLO 3 SETNAME me "1 "', "CLIENT GETNAME")),
    "errors quote whole words": Entry(
        reason="Redis ends a word that it quotes in an error at the word's first zero byte.",
        command=rb".*\\x00.*",
        redis=rb"-ERR (?P<told>(?:unknown (?:sub)?command '|Unsupported option |Unknown client type '|"
              rb"No such user '|Syntax error in HELLO "
              rb"option ')[^\x00]*)(?:'.*)?\r\n",
        skep=rb"-ERR (?P=told)\x00.*\r\n",
        example=(r'NOSUCH "a\x00b"',)),
    "DBSIZE counts no key that is gone": Entry(
        reason="Redis counts a key whose deadline has passed until somebody looks at it.",
        command=rb"DBSIZE",
        redis=rb":[1-9]\d*\r\n",
        skep=rb":\d+\r\n",
        example=("MULTI", "SET a 1 PXAT 1", "DBSIZE", "EXEC"),
        after=SET_GONE),
    "to store what is gone at once is no change": Entry(
        reason="Where nothing was before, nothing is after it: a watched key has not changed.",
        command=rb"EXEC",
        redis=rb"(?:\*-1|_)\r\n",
        skep=rb"\*\d.*",
        example=("WATCH a", "SET a 1 PXAT 1", "MULTI", "EXEC"),
        after=SET_GONE,
        parts_ways=True),
    "BITFIELD that makes a key changes it": Entry(
        reason="Where OVERFLOW FAIL keeps BITFIELD from writing, Redis makes an absent key of zeros "
               "or lengthens one, and tells no watch of it.",
        command=rb"EXEC",
        redis=rb"\*\d.*",
        skep=rb"(?:\*-1|_)\r\n",
        example=("WATCH a", "BITFIELD a OVERFLOW FAIL SET u1 21 2", "MULTI", "EXEC"),
        after=rb"BITFIELD .* OVERFLOW FAIL .*",
        parts_ways=True),
    "SCAN knows its cursors": Entry(
        reason="A cursor is a place in the order of keys, kept by the server; Redis takes any "
               "number for one, and answers with some keys.",
        command=rb'SCAN (?:"1\\x00"|[+-]?\d+)(?: .*)?',
        redis=rb"(?!-ERR invalid cursor).*",
        skep=rb"-ERR invalid cursor[^\r]*\r\n",
        example=("SCAN 12345",)),
    "a transaction is about one database: SELECT": Entry(
        reason="An atomic batch belongs to one keyspace, and so do the keys that are watched.",
        command=rb"SELECT \d+",
        redis=rb"\+(?:QUEUED|OK)\r\n",
        skep=rb"-ERR [^\r]*: a transaction is about one database\r\n",
        example=("MULTI", "SELECT 1"),
        parts_ways=True),
    "a transaction is about one database: FLUSHALL": Entry(
        reason="An atomic batch belongs to one keyspace.",
        command=rb"FLUSHALL.*",
        redis=rb"\+QUEUED\r\n",
        skep=rb"-ERR Command not allowed inside a transaction: a transaction is about one "
             rb"database\r\n",
        example=("MULTI", "FLUSHALL"),
        parts_ways=True),
    "a transaction is about one database: COPY": Entry(
        reason="An atomic batch belongs to one keyspace: EXEC has an error in the place of the copy.",
        command=rb"COPY .* DB .*",
        redis=rb":[01]\r\n",
        skep=rb"-ERR COPY: a transaction is about one database\r\n",
        example=("SET a 1", "MULTI", "COPY a b DB 3", "EXEC"),
        parts_ways=True),
    "SORT knows nothing of other commands": Entry(
        reason="Redis looks at errno, which it has not cleared: a number of an earlier command that "
               "was too small or too large makes every number of SORT wrong.",
        command=rb"SORT(?:_RO)? .*",
        redis=rb"-ERR One or more scores can't be converted into double\r\n",
        skep=rb"(?!-).*",
        example=("ZADD z1 5e-324 m", "RPUSH n1 1.5", "SORT n1"),
        parts_ways=True),
    "OBJECT ENCODING knows values only": Entry(
        reason="There are no encodings here: the answer is how Redis would keep the value if SET had "
               "stored it, while Redis also knows how it came about.",
        command=rb"OBJECT ENCODING .*",
        redis=rb"\$\d+\r\n(?:raw|embstr|int|listpack|intset|hashtable|quicklist|skiplist)\r\n",
        skep=rb"\$\d+\r\n(?:raw|embstr|int|listpack|intset|hashtable|quicklist|skiplist)\r\n",
        example=("APPEND a x", "APPEND a y", "OBJECT ENCODING a")),
    "OBJECT REFCOUNT counts one": Entry(
        reason="A value belongs to its key alone; Redis shares those that are small "
               "integers, and those of a transaction with its queue.",
        command=rb"OBJECT REFCOUNT .*",
        redis=rb":(?:2147483647|[2-9])\r\n",
        skep=rb":1\r\n",
        example=("SET a 1", "OBJECT REFCOUNT a")),
    "OBJECT IDLETIME is not kept": Entry(
        reason="A read writes nothing, not even when it was.",
        command=rb"OBJECT IDLETIME .*",
        redis=rb":\d+\r\n",
        skep=rb"-ERR the times of accesses to keys are not kept\r\n",
        example=("SET a 1", "OBJECT IDLETIME a")),
    "deadlines end": Entry(
        reason="A deadline is at most 2^56 - 1 milliseconds after 1970, some two million years: an "
               "item has seven bytes for it.",
        command=rb"(?:PEXPIREAT|SET|GETEX|RESTORE) .*\d{17,}.*",
        redis=rb"(?!-).*",
        skep=rb"-ERR invalid expire time in '\w+' command\r\n",
        example=("SET a 1", "PEXPIREAT a 72057594037927936"),
        parts_ways=True),
    "keys are short": Entry(
        reason="A key is at most 65536 bytes long.",
        command=rb"SET k{65537,} v",
        redis=rb"\+OK\r\n",
        skep=rb"-ERR [^\r]*\r\n",
        example=(f"SET {'k' * 65537} v",),
        parts_ways=True),
    "patterns are short": Entry(
        reason="Matching takes time with the pattern's length times the key's.",
        command=rb"KEYS a{1025,}",
        redis=rb"\*0\r\n",
        skep=rb"-ERR pattern exceeds the maximum size \(1024 bytes\)\r\n",
        example=(f"KEYS {'a' * 1025}",)),
}


def listed(command, redis, skep, before):
    """The entry that allows these answers, or None."""
    return next((entry for entry in DIFFERENCES.values()
                 if entry.matches(line(command), redis, skep, before)), None)
