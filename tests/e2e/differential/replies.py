"""replies.py: when two replies say the same.

Replies are compared as the bytes that came. Where Redis promises less than bytes, what it promises
is compared: KEYS and SCAN have no order, relative deadlines are read at two different moments.
"""

import re

from .script import name
from .words import ABSOLUTE_MS, SLACK_MS


def parts(raw):
    """The elements of an array reply, as they came; None if it is no array."""
    if raw[:1] not in b"*~" or raw[1:2] == b"-":
        return None
    at = raw.index(b"\r\n") + 2
    found = []
    for _ in range(int(raw[1:at - 2])):
        end = end_of(raw, at)
        found.append(raw[at:end])
        at = end
    return found


def end_of(raw, at):
    kind = raw[at:at + 1]
    end = raw.index(b"\r\n", at) + 2
    count = raw[at + 1:end - 2]
    if kind in b"$=":
        return end if count == b"-1" else end + int(count) + 2
    if kind in b"*~>%" and count != b"-1":
        for _ in range(int(count) * (2 if kind == b"%" else 1)):
            end = end_of(raw, end)
    return end


def number(raw):
    return int(raw[1:-2]) if raw[:1] == b":" else None


def same_set(redis, skep):
    a, b = parts(redis), parts(skep)
    return a is not None and b is not None and sorted(a) == sorted(b)


# Of an iteration that is not complete nothing can be said: the order is the server's own.
def same_scan(redis, skep):
    a, b = parts(redis), parts(skep)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return False
    complete = b"$1\r\n0\r\n"
    return a[0] != complete or b[0] != complete or same_set(a[1], b[1])


# Which key is luck. The driver asks each server whether it has the one it named.
def same_key(redis, skep):
    return redis[:1] == skep[:1] == b"$" and b"$-1\r\n" not in (redis, skep)


def same_time(unit_ms, absolute):
    """A number of units; an absolute one that is not near now was given by a client, exactly."""
    exact = {(ms + unit_ms // 2) // unit_ms for ms in ABSOLUTE_MS} if absolute else ()

    def same(redis, skep):
        a, b = number(redis), number(skep)
        return (a is not None and b is not None and a > 0 and b > 0 and a not in exact
                and b not in exact and abs(a - b) * unit_ms <= SLACK_MS)

    return same


# Lines about clients, of which each server has its own.
def same_clients(redis, skep):
    return all(re.fullmatch(rb"[$=]\d+\r\n(?:txt:)?(?:id=\d+ [^\n]*\n)+\r\n", reply)
               for reply in (redis, skep))


def same_pairs(redis, skep):
    a, b = pairs(redis), pairs(skep)
    return a is not None and b is not None and sorted(a) == sorted(b)


def pairs(raw):
    """The pairs of a map, which in RESP2 is an array."""
    if raw[:1] == b"%":
        end = raw.index(b"\r\n")
        raw = b"*%d" % (2 * int(raw[1:end])) + raw[end:]
    found = parts(raw)
    return None if found is None else list(zip(found[::2], found[1::2]))


# What RDB types (src/durable/rdb_collection.h) are collections of one type.
RDB_KINDS = [{1, 10, 14, 18}, {2, 11}, {3, 5, 12, 17}, {4, 9, 13, 16}]


# A collection has many encodings, and Skep writes the plain one.
def same_payload(redis, skep):
    types = [reply.split(b"\r\n", 1)[1][:1] for reply in (redis, skep) if reply[:1] == b"$"]
    return len(types) == 2 and all(types) and any({types[0][0], types[1][0]} <= kind
                                                  for kind in RDB_KINDS)


# What is drawn at random: as many of it.
def same_count(redis, skep):
    a, b = parts(redis), parts(skep)
    if a is None or b is None:
        return same_key(redis, skep)
    return len(a) == len(b)


# The count that a HyperLogLog has is Redis's when it was asked last.
def same_log(redis, skep):
    return all(reply[:1] == b"$" and b"\r\nHYLL" in reply for reply in (redis, skep)) and (
        without_count(redis) == without_count(skep))


def without_count(raw):
    at = raw.index(b"\r\nHYLL") + 2
    return raw[:at + 8] + raw[at + 16:]


# Of places that are equally far it is luck which comes first.
def sorts_places(command):
    return any(word.upper() in (b"ASC", b"DESC", b"COUNT") for word in command)


SEARCHES = {"GEORADIUS", "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO", "GEOSEARCH"}
COMPARE = {
    "GET": same_log,
    "CLIENT": same_clients,
    "DUMP": same_payload,
    "HGETALL": same_pairs,
    "HKEYS": same_set,
    "HVALS": same_set,
    "HRANDFIELD": same_count,
    "HSCAN": same_scan,
    "SMEMBERS": same_set,
    "SDIFF": same_set,
    "SINTER": same_set,
    "SUNION": same_set,
    "SPOP": same_set,
    "SRANDMEMBER": same_count,
    "SSCAN": same_scan,
    "ZRANDMEMBER": same_count,
    "ZSCAN": same_scan,
    "KEYS": same_set,
    "SCAN": same_scan,
    "RANDOMKEY": same_key,
    "TTL": same_time(1000, absolute=False),
    "PTTL": same_time(1, absolute=False),
    "EXPIRETIME": same_time(1000, absolute=True),
    "PEXPIRETIME": same_time(1, absolute=True),
}


# Redis keeps a score of minus zero in large sorted sets.
def without_minus_zero(raw):
    return raw.replace(b"$2\r\n-0\r\n", b"$1\r\n0\r\n").replace(b",-0\r\n", b",0\r\n")


MEMBER_SCANS = ("HSCAN", "SSCAN", "ZSCAN")


def same(command, redis, skep):
    """Whether the two replies to the command say the same."""
    if name(command).startswith(("Z", "BZ")):
        redis, skep = without_minus_zero(redis), without_minus_zero(skep)
    if name(command) in SEARCHES:
        return redis == skep or (sorts_places(command) and same_set(redis, skep))
    # Of a cursor that no scan has given Redis makes a place in its table.
    if name(command) in MEMBER_SCANS and len(command) > 2 and command[2] != b"0":
        return redis == skep or redis[:1] == skep[:1] == b"*"
    compare = COMPARE.get(name(command))
    return redis == skep or (compare is not None and compare(redis, skep))


def answers(command, queued, redis, skep):
    """Commands with their two replies: an EXEC's are those of what was queued."""
    if name(command) == "EXEC":
        a, b = parts(redis), parts(skep)
        if a is not None and b is not None and len(a) == len(b) == len(queued):
            return list(zip(queued, a, b))
    return [(command, redis, skep)]
