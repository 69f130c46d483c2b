#!/usr/bin/env python3
"""Goal: notify-keyspace-events tells what Redis 7.0 tells, of every type, in its order: what becomes
of keys by commands, transactions, clients that waited, and deadlines.
Method: conversations and random streams of commands with skep-server and the packaged redis-server
beside each other. After each command the events are read that somebody else got of it.
"""

import os
import random
import unittest

from beside_redis import BesideRedisTest, in_any_order, lines
from differential.driver import Coverage, Driver, Twins
from differential.script import name
from differential.shrink import report, shrink
from differential.streams import stream
from resp import encode
from skep_process import SANITIZED, SkepServer

COMMANDS_TOTAL = int(os.environ.get("SKEP_DIFFERENTIAL_COMMANDS", 4_000 if SANITIZED else 8_000))
STREAM_COMMANDS = 300
KEYS = 500
ALL_CHANNELS = "__key*__:*"

CONVERSATIONS = {
    "strings": """
        SET a 1
        SET a 1 EX 1000
        SET a 2 KEEPTTL
        SET a 1 NX
        SET b 1 XX
        SETEX b 1000 x
        PSETEX b 1000000 x
        SETNX b 1
        SETNX c 1
        GETSET a 5
        INCR a
        DECRBY a 3
        INCRBYFLOAT a 1.5
        APPEND a xyz
        APPEND new ""
        SETRANGE a 1 q
        SETRANGE nobody 0 ""
        SETBIT bits 7 1
        SETBIT bits 7 1
        BITFIELD bits SET u8 0 255 INCRBY u8 8 1 GET u8 0
        BITFIELD bits GET u8 0
        BITFIELD bits OVERFLOW FAIL INCRBY i8 8 300
        BITFIELD bits OVERFLOW FAIL INCRBY i8 800 300
        BITFIELD bits OVERFLOW FAIL INCRBY i8 1600 300 SET u8 1600 0
        BITFIELD zeros OVERFLOW FAIL INCRBY i8 8 300 GET u8 0
        BITOP OR both a bits
        BITOP AND both none nothing
        MSET a 1 b 2 a 3
        MSETNX a 1 d 2
        MSETNX e 1 f 2
        GETDEL a
        GETDEL nobody
        GETEX b EX 1000
        GETEX b PERSIST
        GETEX b PERSIST
        GETEX b
        GETEX b PXAT 1
        DEL c nobody d
        UNLINK e f
        PFADD p a b
        PFADD p a
        PFMERGE q p
        PFCOUNT q p""",
    "keys": """
        SET a 1
        EXPIRE a 1000
        EXPIRE a 10 GT
        PERSIST a
        PERSIST a
        EXPIRE nobody 1
        RENAME a b
        RENAME b b
        SET a 1
        RENAMENX a b
        RENAMENX a c
        COPY b d
        COPY b d
        COPY b d REPLACE
        COPY nobody d REPLACE
        EXPIRE d 0
        PEXPIREAT c 1
        RESTORE x 0 "\\x00\\xc0\\x01\\n\\x00\\x81<\\xd5\\xb6\\xbf\\xb5\\x8c\\x94"
        TOUCH b
        RPUSH l 3 1 2
        SORT l STORE sorted
        SORT nobody STORE sorted
        FLUSHDB""",
    "lists": """
        LPUSH a 1 2
        RPUSH a 3
        LPUSHX a 4
        RPUSHX nobody 4
        LINSERT a BEFORE 3 x
        LINSERT a BEFORE nosuch x
        LSET a 0 y
        LSET a 0 y
        LTRIM a 0 -1
        LREM a 0 nosuch
        LREM a 0 x
        LMOVE a b LEFT RIGHT
        RPOPLPUSH a a
        LMOVE a a LEFT LEFT
        RPOPLPUSH b b
        LMOVE b a RIGHT LEFT
        RPOPLPUSH nobody a
        LPOP a
        RPOP a 2
        LPOP a 0
        LMPOP 2 nobody a RIGHT COUNT 10
        LPOP a
        RPUSH a 1
        LTRIM a 5 1
        RPUSH a 1
        LREM a 0 1
        RPUSH a 1
        BLPOP nobody a 0
        RPUSH a 1
        BLMOVE a b LEFT LEFT 0
        BRPOPLPUSH b a 0
        BLMPOP 0 2 b a LEFT""",
    "sets": """
        SADD a 1 2 3
        SADD a 1
        SREM a 1 9
        SREM a 9
        SMOVE a b 2
        SMOVE a b 9
        SMOVE a a 3
        SMOVE a b 3
        SADD a 1 2
        SUNIONSTORE c a b
        SINTERSTORE c a b nobody
        SDIFFSTORE c a nobody
        SDIFFSTORE c nobody a
        ~SPOP b 100
        SPOP b
        SREM a 1 2""",
    "hashes": """
        HSET a f 1 g 2
        HSET a f 1
        HMSET a f 2
        HSETNX a f 1
        HSETNX a h 1
        HINCRBY a f 3
        HINCRBY a f 0
        HINCRBYFLOAT a f 1.5
        HDEL a nosuch
        HDEL a h nosuch
        HDEL a f g
        HDEL nobody x""",
    "sorted sets": """
        ZADD a 1 x 2 y
        ZADD a 1 x
        ZADD a CH 3 x
        ZADD a XX 1 nosuch
        ZADD a INCR 1 x
        ZADD a NX INCR 1 x
        ZINCRBY a 1 x
        ZINCRBY a 0 x
        ZREM a nosuch
        ZREM a x nosuch
        ZADD b 5 y 6 z
        ZUNIONSTORE c 2 a b
        ZINTERSTORE c 2 a b
        ZDIFFSTORE c 2 b a
        ZDIFFSTORE c 2 b b
        ZDIFFSTORE c 2 b b
        ZRANGESTORE c b 0 -1
        ZRANGESTORE c b 5 9
        ZREMRANGEBYRANK b 9 9
        ZREMRANGEBYRANK b 0 0
        ZREMRANGEBYSCORE b 6 6
        ZADD b 0 k 0 l 0 m
        ZREMRANGEBYLEX b [k [k
        ZPOPMIN b
        ZPOPMAX b 5
        ZPOPMAX b
        ZADD b 1 x
        ZMPOP 2 nobody b MAX
        ZADD b 1 x
        BZPOPMIN nobody b 0
        ZADD b 1 x 2 y
        BZMPOP 0 1 b MIN COUNT 5
        GEOADD g 13.361389 38.115556 p 15.087269 37.502669 q
        GEOSEARCHSTORE h g FROMMEMBER p BYRADIUS 500 km
        GEOSEARCHSTORE h g FROMMEMBER p BYRADIUS 500 km STOREDIST
        GEORADIUS g 15 37 200 km STORE h
        GEORADIUSBYMEMBER g p 1 m STOREDIST h
        GEORADIUS g 0 0 1 m STORE h""",
    "transactions": """
        MULTI
        SET a 1
        LPUSH l 1
        LPOP l
        SADD s 1
        SUNIONSTORE t s
        RENAME a b
        INCR nobody
        LPUSH b wrong
        COPY s u
        DEL u
        EXEC
        MULTI
        SET c 1
        DISCARD
        WATCH b
        SET b 2
        MULTI
        SET c 1
        EXEC""",
    "messages among them": """
        MULTI
        SET a 1
        EXEC
        PUBLISH __keyspace@0__:a mine
        SELECT 3
        SET a 1
        DEL a
        SELECT 0
        SET a 1""",
}


