"""table.py: the commands that Redis and Skep share, how to draw one, and what must come of it.

Every command of Skep that Redis 7.0 has too is in COMMANDS or in ELSEWHERE.
"""

from .collections import HASH_COMMANDS, LIST_COMMANDS, SET_COMMANDS, ZSET_COMMANDS
from .geo import GEO_COMMANDS
from .joins import JOIN_COMMANDS
from .shape import NIL_OR_SOME, NO_KEY, NO_OR_YES, NOT_AN_INTEGER, OVERFLOW, SYNTAX, Command
from .words import COLLECTION_KEYS, DATABASES, NOT_NUMBERS, PATTERNS, PAYLOADS

BAD_TIME = "invalid expire time"
CLASH = "NX and XX, GT or LT options at the same time are not compatible"
CLASH_GT_LT = "GT and LT options at the same time are not compatible"
UNSUPPORTED = "Unsupported option"

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


def any_key(words):
    return [words.key()] if words.chance(0.5) else [words.pick(COLLECTION_KEYS)]


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
        options.append([words.case(b"TYPE"), words.pick([b"string", b"STRING", b"list", b"Hash", b"set",
                                                         b"zset", b"none"])])
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


def index(words):
    """An offset from the start or the end of a value, or a number that is none."""
    return b"%d" % words.rng.randrange(-12, 12) if words.chance(0.8) else words.number()


def getrange(words):
    return [words.key(), index(words), index(words)]


# No offset for which Redis would make a value of hundreds of megabytes.
def setrange(words):
    offset = words.pick([b"0", b"1", b"3", b"10", b"100", b"-1", b"536870912", b"9" * 18,
                         words.pick(NOT_NUMBERS)])
    return [words.key(), offset, words.value()]


def float_(words):
    return words.pick([b"1.5", b"-0.1", b"3", b"1e2", b"-1.5e-3", b"0x10", b"+1", b".5", b"inf",
                       b"-inf", b"nan", b"1e5000", b" 1", b"1 ", b"abc", b"", b"1.5.5",
                       words.number()])


def lcs(words):
    options = [option for option in ([b"LEN"], [b"IDX"], [b"WITHMATCHLEN"],
                                     [b"MINMATCHLEN", words.number()]) if words.chance(0.25)]
    if words.chance(0.1):
        options.append(words.pick([[b"MINMATCHLEN"], [words.junk()]]))
    words.rng.shuffle(options)
    return [words.key(), words.key(), *(words.case(word) for option in options for word in option)]


def bit_offset(words):
    return b"%d" % words.rng.randrange(100) if words.chance(0.85) else words.pick(
        [b"4294967296", b"-1", words.pick(NOT_NUMBERS)])


def bit(words):
    return words.pick([b"0", b"1", b"0", b"1", b"2", b"-1", words.pick(NOT_NUMBERS)])


def bit_range(words):
    """Up to three words: [start [end [BYTE | BIT]]]."""
    unit = words.case(words.pick([b"BIT", b"BYTE", b"BIT", b"BYTE", words.junk()]))
    return [index(words), index(words), unit][:words.pick([0, 0, 1, 2, 2, 3, 3])]


def bitop(words):
    operation = words.case(words.pick([b"AND", b"OR", b"XOR", b"NOT", b"NOT", words.junk()]))
    return [operation, words.key(), *([words.key()] if words.chance(0.4) else words.keys())]


def field(words):
    kind = words.pick([b"u1", b"u2", b"i2", b"u8", b"i8", b"i5", b"u7", b"i16", b"u32", b"i63",
                       b"u63", b"i64"])
    if words.chance(0.05):
        kind = words.pick([b"u64", b"i65", b"u0", b"i", b"x8", b"U8", b"", words.junk()])
    offset = bit_offset(words)
    return [kind, b"#%d" % words.rng.randrange(20) if words.chance(0.3) else offset]


def bitfield(words):
    operations = []
    for _ in range(words.rng.randrange(4)):
        operations += words.pick([
            [b"GET", *field(words)], [b"SET", *field(words), words.number()],
            [b"INCRBY", *field(words), words.number()],
            [b"OVERFLOW", words.pick([b"WRAP", b"SAT", b"FAIL", words.junk()])]])
    if words.chance(0.03):
        operations.append(words.junk())
    return [words.key(), *map(words.case, operations)]


def bitfield_ro(words):
    operations = [word for _ in range(words.rng.randrange(4)) for word in [b"GET", *field(words)]]
    if words.chance(0.1):
        operations += [b"SET", *field(words), words.number()]
    return [words.key(), *map(words.case, operations)]


