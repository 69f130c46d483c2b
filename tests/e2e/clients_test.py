#!/usr/bin/env python3
"""Clients people use: redis-cli with the README's conversation, redis-benchmark, python3-redis."""

import csv
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import redis

from skep_process import PATIENCE_S, SANITIZED, ServerTest

README = Path(__file__).resolve().parents[2] / "README.md"
PROMPT = "127.0.0.1:6379> "


def conversation(page):
    """Pairs of a command and the lines it prints, of every redis-cli block of a page."""
    steps = []
    for block in re.findall(r"^```\w*\n(127\.0\.0\.1:6379> .*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith(PROMPT):
                steps.append((line.removeprefix(PROMPT), []))
            else:
                steps[-1][1].append(line)
    return steps


class RedisCliTest(ServerTest):
    def type(self, command):
        """Returns what redis-cli prints for a command typed at its prompt."""
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--no-raw"],
                              input=command + "\n", capture_output=True, text=True,
                              timeout=PATIENCE_S, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.rstrip("\n").split("\n")

    # Goal: the README tells the truth.
    # Method: every command of its conversation is typed; the answer must be the printed one. A token
    # of KSCAN that it prints stands for whatever token the server gave instead.
    def test_readme(self):
        steps = conversation(README.read_text(encoding="utf-8"))
        self.assertGreater(len(steps), 5)
        given = {}
        for command, expected in steps:
            for printed, actual in given.items():
                command = command.replace(printed, actual)
            lines = self.type(command)
            for printed, actual in zip(expected, lines):
                old, new = (re.search(r"\bK[A-Za-z0-9_-]{30,}", text) for text in (printed, actual))
                if old and new:
                    given[old.group()] = new.group()
            for printed, actual in given.items():
                expected = [line.replace(printed, actual) for line in expected]
            self.assertEqual(lines, expected, command)

    def test_resp3_and_help(self):
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "-3", "--no-raw", "CONFIG",
                               "GET", "maxclients"], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=True)
        self.assertEqual(done.stdout, '1# "maxclients" => "10000"\n')

    def test_scan_mode(self):
        self.client.call("MSET", "a:1", 1, "a:2", 2, "b", 3)
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--scan", "--pattern",
                               "a:*"], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=True)
        self.assertEqual(done.stdout, "a:1\na:2\n")

    def test_pipe_mode(self):
        commands = "".join(f"SET key:{i} {i}\r\n" for i in range(1000))
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--pipe"], input=commands,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertIn("errors: 0, replies: 1000", done.stdout)
        self.check(1000, "DBSIZE")


class RedisBenchmarkTest(ServerTest):
    # It ends with an error code at the first error reply.
    def test_pipelines_of_fifty_clients(self):
        requests = 5_000 if SANITIZED else 100_000
        done = subprocess.run(
            ["redis-benchmark", "-p", str(self.server.port), "-t", "ping,set,get,incr,mset",
             "-P", "16", "-c", "50", "-n", str(requests), "--csv"],
            capture_output=True, text=True, timeout=PATIENCE_S * 2, check=True)
        rows = list(csv.reader(done.stdout.splitlines()))
        self.assertEqual([row[0] for row in rows],
                         ["test", "PING_INLINE", "PING_MBULK", "SET", "GET", "INCR",
                          "MSET (10 keys)"])
        self.assertEqual(done.stderr, "")
        self.assertNotRegex(done.stdout, "(?i)error")
        # It rounds up to whole pipelines.
        self.assertGreaterEqual(int(self.client.call("GET", "counter:__rand_int__")), requests)


    def test_all_that_it_measures(self):
        """Its own list of commands, without a choice of them."""
        done = subprocess.run(
            ["redis-benchmark", "-p", str(self.server.port), "-n", "1000", "--csv"],
            capture_output=True, text=True, timeout=PATIENCE_S * 2, check=True)
        names = [row[0] for row in csv.reader(done.stdout.splitlines())]
        for name in ("LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP", "ZADD", "ZPOPMIN",
                     "LRANGE_100 (first 100 elements)", "LRANGE_600 (first 600 elements)",
                     "MSET (10 keys)"):
            self.assertIn(name, names)
        self.assertEqual(done.stderr, "")
        self.assertNotRegex(done.stdout, "(?i)error")
        self.assertGreaterEqual(self.client.call("LLEN", "mylist"), 1000)


class PythonRedisTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.redis = redis.Redis(port=self.server.port)
        self.addCleanup(self.redis.close)

    def test_hashes_and_sets(self):
        r = self.redis
        self.assertEqual(r.hset("h", mapping={"a": 1, "b": "two"}), 2)
        self.assertEqual(r.hgetall("h"), {b"a": b"1", b"b": b"two"})
        self.assertEqual((r.hincrby("h", "a", 4), r.hincrbyfloat("h", "a", 0.5)), (5, 5.5))
        self.assertEqual((r.hmget("h", "a", "x"), r.hlen("h")), ([b"5.5", None], 2))
        self.assertEqual(sorted(r.hscan_iter("h")), [(b"a", b"5.5"), (b"b", b"two")])
        self.assertEqual((r.hdel("h", "a", "b"), r.exists("h")), (2, 0))
        self.assertEqual((r.sadd("s", 1, 2, 3), r.sadd("t", 2, 3, 4)), (3, 3))
        self.assertEqual((r.sinter("s", "t"), r.sdiff("s", "t")), ({b"2", b"3"}, {b"1"}))
        self.assertEqual((r.sunionstore("u", "s", "t"), r.smembers("u")),
                         (4, {b"1", b"2", b"3", b"4"}))
        self.assertEqual(set(r.sscan_iter("u")), r.smembers("u"))
        self.assertTrue(r.smove("s", "t", 1))
        self.assertEqual((r.sismember("t", 1), r.scard("s")), (True, 2))
        self.assertEqual((r.type("s"), list(r.scan_iter(_type="set"))), (b"set", [b"s", b"t", b"u"]))
        with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE"):
            r.get("s")

    def test_lists_and_sorted_sets(self):
        r = self.redis
        self.assertEqual((r.rpush("l", "b", "c"), r.lpush("l", "a")), (2, 3))
        self.assertEqual((r.lrange("l", 0, -1), r.lindex("l", -1)), ([b"a", b"b", b"c"], b"c"))
        self.assertEqual((r.linsert("l", "before", "c", "x"), r.lrem("l", 1, "b")), (4, 1))
        self.assertEqual((r.lpop("l"), r.rpop("l"), r.llen("l")), (b"a", b"c", 1))
        self.assertEqual((r.lmove("l", "m"), r.exists("l"), r.lpop("m", 2)), (b"x", 0, [b"x"]))
        self.assertEqual(r.zadd("z", {"a": 1, "b": 2.5, "c": 3}), 3)
        self.assertEqual(r.zrange("z", 0, -1, withscores=True), [(b"a", 1), (b"b", 2.5), (b"c", 3)])
        self.assertEqual(r.zrangebyscore("z", "(1", "+inf", start=1, num=5), [b"c"])
        self.assertEqual((r.zrank("z", "c"), r.zrevrank("z", "c"), r.zscore("z", "b")), (2, 0, 2.5))
        self.assertEqual((r.zincrby("z", 10, "a"), r.zcount("z", 3, 20)), (11, 2))
        self.assertEqual((r.zpopmin("z"), r.zpopmax("z")), ([(b"b", 2.5)], [(b"a", 11)]))
        with r.pipeline() as transaction:
            transaction.zadd("z", {"d": 4}).zcard("z").delete("z").exists("z")
            self.assertEqual(transaction.execute(), [1, 2, 1, 0])

    def test_everyday_calls(self):
        r = self.redis
        self.assertTrue(r.ping())
        self.assertTrue(r.set("a", 1))
        self.assertIsNone(r.set("a", 2, nx=True))
        self.assertEqual(r.set("a", 3, get=True), b"1")
        self.assertEqual((r.get("a"), r.get("nosuch")), (b"3", None))
        self.assertTrue(r.mset({"b": 1, "c": 2}))
        self.assertFalse(r.msetnx({"c": 5, "d": 6}))
        self.assertEqual(r.mget("a", "b", "nosuch"), [b"3", b"1", None])
        self.assertEqual((r.incr("n"), r.incrby("n", 5), r.decr("n", 2)), (1, 6, 4))
        self.assertEqual((r.append("s", "ab"), r.strlen("s"), r.getdel("s")), (2, 2, b"ab"))
        self.assertEqual((r.exists("a", "b"), r.delete("a", "b", "x"), r.type("c")),
                         (2, 2, b"string"))
        self.assertTrue(r.rename("c", "cc"))
        self.assertEqual(r.keys(), [b"cc", b"n"])
        self.assertIn(r.randomkey(), (b"cc", b"n"))
        self.assertEqual(r.config_get("maxclients"), {"maxclients": "10000"})
        self.assertEqual(r.info()["db0"]["keys"], 2)
        self.assertEqual(len(r.time()), 2)
        self.assertEqual(r.client_id(), r.client_info()["id"])
        self.assertEqual(r.dbsize(), 2)
        with self.assertRaisesRegex(redis.ResponseError, "not an integer"):
            r.set("cc", "x") and r.incr("cc")
        with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
            r.execute_command("NOSUCH")

    def test_parts_bits_and_objects(self):
        r = self.redis
        r.set("s", "Hello World")
        self.assertEqual((r.getrange("s", 0, 4), r.substr("s", 6), r.setrange("s", 6, "Redis")),
                         (b"Hello", b"World", 11))
        self.assertEqual((r.incrbyfloat("f", 1.5), r.incrbyfloat("f", -0.25)), (1.5, 1.25))
        r.mset({"k1": "ohmytext", "k2": "mynewtext"})
        self.assertEqual((r.lcs("k1", "k2"), r.lcs("k1", "k2", len=True)), (b"mytext", 6))
        self.assertEqual((r.setbit("b", 7, 1), r.getbit("b", 7), r.bitcount("b"), r.bitpos("b", 1)),
                         (0, 1, 1, 7))
        self.assertEqual((r.bitop("NOT", "n", "b"), r.get("n")), (1, b"\xfe"))
        self.assertEqual(r.bitfield("field").set("u8", 0, 200).incrby("u8", 0, 100).execute(),
                         [0, 44])
        self.assertTrue(r.copy("s", "t"))
        self.assertEqual((r.touch("s", "t", "x"), r.object("encoding", "s")), (2, b"embstr"))
        self.assertEqual((r.restore("u", 0, r.dump("s")), r.get("u")), (b"OK", b"Hello Redis"))
        self.assertEqual(r.memory_usage("s"), 12)

    def test_administration(self):
        r = self.redis
        r.set("a", 1)
        info = r.info("everything")
        self.assertEqual((info["cluster_enabled"], info["blocked_clients"], info["role"]),
                         (0, 0, "master"))
        self.assertGreaterEqual(info["cmdstat_set"]["calls"], 1)
        self.assertEqual(info["db0"], {"keys": 1, "expires": 0, "avg_ttl": 0})
        self.assertTrue(r.config_resetstat())
        self.assertEqual(r.info("stats")["keyspace_hits"], 0)
        self.assertTrue(r.slowlog_reset())
        r.config_set("slowlog-log-slower-than", 0)
        r.set("b", 2)
        r.config_set("slowlog-log-slower-than", -1)
        self.assertIn(b"SET b 2", [entry["command"] for entry in r.slowlog_get()])
        self.assertGreaterEqual(r.slowlog_len(), 1)
        self.assertEqual(r.command_getkeys("MSET", "a", 1, "b", 2), ["a", "b"])
        self.assertEqual(r.command_list(module="nosuch"), [])
        self.assertEqual([client["id"] for client in r.client_list(client_id=[str(r.client_id())])],
                         [str(r.client_id())])
        self.assertEqual(r.client_list(_type="pubsub"), [])
        self.assertTrue(r.client_pause(1) and r.client_unpause())
        self.assertFalse(r.client_unblock(12345))
        self.assertEqual(r.memory_stats()["keys.count"], 2)
        self.assertGreater(r.lastsave().year, 2000)

    def test_scan_iter_and_pipelines(self):
        pipeline = self.redis.pipeline(transaction=False)
        for i in range(1000):
            pipeline.set(f"key:{i:04d}", i)
        self.assertEqual(pipeline.execute(), [True] * 1000)
        keys = [b"key:%04d" % i for i in range(1000)]
        self.assertEqual(list(self.redis.scan_iter()), keys)
        self.assertEqual(list(self.redis.scan_iter(match="key:00*", count=7)), keys[:100])

    def test_ordered_commands(self):
        self.redis.mset({"user:1": "Ada", "user:2": "Bob", "z": 1})
        call = self.redis.execute_command
        self.assertEqual(call("KRANGE", "PREFIX", "user:", "WITHVALUES"),
                         [b"user:1", b"Ada", b"user:2", b"Bob"])
        self.assertEqual(call("KCOUNT", "[user:2", "+"), 2)
        self.assertEqual(call("KDELRANGE", "-", "(z"), 2)
        self.assertEqual(call("KFIRST"), b"z")


if __name__ == "__main__":
    for tool in ("redis-cli", "redis-benchmark"):
        if not shutil.which(tool):
            raise SystemExit(77)
    unittest.main()
