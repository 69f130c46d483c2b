#!/usr/bin/env python3
"""Goal: whoever comes from Redis 7.0 finds every shared command doing the same, in any order.
Method: random streams of commands, from several clients, go to skep-server and to the packaged
redis-server; the replies must be equal, and the keys, values and deadlines at the end, but for what
differential/differences.py lists. A stream that finds a difference is made as short as it can be
and printed as a script for redis-cli.

SKEP_DIFFERENTIAL_COMMANDS=1000000 makes a long run; SKEP_DIFFERENTIAL_SEED repeats one.
"""

import os
import random
import unittest

from beside_redis import BesideRedisTest
from differential.differences import DIFFERENCES, listed
from differential.driver import Coverage, Driver
from differential.replies import number
from differential.script import parse_steps
from differential.shrink import report, shrink
from differential.streams import stream
from differential.table import COMMANDS, ELSEWHERE
from skep_process import SANITIZED

COMMANDS_TOTAL = int(os.environ.get("SKEP_DIFFERENTIAL_COMMANDS", 10_000 if SANITIZED else 15_000))
STREAM_COMMANDS = 300
# Below this, luck decides what a run has seen.
COVERAGE_COMMANDS_MIN = 100_000


class DifferentialTest(BesideRedisTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.servers = (cls.redis, cls.skep)

    # Goal: equal answers and equal contents, whatever is sent.
    # Method: streams of a few hundred commands each, of consecutive seeds, on few keys. The run as
    # a whole must have seen every command do its work and fail in each of its ways.
    def test_random_streams(self):
        seed = int(os.environ.get("SKEP_DIFFERENTIAL_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        coverage = Coverage()
        while coverage.commands < COMMANDS_TOTAL:
            steps = stream(seed, STREAM_COMMANDS)
            with Driver(self.servers, coverage) as driver:
                difference = driver.run(steps)
            if difference:
                shrunk = report(*shrink(self.servers, steps, difference))
                self.fail(f"SKEP_DIFFERENTIAL_SEED={seed}:\n{shrunk}")
            seed += 1
        if COMMANDS_TOTAL >= COVERAGE_COMMANDS_MIN:
            self.assertEqual(missing(coverage), [])

    # Goal: a watched key that expires by itself makes EXEC fail, as in Redis.
    # Method: the deadline is long enough only if both servers still have the key after WATCH; if
    # not, once more with a longer one.
    def test_a_watched_key_expires(self):
        for milliseconds in (50, 400, 3000, 25_000):
            with Driver(self.servers) as driver:
                client = driver.client(1)
                client.say("SET", "a", "v", "PX", milliseconds)
                client.say("WATCH", "a")
                in_time = all(0 < number(reply) for reply in client.say("PTTL", "a"))
                driver.wait_until_expired()
                if not in_time:
                    continue
                client.say("MULTI")
                client.say("SET", "b", 1)
                redis, skep = client.say("EXEC")
                self.assertEqual(redis, b"*-1\r\n")
                self.assertEqual(skep, redis)
                return
        self.fail("the key was gone before it could be watched")

    # Goal: TTL rounds to the nearest second as Redis does.
    # Method: inside EXEC time stands still, so TTL follows from PTTL.
    def test_seconds_are_rounded(self):
        with self.skep.connect() as connection:
            for milliseconds in range(5_000_000, 5_001_000, 37):
                ttl_ms, ttl = connection.pipeline(
                    ["PSETEX", "k", milliseconds, "v"], ["MULTI"], ["PTTL", "k"], ["TTL", "k"],
                    ["EXEC"])[-1]
                self.assertEqual(ttl, (ttl_ms + 500) // 1000, ttl_ms)

    # Goal: no command is forgotten.
    # Method: what both servers list must be what the table names.
    def test_all_shared_commands_are_in_the_table(self):
        shared = set.intersection(*(command_names(server) for server in self.servers))
        self.assertEqual(shared, COMMANDS.keys() | ELSEWHERE)

    # Goal: the list of differences has no entry that is not needed.
    # Method: each entry's example is run; only its last answers may differ, and must.
    def test_listed_differences_are_still_there(self):
        for name, entry in DIFFERENCES.items():
            with self.subTest(name=name):
                steps = list(parse_steps(entry.example))
                found = []
                def allow_nothing(*answer):
                    found.append(listed(*answer))

                with Driver(self.servers, allow=allow_nothing) as driver:
                    difference = driver.run(steps)
                self.assertIsNotNone(difference, "the servers agree: remove this entry")
                self.assertEqual(difference.step, len(steps) - 1, "only the last may differ")
                self.assertEqual(found, [entry], difference)


def command_names(server):
    with server.connect() as connection:
        names = [name.decode().upper() for name in connection.call("COMMAND", "LIST")]
        return {name for name in names if "|" not in name}


def missing(coverage):
    """Kinds of command and outcome that a whole run should have had and has not."""
    unseen = []
    for name, command in COMMANDS.items():
        if not coverage.answers[name]:
            unseen.append(f"{name} without error")
        unseen += [f"{name}: {answer}" for answer in command.answers
                   if not coverage.answers[name][answer]]
        arity = ("wrong number of arguments",) if command.has_arity else ()
        for error in (*arity, *command.errors):
            if not any(error in seen for seen in coverage.errors[name]):
                unseen.append(f"{name}: {error}")
    return unseen


if __name__ == "__main__":
    unittest.main()
