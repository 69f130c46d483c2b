"""joins.py: the commands about several collections, those that wait for one, SORT and
HyperLogLogs, and how to draw them.

Nothing waits for long: a command that finds nothing comes back after a moment. The elements of what
is sorted are numbers mostly, and none has a zero byte, at which Redis ends a word when it compares.
"""

from .collections import (LEX_KEYS, MEMBERS, WRONG_TYPE, NOT_A_MEMBER_BOUND,
                          NOT_A_BOUND, ZSET_KEYS, by_member, by_rank, by_score, limit, list_key,
                          lmove, set_key, small, zset_key)
from .shape import NIL_OR_SOME, NO_OR_YES, NOT_AN_INTEGER, SYNTAX, Command
from .words import COLLECTION_KEYS

HLL_KEYS = [b"hll1", b"hll2", b"hll3"]
NUMKEYS = "numkeys should be greater than 0"
COUNT = "count should be greater than 0"
NO_INPUT = "at least 1 input key is needed"
TIMEOUTS = [b"0.001", b"0.002", b"1e-3", b"0x0.01", b"0.0001"]
WRONG_TIMEOUTS = [b"-1", b"abc", b"", b"nan", b"inf", b"1e300", b" 1",
                  b"9223372036854777"]
TIMEOUT_ERRORS = ("timeout is not a float", "timeout is negative")
WEIGHTS = [b"1", b"2", b"-1", b"0.5", b"0", b"inf", b"-inf", b"1e300", b"1e-300", b"3"]


def timeout(words):
    return words.pick(TIMEOUTS) if words.chance(0.93) else words.pick(WRONG_TIMEOUTS)


def some_keys(words, key):
    return [key(words) for _ in range(words.rng.randrange(1, 4))]


def counted(words, keys):
    count = b"%d" % len(keys)
    if words.chance(0.07):
        count = words.pick([b"0", b"-1", b"9", b"abc", b"9223372036854775807", b""])
    return [count, *keys]


def waits(key):
    return lambda words: [*some_keys(words, key), timeout(words)]


def pops(key, ends, waits_for):
    def draw(words):
        end = words.case(words.pick(ends)) if words.chance(0.95) else words.junk()
        options = []
        if words.chance(0.4):
            options = [words.case(b"COUNT"),
                       words.pick([b"1", b"2", b"3", b"100", b"0", b"-1", b"abc"])]
        if words.chance(0.04):
            options += words.pick([[b"COUNT"], [b"COUNT", b"1"], [words.junk()]])
        first = [timeout(words)] if waits_for else []
        return [*first, *counted(words, some_keys(words, key)), end, *options]
    return draw


def zset_or_set(words):
    return set_key(words) if words.chance(0.25) else zset_key(words)


def join(stores=False, weighs=True, counts=False):
    def draw(words):
        keys = some_keys(words, zset_or_set)
        options = []
        if weighs and words.chance(0.4):
            weights = [words.pick(WEIGHTS) for _ in keys]
            if words.chance(0.1):
                weights = words.pick([weights[1:], weights + [b"1"], [b"abc"] * len(keys),
                                      [b"nan"] * len(keys)])
            options.append([words.case(b"WEIGHTS"), *weights])
        if weighs and words.chance(0.4):
            options.append([words.case(b"AGGREGATE"),
                            words.case(words.pick([b"SUM", b"MIN", b"MAX"]))
                            if words.chance(0.95) else words.junk()])
        if not stores and not counts and words.chance(0.6):
            options.append([words.case(b"WITHSCORES")])
        if counts and words.chance(0.5):
            options.append([words.case(b"LIMIT"), words.pick([b"0", b"1", b"2", b"-1", b"abc"])])
        if words.chance(0.04):
            options.append([words.junk()])
        words.rng.shuffle(options)
        destination = [words.pick(ZSET_KEYS) if words.chance(0.9) else words.key()] if stores else []
        return [*destination, *counted(words, keys), *(word for each in options for word in each)]
    return draw


