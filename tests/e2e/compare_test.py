#!/usr/bin/env python3
"""Goal: a Redis user gets the replies and error texts of Redis, byte for byte.
Method: the same bytes go to skep-server and to the packaged redis-server 7.0, in RESP2 and RESP3;
every reply must have the same bytes. Conversations are written as beside_redis.py says.
"""

import random
import unittest

from beside_redis import BesideRedisTest, in_any_order
from resp import Closed, encode

CONVERSATIONS = {
    "connection": r"""
        PING
        PING hello
        ping ""
        PING a b
        ECHO "hello world"
        ECHO
        ECHO a b
        SELECT 0
        SELECT 1
        SELECT 15
        SELECT 16
        SELECT -1
        SELECT abc
        SELECT 01
        SELECT 99999999999999999999
        SELECT
        SELECT 0 1
        """,
    "unknown commands": r"""
        NOSUCH
        NOSUCH a
        nosuch a b "c d" e
        "" a
        "no such" a
        "no\r\nsuch" "a\r\nb"
        GETT a
        NOSUCH aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b
        """,
    "arity": r"""
        GET
        GET a b
        SET
        SET a
        SETNX a
        SETNX a b c
        GETSET a
        GETSET a b c
        GETDEL
        GETDEL a b
        MGET
        MSET
        MSET a
        MSET a 1 b
        MSETNX
        MSETNX a
        MSETNX a 1 b
        STRLEN
        STRLEN a b
        APPEND a
        APPEND a b c
        INCR
        INCR a b
        DECR
        DECR a b
        INCRBY a
        INCRBY a 1 2
        DECRBY a
        DECRBY a 1 2
        EXISTS
        DEL
        UNLINK
        TYPE
        TYPE a b
        KEYS
        KEYS a b
        SCAN
        RANDOMKEY a
        RENAME a
        RENAME a b c
        RENAMENX a
        RENAMENX a b c
        DBSIZE a
        TIME a
        RESET a
        AUTH
        """,
    "get and set": r"""
        GET a
        SET a 1
        GET a
        SET a ""
        GET a
        SET "" empty
        GET ""
        set A upper
        GeT A
        SET a 2 NX
        GET a
        SET a 2 XX
        GET a
        SET b 1 XX
        GET b
        SET b 1 NX
        SET b 2 GET
        SET c 1 GET
        GET c
        SET d 1 NX GET
        SET d 2 NX GET
        GET d
        SET e 1 XX GET
        GET e
        SET d 3 xx get
        GET d
        SET a 1 NX XX
        SET a 1 XX NX
        SET a 1 NX NX
        SET a 1 GET GET
        SET a 1 nosuch
        SET a 1 2
        SET a 1 ""
        GET a
        SETNX f 1
        SETNX f 2
        GET f
        GETSET f 3
        GETSET g 1
        GET g
        GETDEL g
        GETDEL g
        GET g
        STRLEN f
        STRLEN nosuch
        STRLEN A
        APPEND h abc
        APPEND h def
        APPEND h ""
        APPEND i ""
        EXISTS i
        GET h
        """,
    "many keys": r"""
        MSET a 1 b 2 c 3
        MGET a b c
        MGET a nosuch c a
        MSET a 1 a 2 a 3
        GET a
        MSETNX x 1 y 2
        MSETNX y 3 z 4
        MGET x y z
        MSETNX p 1 p 2
        GET p
        EXISTS a
        EXISTS a b nosuch
        EXISTS a a a
        DBSIZE
        DEL a
        DEL a b nosuch
        DEL c c
        UNLINK x x y
        DBSIZE
        TYPE p
        TYPE nosuch
        """,
    "numbers": r"""
        INCR n
        INCR n
        DECR n
        INCRBY n 10
        DECRBY n 3
        INCRBY n -20
        DECRBY n -5
        GET n
        INCRBY n 0
        INCRBY n abc
        INCRBY n ""
        INCRBY n 1.5
        INCRBY n +1
        INCRBY n " 1"
        INCRBY n "1 "
        INCRBY n 01
        INCRBY n -0
        INCRBY n 9223372036854775807
        INCRBY n 9223372036854775808
        INCRBY n -9223372036854775809
        DECRBY n 9223372036854775808
        DECRBY n -9223372036854775808
        DECRBY n abc
        GET n
        SET max 9223372036854775807
        INCR max
        INCRBY max 1
        DECR max
        INCR max
        INCR max
        SET min -9223372036854775808
        DECR min
        DECRBY min 1
        DECRBY min -9223372036854775808
        DECRBY min -9223372036854775807
        GET min
        SET text abc
        INCR text
        DECRBY text 1
        SET text ""
        INCR text
        SET text " 1"
        INCR text
        SET text 01
        INCR text
        SET text -0
        INCR text
        SET text 1.0
        INCR text
        SET text 99999999999999999999
        INCR text
        SET text +5
        INCR text
        GET text
        """,
    "keyspaces": r"""
        SELECT 3
        SET a 3
        SELECT 4
        GET a
        SET a 4
        SET b 4
        DBSIZE
        FLUSHDB
        DBSIZE
        SELECT 3
        GET a
        FLUSHDB ASYNC
        FLUSHDB SYNC
        FLUSHDB nosuch
        FLUSHDB SYNC ASYNC
        SET a 3
        FLUSHALL nosuch
        FLUSHALL SYNC
        GET a
        DBSIZE
        FLUSHALL ASYNC
        """,
    "rename": r"""
        RENAME nosuch a
        RENAMENX nosuch a
        RENAME nosuch nosuch
        SET a 1
        RENAME a b
        GET a
        GET b
        RENAME b b
        RENAMENX b b
        SET c 3
        RENAMENX b c
        RENAME b c
        GET c
        RENAMENX c d
        GET d
        EXISTS c
        """,
    "keys": r"""
        RANDOMKEY
        KEYS *
        MSET user:1 a user:2 b user:10 c use d userx e "us*er" f "u[1]" g "u\\1" h
        ~ KEYS *
        ~ KEYS user:*
        ~ KEYS user:?
        ~ KEYS use?
        ~ KEYS *1*
        ~ KEYS use
        ~ KEYS [tu]se*
        ~ KEYS [^u]*
        ~ KEYS us\\*er
        ~ KEYS us[*]er
        ~ KEYS u\\[1]
        ~ KEYS "u\\\\1"
        ~ KEYS user:[0-1]*
        ~ KEYS [
        ~ KEYS ""
        ~ KEYS **
        ~ KEYS user**
        ~ KEYS us*er*
        ~ SCAN 0 COUNT 1000
        ~ SCAN 0 COUNT 1000 MATCH user:*
        ~ SCAN 0 MATCH user:* COUNT 1000
        ~ SCAN 0 MATCH nosuch* COUNT 1000
        ~ SCAN 0 COUNT 1000 MATCH use
        ~ SCAN 0 count 1000 match use?
        ~ SCAN "" COUNT 1000
        ~ SCAN -0 COUNT 1000
        ~ SCAN 000 COUNT 1000
        ~ SCAN "+0\x00abc" COUNT 1000
        SCAN " 0"
        SCAN -
        SCAN -0x
        SCAN abc
        SCAN 1.5
        SCAN 99999999999999999999
        SCAN 0 COUNT
        SCAN 0 COUNT 0
        SCAN 0 COUNT -1
        SCAN 0 COUNT abc
        SCAN 0 MATCH
        SCAN 0 nosuch
        SCAN 0 nosuch a
        SCAN 0 MATCH a COUNT
        """,
    "client": r"""
        CLIENT
        CLIENT nosuch
        CLIENT nosuch a b
        CLIENT GETNAME
        CLIENT SETNAME me
        CLIENT GETNAME
        CLIENT SETNAME "a b"
        CLIENT SETNAME "a\nb"
        CLIENT GETNAME
        CLIENT SETNAME ""
        CLIENT GETNAME
        CLIENT SETNAME
        CLIENT SETNAME a b
        CLIENT GETNAME a
        CLIENT ID a
        client getname
        CLIENT INFO a
        CLIENT LIST nosuch
        """,
    "reset": r"""
        SELECT 3
        CLIENT SETNAME me
        RESET
        CLIENT GETNAME
        GET nosuch
        """,
    "hello": r"""
        HELLO 1
        HELLO 4
        HELLO abc
        HELLO 2 nosuch
        HELLO 2 AUTH
        HELLO 2 AUTH a
        HELLO 2 SETNAME
        HELLO 2 SETNAME "a b"
        HELLO 2 AUTH nosuch secret
        HELLO 3 AUTH default
        CLIENT GETNAME
        """,
    "auth without a password": r"""
        AUTH secret
        AUTH default secret
        AUTH nosuch secret
        AUTH a b c
        PING
        """,
    "config": r"""
        CONFIG
        CONFIG nosuch
        CONFIG GET
        CONFIG SET
        CONFIG SET maxmemory
        CONFIG GET nosuch
        CONFIG GET maxclients
        CONFIG GET maxmemory
        CONFIG GET nosuch maxmemory
        CONFIG SET maxmemory 100mb
        CONFIG GET maxmemory
        CONFIG SET maxmemory foo
        CONFIG SET maxmemory -1
        CONFIG SET maxmemory 0
        CONFIG SET nosuch 1
        CONFIG SET maxclients 0
        CONFIG SET maxclients abc
        CONFIG SET maxclients 99999999999
        CONFIG SET databases 4
        CONFIG SET timeout -1
        CONFIG SET timeout 300 maxmemory foo
        CONFIG GET timeout
        CONFIG SET timeout 300 nosuch 1
        CONFIG SET timeout 300 timeout 400
        CONFIG GET timeout
        CONFIG SET loglevel foo
        CONFIG SET loglevel verbose
        CONFIG GET loglevel
        CONFIG SET loglevel notice
        CONFIG SET proto-max-bulk-len 1
        CONFIG GET proto-max-bulk-len
        CONFIG GET protected-mode
        CONFIG GET bind
        CONFIG GET databases
        CONFIG GET requirepass
        CONFIG GET client-query-buffer-limit
        """,
    "command": r"""
        COMMAND nosuch
        COMMAND COUNT a
        COMMAND INFO nosuch
        COMMAND DOCS nosuch
        COMMAND LIST nosuch
        COMMAND LIST FILTERBY
        COMMAND LIST FILTERBY nosuch a
        COMMAND LIST FILTERBY PATTERN getd*
        """,
}

