#!/usr/bin/env python3
"""Goal: commands that wait for a key (BLPOP and its kin) are served as Redis 7.0 serves them, and
nothing else waits, is lost or goes to two.
Method: conversations of several clients with skep-server and the packaged redis-server beside each
other, given and random: after each command the same clients must have got the same replies.
waiting_test.py has what Redis cannot be compared in.

SKEP_BLOCKING_STEPS=100000 makes a long run; SKEP_BLOCKING_SEED repeats one.
"""

import os
import random
import re
import select
import time
import unittest

from beside_redis import BesideRedisTest, words
from resp import encode
from skep_process import PATIENCE_S, SANITIZED

STEPS_TOTAL = int(os.environ.get("SKEP_BLOCKING_STEPS", 1500 if SANITIZED else 4000))
STREAM_STEPS = 120
PAUSE_S = 0.0005


def is_blocked(control, number):
    line = control.call("CLIENT", "LIST", "ID", number)
    return re.search(rb" flags=\w*b", line) is not None


class Side:
    """The clients of one server."""

    def __init__(self, server):
        self.server = server
        self.control = server.connect()
        self.clients = {}
        self.numbers = {}
        self.waiting = set()

    def close(self):
        for connection in [self.control, *self.clients.values()]:
            connection.close()

    def client(self, name):
        if name not in self.clients:
            self.clients[name] = self.server.connect()
            self.numbers[name] = self.clients[name].call("CLIENT", "ID")
        return self.clients[name]

    def drop(self, name):
        self.clients.pop(name).close()
        number = self.numbers.pop(name)
        self.waiting.discard(name)
        until = time.monotonic() + PATIENCE_S
        while self.control.call("CLIENT", "LIST", "ID", number) != b"":
            assert time.monotonic() < until
            time.sleep(PAUSE_S)

    def has_reply(self, name):
        return bool(select.select([self.clients[name].socket], [], [], 0)[0])

    def send(self, name, data):
        """Sends what has one reply, and waits until it has come or the client waits."""
        connection = self.client(name)
        connection.send(data)
        until = time.monotonic() + PATIENCE_S
        while not self.has_reply(name) and not is_blocked(self.control, self.numbers[name]):
            assert time.monotonic() < until
            time.sleep(PAUSE_S)
        self.waiting.add(name)

    def replies(self, names):
        """The replies of these clients, which must come."""
        found = {name: self.clients[name].read_reply()[1] for name in sorted(names)}
        self.waiting -= names
        return found

    def ready(self):
        """Those that have a reply now. What was done before by others has its replies sent."""
        self.control.call("PING")
        return {name for name in self.waiting if self.has_reply(name)}