def zrangestore(words):
    kind = words.rng.random()
    if kind < 0.4:
        found = by_rank(words) + limit(words, 0.05)
    elif kind < 0.7:
        found = by_score(words) + [words.case(b"BYSCORE")]
    else:
        found = by_member(words) + [words.case(b"BYLEX")]
    reverse = [words.case(b"REV")] if words.chance(0.3) else []
    destination = words.pick(LEX_KEYS if found[0] in LEX_KEYS else ZSET_KEYS)
    return [destination, *found, *reverse]


# A list, a set, a sorted set, and what SORT stores.
SORT_KEYS = [b"n1", b"n2", b"n3", b"n4"]
PATTERNS = [b"w_*", b"w_*", b"h_*->f", b"h_*->f", b"h_*->", b"*", b"w_*_x", b"*->f", b"w_*->f"]
GETS = [*PATTERNS, b"#", b"nostar"]
NUMBERS = [b"0", b"1", b"2", b"3", b"10", b"-5", b"2.5", b"1e3"]


def sort_fill(words):
    """Commands that give SORT something to do: six elements at most."""
    def elements():
        found = [words.pick(NUMBERS) for _ in range(words.rng.randrange(1, 6))]
        odd = [words.pick([b"abc", b"1e999", b"0x10", b" 1", b"inf", b"nan", b""])]
        return found + (odd if words.chance(0.15) else [])

    key = words.pick(SORT_KEYS[:3])
    weighed = words.pick(NUMBERS)
    fill = {b"n1": [b"RPUSH", key, *elements()],
            b"n2": [b"SADD", key, *elements()],
            b"n3": [b"ZADD", key, *(word for i, each in enumerate(elements())
                                    for word in (b"%d" % (i % 3), each))]}[key]
    return [[b"DEL", key], fill,
            [b"SET", b"w_" + weighed, words.pick([*NUMBERS, b"abc", b"zz"])],
            [b"HSET", b"h_" + words.pick(NUMBERS), b"f", words.pick([*NUMBERS, b"x"])]]


# Where two are equal, or nothing is sorted, the order of a set is the server's own, and that of
# many elements of a list, too.
def sort(stores):
    def draw(words):
        key = words.pick(SORT_KEYS) if words.chance(0.9) else words.key()
        options = []
        alpha = words.chance(0.4)
        if words.chance(0.5) and (key == b"n1" or not alpha):
            patterns = PATTERNS if key in (b"n2", b"n3") else [*PATTERNS, b"nosort", b"nostar"]
            options.append([words.case(b"BY"), words.pick(patterns)])
        for _ in range(words.pick([0, 0, 0, 1, 1, 2])):
            options.append([words.case(b"GET"), words.pick(GETS)])
        if words.chance(0.3):
            options.append([words.case(b"LIMIT"), small(words), small(words)])
        if words.chance(0.4):
            options.append([words.case(words.pick([b"ASC", b"DESC"]))])
        if alpha:
            options.append([words.case(b"ALPHA")])
        if stores and words.chance(0.3):
            options.append([words.case(b"STORE"), b"n4"])
        if words.chance(0.03):
            options.append(words.pick([[b"BY"], [b"GET"], [b"LIMIT", b"1"], [words.junk()]]))
        words.rng.shuffle(options)
        return [key, *(word for each in options for word in each)]
    return draw


# Not of the keys that hold strings: what else is done with their bytes would see the count, which
# Redis stores when it is asked for it.
def hll_key(words):
    return words.pick(HLL_KEYS) if words.chance(0.93) else words.pick(COLLECTION_KEYS)


EMPTY_LOG = b"HYLL\x01" + bytes(11)
# Of one that has some registers Redis changes those before it finds that others are missing.
WRONG_LOGS = [b"", b"x", b"HYLL", EMPTY_LOG, EMPTY_LOG[:15] + b"\x80", b"HYLL\x00" + bytes(11),
              b"HYLL\x02" + bytes(20), b"HYLL\x00" + bytes(12299),
              b"HYLL\x00" + bytes(10) + b"\x80" + b"\x55" * 12288]