RAW = {
    "inline": [b"PING\r\n", b"ping hello\n", b"SET k 'a b'\r\n", b'GET "k"\r\n',
               b'SET k "\\x41\\n\\t"\r\n', b"GET k\r\n", b"\r\n\r\nPING\r\n", b"  PING   x  \r\n",
               b"GET\r\n", b"nosuch a\r\n"],
    "empty requests": [b"*0\r\nPING\r\n", b"*-1\r\nPING\r\n", b"*-5\r\nPING\r\n"],
    "binary": [encode(b"SET", b"a\x00b\r\n\xff", b"v\x00\r\n\xfe"), encode(b"GET", b"a\x00b\r\n\xff"),
               encode(b"STRLEN", b"a\x00b\r\n\xff"), encode(b"KEYS", b"a\x00*"),
               encode(b"APPEND", b"a\x00b\r\n\xff", b"\x00"), encode(b"GET", b"a\x00b\r\n\xff")],
}

# Each is answered with an error, after which the connection is closed.
PROTOCOL_ERRORS = [
    b"*abc\r\n", b"*2147483648\r\n", b"*99999999999999999999\r\n", b"*1\r\n:1\r\n", b"*1\r\nPING\r\n",
    b"*1\r\n$abc\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$99999999999999999999\r\n",
    b"SET a 'b\r\n", b'SET a "b\r\n', b'SET a "b"c\r\n', b"*2\r\n$3\r\nGET\r\n*1\r\n", b"*\r\n",
    b"*1\r\n$\r\n", b"* 1\r\n", b"*+1\r\n", b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n",
    b"*1" + b"0" * 70000, b"*1\r\n$1" + b"0" * 70000, b"a" * 70000,
]