# Commands that only read.
MISSES = """
    GET nobody
    SET a 1
    GET a
    MGET nobody a nothing
    EXISTS nobody a
    STRLEN nobody
    TTL nobody
    TYPE nobody
    GETRANGE nobody 0 1
    BITCOUNT nobody
    HGET nobody f
    HGETALL nobody
    LLEN nobody
    LRANGE nobody 0 1
    SMEMBERS nobody
    SISMEMBER nobody x
    SINTER a nobody
    ZSCORE nobody x
    ZRANGE nobody 0 1
    MULTI
    GET nobody
    EXEC
    HGET a f"""


class Listener:
    """A client of each server that gets all events, Redis first."""

    def __init__(self, servers):
        self._twins = Twins(servers)
        self._twins.say("PSUBSCRIBE", ALL_CHANNELS)
        self._asked = 0

    def close(self):
        self._twins.close()

    def take(self):
        """What each got since the last call: what the command that was answered last has caused is
        among it."""
        self._asked += 1
        mark = b"asked-%d" % self._asked
        taken = []
        for end in self._twins.ends:
            end.send(encode("PING", mark))
            events = []
            while True:
                value, _ = end.read_reply()
                if value == [b"pong", mark]:
                    break
                events.append(b"%s %s" % (value[2], value[3]))
            taken.append(b"\n".join(events))
        return taken