def hll_spoil(words):
    return [[b"SET", words.pick(HLL_KEYS), words.pick(WRONG_LOGS)],
            [b"PFADD", words.pick(HLL_KEYS), b"a"], [b"DEL", words.pick(HLL_KEYS)]]


def pfadd(words):
    if words.chance(0.05):
        return [hll_key(words), *(b"%d" % i for i in range(words.rng.randrange(3000)))]
    elements = [words.pick(MEMBERS) if words.chance(0.3) else b"%d" % words.rng.randrange(5000)
                for _ in range(words.rng.randrange(12))]
    return [hll_key(words), *elements]


NOT_A_LOG = "not a valid HyperLogLog"
JOIN_ERRORS = (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, NO_INPUT)
LIST_ENDS, ZSET_ENDS = [b"LEFT", b"RIGHT"], [b"MIN", b"MAX"]
JOIN_COMMANDS = {
    "BLMOVE": Command(1, lambda words: [*lmove(words), timeout(words)],
                      (WRONG_TYPE, SYNTAX, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BLMPOP": Command(1, pops(list_key, LIST_ENDS, True),
                      (WRONG_TYPE, SYNTAX, NUMKEYS, COUNT, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BLPOP": Command(1.5, waits(list_key), (WRONG_TYPE, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BRPOP": Command(1, waits(list_key), (WRONG_TYPE, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BRPOPLPUSH": Command(1, lambda words: [list_key(words), list_key(words), timeout(words)],
                          (WRONG_TYPE, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BZMPOP": Command(1, pops(zset_key, ZSET_ENDS, True),
                      (WRONG_TYPE, SYNTAX, NUMKEYS, COUNT, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BZPOPMAX": Command(1, waits(zset_key), (WRONG_TYPE, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "BZPOPMIN": Command(1, waits(zset_key), (WRONG_TYPE, *TIMEOUT_ERRORS), NIL_OR_SOME),
    "LMPOP": Command(1.5, pops(list_key, LIST_ENDS, False), (WRONG_TYPE, SYNTAX, NUMKEYS, COUNT),
                     NIL_OR_SOME),
    "PFADD": Command(3, pfadd, (WRONG_TYPE, NOT_A_LOG), NO_OR_YES),
    "PFCOUNT": Command(2, lambda words: some_keys(words, hll_key), (WRONG_TYPE, NOT_A_LOG)),
    "PFMERGE": Command(1.5, lambda words: [hll_key(words), *some_keys(words, hll_key)],
                       (WRONG_TYPE, NOT_A_LOG)),
    "SORT": Command(2.5, sort(True), (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, "can't be converted")),
    "SORT_RO": Command(1.5, sort(False), (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER,
                                          "can't be converted")),
    "ZDIFF": Command(1, join(weighs=False), JOIN_ERRORS),
    "ZDIFFSTORE": Command(1, join(stores=True, weighs=False), JOIN_ERRORS),
    "ZINTER": Command(1, join(), (*JOIN_ERRORS, "weight value is not a float")),
    "ZINTERCARD": Command(1, join(weighs=False, counts=True),
                          (*JOIN_ERRORS, "LIMIT can't be negative")),
    "ZINTERSTORE": Command(1, join(stores=True), (*JOIN_ERRORS, "weight value is not a float")),
    "ZMPOP": Command(1.5, pops(zset_key, ZSET_ENDS, False), (WRONG_TYPE, SYNTAX, NUMKEYS, COUNT),
                     NIL_OR_SOME),
    "ZRANGESTORE": Command(2, zrangestore, (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, NOT_A_BOUND,
                                            NOT_A_MEMBER_BOUND)),
    "ZUNION": Command(1, join(), (*JOIN_ERRORS, "weight value is not a float")),
    "ZUNIONSTORE": Command(1, join(stores=True), (*JOIN_ERRORS, "weight value is not a float")),
}