class CompareTest(BesideRedisTest):
    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)

    def test_raw_requests(self):
        for name, requests in RAW.items():
            pair = self.connect_both()
            for request in requests:
                with self.subTest(name=name, request=request):
                    redis, skep = self.replies(pair, request)
                    self.assertEqual(skep, redis)

    # The whole stream up to its end: what was asked before the error is answered.
    def test_protocol_errors_close_the_connection(self):
        for request in PROTOCOL_ERRORS:
            with self.subTest(request=request[:40]):
                answers = []
                for connection in self.connect_both():
                    connection.send(encode("PING") + request)
                    replies = [connection.read_reply()[1]]
                    try:
                        replies.append(connection.read_reply()[1])
                        if replies[-1].startswith(b"-ERR Protocol error"):
                            replies.append(connection.is_closed())
                    except Closed:
                        replies.append("closed")
                    answers.append(replies)
                self.assertEqual(answers[1], answers[0])

    def test_quit_closes(self):
        for connection in self.connect_both():
            connection.send(encode("QUIT") + encode("PING"))
            self.assertEqual(connection.read_reply()[1], b"+OK\r\n")
            self.assertTrue(connection.is_closed())

    # Goal: the corners of glob patterns, on keys of any bytes.
    # Method: random keys and patterns out of few letters and all special bytes; a failure prints
    # its seed.
    def test_random_patterns(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        pair = self.connect_both()
        for _ in range(100):
            key = bytes(rng.choice(b"aab]-\\*[\xff") for _ in range(rng.randrange(6)))
            self.replies(pair, encode("SET", key, 1))
        for _ in range(1000):
            pattern = bytes(rng.choice(b"aab**??[[]]^--\\\xff") for _ in range(rng.randrange(8)))
            redis, skep = self.replies(pair, encode("KEYS", pattern))
            self.assertEqual(in_any_order(skep), in_any_order(redis), (seed, pattern))

    # Goal: sequences of commands on few keys agree, alone and in pipelines of any length.
    # Method: random commands from a printed seed, several on the same keys in one pipeline.
    def test_random_pipelines(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        pair = self.connect_both()
        for _ in range(300):
            batch = [random_command(rng) for _ in range(rng.randrange(1, 30))]
            data = b"".join(encode(*command) for command in batch)
            for connection in pair:
                connection.send(data)
            for command in batch:
                redis, skep = (connection.read_reply()[1] for connection in pair)
                self.assertEqual(skep, redis, (seed, command))


def random_command(rng):
    def key():
        return rng.choice(["a", "b", "c", "d", "n"])

    def value():
        return rng.choice(["x", "yy", "", "5", "-7", "9223372036854775807"])

    return rng.choice([
        lambda: ["GET", key()],
        lambda: ["SET", key(), value()],
        lambda: ["SET", key(), value(), rng.choice(["NX", "XX", "GET"])],
        lambda: ["SET", key(), value(), rng.choice(["NX", "XX"]), "GET"],
        lambda: ["SETNX", key(), value()],
        lambda: ["GETSET", key(), value()],
        lambda: ["GETDEL", key()],
        lambda: ["MGET", key(), key(), key()],
        lambda: ["MSET", key(), value(), key(), value()],
        lambda: ["MSETNX", key(), value(), key(), value()],
        lambda: ["STRLEN", key()],
        lambda: ["APPEND", key(), value()],
        lambda: [rng.choice(["INCR", "DECR"]), key()],
        lambda: [rng.choice(["INCRBY", "DECRBY"]), key(), value()],
        lambda: ["EXISTS", key(), key()],
        lambda: [rng.choice(["DEL", "UNLINK"]), key(), key()],
        lambda: ["TYPE", key()],
        lambda: [rng.choice(["RENAME", "RENAMENX"]), key(), key()],
        lambda: ["DBSIZE"],
        lambda: ["SELECT", rng.choice("0123")],
        lambda: ["NOSUCH", key()],
        lambda: ["GET"],
    ])()


if __name__ == "__main__":
    unittest.main()
