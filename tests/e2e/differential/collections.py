"""collections.py: the commands about hashes, sets, lists and sorted sets, and how to draw them.

Each type has keys of its own, so that commands meet, and now and then a key of the others, so that
types clash. Members are few. The sorted sets of LEX_KEYS have equal scores: where scores differ, a
range of members has no meaning. No score is minus zero, which Redis keeps or not by its encoding.
"""

from .shape import NIL_OR_SOME, NO_KEY, NO_OR_YES, NOT_AN_INTEGER, SYNTAX, Command

WRONG_TYPE = "WRONGTYPE"
NOT_A_FLOAT = "not a valid float"
NOT_POSITIVE = "value is out of range, must be positive"
BAD_CURSOR = "invalid cursor"

HASH_KEYS = [b"h1", b"h2"]
SET_KEYS = [b"s1", b"s2", b"s3"]
LIST_KEYS = [b"l1", b"l2"]
ZSET_KEYS = [b"z1", b"z2"]
LEX_KEYS = [b"lex1", b"lex2"]
MEMBERS = [b"a", b"b", b"c", b"d", b"10", b"-5", b"", b"\x00\r\n\xff", b"m" * 70]
FLOATS = [b"0", b"1", b"-1", b"1.5", b"-0.25", b"3.0e3", b"1e300", b"-1e300", b"5e-324", b"0.1",
          b"100", b"9007199254740993", b"inf", b"-inf", b"+inf"]
NOT_FLOATS = [b"abc", b"", b" 1", b"1 ", b"nan", b"1e999", b"0x", b"1,5"]
SCAN_PATTERNS = [b"*", b"a*", b"?", b"[ab]", b"nosuch", b"1*"]


def of(keys):
    """Draws mostly one of the keys."""
    def draw(words):
        if words.focus is not None and words.chance(0.5):
            return words.focus
        return words.pick(keys) if words.chance(0.95) else words.key()
    return draw


hash_key, set_key, list_key = of(HASH_KEYS), of(SET_KEYS), of(LIST_KEYS)
zset_key = of(ZSET_KEYS)


def member(words):
    return words.pick(MEMBERS)


def members(words, most=4):
    return [member(words) for _ in range(words.rng.randrange(1, most))]


def value(words):
    return words.pick(MEMBERS) if words.chance(0.5) else words.number()


def float_(words):
    return words.pick(FLOATS) if words.chance(0.92) else words.pick(NOT_FLOATS)


def small(words):
    """A count or an index."""
    if words.chance(0.08):
        return words.number()
    return b"%d" % words.rng.randrange(-4, 5)


def fields(words, key, odd=0.0):
    found = [key(words)]
    for field in members(words):
        found += [field, value(words)]
    return found[:-1] if words.chance(odd) else found


def key_members(key):
    return lambda words: [key(words), *members(words)]


def key_member(key):
    return lambda words: [key(words), member(words)]


def only_key(key):
    return lambda words: [key(words)]


def keys_of(key):
    return lambda words: [key(words) for _ in range(words.rng.randrange(1, 4))]


def scan(key):
    def draw(words):
        cursor = b"0" if words.chance(0.9) else words.pick([b"abc", b"1.5", b"9" * 40, b""])
        options = []
        if words.chance(0.5):
            options += [words.case(b"MATCH"), words.pick(SCAN_PATTERNS)]
        if words.chance(0.5):
            options += [words.case(b"COUNT"), words.pick([b"1", b"100", b"0", b"-1", b"abc"])]
        if words.chance(0.1):
            options += words.pick([[b"TYPE", b"string"], [b"NOVALUES"], [b"MATCH"]])
        return [key(words), cursor, *options]
    return draw


# What is drawn at random is compared by how much it is, so a count is mostly one that draws all.
def random_members(key, option=None):
    def draw(words):
        found = [key(words)]
        if words.chance(0.7):
            found.append(small(words) if words.chance(0.5) else b"1000")
            if option and words.chance(0.5):
                found.append(words.case(option) if words.chance(0.9) else words.junk())
        return found
    return draw


def spop(words):
    if words.chance(0.1):
        return [b"nosuch"]
    return [set_key(words), words.pick([b"1000", b"1000", b"0", b"-1", b"abc"])]


