"""table.py: the commands that Redis and Skep share, how to draw one, and what must come of it.

Every command of Skep that Redis 7.0 has too is in COMMANDS or in ELSEWHERE.
"""

from dataclasses import dataclass
from typing import Callable

from .words import DATABASES, PATTERNS


@dataclass(frozen=True)
class Command:
    weight: float
    draw: Callable  # Words -> the arguments
    errors: tuple = ()  # pieces of error texts that a run must have seen
    answers: tuple = ()  # and answers, as outcome() writes them
    has_arity: bool = True  # there is a wrong count of words


NOT_AN_INTEGER = "not an integer or out of range"
SYNTAX = "syntax error"
OVERFLOW = "increment or decrement would overflow"
NO_KEY = "no such key"
BAD_TIME = "invalid expire time"
CLASH = "NX and XX, GT or LT options at the same time are not compatible"
CLASH_GT_LT = "GT and LT options at the same time are not compatible"
UNSUPPORTED = "Unsupported option"

NIL_OR_SOME = ("nil", "some")
NO_OR_YES = (":0", ":1")
NO_KEY_OR_NO_DEADLINE = (":-2", ":-1")


def outcome(raw):
    """A reply that is no error, in a word."""
    if raw[:2] in (b"_\r", b"$-", b"*-"):
        return "nil"
    return raw[:-2].decode() if raw[:1] in b":+" else "some"


def nothing(_):
    return []


def key(words):
    return [words.key()]


def keys(words):
    return words.keys()


def two_keys(words):
    return [words.key(), words.key()]


def pairs(words):
    return words.pairs()


def key_value(words):
    return [words.key(), words.value()]


def key_number(words):
    return [words.key(), words.number()]


def set_(words):
    options = []
    if words.chance(0.3):
        options.append([words.case(words.pick([b"NX", b"XX"]))])
    if words.chance(0.3):
        options.append([words.case(b"GET")])
    if words.chance(0.15):
        options.append([words.case(b"KEEPTTL")])
    if words.chance(0.3):
        options.append(words.deadline())
    if words.chance(0.05):
        options.append(words.pick([[b"NX"], [b"XX"], [b"GET"], [b"EX"], [b"KEEPTTL"], [b"PERSIST"],
                                   [words.junk()]]))
    words.rng.shuffle(options)
    return [*key_value(words), *(word for option in options for word in option)]


def setex(draw_time):
    return lambda words: [words.key(), draw_time(words), words.value()]


def getex(words):
    options = []
    if words.chance(0.8):
        options += words.deadline() if words.chance(0.7) else [words.case(b"PERSIST")]
        if words.chance(0.08):
            options += words.pick([[b"PERSIST"], [b"KEEPTTL"], [b"EX"], [words.junk()]])
    return [words.key(), *options]


def expire(draw_time, *errors):
    def draw(words):
        options = []
        if words.chance(0.5):
            options.append(words.case(words.pick([b"NX", b"XX", b"GT", b"LT"])))
            if words.chance(0.3):
                options.append(words.pick([b"NX", b"XX", b"GT", b"LT", words.junk()]))
        return [words.key(), draw_time(words), *options]

    return Command(4, draw, (NOT_AN_INTEGER, CLASH, CLASH_GT_LT, UNSUPPORTED, *errors), NO_OR_YES)


def scan(words):
    options = []
    if words.chance(0.4):
        options.append([words.case(b"MATCH"), words.pick(PATTERNS)])
    if words.chance(0.5):
        options.append([words.case(b"COUNT"), words.pick([b"1", b"2", b"100", b"1000", b"0", b"-1",
                                                          b"abc"])])
    if words.chance(0.2):
        options.append([words.case(b"TYPE"), words.pick([b"string", b"STRING", b"list", b"none"])])
    if words.chance(0.05):
        options.append([words.junk()])
    words.rng.shuffle(options)
    cursor = b"0" if words.chance(0.95) else words.pick([b"abc", b"", b"1.5", b"9" * 40, b"-1"])
    return [cursor, *(word for option in options for word in option)]


def flush(words):
    return [words.pick([b"ASYNC", b"SYNC", words.junk()])] if words.chance(0.5) else []


def select(words):
    if words.chance(0.8):
        return [b"%d" % words.pick(DATABASES)]
    return [words.pick([b"16", b"-1", b"abc", b"", b"01", b"9" * 40])]


def ping(words):
    return [words.value()] if words.chance(0.5) else []


def hello(words):
    if words.chance(0.1):
        return []
    options = []
    if words.chance(0.4):
        options += words.pick([[b"SETNAME", b"me"], [b"AUTH", b"default", b"any"],
                               [b"AUTH", b"nobody", b"any"], [b"SETNAME", b"a b"], [b"AUTH"],
                               [words.junk()]])
    protocol = words.pick([b"2", b"3", b"3"]) if words.chance(0.8) else words.pick(
        [b"1", b"4", b"abc", b""])
    return [protocol, *options]