class EventDriver(Driver):
    """Compares the events, too."""

    def __init__(self, servers, coverage=None):
        super().__init__(servers, coverage)
        self._listener = Listener(servers)
        self._queues_kill = False

    def __exit__(self, *error):
        self._listener.close()
        super().__exit__(*error)

    def _send(self, client, data, step):
        found = super()._send(client, data, step)
        # CLIENT KILL may have ended the listener on both servers; in a transaction it does with EXEC.
        kills = any(name(command) == "CLIENT" for command in step.commands)
        self._queues_kill |= kills
        if kills or (self._queues_kill and any(name(c) == "EXEC" for c in step.commands)):
            self._listener.close()
            self._listener = Listener(self._servers)
            return found
        redis, skep = self._listener.take()
        if found is None and not self._parted and redis != skep:
            return step.commands[0], redis, skep
        return found


class KeyEventsTest(BesideRedisTest):
    SKEP_OPTIONS = ("--keyspace", "9=hash")

    def setUp(self):
        self.servers = (self.redis, self.skep)

    def configure(self, letters):
        for server in self.servers:
            with server.connect() as connection:
                self.assertEqual(connection.call("CONFIG", "SET", "notify-keyspace-events", letters),
                                 "OK")

    def listen(self):
        listener = Listener(self.servers)
        self.addCleanup(listener.close)
        return listener

    def converse(self, letters, conversations=CONVERSATIONS, keyspace=0):
        self.configure(letters)
        for name, conversation in conversations.items():
            pair = self.connect_both()
            for connection in pair:
                connection.call("SELECT", keyspace)
            listener = self.listen()
            for ordered, command in lines(conversation):
                with self.subTest(name=name, letters=letters, command=command):
                    replies = self.replies(pair, encode(*command))
                    redis, skep = replies if ordered else map(in_any_order, replies)
                    self.assertEqual(skep, redis)
                    redis, skep = listener.take()
                    self.assertEqual(skep, redis)

    def test_conversations(self):
        self.converse("KEA")

    def test_one_kind_of_channel_and_some_classes(self):
        for letters in ("K$", "Elg", "KEszx", "En", "g$lshzxet", ""):
            self.converse(letters)

    def test_a_keyspace_without_an_order(self):
        self.converse("KEAn", {"strings": CONVERSATIONS["strings"]}, keyspace=9)

    def test_keys_that_are_not_there(self):
        self.converse("Em", {"misses": MISSES})

    # Goal: who changes nothing tells nothing, also if a command that was sent with it has written.
    def test_pipelines(self):
        self.configure("KEA")
        pair = self.connect_both()
        for connection in pair:
            connection.call("ZADD", "z", 1, "m" * 60, 2, "b")
        listener = self.listen()
        for command in (["ZREMRANGEBYSCORE", "z", "(5", "(1"], ["ZREMRANGEBYRANK", "z", 7, 5],
                        ["ZREMRANGEBYLEX", "z", "(x", "[a"], ["ZREM", "z", "nosuch"],
                        ["ZPOPMIN", "z", 0], ["ZADD", "z", 2, "b"]):
            with self.subTest(command=command):
                replies = [connection.pipeline(["ZADD", "z", 3, f"with {command}"], command)
                           for connection in pair]
                self.assertEqual(replies[1], replies[0])
                redis, skep = listener.take()
                self.assertEqual(skep, redis)

    # Goal: the option takes and prints what Redis does.
    def test_letters(self):
        for letters in ("", "KEA", "AKE", "g$lshzxetd", "Kg$lshzxe", "Etd", "nmKEA", "mn", "AKEg", "KK",
                        "q", "KE A", "ke"):
            with self.subTest(letters=letters):
                pair = self.connect_both()
                for command in (["CONFIG", "SET", "notify-keyspace-events", letters],
                                ["CONFIG", "GET", "notify-keyspace-events"]):
                    redis, skep = self.replies(pair, encode(*command))
                    self.assertEqual(skep, redis)

    # Goal: events are those of Redis, whatever comes in whatever order, from several clients.
    # Method: the streams of differential_test.py. Deadlines pass at other moments, so `expired` is
    # another test's.
    def test_random_streams(self):
        self.configure("KEg$lshz")
        seed = int(os.environ.get("SKEP_DIFFERENTIAL_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        coverage = Coverage()
        while coverage.commands < COMMANDS_TOTAL:
            steps = stream(seed, STREAM_COMMANDS)
            with EventDriver(self.servers, coverage) as driver:
                difference = driver.run(steps)
            if difference:
                shrunk = report(*shrink(self.servers, steps, difference, EventDriver))
                self.fail(f"SKEP_DIFFERENTIAL_SEED={seed}:\n{shrunk}")
            seed += 1


class LargeKeyEventsTest(KeyEventsTest):
    """The same where most collections are kept in parts."""

    SKEP_OPTIONS = (*KeyEventsTest.SKEP_OPTIONS, "--collection-value-bytes", 48)


class ExpiredTest(unittest.TestCase):
    """Each key that expires is told once, whoever removes it."""

    def setUp(self):
        self.server = SkepServer("--workers", "2", "--keyspace", "1=hash",
                                 "--notify-keyspace-events", "KEA")
        self.addCleanup(self.server.stop)
        self.client, self.listener = self.server.connect(), self.server.connect()
        for connection in (self.client, self.listener):
            self.addCleanup(connection.close)

    def told(self, count):
        return [tuple(self.listener.read()[2:]) for _ in range(count)]

    # Method: many keys, of leaves and buckets that have others too; a message marks the end.
    def test_keys_that_are_reclaimed(self):
        for keyspace in (0, 1):
            with self.subTest(keyspace=keyspace):
                channel = b"__keyevent@%d__:expired" % keyspace
                self.listener.call("SUBSCRIBE", channel)
                keys = [b"key:%d" % i for i in range(KEYS)]
                self.client.call("SELECT", keyspace)
                self.client.pipeline(*(["SET", key, "v" * (i % 300), "PX", 1 + i % 50]
                                       for i, key in enumerate(keys)),
                                     *(["SET", b"stays" + key, "v"] for key in keys))
                self.assertEqual(sorted(self.told(KEYS)), sorted((key,) for key in keys))
                self.assertEqual(self.client.call("PUBLISH", channel, "end"), 1)
                self.assertEqual(self.told(1), [(b"end",)])
                self.listener.call("UNSUBSCRIBE", channel)

    # Goal: who writes a key that has expired and was not reclaimed yet tells both, in this order.
    # Method: single commands and transactions write keys as soon as they are gone.
    def test_keys_whose_place_is_taken(self):
        self.listener.call("PSUBSCRIBE", "__keyspace@0__:*")
        for i in range(40):
            self.client.call("SET", "a", "1", "PX", 1)
            while self.client.call("EXISTS", "a"):
                pass
            if i % 2:
                self.client.call("SET", "a", "2")
            else:
                self.client.pipeline(["MULTI"], ["SET", "a", "2"], ["EXEC"])
            self.client.call("DEL", "a")
            told = [event.decode() for _, event in self.told(5)]
            self.assertEqual(told, ["set", "expire", "expired", "set", "del"])


if __name__ == "__main__":
    unittest.main()
