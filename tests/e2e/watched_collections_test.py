#!/usr/bin/env python3
"""Goal: whoever watches a key of a collection sees the writes that it sees in Redis, also those that
leave the collection as it was, and sees none where a command found nothing to do.
Method: each command runs on the same collections of both servers while every key is watched; the
keys whose transactions were given up are compared. Once with collections in one value, and once
where they are kept in parts.
"""

import unittest

from beside_redis import BesideRedisTest, words
from resp import encode

SETUP = (
    ["RPUSH", "list", *("m%02d" % i for i in range(40))],
    ["RPUSH", "one", "a"],
    ["HSET", "hash", *(word % i for i in range(40) for word in ("f%02d", "v%02d"))],
    ["HSET", "number", "a", "1"],
    ["SADD", "set", *("m%02d" % i for i in range(40))],
    ["SADD", "other", "x"],
    ["ZADD", "zset", *(word % i for i in range(40) for word in ("%d", "m%02d"))],
    ["ZADD", "single", "1", "a"])
KEYS = [command[1] for command in SETUP]

COMMANDS = """
    LTRIM list 0 -1
    LTRIM list 0 100
    LTRIM one 0 0
    LSET list 3 m03
    LSET list 300 m03
    LREM list 0 nosuch
    LINSERT list BEFORE nosuch x
    LPUSHX list x
    RPOPLPUSH one one
    LMOVE one one LEFT LEFT
    LMOVE list list LEFT LEFT
    LMOVE list list RIGHT RIGHT
    LMOVE list list LEFT RIGHT
    LPOP list 0
    RPOP list 0
    LMPOP 1 list LEFT COUNT 1
    BLPOP list 0
    BLMOVE one one LEFT LEFT 0
    HSET hash f01 v01
    HSET hash f01 v01 f02 other
    HSETNX hash f01 v01
    HMSET number a 1
    HDEL hash nosuch
    HINCRBY number a 0
    HINCRBYFLOAT number a 0
    SADD set m01
    SREM set nosuch
    SPOP set 0
    SMOVE set set m01
    SMOVE set other nosuch
    SMOVE set other m01
    SMOVE other set x
    SMOVE other set nosuch
    SRANDMEMBER set 3
    ZADD zset 1 m01
    ZADD zset NX 5 m01
    ZADD zset XX 5 nosuch
    ZADD zset GT 0 m01
    ZADD zset LT CH 5 m01
    ZADD single 1 a
    ZINCRBY zset 0 m01
    ZADD zset INCR 0 m01
    ZREM zset nosuch
    ZPOPMIN zset 0
    ZPOPMAX zset 0
    ZMPOP 1 zset MIN COUNT 1
    ZREMRANGEBYSCORE zset 500 600
    ZREMRANGEBYRANK zset 500 600
    ZREMRANGEBYLEX zset [zz [zzz
    SORT list ALPHA STORE list
    SUNIONSTORE set set
    ZUNIONSTORE zset 1 zset
    ZRANGESTORE zset zset 0 -1
    EXPIRE zset 100
    EXPIRE zset 100 XX
    PERSIST zset
    RENAME zset zset
    RENAMENX zset single
    COPY zset single
    COPY zset single REPLACE
    TOUCH zset
"""


class WatchedTest(BesideRedisTest):
    def broken(self, server, command):
        """The keys that a client who watches them sees change, and the reply."""
        with server.connect() as client:
            client.call("FLUSHALL")
            for setup in SETUP:
                client.call(*setup)
            watchers = [server.connect() for _ in KEYS]
            try:
                for watcher, key in zip(watchers, KEYS):
                    watcher.call("WATCH", key)
                    watcher.call("MULTI")
                client.send(encode(*command))
                reply = client.read_reply()[1]
                return [key for watcher, key in zip(watchers, KEYS)
                        if watcher.call("EXEC") is None], reply
            finally:
                for watcher in watchers:
                    watcher.close()

    def test_commands(self):
        for line in COMMANDS.strip().splitlines():
            command = words(line.strip())
            with self.subTest(command=line.strip()):
                redis, skep = (self.broken(server, command) for server in (self.redis, self.skep))
                if line.split()[0] == "SRANDMEMBER":
                    redis, skep = redis[0], skep[0]
                self.assertEqual(skep, redis)


class WatchedInPartsTest(WatchedTest):
    SKEP_OPTIONS = ("--collection-value-bytes", 48)


if __name__ == "__main__":
    unittest.main()
