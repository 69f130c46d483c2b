#!/usr/bin/env python3
"""Goal: ranks, ranges by index and cuts of large collections are those of Redis, and what is drawn
at random is of the collection.
Method: the same sorted sets, with ties and members of all byte values, and the same lists go to
both servers; then the same commands with indexes from both ends and out of range, in pipelines and
in transactions, while members come and go.
"""

import random
import unittest

from beside_redis import BesideRedisTest
from resp import encode

MEMBERS = 20000


class LargeRanksTest(BesideRedisTest):
    def compare(self, pair, commands):
        """Sends the commands as one pipeline to both; all replies must be equal."""
        data = b"".join(encode(*command) for command in commands)
        answers = []
        for connection in pair:
            connection.send(data)
            answers.append([connection.read_reply()[1] for _ in commands])
        for command, theirs, ours in zip(commands, *answers):
            self.assertEqual(ours, theirs, command)

    def setUp(self):
        self.rng = random.Random(7)
        self.pair = self.connect_both()

    def member(self):
        head = bytes([self.rng.randrange(256)])
        return head + str(self.rng.randrange(MEMBERS)).encode()

    def index(self):
        edges = (0, 1, -1, -2, MEMBERS - 1, MEMBERS, -MEMBERS, -MEMBERS - 1, 1 << 40, -(1 << 40))
        if self.rng.randrange(5) == 0:
            return self.rng.choice(edges)
        return self.rng.randrange(-MEMBERS, MEMBERS)

    def fill(self, key, score):
        for _ in range(MEMBERS // 500):
            words = []
            for _ in range(500):
                words += [score(), self.member()]
            self.compare(self.pair, [("ZADD", key, *words)])

    def range_of(self, key):
        first = self.index()
        last = first + self.rng.randrange(-2, 20)
        score = self.rng.randrange(-1, 101)
        bound = self.rng.choice(("%d", "(%d")) % score
        kind = self.rng.randrange(9)
        return (("ZRANGE", key, first, last, "WITHSCORES"), ("ZREVRANGE", key, first, last),
                ("ZRANGE", key, first, last, "REV"), ("ZCOUNT", key, bound, score + 3),
                ("ZCOUNT", key, "-inf", bound), ("ZRANK", key, self.member()),
                ("ZREVRANK", key, self.member()),
                ("ZRANGE", key, bound, score + 1, "BYSCORE", "LIMIT", first, 5),
                ("ZREVRANGEBYSCORE", key, score + 1, bound, "LIMIT", 30, 5))[kind]

    def cut_of(self, key):
        first = self.index()
        score = self.rng.randrange(100)
        return self.rng.choice((("ZREMRANGEBYRANK", key, first, first + self.rng.randrange(-1, 9)),
                                ("ZREMRANGEBYSCORE", key, score, "(%d" % (score + 1)),
                                ("ZADD", key, score, self.member(), score + 1, self.member()),
                                ("ZREM", key, self.member()), ("ZPOPMIN", key, 3),
                                ("ZPOPMAX", key), ("ZCARD", key)))

    def test_sorted_sets(self):
        self.fill("z", lambda: self.rng.randrange(100))
        for _ in range(60):
            self.compare(self.pair, [self.range_of("z") for _ in range(16)])
            self.compare(self.pair, [self.cut_of("z") for _ in range(3)])
            queued = [self.cut_of("z") for _ in range(self.rng.randrange(1, 4))]
            self.compare(self.pair, [("MULTI",), *queued, ("EXEC",)])
        self.compare(self.pair, [("ZRANGE", "z", 0, -1, "WITHSCORES")])

    def test_sorted_sets_of_one_score(self):
        self.fill("z", lambda: 1)

        def bound():
            return self.rng.choice((b"-", b"+", b"[" + self.member(), b"(" + self.member(), b"[",
                                    b"[\xff\xff", b"(\x00"))
        for _ in range(40):
            self.compare(self.pair, [self.rng.choice(
                (("ZLEXCOUNT", "z", bound(), bound()),
                 ("ZRANGEBYLEX", "z", bound(), bound(), "LIMIT", self.rng.randrange(50), 9),
                 ("ZREVRANGEBYLEX", "z", bound(), bound(), "LIMIT", 3, 9)))
                for _ in range(16)])
            low = self.member()
            self.compare(self.pair, [("MULTI",),
                                     ("ZREMRANGEBYLEX", "z", b"[" + low, b"(" + low + b"2"),
                                     ("ZADD", "z", 1, self.member()), ("EXEC",),
                                     ("ZCARD", "z")])
        self.compare(self.pair, [("ZRANGE", "z", 0, -1)])

    def test_lists(self):
        for _ in range(MEMBERS // 500):
            words = [self.member() for _ in range(500)]
            self.compare(self.pair, [("RPUSH", "l", *words)])
        for _ in range(80):
            commands = []
            for _ in range(16):
                first = self.index()
                commands.append(self.rng.choice(
                    (("LINDEX", "l", first), ("LSET", "l", first, self.member()),
                     ("LRANGE", "l", first, first + self.rng.randrange(-2, 30)))))
            commands += [("LPOP", "l", 300), ("RPOP", "l"), ("LPUSH", "l", self.member()),
                         ("RPUSH", "l", *[self.member() for _ in range(250)]),
                         ("LINSERT", "l", "BEFORE", self.member(), "inserted"),
                         ("LREM", "l", 1, self.member())]
            self.compare(self.pair, commands)
        self.compare(self.pair, [("LRANGE", "l", 0, -1)])

    # Goal: draws give members, pops take them out, each once, and counts beyond the collection
    # give all of it.
    def test_draws(self):
        skep = self.pair[1]
        members = {b"m-%d" % i for i in range(MEMBERS)}
        listed = sorted(members)
        for begin in range(0, MEMBERS, 500):
            some = listed[begin:begin + 500]
            skep.call("SADD", "s", *some)
            skep.call("HSET", "h", *[word for member in some for word in (member, b"v" + member)])
            skep.call("ZADD", "z", *[word for member in some for word in (len(member), member)])
        for verb, key in (("SRANDMEMBER", "s"), ("HRANDFIELD", "h"), ("ZRANDMEMBER", "z")):
            self.assertIn(skep.call(verb, key), members)
            for count in (1, 5, 300, MEMBERS // 8, MEMBERS // 8 + 1, MEMBERS, MEMBERS + 1):
                drawn = skep.call(verb, key, count)
                self.assertEqual(len(drawn), min(count, MEMBERS), verb)
                self.assertEqual(len(set(drawn)), len(drawn), verb)
                self.assertLessEqual(set(drawn), members)
            for count in (1, 5, 300, MEMBERS // 8 + 1, 2 * MEMBERS):
                drawn = skep.call(verb, key, -count)
                self.assertEqual(len(drawn), count)
                self.assertLessEqual(set(drawn), members)
        drawn = skep.call("HRANDFIELD", "h", -50, "WITHVALUES")
        self.assertEqual([b"v" + field for field in drawn[::2]], drawn[1::2])
        for count in (1, 7, 300, MEMBERS // 8 + 1):
            taken = skep.call("SPOP", "s", count)
            self.assertEqual(len(taken), count)
            self.assertLessEqual(set(taken), members)
            members -= set(taken)
        skep.call("MULTI")
        for count in (1, 40, 2000):
            skep.call("SPOP", "s", count)
        for taken in skep.call("EXEC"):
            self.assertLessEqual(set(taken), members)
            members -= set(taken)
        self.assertEqual(set(skep.call("SMEMBERS", "s")), members)
        self.assertEqual(set(skep.call("SPOP", "s", MEMBERS)), members)
        self.assertEqual(skep.call("EXISTS", "s"), 0)

    def test_ranks_of_a_few_members_in_a_long_pipeline(self):
        self.fill("z", lambda: self.rng.randrange(100))
        members = [self.member() for _ in range(8)]
        commands = []
        for _ in range(40):
            near = self.rng.sample(members, 4)
            commands += [(self.rng.choice(("ZRANK", "ZREVRANK")), "z", member) for member in near]
        self.compare(self.pair, commands)

    def test_cuts_of_long_ranges(self):
        for cut in (("ZREMRANGEBYSCORE", "z", 0, 60), ("ZREMRANGEBYRANK", "z", 5, -6),
                    ("ZREMRANGEBYSCORE", "z", "(1", "+inf")):
            self.fill("z", lambda: self.rng.randrange(100))
            self.compare(self.pair, [cut, ("ZCARD", "z"), ("ZRANGE", "z", 0, 20, "WITHSCORES")])
        self.fill("l", lambda: 0)
        self.compare(self.pair, [("ZREMRANGEBYLEX", "l", "[\x10", "(\xe0"), ("ZCARD", "l"),
                                 ("ZRANGE", "l", 0, -1)])


if __name__ == "__main__":
    unittest.main()