def sintercard(words):
    keys = keys_of(set_key)(words)
    count = b"%d" % len(keys) if words.chance(0.85) else words.pick([b"0", b"-1", b"9", b"abc"])
    options = []
    if words.chance(0.4):
        options += [words.case(b"LIMIT"), words.pick([b"0", b"1", b"2", b"-1", b"abc"])]
    if words.chance(0.05):
        options.append(words.junk())
    return [count, *keys, *options]


def linsert(words):
    where = words.case(words.pick([b"BEFORE", b"AFTER"])) if words.chance(0.9) else words.junk()
    return [list_key(words), where, member(words), value(words)]


def lpos(words):
    options = []
    for name in (b"RANK", b"COUNT", b"MAXLEN"):
        if words.chance(0.35):
            options += [words.case(name), small(words)]
    if words.chance(0.05):
        options.append(words.junk())
    return [list_key(words), member(words), *options]


def lmove(words):
    def end():
        return words.case(words.pick([b"LEFT", b"RIGHT"])) if words.chance(0.95) else words.junk()
    return [list_key(words), list_key(words), end(), end()]


def pop(key, counts):
    def draw(words):
        return [key(words), *([words.pick(counts)] if words.chance(0.4) else [])]
    return draw


POP_COUNTS = [b"0", b"1", b"2", b"3", b"100", b"-1", b"abc"]