# Never into a database by its number: Skep does not do that.
def copy(words):
    options = words.pick([[], [], [b"REPLACE"], [b"REPLACE"], [b"DB", b"0"], [b"DB", b"1"],
                          [b"DB", b"2", b"REPLACE"], [b"REPLACE", b"DB", b"1"], [b"DB", b"16"],
                          [b"DB", b"abc"], [b"DB", b"9" * 11], [b"DB"], [words.junk()]])
    # Not those of LEX_KEYS, whose scores are equal.
    collections = COLLECTION_KEYS[:-2]
    keys = [words.pick(collections) if words.chance(0.3) else words.key() for _ in range(2)]
    return [*keys, *map(words.case, options)]


def object_(words):
    subcommand = words.pick([b"ENCODING", b"ENCODING", b"REFCOUNT", b"FREQ", b"IDLETIME",
                             words.junk()])
    return [words.case(subcommand), words.key()]


def restore(words):
    options = [option for option in ([b"REPLACE"], [b"REPLACE"], [b"IDLETIME", words.number()],
                                     [b"FREQ", words.number()]) if words.chance(0.3)]
    lifetime = b"0" if words.chance(0.6) else words.pick([b"-1", words.pick(NOT_NUMBERS)])
    if words.chance(0.2):
        lifetime = words.milliseconds()
    if words.chance(0.1):
        options.append(words.pick([[b"FREQ"], [words.junk()]]))
    words.rng.shuffle(options)
    payload = words.pick(PAYLOADS)
    if words.chance(0.2):
        payload = words.pick([payload[:-1], payload + b"x", b"\x01" + payload[1:], words.value()])
    return [words.key(), lifetime, payload,
            *(words.case(word) for option in options for word in option)]


