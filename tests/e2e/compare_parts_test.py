#!/usr/bin/env python3
"""Goal: commands about parts and bits of values, objects, clients and slow commands give Redis's
replies and error texts, byte for byte.
Method: as compare_test.py: the same commands go to both servers, in RESP2 and RESP3.
"""

import unittest

from beside_redis import BesideRedisTest

CONVERSATIONS = {
    "clients": r"""
        CLIENT LIST TYPE nosuch
        CLIENT LIST TYPE master
        CLIENT LIST TYPE
        CLIENT LIST ID
        CLIENT LIST ID a
        CLIENT LIST ID 0 -1 999999999
        CLIENT PAUSE
        CLIENT PAUSE a
        CLIENT PAUSE -1
        CLIENT PAUSE 0 nosuch
        CLIENT PAUSE 0
        CLIENT PAUSE 0 WRITE
        CLIENT UNPAUSE
        CLIENT UNPAUSE a
        CLIENT UNBLOCK
        CLIENT UNBLOCK 999999999
        CLIENT UNBLOCK a
        CLIENT UNBLOCK 1 nosuch
        CLIENT UNBLOCK 1 TIMEOUT a
        CLIENT PAUSE 0 WRITE a
        CLIENT REPLY nosuch
        CLIENT REPLY ON
        CLIENT REPLY
        CLIENT NO-EVICT nosuch
        """,
    "keys of commands": r"""
        COMMAND LIST FILTERBY MODULE nosuch
        COMMAND LIST FILTERBY ACLCAT nosuch
        ~ COMMAND LIST FILTERBY ACLCAT bitmap
        COMMAND INFO get strlen getrange
        COMMAND GETKEYS
        COMMAND GETKEYS get
        COMMAND GETKEYS nosuch a
        COMMAND GETKEYS ping a
        COMMAND GETKEYS get a b
        COMMAND GETKEYS mset a 1 b 2
        COMMAND GETKEYS bitop and d a b
        COMMAND GETKEYS copy a b REPLACE
        COMMAND GETKEYSANDFLAGS get a
        COMMAND GETKEYSANDFLAGS set a 1
        COMMAND GETKEYSANDFLAGS set a 1 GET
        COMMAND GETKEYSANDFLAGS bitfield a GET u8 0
        COMMAND GETKEYSANDFLAGS bitfield a SET u8 0 1
        COMMAND GETKEYSANDFLAGS rename a b
        COMMAND GETKEYSANDFLAGS bitop and d a b
        COMMAND GETKEYS lcs a b LEN
        COMMAND GETKEYSANDFLAGS del a b
        """,
    "strings and collections": r"""
        HSET h a 1
        SADD s a
        SET t x
        GETRANGE h 0 1
        SUBSTR h 0 1
        SETRANGE h 0 x
        INCRBYFLOAT h 1
        APPEND h x
        LCS h t
        LCS t s LEN
        LCS h t nosuch
        SETBIT h 0 1
        GETBIT h 0
        BITCOUNT h
        BITPOS h 1
        BITFIELD h GET u8 0
        BITFIELD_RO h GET u8 0
        BITOP AND d t h
        BITOP OR d t t
        TYPE h
        HSET h a 1
        OBJECT REFCOUNT h
        TOUCH h s t
        EXPIRE h 1000
        COPY h t
        COPY h t REPLACE
        COPY h c
        HGETALL c
        HGETALL t
        PERSIST c
        COPY s h REPLACE
        SMEMBERS h
        TYPE h
        """,
    "arity": r"""
        GETRANGE a 0
        GETRANGE a 0 1 2
        SUBSTR a 0
        SETRANGE a 0
        INCRBYFLOAT a
        INCRBYFLOAT a 1 2
        LCS a
        SETBIT a 0
        SETBIT a 0 1 2
        GETBIT a
        BITCOUNT
        BITPOS a
        BITOP NOT a
        BITFIELD
        BITFIELD_RO
        COPY a
        TOUCH
        DUMP
        DUMP a b
        RESTORE a 0
        OBJECT
        OBJECT ENCODING
        OBJECT ENCODING a b
        OBJECT HELP a
        MEMORY
        MEMORY USAGE
        MEMORY STATS a
        SLOWLOG
        SLOWLOG LEN a
        LATENCY
        LATENCY HISTORY
        LATENCY LATEST a
        """,
    "parts": r"""
        SET s "Hello World"
        GETRANGE s 0 4
        GETRANGE s -5 -1
        GETRANGE s 0 -1
        GETRANGE s 4 2
        GETRANGE s -1 -5
        GETRANGE s 100 200
        GETRANGE s -100 3
        GETRANGE s 9223372036854775807 9223372036854775807
        GETRANGE s -9223372036854775808 9223372036854775807
        GETRANGE s a 1
        GETRANGE s 1 a
        GETRANGE nosuch 0 -1
        SUBSTR s 0 4
        SETRANGE s 6 Redis
        GET s
        SETRANGE s 20 x
        GET s
        SETRANGE s 0 ""
        SETRANGE nosuch 0 ""
        EXISTS nosuch
        SETRANGE new 3 ab
        GET new
        SETRANGE new -1 x
        SETRANGE new abc x
        SETRANGE new 536870912 x
        SETRANGE new 9223372036854775807 x
        SET f 10.50
        INCRBYFLOAT f 0.1
        INCRBYFLOAT f -5
        INCRBYFLOAT f 5.0e3
        INCRBYFLOAT f abc
        INCRBYFLOAT f ""
        INCRBYFLOAT f " 1"
        INCRBYFLOAT f nan
        INCRBYFLOAT f inf
        INCRBYFLOAT f 1e4932
        INCRBYFLOAT f 1.5e-30
        INCRBYFLOAT s 1
        INCRBYFLOAT fresh 3.0e2
        INCRBYFLOAT fresh -300
        GET f
        SET k1 ohmytext
        SET k2 mynewtext
        LCS k1 k2
        LCS k1 k2 LEN
        LCS k1 k2 IDX
        LCS k1 k2 IDX MINMATCHLEN 4
        LCS k1 k2 IDX MINMATCHLEN 4 WITHMATCHLEN
        LCS k1 k2 IDX LEN
        LCS k1 k2 MINMATCHLEN
        LCS k1 k2 MINMATCHLEN a
        LCS k1 k2 nosuch
        LCS k1 nosuch
        LCS k1 nosuch IDX
        LCS nosuch nosuch2 LEN
        """,
    "bits": r"""
        SETBIT b 7 1
        SETBIT b 7 1
        SETBIT b 7 0
        SETBIT b 100 1
        GET b
        GETBIT b 100
        GETBIT b 101
        GETBIT b 10000
        GETBIT nosuch 5
        SETBIT b -1 1
        SETBIT b a 1
        SETBIT b 4294967296 1
        SETBIT b 1 2
        SETBIT b 1 a
        GETBIT b 4294967296
        GETBIT b 4294967295
        SET t "\xff\xf0\x00"
        BITCOUNT t
        BITCOUNT t 0 0
        BITCOUNT t 1 1
        BITCOUNT t -2 -1
        BITCOUNT t 5 30 BIT
        BITCOUNT t 5 30 byte
        BITCOUNT t 5 30 nosuch
        BITCOUNT t 0
        BITCOUNT t 0 1 BIT 2
        BITCOUNT t a 1
        BITCOUNT t 0 9223372036854775807 BIT
        BITCOUNT t -1 -5 nosuch
        BITCOUNT nosuch 0
        BITPOS t 0
        BITPOS t 1
        BITPOS t 1 2
        BITPOS t 0 0 0
        BITPOS t 0 0 1
        BITPOS t 1 1 -1 BIT
        BITPOS t 0 9 -1 BIT
        BITPOS t 2
        BITPOS t a
        BITPOS t 1 a
        BITPOS t 1 0 a
        BITPOS t 1 0 1 nosuch
        BITPOS t 1 0 1 BIT 2
        SET ones "\xff\xff"
        BITPOS ones 0
        BITPOS ones 0 0
        BITPOS ones 0 0 -1
        BITPOS nosuch 0
        BITPOS nosuch 1
        BITPOS ones 1 9223372036854775807
        SET e ""
        BITPOS e 0
        BITCOUNT e
        BITOP AND d t ones
        GET d
        BITOP OR d t ones nosuch
        GET d
        BITOP XOR d t ones
        GET d
        BITOP NOT d t
        GET d
        BITOP NOT d t ones
        BITOP nosuch d t
        BITOP AND d nosuch nosuch2
        EXISTS d
        BITOP AND t t t
        SET d 1 EX 1000
        BITOP OR d t
        TTL d
        BITFIELD f INCRBY i5 100 1 GET u4 0
        BITFIELD f SET u8 0 255 GET u8 0 SET i8 #1 -1
        BITFIELD f OVERFLOW SAT INCRBY u8 0 10 OVERFLOW FAIL INCRBY u8 0 10 OVERFLOW WRAP INCRBY u8 0 10
        BITFIELD f SET u8 0 -1 OVERFLOW SAT SET u8 8 -1 SET i8 16 200 SET i8 24 -200
        BITFIELD f GET i64 0 GET u63 1 GET u1 1000
        BITFIELD f
        BITFIELD nosuch GET u8 0
        BITFIELD f GET u64 0
        BITFIELD f GET i65 0
        BITFIELD f GET x8 0
        BITFIELD f GET u8 -1
        BITFIELD f GET u8 #9223372036854775807
        BITFIELD f GET u8
        BITFIELD f SET u8 0 a
        BITFIELD f OVERFLOW nosuch
        BITFIELD f nosuch
        BITFIELD_RO f GET u8 0 GET i8 #1
        BITFIELD_RO f SET u8 0 1
        GET f
        """,
    "objects": r"""
        COPY nosuch b
        SET a 1 EX 1000
        COPY a b
        COPY a b
        COPY a b REPLACE
        TTL b
        COPY a a
        COPY a c DB 99
        COPY a c DB a
        COPY a c DB 99999999999
        COPY a c nosuch
        COPY a c DB
        COPY a c DB 0
        GET c
        PEXPIREAT a 4102444800000
        COPY a a DB 3
        COPY a a DB 3
        COPY a a DB 3 REPLACE
        COPY nosuch a DB 3 REPLACE
        RPUSH l x y z
        COPY l l DB 3
        COPY l a DB 3
        SELECT 3
        GET a
        PEXPIRETIME a
        LRANGE l 0 -1
        COPY l a DB 0 REPLACE
        SELECT 0
        LRANGE a 0 -1
        PERSIST a
        COPY c a REPLACE
        TOUCH a b nosuch a
        OBJECT ENCODING a
        OBJECT ENCODING nosuch
        SET long aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        OBJECT ENCODING long
        SET text abc
        OBJECT ENCODING text
        OBJECT REFCOUNT text
        OBJECT FREQ text
        OBJECT FREQ nosuch
        OBJECT IDLETIME nosuch
        OBJECT nosuch text
        DUMP nosuch
        DUMP a
        DUMP long
        DUMP text
        RESTORE r 0 "\x00\x01x\x0a\x00\"\x80\x86_\xbd\xe8H\xd0"
        GET r
        RESTORE r 0 "\x00\x01x\x0a\x00\"\x80\x86_\xbd\xe8H\xd0"
        RESTORE r 5000 "\x00\x01x\x0a\x00\"\x80\x86_\xbd\xe8H\xd0" REPLACE
        TTL r
        RESTORE r 1 "\x00\x01x\x0a\x00\"\x80\x86_\xbd\xe8H\xd0" REPLACE ABSTTL
        EXISTS r
        RESTORE r 4102444800000 "\x00\x01x\x0a\x00\"\x80\x86_\xbd\xe8H\xd0" ABSTTL IDLETIME 5
        PEXPIRETIME r
        RESTORE r 0 abc
        RESTORE q 0 abc
        RESTORE q 0 "\x00\x01y\x0a\x00\"\x80\x86_\xbd\xe8H\xd0"
        RESTORE q -1 abc
        RESTORE q a abc
        RESTORE q 0 abc nosuch
        RESTORE q 0 abc IDLETIME
        RESTORE q 0 abc IDLETIME -1
        RESTORE q 0 abc IDLETIME 1 FREQ 1
        RESTORE q 0 abc FREQ 256
        MEMORY USAGE nosuch
        MEMORY USAGE a SAMPLES
        MEMORY USAGE a SAMPLES a
        MEMORY USAGE a nosuch 1
        MEMORY nosuch
        """,
    "encodings": r"""
        CONFIG SET hash-max-ziplist-entries 3 hash-max-listpack-value 4
        CONFIG SET set-max-intset-entries 2 zset-max-listpack-entries 2 zset-max-ziplist-value 3
        CONFIG SET list-max-listpack-size -2 list-compress-depth 0
        ~ CONFIG GET hash-max-*
        ~ CONFIG GET Zset-Max-Ziplist-*
        ~ CONFIG GET set-max-intset-entries list-max-*
        CONFIG SET hash-max-listpack-entries a
        CONFIG SET hash-max-listpack-value a
        CONFIG SET hash-max-listpack-entries -1
        HSET h a 1 b 2 c 3
        OBJECT ENCODING h
        HSET h d 4
        OBJECT ENCODING h
        HSET h1 a 1234
        OBJECT ENCODING h1
        HSET h1 a 12345
        OBJECT ENCODING h1
        HSET h2 abcde 1
        OBJECT ENCODING h2
        SADD s 1 -2
        OBJECT ENCODING s
        SADD s 3
        OBJECT ENCODING s
        SADD s1 1 01
        OBJECT ENCODING s1
        SADD s2 9223372036854775807
        OBJECT ENCODING s2
        SADD s3 9223372036854775808
        OBJECT ENCODING s3
        ZADD z 1 abc 2 d
        OBJECT ENCODING z
        ZADD z 3 e
        OBJECT ENCODING z
        ZADD z1 1 abcd
        OBJECT ENCODING z1
        RPUSH l a
        OBJECT ENCODING l
        CONFIG SET hash-max-listpack-entries 512 hash-max-listpack-value 64 set-max-intset-entries 512
        CONFIG SET zset-max-listpack-entries 128 zset-max-listpack-value 64
        """,
    "slow commands": r"""
        CONFIG SET slowlog-log-slower-than -1
        SLOWLOG RESET
        SLOWLOG LEN
        SLOWLOG GET
        SLOWLOG GET -1
        SLOWLOG GET -2
        SLOWLOG GET a
        SLOWLOG GET 1 2
        SLOWLOG nosuch
        ~ CONFIG GET slowlog*
        CONFIG SET slowlog-log-slower-than -2
        CONFIG SET slowlog-max-len a
        LATENCY LATEST
        LATENCY HISTORY command
        LATENCY RESET
        LATENCY RESET nosuch
        LATENCY HISTOGRAM nosuch
        LATENCY nosuch
        CONFIG GET latency-monitor-threshold
        CONFIG RESETSTAT
        CONFIG RESETSTAT a
        """,
}


class ComparePartsTest(BesideRedisTest):
    def test_conversations(self):
        self.check_conversations(CONVERSATIONS)


if __name__ == "__main__":
    unittest.main()