class BlockingTest(BesideRedisTest):
    def setUp(self):
        self.sides = [Side(self.redis), Side(self.skep)]
        for side in self.sides:
            self.addCleanup(side.close)
            side.control.call("FLUSHALL")

    def send(self, name, *command):
        """One client's command; all replies that come of it, which must be the same."""
        redis, skep = self.sides
        self.assertNotIn(name, redis.waiting, command)
        number = None
        if command[:2] in ((b"CLIENT", b"UNBLOCK"), (b"CLIENT", b"KILL")):
            number = command[2].decode()
        for side in self.sides:
            said = command
            if number is not None:
                kind = [b"ID"] if command[1] == b"KILL" else []
                said = [*command[:2], *kind, b"%d" % side.numbers[number], *command[3:]]
            side.send(name, encode(*said))
            if command[:2] == (b"CLIENT", b"KILL"):
                side.drop(number)
        names = redis.ready()
        replies = redis.replies(names)
        self.assertEqual(skep.replies(names), replies, command)
        return replies

    def check(self, conversation):
        for line in conversation.strip().splitlines():
            name, _, command = line.strip().partition(" ")
            said = words(command)
            with self.subTest(line=line):
                if said[0] == b"GONE":
                    for side in self.sides:
                        side.drop(name)
                    continue
                self.send(name, *said)
                self.assertEqual(self.sides[1].ready(), set(), line)
                self.assertEqual(self.sides[1].waiting, self.sides[0].waiting, line)

    # Goal: who came first is served first, each once, and a push of several serves several.
    def test_order_of_arrival(self):
        self.check("""
            a BLPOP k 0
            b BRPOP k 0
            c BLPOP k other 0
            d BLPOP other k 0
            p RPUSH k 1
            p RPUSH k 2 3 4
            p LRANGE k 0 -1
            a BLPOP k 0
            p LPUSH other 9 8
            p LRANGE other 0 -1
            p EXISTS k other""")

    # Goal: of several keys the first that has something counts, and of several writes the first.
    def test_several_keys(self):
        self.check("""
            p RPUSH k2 b
            p RPUSH k3 c
            a BLPOP k1 k2 k3 0
            a BRPOP k1 k2 k3 0
            a BLPOP k1 k1 k2 0
            p MULTI
            p RPUSH k2 two
            p RPUSH k1 one
            p EXEC
            p LRANGE k1 0 -1
            p DEL k1 k2
            a BLMPOP 0 3 k1 k2 k3 RIGHT COUNT 2
            p RPUSH k3 1 2 3
            p LRANGE k3 0 -1""")

    def test_moves(self):
        self.check("""
            a BLMOVE s d LEFT RIGHT 0
            b BRPOPLPUSH s d 0
            c BLPOP d 0
            p RPUSH s 1 2 3
            p LRANGE s 0 -1
            p LRANGE d 0 -1
            a BLMOVE s s LEFT RIGHT 0
            p DEL s d
            a BLMOVE x y LEFT LEFT 0
            b BLMOVE y z RIGHT LEFT 0
            c BRPOPLPUSH z x 0
            d BLPOP z 0
            p LPUSH x 1
            p LPUSH x 2
            p KEYS *
            p SET w string
            a BLMOVE x w LEFT LEFT 0
            p LPUSH x 3
            p LRANGE x 0 -1
            a BLMOVE w x LEFT LEFT 0
            a BLMOVE x w LEFT LEFT 0""")

    # Goal: sorted sets likewise, and lists and sorted sets do not get into each other's way.
    def test_sorted_sets(self):
        self.check("""
            a BZPOPMIN z 0
            b BZPOPMAX z 0
            p ZADD z 1 one 2 two 3 three
            p ZRANGE z 0 -1 WITHSCORES
            a BZMPOP 0 2 y z MAX COUNT 5
            a BZPOPMIN k 0
            b BLPOP k 0
            c BZMPOP 0 1 k MIN
            p RPUSH k 1
            p ZADD k 1.5 m
            p ZADD k 0 m inf n
            p ZADD z -inf low
            p EXISTS z
            a BZPOPMAX z 0
            p ZINCRBY z 5 added""")

    # Goal: a value of another type leaves the waiter waiting; when the command comes it is an error.
    def test_wrong_types(self):
        self.check("""
            a BLPOP k 0
            p SET k string
            p APPEND k more
            b BLPOP k 0
            b BZPOPMIN k 0
            p DEL k
            p SADD k m
            p DEL k
            p ZADD k 1 m
            b BLPOP j k 0
            p RENAME k elsewhere
            p RPUSH k 1
            p HSET h f v
            b BLPOP h 0
            b BLPOP none h 0
            p RPUSH l x
            b BLPOP l h 0""")

    # Goal: whatever brings the value, it counts: and what is gone at the end does not.
    def test_other_ways(self):
        self.check("""
            a BLPOP k 0
            p RPUSH src 1 2
            p RENAME src k
            a BLPOP k j 0
            b BLPOP j 0
            p RPUSH src 3
            p COPY src j
            p LMOVE src j LEFT LEFT
            p RPUSH src 4
            p RPOPLPUSH src j
            a BLPOP k 0
            p LPUSHX k no
            p MULTI
            p RPUSH k 1
            p DEL k
            p EXEC
            p MULTI
            p RPUSH k 1
            p SET k string
            p EXEC
            p FLUSHALL
            p MULTI
            p RPUSH k 2
            p LPOP k
            p RPUSH k 3
            p EXEC
            a BZPOPMIN z 0
            p ZADD y 1 m
            p RENAMENX y z
            a BLPOP k 0
            p SET s string
            p RENAME s k
            p RPUSH l 1
            p RENAME l k""")

    # Goal: in a transaction nothing waits.
    def test_transactions(self):
        self.check("""
            a MULTI
            a BLPOP k 0
            a BRPOP k j 0
            a BLMOVE k j LEFT LEFT 0
            a BRPOPLPUSH k j 0
            a BLMPOP 0 1 k LEFT
            a BZPOPMIN k 0
            a BZMPOP 0 2 k j MIN
            a RPUSH k 1 2 3
            a BLPOP j k 0
            a BLMPOP 0 2 j k RIGHT COUNT 5
            a BLPOP k abc
            a EXEC
            a BLPOP k 0
            b MULTI
            b RPUSH k x
            b LRANGE k 0 -1
            b EXEC""")

    # Goal: a transaction's watch sees what is popped for a waiter.
    def test_watches(self):
        self.check("""
            w WATCH k
            a BLPOP k 0
            p RPUSH k 1
            w MULTI
            w EXEC""")

    # Goal: CLIENT UNBLOCK, CLIENT KILL and a connection that ends take a waiter away.
    def test_ends(self):
        self.check("""
            a BLPOP k 0
            b BLPOP k 0
            c BLPOP k 0
            d BLPOP k 0
            e BLMOVE k j LEFT LEFT 0
            p CLIENT UNBLOCK a
            p CLIENT UNBLOCK a
            p CLIENT UNBLOCK b ERROR
            p CLIENT KILL c
            d GONE
            p RPUSH k 1 2
            p LRANGE k 0 -1
            p LRANGE j 0 -1
            a BLMOVE k2 j LEFT LEFT 0
            p CLIENT UNBLOCK a timeout
            a BZMPOP 0 1 k2 MIN
            p CLIENT UNBLOCK a error
            a BRPOPLPUSH k2 j 0
            p CLIENT UNBLOCK a""")

    # Goal: what has the wrong form is told as Redis tells it.
    def test_errors(self):
        self.check("""
            a BLPOP k
            a BLPOP k abc
            a BLPOP k -1
            a BLPOP k nan
            a BLPOP k inf
            a BLPOP k 1e300
            a BLPOP k 9223372036854776
            a BLPOP k ""
            a BLPOP k " 1"
            a BLMOVE k j LEFT UP 0
            a BLMOVE k j LEFT UP abc
            a BLMOVE k j LEFT LEFT abc
            a BRPOPLPUSH k j -1
            a BLMPOP abc 0 k LEFT
            a BLMPOP abc 1 k LEFT
            a BLMPOP -1 1 k LEFT COUNT 0
            a BLMPOP 0 1 k UP
            a BLMPOP 0 2 k LEFT
            a BLMPOP 0 1 k LEFT COUNT
            a BLMPOP 0 1 k LEFT COUNT 1 COUNT 2
            a BLMPOP 0 1 k LEFT x 1
            a BLMPOP 0 9223372036854775807 k LEFT
            a LMPOP 1 k LEFT
            a LMPOP 0 k LEFT
            a LMPOP 1 k MIN
            a LMPOP 1 k LEFT COUNT -1
            a ZMPOP 1 k MIN
            a ZMPOP 1 k LEFT
            a BZMPOP 0 1 k MIN COUNT abc
            a BZMPOP x 1 k MIN
            a BZPOPMIN k x""")

    # Goal: without an element the time is as long as it was said, and the answer is nothing.
    def test_timeouts(self):
        for protocol in ("2", "3"):
            for side in self.sides:
                side.client("a").call("HELLO", protocol)
            for command in ("BLPOP k 0.01", "BRPOP k j 0.02", "BLMOVE k j LEFT LEFT 0.01",
                            "BRPOPLPUSH k j 0.0001", "BLMPOP 0.01 1 k LEFT", "BZPOPMIN k 1e-2",
                            "BZPOPMAX k 0.01", "BZMPOP 0.01 2 k j MAX"):
                replies = []
                for side in self.sides:
                    began = time.monotonic()
                    side.client("a").send(encode(*words(command)))
                    replies.append(side.client("a").read_reply()[1])
                    if "0.02" in command:
                        self.assertGreaterEqual(time.monotonic() - began, 0.019)
                self.assertEqual(replies[1], replies[0], command)

    # Goal: random conversations have the same replies, whoever waits for what.
    def test_random_conversations(self):
        seed = int(os.environ.get("SKEP_BLOCKING_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        done = 0
        while done < STEPS_TOTAL:
            said = []
            try:
                self.run_stream(random.Random(seed), said)
            except BaseException:
                print(f"SKEP_BLOCKING_SEED={seed}:", *said[-40:], sep="\n")
                raise
            done += len(said)
            seed += 1

    def run_stream(self, rng, said):
        for side in self.sides:
            side.close()
        self.setUp()
        redis, skep = self.sides
        if rng.random() < 0.3:
            for side in self.sides:
                for name in "abc":
                    side.client(name).call("HELLO", 3)
        draw = Draw(rng)
        for _ in range(STREAM_STEPS):
            free = [name for name in "abcdefgh" if name not in redis.waiting]
            if redis.waiting and rng.random() < 0.02:
                name = rng.choice(sorted(redis.waiting))
                said.append(f"{name} GONE")
                for side in self.sides:
                    side.drop(name)
                continue
            if not free:
                free = ["writer"]
            name = rng.choice(free)
            command = draw.command(name, sorted(redis.waiting), name != "writer")
            said.append(f"{name} {b' '.join(command)!r}")
            self.send(name, *command)
            self.assertEqual(skep.ready(), set())
        self.assertEqual(skep.ready(), set())
        for key in Draw.KEYS:
            for look in (["LRANGE", key, 0, -1], ["ZRANGE", key, 0, -1, "WITHSCORES"]):
                self.assertEqual(*(side.control.call(*look) for side in self.sides))


class Draw:
    """Commands about few keys, many of which wait."""

    KEYS = [b"a", b"b", b"c", b"\xff\x00"]
    ELEMENTS = [b"1", b"2", b"", b"x" * 70, b"\r\n", b"y"]

    def __init__(self, rng):
        self.rng = rng
        self.queued = {}

    def key(self):
        return self.rng.choice(self.KEYS)

    def keys(self):
        return [self.key() for _ in range(self.rng.randrange(1, 4))]

    def elements(self):
        return [self.rng.choice(self.ELEMENTS) for _ in range(self.rng.randrange(1, 4))]

    def end(self):
        return self.rng.choice([b"LEFT", b"RIGHT", b"left", b"Right"])

    def count(self):
        return self.rng.choice([[], [], [b"COUNT", b"1"], [b"count", b"3"], [b"COUNT", b"1000000"]])

    def waits(self):
        rng = self.rng
        keys = self.keys()
        counted = [b"%d" % len(keys), *keys]
        return rng.choice([
            [rng.choice([b"BLPOP", b"BRPOP", b"BZPOPMIN", b"BZPOPMAX"]), *keys, b"0"],
            [b"BLMPOP", b"0", *counted, self.end(), *self.count()],
            [b"BZMPOP", b"0", *counted, rng.choice([b"MIN", b"MAX"]), *self.count()],
            [b"BLMOVE", self.key(), self.key(), self.end(), self.end(), b"0"],
            [b"BRPOPLPUSH", self.key(), self.key(), b"0"]])

    def writes(self):
        rng = self.rng
        scores = [word for each in self.elements()
                  for word in (rng.choice([b"1", b"1", b"-inf", b"2.5", b"inf"]), each)]
        keys = self.keys()
        return rng.choice([
            [rng.choice([b"LPUSH", b"RPUSH", b"RPUSHX"]), self.key(), *self.elements()],
            [rng.choice([b"LPUSH", b"RPUSH"]), self.key(), *self.elements()],
            [b"ZADD", self.key(), *scores],
            [rng.choice([b"SET", b"APPEND"]), self.key(), b"string"],
            [b"DEL", *keys],
            [b"LMPOP", b"%d" % len(keys), *keys, self.end(), *self.count()],
            [b"ZMPOP", b"%d" % len(keys), *keys, b"MIN", *self.count()],
            [rng.choice([b"RENAME", b"RENAMENX"]), self.key(), self.key()],
            [b"LMOVE", self.key(), self.key(), self.end(), self.end()],
            [b"EXISTS", *keys],
            [rng.choice([b"LPOP", b"RPOP", b"ZPOPMIN"]), self.key()]])

    def command(self, name, waiting, may_wait):
        rng = self.rng
        left = self.queued.get(name)
        if left is not None:
            self.queued[name] = left - 1 if left > 1 else None
            if left == 1:
                return [b"EXEC"]
            return self.waits() if rng.random() < 0.3 else self.writes()
        if waiting and rng.random() < 0.04:
            return [b"CLIENT", b"UNBLOCK", rng.choice(waiting).encode(),
                    *rng.choice([[], [b"TIMEOUT"], [b"ERROR"]])]
        if waiting and rng.random() < 0.02:
            return [b"CLIENT", b"KILL", rng.choice(waiting).encode()]
        if not may_wait:
            return self.writes()
        if rng.random() < 0.05:
            self.queued[name] = rng.randrange(1, 6)
            return [b"MULTI"]
        if rng.random() < 0.01:
            return [b"FLUSHALL"]
        return self.waits() if rng.random() < 0.45 else self.writes()


if __name__ == "__main__":
    unittest.main()