# The filter that comes first fits no client: the streams' own must stay.
def client(words):
    subcommand = words.pick([b"KILL", b"KILL", b"KILL", b"NO-EVICT", b"SETNAME", b"GETNAME",
                             b"LIST", b"PAUSE", b"UNPAUSE", b"REPLY", b"UNBLOCK"])
    name = words.case(subcommand)
    if subcommand == b"UNPAUSE":
        return [name]
    if subcommand == b"LIST":
        return [name, *words.pick([[b"ID", b"999999999999"], [b"ID", b"abc"], [b"ID", b"0", b"-1"],
                                   [b"TYPE", b"master"], [b"type", b"PubSub"], [b"TYPE", b"nosuch"],
                                   [b"TYPE", b"replica", b"x"], [b"ID"], [words.junk()]])]
    if subcommand == b"PAUSE":
        return [name, words.pick([b"0", b"-1", b"abc"]),
                *words.pick([[], [b"WRITE"], [b"all"], [words.junk()]])]
    if subcommand == b"REPLY":
        return [name, words.pick([b"ON", b"on", words.junk()])]
    if subcommand == b"UNBLOCK":
        return [name, words.pick([b"999999999999", b"0", b"abc"]),
                *words.pick([[], [b"TIMEOUT"], [b"error"], [words.junk()]])]
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
    "BITCOUNT": Command(2, lambda words: [words.key(), *bit_range(words)], (SYNTAX, NOT_AN_INTEGER)),
    "BITFIELD": Command(2, bitfield, (SYNTAX, NOT_AN_INTEGER, "Invalid bitfield type",
                                      "bit offset is not an integer", "Invalid OVERFLOW type")),
    "BITFIELD_RO": Command(1, bitfield_ro, (SYNTAX, "Invalid bitfield type", "bit offset is not",
                                            "only supports the GET")),
    "BITOP": Command(2, bitop, (SYNTAX, "BITOP NOT must be called")),
    "BITPOS": Command(2, lambda words: [words.key(), bit(words), *bit_range(words)],
                      (SYNTAX, NOT_AN_INTEGER, "The bit argument must be 1 or 0")),
    "CLIENT": Command(5, client, (SYNTAX, "No such client", "Unknown client type", "No such user",
                                  "client-id should be greater than 0", "Client names cannot",
                                  "unknown subcommand"),
                      ("nil", "some", "+OK", ":0")),
    "COPY": Command(2, copy, (SYNTAX, NOT_AN_INTEGER, "are the same", "DB index is out of range",
                              "value is out of range"), NO_OR_YES),
    "DBSIZE": Command(1, nothing),
    "DECR": Command(1.5, key, (NOT_AN_INTEGER, OVERFLOW)),
    "DECRBY": Command(2, key_number, (NOT_AN_INTEGER, OVERFLOW, "ERR decrement would overflow")),
    "DEL": Command(2, keys, answers=NO_OR_YES),
    "DISCARD": Command(0.5, nothing, ("DISCARD without MULTI",)),
    "DUMP": Command(1.5, key, answers=NIL_OR_SOME),
    "ECHO": Command(0.5, lambda words: [words.value()]),
    "EXEC": Command(0.5, nothing, ("EXEC without MULTI", "EXECABORT"), answers=NIL_OR_SOME),
    "EXISTS": Command(2, keys, answers=NO_OR_YES),
    "EXPIRE": expire(lambda words: words.seconds(), BAD_TIME),
    "EXPIREAT": expire(lambda words: words.second(), BAD_TIME),
    "EXPIRETIME": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "FLUSHALL": Command(0.2, flush, (SYNTAX,), has_arity=False),
    "FLUSHDB": Command(0.3, flush, (SYNTAX,), has_arity=False),
    "GET": Command(4, key, answers=NIL_OR_SOME),
    "GETBIT": Command(1.5, lambda words: [words.key(), bit_offset(words)],
                      ("bit offset is not an integer",), NO_OR_YES),
    "GETDEL": Command(1.5, key, answers=NIL_OR_SOME),
    "GETEX": Command(4, getex, (SYNTAX, NOT_AN_INTEGER, BAD_TIME), answers=NIL_OR_SOME),
    "GETRANGE": Command(2, getrange, (NOT_AN_INTEGER,)),
    "GETSET": Command(1.5, key_value, answers=NIL_OR_SOME),
    "HELLO": Command(1, hello, ("NOPROTO", "Protocol version is not an integer", "WRONGPASS",
                                "Syntax error in HELLO option", "Client names cannot contain"),
                     has_arity=False),
    "INCR": Command(1.5, key, (NOT_AN_INTEGER, OVERFLOW)),
    "INCRBY": Command(2, key_number, (NOT_AN_INTEGER, OVERFLOW)),
    "INCRBYFLOAT": Command(2, lambda words: [words.key(), float_(words)],
                           ("not a valid float", "would produce NaN or Infinity")),
    "KEYS": Command(1, lambda words: [words.pick(PATTERNS)]),
    "LCS": Command(1.5, lcs, (SYNTAX, NOT_AN_INTEGER, "please just use IDX")),
    "MGET": Command(2, keys),
    "MSET": Command(2, pairs),
    "MSETNX": Command(2, pairs, answers=NO_OR_YES),
    "MULTI": Command(0.5, nothing, ("MULTI calls can not be nested",)),
    "OBJECT": Command(2, object_, ("LFU maxmemory policy is not selected",), ("nil", "some", ":1"),
                      has_arity=False),
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
    "RESTORE": Command(3, restore, (SYNTAX, NOT_AN_INTEGER, "BUSYKEY", "Invalid TTL value",
                                    "Invalid IDLETIME value", "Invalid FREQ value",
                                    "DUMP payload version or checksum are wrong"), ("+OK",)),
    "SCAN": Command(2, scan, (SYNTAX, NOT_AN_INTEGER, "invalid cursor")),
    "SELECT": Command(1, select, (NOT_AN_INTEGER, "DB index is out of range")),
    "SET": Command(10, set_, (SYNTAX, NOT_AN_INTEGER, BAD_TIME), answers=("nil", "some", "+OK")),
    "SETBIT": Command(2, lambda words: [words.key(), bit_offset(words), bit(words)],
                      ("bit offset is not an integer", "bit is not an integer"), NO_OR_YES),
    "SETEX": Command(2, setex(lambda words: words.seconds()), (NOT_AN_INTEGER, BAD_TIME)),
    "SETNX": Command(1.5, key_value, answers=NO_OR_YES),
    "SETRANGE": Command(2, setrange, (NOT_AN_INTEGER, "offset is out of range",
                                      "string exceeds maximum allowed size")),
    "STRLEN": Command(1, key),
    "SUBSTR": Command(1, getrange, (NOT_AN_INTEGER,)),
    "TOUCH": Command(1, keys, answers=NO_OR_YES),
    "TTL": Command(2, key, answers=NO_KEY_OR_NO_DEADLINE),
    "TYPE": Command(1, any_key, answers=("+string", "+none")),
    "UNLINK": Command(1, keys, answers=NO_OR_YES),
    "UNWATCH": Command(0.5, nothing),
    "WATCH": Command(1.5, keys, ("WATCH inside MULTI is not allowed",)),
} | HASH_COMMANDS | SET_COMMANDS | LIST_COMMANDS | ZSET_COMMANDS | JOIN_COMMANDS | GEO_COMMANDS

# What else both know: of their own server, compared by compare_test.py where it can be, and
# messages, which messages_test.py compares.
ELSEWHERE = {"ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLUSTER", "COMMAND", "CONFIG", "DEBUG",
             "FAILOVER", "INFO", "LASTSAVE", "LATENCY", "LOLWUT", "MEMORY", "MIGRATE", "MODULE", "MONITOR", "MOVE", "PFDEBUG",
             "PFSELFTEST", "QUIT", "READONLY", "READWRITE", "REPLICAOF", "RESTORE-ASKING", "ROLE",
             "FUNCTION", "PSUBSCRIBE", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "SAVE", "SCRIPT", "SHUTDOWN",
             "SLAVEOF", "SLOWLOG", "SPUBLISH", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SWAPDB", "TIME",
             "UNSUBSCRIBE", "WAIT"}
