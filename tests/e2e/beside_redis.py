"""beside_redis.py: tests that send the same to skep-server and to the packaged redis-server.

Conversations are written as one types them in redis-cli; a line that begins with ~ has an answer
whose order is Redis's own, so its lines are compared sorted.
"""

import re
import unittest

from resp import encode
from skep_process import REDIS_BINARY, RedisServer, SkepServer, needs


def words(line):
    """The words of a line; in quotes, escapes are those of redis-cli."""
    return [word[1:-1].encode().decode("unicode_escape").encode("latin-1")
            if word.startswith('"') else word.encode()
            for word in re.findall(r'"(?:\\.|[^"\\])*"|\S+', line)]


def lines(conversation):
    """Pairs: whether the order counts, and the command's words."""
    for line in conversation.strip().splitlines():
        line = line.strip()
        yield not line.startswith("~"), words(line.removeprefix("~"))


def in_any_order(raw):
    return sorted(raw.split(b"\r\n"))


@needs(REDIS_BINARY, "redis-tools")
class BesideRedisTest(unittest.TestCase):
    """One server of each kind for all tests of the class."""

    maxDiff = None
    SKEP_OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.redis = RedisServer()
        cls.addClassCleanup(cls.redis.stop)
        cls.skep = SkepServer(*cls.SKEP_OPTIONS)
        cls.addClassCleanup(cls.skep.stop)

    def connect_both(self, protocol=2):
        """A connection to each, Redis first; both are empty then."""
        pair = (self.redis.connect(), self.skep.connect())
        for connection in pair:
            self.addCleanup(connection.close)
            connection.call("FLUSHALL")
            if protocol == 3:
                connection.call("HELLO", 3)
        return pair

    def replies(self, pair, data):
        """The next reply of each after `data`, as bytes."""
        for connection in pair:
            connection.send(data)
        return [connection.read_reply()[1] for connection in pair]

    def check_conversations(self, conversations):
        """One command at a time, in RESP2 and RESP3."""
        for protocol in (2, 3):
            for name, conversation in conversations.items():
                pair = self.connect_both(protocol)
                for ordered, command in lines(conversation):
                    with self.subTest(name=name, protocol=protocol, command=command):
                        redis, skep = self.replies(pair, encode(*command))
                        if not ordered:
                            redis, skep = in_any_order(redis), in_any_order(skep)
                        self.assertEqual(skep, redis)