# The filter that comes first fits no client: the streams' own must stay.
def client(words):
    subcommand = words.pick([b"KILL", b"KILL", b"KILL", b"NO-EVICT", b"SETNAME", b"GETNAME"])
    name = words.case(subcommand)
    if subcommand == b"GETNAME":
        return [name]
    if subcommand == b"SETNAME":
        return [name, words.pick([b"me", b"", b"a b", b"name-\xff", b"n" * 256])]
    if subcommand == b"NO-EVICT":
        return [name, words.pick([b"on", b"OFF", b"On", words.junk()])]
    nobody = words.pick([[b"ID", b"999999999999"], [b"ADDR", b"1.2.3.4:5"], [b"LADDR", b"1.2.3.4:5"],
                         [b"TYPE", b"master"], [b"TYPE", b"replica"], [b"TYPE", b"pubsub"]])
    if words.chance(0.2):
        return [name, words.pick([b"1.2.3.4:5", words.junk()])]
    more = [words.case(word) for _ in range(words.pick([0, 0, 1, 2]))
            for word in words.pick([[b"SKIPME", b"yes"], [b"SKIPME", b"no"], [b"SKIPME", b"maybe"],
                                    [b"USER", b"default"], [b"USER", b"nobody"],
                                    [b"TYPE", b"nosuch"], [b"ID", b"0"], [b"ID", b"abc"],
                                    [b"ADDR", b"1.2.3.4:6"], [words.junk(), words.junk()]])]
    return [name, *(words.case(word) for word in nobody), *more]


COMMANDS = {
    "APPEND": Command(2, key_value),
    "CLIENT": Command(2, client, (SYNTAX, "No such client", "Unknown client type", "No such user",
                                  "client-id should be greater than 0", "Client names cannot",
                                  "unknown subcommand"),
                      ("nil", "some", "+OK", ":0")),
    "DBSIZE": Command(1, nothing),
    "DECR": Command(1.5, key, (NOT_AN_INTEGER, OVERFLOW)),
    "DECRBY": Command(2, key_number, (NOT_AN_INTEGER, OVERFLOW, "ERR decrement would overflow")),
    "DEL": Command(2, keys, answers=NO_OR_YES),
    "DISCARD": Command(0.5, nothing, ("DISCARD without MULTI",)),
    "ECHO": Command(0.5, lambda words: [words.value()]),
    "EXEC": Command(0.5, nothing, ("EXEC without MULTI", "EXECABORT"), answers=NIL_OR_SOME),
    "EXISTS": Command(2, keys, answers=NO_OR_YES),
    "EXPIRE": expire(lambda words: words.seconds(), BAD_TIME),
    "EXPIREAT": expire(lambda words: words.second(), BAD_TIME),
    "EXPIRETIME": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "FLUSHALL": Command(0.2, flush, (SYNTAX,), has_arity=False),
    "FLUSHDB": Command(0.3, flush, (SYNTAX,), has_arity=False),
    "GET": Command(4, key, answers=NIL_OR_SOME),
    "GETDEL": Command(1.5, key, answers=NIL_OR_SOME),
    "GETEX": Command(4, getex, (SYNTAX, NOT_AN_INTEGER, BAD_TIME), answers=NIL_OR_SOME),
    "GETSET": Command(1.5, key_value, answers=NIL_OR_SOME),
    "HELLO": Command(1, hello, ("NOPROTO", "Protocol version is not an integer", "WRONGPASS",
                                "Syntax error in HELLO option", "Client names cannot contain"),
                     has_arity=False),
    "INCR": Command(1.5, key, (NOT_AN_INTEGER, OVERFLOW)),
    "INCRBY": Command(2, key_number, (NOT_AN_INTEGER, OVERFLOW)),
    "KEYS": Command(1, lambda words: [words.pick(PATTERNS)]),
    "MGET": Command(2, keys),
    "MSET": Command(2, pairs),
    "MSETNX": Command(2, pairs, answers=NO_OR_YES),
    "MULTI": Command(0.5, nothing, ("MULTI calls can not be nested",)),
    "PERSIST": Command(2, key, answers=NO_OR_YES),
    "PEXPIRE": expire(lambda words: words.milliseconds(), BAD_TIME),
    "PEXPIREAT": expire(lambda words: words.millisecond()),
    "PEXPIRETIME": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "PING": Command(0.5, ping),
    "PSETEX": Command(2, setex(lambda words: words.milliseconds()), (NOT_AN_INTEGER, BAD_TIME)),
    "PTTL": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "RANDOMKEY": Command(1, nothing, answers=NIL_OR_SOME),
    "RENAME": Command(2, two_keys, (NO_KEY,)),
    "RENAMENX": Command(2, two_keys, (NO_KEY,), answers=NO_OR_YES),
    "RESET": Command(0.3, nothing),
    "SCAN": Command(2, scan, (SYNTAX, NOT_AN_INTEGER, "invalid cursor")),
    "SELECT": Command(1, select, (NOT_AN_INTEGER, "DB index is out of range")),
    "SET": Command(10, set_, (SYNTAX, NOT_AN_INTEGER, BAD_TIME), answers=("nil", "some", "+OK")),
    "SETEX": Command(2, setex(lambda words: words.seconds()), (NOT_AN_INTEGER, BAD_TIME)),
    "SETNX": Command(1.5, key_value, answers=NO_OR_YES),
    "STRLEN": Command(1, key),
    "TTL": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "TYPE": Command(1, key, answers=("+string", "+none")),
    "UNLINK": Command(1, keys, answers=NO_OR_YES),
    "UNWATCH": Command(0.5, nothing),
    "WATCH": Command(1.5, keys, ("WATCH inside MULTI is not allowed",)),
}

# What else both know: of their own server, compared by compare_test.py where it can be.
ELSEWHERE = {"AUTH", "BGSAVE", "COMMAND", "CONFIG", "INFO", "LASTSAVE", "QUIT", "SAVE",
             "SHUTDOWN", "TIME"}
