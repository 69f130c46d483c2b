#!/usr/bin/env python3
"""Goal: whoever watches a key of a collection sees the writes that it sees in Redis, also those that
leave the collection as it was, and sees none where a command found nothing to do.
Method: each command, or pipeline, runs on the same collections of both servers while every key is watched; the
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
    ["ZADD", "single", "1", "a"],
    ["SET", "string", "abc"])
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
    SMOVE set string nosuch
    SMOVE set string m01
    ZADD zset 5 m01 1 m01
    ZADD zset 1 m01 5 m01 1 m01
    HINCRBY hash f01 1
    ZADD zset -5 new; ZPOPMIN zset
    ZADD zset 500 new; ZPOPMAX zset
    ZADD zset 500 new; ZREMRANGEBYRANK zset -1 -1
    ZADD zset 500 new; ZREMRANGEBYSCORE zset 400 600
    ZADD zset 5 m01; ZADD zset 1 m01
    ZINCRBY zset 5 m01; ZINCRBY zset -5 m01
    ZPOPMIN zset; ZADD zset 0 m00
    HDEL hash f01; HSET hash f01 v01
    SADD set new; SREM set new
    LPUSH list new; LPOP list
    MULTI; HINCRBY hash f01 1; EXEC
    MULTI; LSET list 1000 x; EXEC
    MULTI; ZADD zset INCR -inf m01; ZINCRBY zset inf m01; EXEC
    MULTI; HGET hash f01; SADD hash x; EXEC
    MULTI; SCARD set; APPEND set x; HGET set x; EXEC
    MULTI; SPOP other; SADD other x; SADD set x; LPUSH set y; EXEC
    MULTI; SREM other x; LPUSH other y; EXEC
    MULTI; ZRANGE zset 0 1; ZREMRANGEBYRANK zset 0 1; EXEC
    MULTI; LRANGE list 0 3; LTRIM list 4 -1; LRANGE list 0 3; EXEC
    MULTI; LINDEX list 0; LPOP list; ZRANK zset m01; ZADD zset 90 m01; ZRANK zset m01; EXEC
    MULTI; SMOVE set other nosuch; EXEC
    MULTI; LMPOP 2 one list LEFT; EXEC
    MULTI; SMOVE set other m01; SMOVE set other m02; SCARD other; EXEC
    MULTI; SMOVE set other nosuch; SMOVE other set x; SMOVE other set x; EXEC
    MULTI; SMOVE set fresh m01; SMEMBERS fresh; SMOVE fresh set m01; EXEC
    MULTI; LMOVE list one LEFT RIGHT; LMOVE one list LEFT LEFT; LRANGE one 0 -1; EXEC
    MULTI; LMOVE one list LEFT LEFT; EXISTS one; RPOPLPUSH list fresh; LLEN list; EXEC
    MULTI; LMPOP 2 nosuch list LEFT; BLPOP nosuch list 0; LMPOP 2 one list RIGHT COUNT 2; EXEC
    MULTI; ZMPOP 2 nosuch zset MIN; BZPOPMAX nosuch zset 0; ZMPOP 2 single zset MAX; EXEC
    MULTI; DEL other; SMOVE set other m01; SMEMBERS other; EXEC
    MULTI; EXPIRE other 100; SMOVE set other m01; TTL other; EXEC
    MULTI; HGETALL number; HSET number a 2; HGETALL number; EXEC
"""


class WatchedTest(BesideRedisTest):
    def broken(self, server, commands):
        """The keys that a client who watches them sees change, and the replies."""
        with server.connect() as client:
            client.call("FLUSHALL")
            for setup in SETUP:
                client.call(*setup)
            watchers = [server.connect() for _ in KEYS]
            try:
                for watcher, key in zip(watchers, KEYS):
                    watcher.call("WATCH", key)
                    watcher.call("MULTI")
                client.send(b"".join(encode(*command) for command in commands))
                replies = [client.read_reply()[1] for _ in commands]
                return [key for watcher, key in zip(watchers, KEYS)
                        if watcher.call("EXEC") is None], replies
            finally:
                for watcher in watchers:
                    watcher.close()

    def test_commands(self):
        for line in COMMANDS.strip().splitlines():
            commands = [words(command) for command in line.split(";")]
            with self.subTest(commands=line.strip()):
                redis, skep = (self.broken(server, commands) for server in (self.redis, self.skep))
                if "SRANDMEMBER" in line:
                    redis, skep = redis[0], skep[0]
                self.assertEqual(skep, redis)


class WatchedInPartsTest(WatchedTest):
    SKEP_OPTIONS = ("--collection-value-bytes", 48)


if __name__ == "__main__":
    unittest.main()