def zadd(words):
    if words.chance(0.3):
        return [words.pick(LEX_KEYS), *(word for each in members(words) for word in (b"0", each))]
    options = []
    for option in (b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"):
        if words.chance(0.12):
            options.append(words.case(option))
    pairs = [word for each in members(words, 3 if options else 5)
             for word in (float_(words), each)]
    return [zset_key(words), *options, *(pairs[:-1] if words.chance(0.04) else pairs)]


def score_bound(words):
    if words.chance(0.1):
        return words.pick([b"abc", b"(", b"((1", b"nan", b" 1", b"1 "])
    bound = words.pick([b"-inf", b"+inf", b"0", b"1", b"-1", b"1.5", b"100", b"1e300", b"inf"])
    return (b"(" if words.chance(0.3) else b"") + bound


def member_bound(words):
    if words.chance(0.1):
        return words.pick([b"abc", b"", b"a", b"1"])
    if words.chance(0.3):
        return words.pick([b"-", b"+"])
    return words.pick([b"[", b"("]) + words.pick([b"a", b"b", b"c", b"10", b"", b"zz"])


def limit(words, chance=0.4):
    return [words.case(b"LIMIT"), small(words), small(words)] if words.chance(chance) else []


def with_scores(words, chance=0.4):
    return [words.case(b"WITHSCORES")] if words.chance(chance) else []


def some_junk(words):
    return [words.junk()] if words.chance(0.04) else []


def by_rank(words):
    return [zset_key(words), small(words), small(words), *with_scores(words), *some_junk(words)]


def by_score(words):
    return [zset_key(words), score_bound(words), score_bound(words), *with_scores(words),
            *limit(words), *some_junk(words)]


def by_member(words):
    return [words.pick(LEX_KEYS), member_bound(words), member_bound(words), *limit(words),
            *some_junk(words)]


def zrange(words):
    reverse = [words.case(b"REV")] if words.chance(0.3) else []
    kind = words.rng.random()
    if kind < 0.4:
        return by_rank(words) + reverse + limit(words, 0.05)
    if kind < 0.7:
        return by_score(words) + [words.case(b"BYSCORE")] + reverse
    return by_member(words) + [words.case(b"BYLEX")] + reverse + with_scores(words, 0.05)


HASH_COMMANDS = {
    "HDEL": Command(2, key_members(hash_key), (WRONG_TYPE,), NO_OR_YES),
    "HEXISTS": Command(1, key_member(hash_key), (WRONG_TYPE,), NO_OR_YES),
    "HGET": Command(2, key_member(hash_key), (WRONG_TYPE,), NIL_OR_SOME),
    "HGETALL": Command(2, only_key(hash_key), (WRONG_TYPE,)),
    "HINCRBY": Command(2, lambda words: [hash_key(words), member(words), words.number()],
                       (WRONG_TYPE, NOT_AN_INTEGER, "hash value is not an integer")),
    "HINCRBYFLOAT": Command(2, lambda words: [hash_key(words), member(words), float_(words)],
                            (WRONG_TYPE, NOT_A_FLOAT, "hash value is not a float",
                             "NaN or Infinity")),
    "HKEYS": Command(1, only_key(hash_key), (WRONG_TYPE,)),
    "HLEN": Command(1, only_key(hash_key), (WRONG_TYPE,)),
    "HMGET": Command(2, key_members(hash_key), (WRONG_TYPE,)),
    "HMSET": Command(1, lambda words: fields(words, hash_key, 0.1), (WRONG_TYPE,)),
    "HRANDFIELD": Command(2, random_members(hash_key, b"WITHVALUES"),
                          (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER), NIL_OR_SOME),
    "HSCAN": Command(1, scan(hash_key), (WRONG_TYPE, SYNTAX, BAD_CURSOR)),
    "HSET": Command(6, lambda words: fields(words, hash_key, 0.05), (WRONG_TYPE,)),
    "HSETNX": Command(2, lambda words: [hash_key(words), member(words), value(words)],
                      (WRONG_TYPE,), NO_OR_YES),
    "HSTRLEN": Command(1, key_member(hash_key), (WRONG_TYPE,)),
    "HVALS": Command(1, only_key(hash_key), (WRONG_TYPE,)),
}
SET_COMMANDS = {
    "SADD": Command(6, key_members(set_key), (WRONG_TYPE,), NO_OR_YES),
    "SCARD": Command(1, only_key(set_key), (WRONG_TYPE,)),
    "SDIFF": Command(1, keys_of(set_key), (WRONG_TYPE,)),
    "SDIFFSTORE": Command(1, lambda words: [set_key(words), *keys_of(set_key)(words)],
                          (WRONG_TYPE,)),
    "SINTER": Command(1, keys_of(set_key), (WRONG_TYPE,)),
    "SINTERCARD": Command(1, sintercard, (WRONG_TYPE, SYNTAX, "numkeys should be greater than 0",
                                          "can't be greater than number of args",
                                          "LIMIT can't be negative")),
    "SINTERSTORE": Command(1, lambda words: [set_key(words), *keys_of(set_key)(words)],
                           (WRONG_TYPE,)),
    "SISMEMBER": Command(1, key_member(set_key), (WRONG_TYPE,), NO_OR_YES),
    "SMEMBERS": Command(1, only_key(set_key), (WRONG_TYPE,)),
    "SMISMEMBER": Command(1, key_members(set_key), (WRONG_TYPE,)),
    "SMOVE": Command(2, lambda words: [set_key(words), set_key(words), member(words)],
                     (WRONG_TYPE,), NO_OR_YES),
    "SPOP": Command(1, spop, (WRONG_TYPE, NOT_POSITIVE), has_arity=False),
    "SRANDMEMBER": Command(1, random_members(set_key), (WRONG_TYPE, NOT_AN_INTEGER), NIL_OR_SOME),
    "SREM": Command(2, key_members(set_key), (WRONG_TYPE,), NO_OR_YES),
    "SSCAN": Command(1, scan(set_key), (WRONG_TYPE, SYNTAX, BAD_CURSOR)),
    "SUNION": Command(1, keys_of(set_key), (WRONG_TYPE,)),
    "SUNIONSTORE": Command(1, lambda words: [set_key(words), *keys_of(set_key)(words)],
                           (WRONG_TYPE,)),
}
LIST_COMMANDS = {
    "LINDEX": Command(1.5, lambda words: [list_key(words), small(words)],
                      (WRONG_TYPE, NOT_AN_INTEGER), NIL_OR_SOME),
    "LINSERT": Command(2, linsert, (WRONG_TYPE, SYNTAX), (":0", ":-1")),
    "LLEN": Command(1, only_key(list_key), (WRONG_TYPE,)),
    "LMOVE": Command(2, lmove, (WRONG_TYPE, SYNTAX), NIL_OR_SOME),
    "LPOP": Command(2, pop(list_key, POP_COUNTS), (WRONG_TYPE, NOT_POSITIVE), NIL_OR_SOME),
    "LPOS": Command(2, lpos, (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, "RANK can't be zero",
                              "COUNT can't be negative", "MAXLEN can't be negative"),
                    NIL_OR_SOME),
    "LPUSH": Command(4, key_members(list_key), (WRONG_TYPE,)),
    "LPUSHX": Command(1, key_members(list_key), (WRONG_TYPE,)),
    "LRANGE": Command(2, lambda words: [list_key(words), small(words), small(words)],
                      (WRONG_TYPE, NOT_AN_INTEGER)),
    "LREM": Command(2, lambda words: [list_key(words), small(words), member(words)],
                    (WRONG_TYPE, NOT_AN_INTEGER), NO_OR_YES),
    "LSET": Command(2, lambda words: [list_key(words), small(words), value(words)],
                    (WRONG_TYPE, NOT_AN_INTEGER, NO_KEY, "index out of range")),
    "LTRIM": Command(1, lambda words: [list_key(words), small(words), small(words)],
                     (WRONG_TYPE, NOT_AN_INTEGER)),
    "RPOP": Command(2, pop(list_key, POP_COUNTS), (WRONG_TYPE, NOT_POSITIVE), NIL_OR_SOME),
    "RPOPLPUSH": Command(1, lambda words: [list_key(words), list_key(words)], (WRONG_TYPE,),
                         NIL_OR_SOME),
    "RPUSH": Command(4, key_members(list_key), (WRONG_TYPE,)),
    "RPUSHX": Command(1, key_members(list_key), (WRONG_TYPE,)),
}
NOT_A_BOUND = "min or max is not a float"
NOT_A_MEMBER_BOUND = "min or max not valid string range item"
ZSET_COMMANDS = {
    "ZADD": Command(6, zadd, (WRONG_TYPE, SYNTAX, NOT_A_FLOAT, "XX and NX options",
                              "GT, LT, and/or NX options", "INCR option supports")),
    "ZCARD": Command(1, only_key(zset_key), (WRONG_TYPE,)),
    "ZCOUNT": Command(1, lambda words: [zset_key(words), score_bound(words), score_bound(words)],
                      (WRONG_TYPE, NOT_A_BOUND)),
    "ZINCRBY": Command(2, lambda words: [zset_key(words), float_(words), member(words)],
                       (WRONG_TYPE, NOT_A_FLOAT)),
    "ZLEXCOUNT": Command(1, lambda words: [words.pick(LEX_KEYS), member_bound(words),
                                           member_bound(words)], (NOT_A_MEMBER_BOUND,)),
    "ZMSCORE": Command(1, key_members(zset_key), (WRONG_TYPE,)),
    "ZPOPMAX": Command(1, pop(zset_key, POP_COUNTS), (WRONG_TYPE, NOT_POSITIVE)),
    "ZPOPMIN": Command(1, pop(zset_key, POP_COUNTS), (WRONG_TYPE, NOT_POSITIVE)),
    "ZRANDMEMBER": Command(1, random_members(zset_key, b"WITHSCORES"),
                           (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER), NIL_OR_SOME),
    "ZRANGE": Command(4, zrange, (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, NOT_A_BOUND,
                                  NOT_A_MEMBER_BOUND)),
    "ZRANGEBYLEX": Command(1, by_member, (SYNTAX, NOT_A_MEMBER_BOUND)),
    "ZRANGEBYSCORE": Command(2, by_score, (WRONG_TYPE, SYNTAX, NOT_A_BOUND)),
    "ZRANK": Command(1, key_member(zset_key), (WRONG_TYPE,), ("nil", ":0")),
    "ZREM": Command(1, key_members(zset_key), (WRONG_TYPE,), NO_OR_YES),
    "ZREMRANGEBYLEX": Command(1, lambda words: [words.pick(LEX_KEYS), member_bound(words),
                                                member_bound(words)], (NOT_A_MEMBER_BOUND,)),
    "ZREMRANGEBYRANK": Command(1, lambda words: [zset_key(words), small(words), small(words)],
                               (WRONG_TYPE, NOT_AN_INTEGER)),
    "ZREMRANGEBYSCORE": Command(1, lambda words: [zset_key(words), score_bound(words),
                                                  score_bound(words)], (WRONG_TYPE, NOT_A_BOUND)),
    "ZREVRANGE": Command(1, by_rank, (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER)),
    "ZREVRANGEBYLEX": Command(1, by_member, (SYNTAX, NOT_A_MEMBER_BOUND)),
    "ZREVRANGEBYSCORE": Command(1, by_score, (WRONG_TYPE, SYNTAX, NOT_A_BOUND)),
    "ZREVRANK": Command(1, key_member(zset_key), (WRONG_TYPE,), ("nil", ":0")),
    "ZSCAN": Command(1, scan(zset_key), (WRONG_TYPE, SYNTAX, BAD_CURSOR)),
    "ZSCORE": Command(1, key_member(zset_key), (WRONG_TYPE,), NIL_OR_SOME),
}
