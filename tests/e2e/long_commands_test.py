#!/usr/bin/env python3
"""Goal: a command or transaction that changes many members of a large collection, looks at the whole of large
values and collections, or stores large values, takes effect at one instant, and no turn of the worker has its work.
Method: such commands beside a plain model, alone, in pipelines, beside writers of the same keys and with
connections that break; the work of turns as INFO counts it. What is small goes the same way as before.
"""

import random
import select
import threading
import time
import unittest

import packed
from one_server import OneServerTest
from resp import encode
from skep_process import PATIENCE_S, SkepServer

MEMBERS = 60_000
# INFO tells the class of the turn with the most work: next to nothing of a command that goes aside, or a
# portion of its reply.
TURN_BYTES_MAX = 2 << 20
VALUE = 24 << 20


def member(i):
    return b"member:%06d" % (i * 7919 % MEMBERS)


class LongCommandsTest(OneServerTest):
    def load(self, command, key, words_of, members=MEMBERS):
        for begin in range(0, members, 1000):
            words = [word for i in range(begin, begin + 1000) for word in words_of(i)]
            self.client.call(command, key, *words)

    def load_zset(self, key="z"):
        self.load("ZADD", key, lambda i: (b"%d" % i, member(i)))
        return [member(i) for i in range(MEMBERS)]

    def load_set(self, key="s", begin=0):
        self.load("SADD", key, lambda i: (b"%d" % (begin + i),))
        return {b"%d" % (begin + i) for i in range(MEMBERS)}

    def load_list(self, key="l"):
        self.load("RPUSH", key, lambda i: (member(i),))
        return [member(i) for i in range(MEMBERS)]

    def bounded(self, *words):
        """The reply; no turn on the way to it had much work."""
        self.client.call("CONFIG", "RESETSTAT")
        reply = self.client.call(*words)
        self.assertLessEqual(self.info("turn_bytes_max"), TURN_BYTES_MAX, words[0])
        return reply

    def test_cuts_and_pops_of_sorted_sets(self):
        model = self.load_zset()
        self.assertEqual(self.bounded("ZREMRANGEBYRANK", "z", 1000, 20_999), 20_000)
        del model[1000:21_000]
        self.assertEqual(self.bounded("ZREMRANGEBYSCORE", "z", "(21999", 31_999), 10_000)
        del model[2000:12_000]
        popped = self.bounded("ZPOPMIN", "z", 3000)
        self.assertEqual(popped[::2], model[:3000])
        del model[:3000]
        popped = self.bounded("ZPOPMAX", "z", 3000)
        self.assertEqual(popped[::2], model[:-3001:-1])
        del model[-3000:]
        self.assertEqual(self.client.call("ZCARD", "z"), len(model))
        self.assertEqual(self.client.call("ZRANGE", "z", 0, -1), model)
        self.assertEqual(self.client.call("ZSCORE", "z", member(1500)), None)
        self.assertEqual(self.bounded("ZREMRANGEBYSCORE", "z", "-inf", "+inf"), len(model))
        self.assertEqual(self.client.call("EXISTS", "z"), 0)
        self.client.call("ZADD", "z", *[word for i in range(MEMBERS // 10) for word in (0, b"%05d" % i)])
        self.assertEqual(self.bounded("ZREMRANGEBYLEX", "z", "[01000", "(05000"), 4000)
        self.assertEqual(self.client.call("ZCARD", "z"), MEMBERS // 10 - 4000)

    def test_cuts_in_a_pipeline(self):
        model = self.load_zset()
        commands = []
        replies = []
        random.seed(351)
        for _ in range(30):
            begin = random.randrange(len(model) - 3000)
            count = random.choice((1, 200, 257, 1000, 2000))
            commands.append(("ZREMRANGEBYRANK", "z", begin, begin + count - 1))
            replies.append(count)
            del model[begin:begin + count]
            commands.append(("ZRANGE", "z", begin - 1, begin))
            replies.append(model[begin - 1:begin + 1] if begin else [])
        self.client.call("CONFIG", "RESETSTAT")
        self.assertEqual(self.client.pipeline(*commands), replies)
        # A group of short ones is one write, of some times the portion.
        self.assertLessEqual(self.info("turn_bytes_max"), 4 * TURN_BYTES_MAX)
        self.assertEqual(self.client.call("ZRANGE", "z", 0, -1), model)

    def test_sets_and_lists(self):
        model = self.load_set()
        popped = self.bounded("SPOP", "s", 5000)
        self.assertEqual(len(set(popped)), 5000)
        popped += self.bounded("SPOP", "s", 40_000)
        self.assertEqual(self.bounded("SREM", "s", *popped), 0)
        self.assertEqual(sorted(popped + self.client.call("SMEMBERS", "s")), sorted(model))
        model = self.load_list()
        self.assertEqual(self.bounded("LTRIM", "l", 20_000, -10_001), "OK")
        del model[:20_000], model[-10_000:]
        self.assertEqual(self.bounded("LPOP", "l", 15_000), model[:15_000])
        del model[:15_000]
        self.assertEqual(self.client.call("LRANGE", "l", 0, -1), model)

    def test_a_cut_beside_writers_of_its_key(self):
        """It takes effect at one instant, though others write the members that it looks at."""
        self.load_zset()
        ends = threading.Event()
        written = [0]

        def write():
            with self.server.connect() as writer:
                while not ends.is_set():
                    # No cut has it: its score is above theirs.
                    writer.call("ZADD", "z", MEMBERS + written[0], b"other:%d" % written[0])
                    written[0] += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                self.assertEqual(self.client.call("ZREMRANGEBYRANK", "z", 0, 4999), 5000)
        finally:
            ends.set()
            writer.join()
        self.assertEqual(self.client.call("ZCARD", "z"), MEMBERS - 25_000 + written[0])
        self.assertEqual(self.client.call("ZCOUNT", "z", "-inf", MEMBERS - 1), MEMBERS - 25_000)
        self.assertEqual(self.client.call("ZRANGE", "z", 0, 0), [member(25_000)])

    def test_bits(self):
        data = random.randbytes(VALUE // 16) * 16
        self.client.call("SET", "v", data)
        self.client.call("SET", "ones", b"\xff" * VALUE + b"\xfe")
        number = int.from_bytes(data, "little")
        self.assertEqual(self.bounded("BITCOUNT", "v"), number.bit_count())
        self.assertEqual(self.bounded("BITCOUNT", "v", 1, -2), (number >> 8 & (1 << 8 * (VALUE - 2)) - 1).bit_count())
        self.assertEqual(self.bounded("BITPOS", "ones", 0), 8 * VALUE + 7)
        self.assertEqual(self.bounded("BITOP", "NOT", "d", "v"), VALUE)
        self.assertEqual(self.bounded("BITOP", "XOR", "d", "d", "v", "ones"), VALUE + 1)
        self.assertEqual(self.client.call("GETRANGE", "d", 0, 99), bytes(100))
        self.assertEqual(self.client.call("GETRANGE", "d", -1, -1), b"\xfe")
        self.assertEqual(self.bounded("DIGEST", "v"), self.client.call("DIGEST", "v"))
        self.assertIn("ERR", str(self.bounded("BITCOUNT", "v", "x", 1)))
        self.assertEqual(self.bounded("COPY", "v", "w"), 1)
        self.assertEqual(self.client.call("STRLEN", "w"), VALUE)

    def test_dumps_and_copies(self):
        model = self.load_zset()
        payload = self.bounded("DUMP", "z")
        self.assertEqual(self.bounded("RESTORE", "r", 0, payload), "OK")
        self.assertEqual(self.client.call("ZRANGE", "r", 0, -1), model)
        self.assertIn("BUSYKEY", str(self.bounded("RESTORE", "r", 0, payload)))
        self.assertIn("ERR", str(self.bounded("RESTORE", "q", 0, payload[:-1] + b"x")))
        self.assertEqual(self.bounded("COPY", "z", "c"), 1)
        self.assertEqual(self.client.call("ZRANGE", "c", 0, -1), model)
        self.client.call("SET", "v", b"x" * VALUE)
        payload = self.bounded("DUMP", "v")
        self.assertEqual(self.bounded("RESTORE", "w", 0, payload), "OK")
        self.assertEqual(self.client.call("STRLEN", "w"), VALUE)

    def test_joins_and_sorts(self):
        first, second = self.load_set("s1"), self.load_set("s2", MEMBERS // 2)
        self.assertEqual(self.bounded("SINTER", "s1", "s2"), sorted(first & second))
        self.assertEqual(self.bounded("SUNIONSTORE", "u", "s1", "s2"), len(first | second))
        self.assertEqual(self.bounded("SDIFFSTORE", "d", "s1", "s2"), len(first - second))
        self.assertEqual(self.bounded("SINTERCARD", 2, "s1", "s2"), len(first & second))
        self.assertEqual(self.bounded("SORT", "s1"), sorted(first, key=int))
        self.assertEqual(self.bounded("SORT", "s1", "DESC", "STORE", "sorted"), MEMBERS)
        self.assertEqual(self.client.call("LRANGE", "sorted", 0, 0), [b"%d" % (MEMBERS - 1)])
        self.load_zset("z1")
        self.assertEqual(self.bounded("ZUNIONSTORE", "z2", 2, "z1", "s1"), 2 * MEMBERS)
        self.assertEqual(self.bounded("ZINTERCARD", 2, "z1", "z2"), MEMBERS)

    def test_a_pipeline_is_answered_in_order(self):
        data = random.randbytes(VALUE)
        ones = int.from_bytes(data, "little").bit_count()
        self.client.call("SET", "v", data)
        replies = self.client.pipeline(
            ("SET", "a", "1"), ("BITCOUNT", "v"), ("SETBIT", "v", 0, 0), ("SETBIT", "v", 0, 1), ("BITCOUNT", "v"),
            ("BITOP", "AND", "d", "v", "v"), ("STRLEN", "d"), ("DEL", "v"), ("BITCOUNT", "v"), ("INCR", "a"))
        first = data[0] >> 7
        self.assertEqual(replies, ["OK", ones, first, 0, ones + 1 - first, VALUE, VALUE, 1, 0, 2])
        self.client.call("SET", "v", data)
        asking = self.server.connect()
        self.addCleanup(asking.close)
        asking.send(b"".join(encode(*words) for words in (
            ("CLIENT", "REPLY", "SKIP"), ("BITCOUNT", "v"), ("BITCOUNT", "v"), ("CLIENT", "REPLY", "OFF"),
            ("BITCOUNT", "v"), ("CLIENT", "REPLY", "ON"))))
        self.assertEqual(asking.read(), ones)
        self.assertEqual(asking.read(), "OK")
        self.client.call("CONFIG", "RESETSTAT")
        self.client.call("BITCOUNT", "v", "x", "y")
        self.client.call("BITCOUNT", "v")
        stats = self.client.call("INFO", "everything").decode()
        self.assertIn("cmdstat_bitcount:calls=2,", stats)
        self.assertIn("failed_calls=1", stats.split("cmdstat_bitcount:")[1].splitlines()[0])
        self.assertIn("errorstat_ERR:count=1", stats)
        self.assertEqual(self.info("keyspace_hits"), 2)

    def test_a_write_has_the_time_of_its_execution(self):
        """What expires while a write waits for the thread beside the worker is gone for it."""
        self.load_set("s")
        sorting = [self.server.connect() for _ in range(8)]
        adding = self.server.connect()
        for one in (*sorting, adding):
            self.addCleanup(one.close)
        added = encode("ZADD", "z", *[word for i in range(6000) for word in (i, f"new{i}")])
        was_late = False
        lifetime_ms = 25
        deadline = time.monotonic() + PATIENCE_S
        # An attempt shows it if the key was there when the write was read, and gone before the last
        # sorting in front of it was done.
        while not was_late:
            self.assertLess(time.monotonic(), deadline)
            self.load_zset()
            self.client.call("PEXPIRE", "z", lifetime_ms)
            for one in sorting:
                one.send(encode("SORT", "s", "STORE", "sorted"))
            self.client.call("PING")
            adding.send(added)
            self.client.call("PING")
            was_there = self.client.call("EXISTS", "z") == 1
            lifetime_ms *= 1 if was_there else 2
            self.until(lambda: self.client.call("EXISTS", "z") == 0)
            was_late = was_there and not select.select([sorting[-1].socket], [], [], 0)[0]
            for one in sorting:
                self.assertEqual(one.read(), MEMBERS)
            self.assertEqual(adding.read(), 6000)
            if was_late:
                self.assertEqual(self.client.call("ZCARD", "z"), 6000)
            self.client.call("DEL", "z")

    def test_a_client_that_waits_is_served(self):
        """Whoever waits for what a write beside the worker stores gets it, also if the connection of
        the write breaks."""
        self.load_set("s")
        for i in range(6):
            waiting, adding, sorting = (self.server.connect() for _ in range(3))
            for one in (waiting, adding, sorting):
                self.addCleanup(one.close)
            self.load_zset()
            sorting.send(encode("SORT", "s", "STORE", "sorted"))
            adding.send(encode("ZADD", "z", *[word for k in range(6000) for word in (k, f"new{k}")]))
            self.client.call("DEL", "z")
            waiting.send(encode("BZPOPMIN", "z", 0))
            self.client.call("PING")
            if i % 2:
                adding.close()
            self.assertEqual(sorting.read(), MEMBERS)
            if i % 2 == 0:
                self.assertIn(adding.read(), (0, 6000))
            if self.client.call("ZCARD", "z") == 0:
                self.client.call("ZADD", "z", 1, "late")
            self.assertEqual(waiting.read()[0], b"z")
            self.client.call("DEL", "z")

    def bounded_exec(self, *commands):
        """The replies of a transaction; no turn on the way to them had much work."""
        self.client.call("CONFIG", "RESETSTAT")
        replies = self.client.pipeline(("MULTI",), *commands, ("EXEC",))
        self.assertEqual(replies[:-1], ["OK"] + ["QUEUED"] * len(commands))
        self.assertLessEqual(self.info("turn_bytes_max"), TURN_BYTES_MAX, commands[0][0])
        return replies[-1]

    def test_transactions(self):
        model = self.load_zset()
        members = self.load_set()
        data = random.randbytes(VALUE)
        self.client.call("SET", "v", data)
        ones = int.from_bytes(data, "little").bit_count()
        replies = self.bounded_exec(
            ("SET", "a", "1"), ("ZREMRANGEBYRANK", "z", 1000, 20_999), ("ZCARD", "z"), ("INCR", "a"), ("LPUSH", "a", "x"),
            ("ECHO", "e"))
        del model[1000:21_000]
        self.assertEqual(replies[:4] + replies[5:], ["OK", 20_000, len(model), 2, b"e"])
        self.assertIn("WRONGTYPE", str(replies[4]))
        stats = self.client.call("INFO", "everything").decode()
        for counted in ("cmdstat_zremrangebyrank:calls=1,", "cmdstat_incr:calls=1,", "cmdstat_exec:calls=1,",
                        "errorstat_WRONGTYPE:count=1"):
            self.assertIn(counted, stats)
        self.assertEqual(self.bounded_exec(("ZRANGE", "z", 0, -1), ("SET", "a", "2")), [model, "OK"])
        self.assertEqual(self.bounded_exec(("SET", "a", "3"), ("ZRANGE", "z", 0, -1), ("ZRANGE", "z", 0, 1)),
                         ["OK", model, model[:2]])
        self.assertEqual(self.bounded_exec(("BITCOUNT", "v"), ("SETBIT", "v", 0, 0), ("BITOP", "NOT", "d", "v"), ("STRLEN", "d")),
                         [ones, data[0] >> 7, VALUE, VALUE])
        popped = self.bounded_exec(("SPOP", "s", 20_000), ("SCARD", "s"), ("SMEMBERS", "s"))
        self.assertEqual(popped[1], MEMBERS - 20_000)
        self.assertEqual(sorted(popped[0] + popped[2]), sorted(members))
        added = [b"new%d" % i for i in range(50_000)]
        self.assertEqual(self.bounded_exec(("SADD", "t", *added[:30_000]), ("SADD", "t", *added), ("SCARD", "t")),
                         [30_000, 20_000, 50_000])
        self.assertEqual(self.bounded_exec(("ZUNIONSTORE", "u", 2, "z", "t"), ("ZCARD", "u")), [90_000, 90_000])

    def test_watches_of_transactions(self):
        """A transaction that runs beside the worker is not done if a watched key has changed."""
        self.load_zset()
        other = self.server.connect()
        self.addCleanup(other.close)
        for changes in (False, True):
            self.client.call("WATCH", "w", "z")
            if changes:
                other.call("SET", "w", "x")
            reply = self.bounded_exec(("ZREMRANGEBYRANK", "z", 0, 9_999), ("SET", "a", "1"))
            self.assertEqual(reply, None if changes else [10_000, "OK"])
            self.assertEqual(self.client.call("ZCARD", "z"), MEMBERS - 10_000)
            # The watch has ended with it.
            other.call("SET", "w", "y")
            self.assertEqual(self.bounded_exec(("SET", "a", "2")), ["OK"])

    def test_transactions_beside_cuts_of_their_key(self):
        """Each happens at one instant, and replies come in the order of the commands."""
        self.load_zset()
        ends = threading.Event()
        failures = []

        def move(number):
            with self.server.connect() as mover:
                done = 0
                while not ends.is_set():
                    name = b"other:%d" % number
                    replies = mover.pipeline(
                        ("MULTI",), ("ZADD", "z", MEMBERS + number, name), ("ZCARD", "z"), ("ZREM", "z", name),
                        ("ZCARD", "z"), ("INCR", "moves:%d" % number), ("EXEC",), ("GET", "moves:%d" % number))
                    done += 1
                    inner = replies[6]
                    wanted = [1, inner[1], 1, inner[1] - 1, done]
                    if inner != wanted or replies[7] != b"%d" % done:
                        failures.append((replies, done))
                        return

        movers = [threading.Thread(target=move, args=(i,)) for i in range(3)]
        for mover in movers:
            mover.start()
        try:
            for _ in range(6):
                self.assertEqual(self.client.call("ZREMRANGEBYRANK", "z", 0, 7_999), 8_000)
        finally:
            ends.set()
            for mover in movers:
                mover.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.client.call("ZCARD", "z"), MEMBERS - 48_000)

    def test_large_values_are_stored(self):
        data = random.randbytes(VALUE)
        self.assertEqual(self.bounded("SET", "v", data), "OK")
        self.assertEqual(self.bounded("APPEND", "v", data), 2 * VALUE)
        self.assertEqual(self.bounded("SETRANGE", "v", VALUE - 5, data[:VALUE // 2]), 2 * VALUE)
        self.assertEqual(self.client.call("GET", "v"), data[:-5] + data[:VALUE // 2] + data[VALUE // 2 - 5:])
        self.assertEqual(self.bounded("MSET", "m1", data, "m2", data[:-1]), "OK")
        self.assertEqual(self.bounded("KBATCH", "DO", "PUT", "k1", data, "APPEND", "m2", "x", "GET", "none"),
                         [1, ["OK", VALUE, None]])
        self.assertEqual(self.bounded_exec(("SET", "e", data), ("APPEND", "e", "x"), ("GETRANGE", "e", -2, -1)),
                         ["OK", VALUE + 1, data[-1:] + b"x"])
        self.assertEqual([self.client.call("STRLEN", key) for key in ("m1", "m2", "k1", "e")],
                         [VALUE, VALUE, VALUE, VALUE + 1])
        self.assertEqual(self.bounded("SET", "v", data, "NX"), None)
        self.assertIn("ERR", str(self.bounded("SET", "v", data, "XY")))
        self.assertIn("ERR", str(self.bounded("SET", "v", data * 3)))

    def test_large_values_in_a_pipeline(self):
        """What comes behind a large value in the same bytes is done after it."""
        random.seed(352)
        model = {}
        commands, replies = [], []
        for i in range(60):
            key = b"key%d" % random.randrange(3)
            size = random.choice((1, 1000, 70_000, (1 << 20) - 1, 1 << 20, 3 << 20))
            value = bytes([65 + i % 26]) * size
            if random.random() < 0.5:
                commands.append(("SET", key, value))
                replies.append("OK")
                model[key] = value
            else:
                commands.append(("APPEND", key, value))
                model[key] = model.get(key, b"") + value
                replies.append(len(model[key]))
            commands.append(("STRLEN", key))
            replies.append(len(model[key]))
        self.assertEqual(self.client.pipeline(*commands), replies)
        for key, value in model.items():
            self.assertEqual(self.client.call("GET", key), value)

    def test_messages(self):
        """Of the packed protocol: large ones, and those that are atomic."""
        client = packed.Client(self.server.port, client_id=77)
        self.addCleanup(client.close)
        value = random.randbytes(VALUE // 8)

        def bounded(*requests, **options):
            self.client.call("CONFIG", "RESETSTAT")
            found = client.batch(*requests, **options)
            self.assertLessEqual(self.info("turn_bytes_max"), TURN_BYTES_MAX)
            return [outcome["verdict"] for outcome in found]

        puts = [packed.request(packed.PUT, b"p%d" % i, value) for i in range(8)]
        self.assertEqual(bounded(*puts), [packed.DONE] * 8)
        self.assertEqual(bounded(*puts, kind=packed.ATOMIC), [packed.DONE] * 8)
        self.assertEqual(bounded(packed.request(packed.REQUIRE_ABSENT, b"p1"), *puts, kind=packed.ATOMIC),
                         [packed.EXISTS] + [packed.ABORTED] * 8)
        marked = {"flags": packed.REMEMBER, "message": 1000}
        inserts = [packed.request(packed.INSERT, b"q%d" % i, value) for i in range(8)]
        self.assertEqual(bounded(*inserts, **marked), [packed.DONE] * 8)
        again = packed.Client(self.server.port, client_id=77)
        self.addCleanup(again.close)
        found = again.batch(*inserts, **marked)
        self.assertEqual([outcome["verdict"] for outcome in found], [packed.DONE] * 8)
        # A message behind a large one, in the same bytes.
        for kind in (packed.BATCH, packed.ATOMIC):
            first = client.send(kind, b"".join(puts), count=8)
            second = client.send(packed.BATCH, packed.request(packed.GET, b"p7"), count=1)
            answers = [client.take(), client.take()]
            self.assertEqual([answer[0] for answer in answers], [first, second])
            self.assertEqual(packed.outcomes(answers[1][4], 1)[0]["value"], value)
        with self.assertRaises(ConnectionError):
            client.send(packed.BATCH, b"\x1f" * VALUE, count=100)
            client.take()
            client.take()
        self.assertEqual(self.client.call("STRLEN", "p1"), len(value))

    def test_a_message_that_does_much_ends_with_its_connection(self):
        """It is divided by the turns, though it is large: so the last of its operations is never come to."""
        self.client.call("SET", "v", bytes(VALUE))
        first = packed.request(packed.APPLY, b"v", b"", operand=packed.function(2, 3, b"sum"))
        again = packed.request(packed.APPLY, b"v", b"", operand=packed.varint(0))
        payload = first + again * 19_998 + packed.request(packed.PUT, b"last", bytes(1 << 20))
        asking = packed.Client(self.server.port)
        asking.send(packed.BATCH, payload, count=20_000)
        self.client.call("PING")
        asking.close()
        self.assertEqual(self.client.call("SET", "large", bytes(1 << 20)), "OK")
        self.assertEqual(self.client.call("EXISTS", "last"), 0)

    def test_a_pause_holds_what_has_not_begun(self):
        """Method: SORTs run beside the worker, and a SET waits behind them; were they too fast, once more."""
        self.load_set("s")
        sorting = [self.server.connect() for _ in range(5)]
        storing, reading = self.server.connect(), self.server.connect()
        for connection in (*sorting, storing, reading):
            self.addCleanup(connection.close)
        value = bytes(2 << 20)

        def are_running(name, count):
            return self.client.call("CLIENT", "LIST").count(b"cmd=" + name) == count

        for _ in range(20):
            for i, connection in enumerate(sorting):
                connection.send(encode("SORT", "s", "STORE", "sorted:%d" % i))
            self.until(lambda: are_running(b"sort", len(sorting)))
            storing.send(encode("SET", "k", value))
            self.until(lambda: are_running(b"set", 1))
            self.client.call("CLIENT", "PAUSE", 1_000_000, "WRITE")
            held = self.client.call("EXISTS", *["sorted:%d" % i for i in range(len(sorting))]) < len(sorting)
            if held:
                # The thread has come to the SET before it answers this.
                self.assertGreater(len(reading.call("DUMP", "s")), MEMBERS)
                self.assertEqual(self.client.call("EXISTS", "k"), 0)
            self.client.call("CLIENT", "UNPAUSE")
            self.assertEqual([connection.read() for connection in sorting], [MEMBERS] * len(sorting))
            self.assertEqual(storing.read(), "OK")
            self.assertEqual(self.client.call("GET", "k"), value)
            if held:
                return
            self.client.call("DEL", "k", *["sorted:%d" % i for i in range(len(sorting))])
        self.fail("the SORTs were over each time")

    def test_monitors_see_transactions_in_order(self):
        with self.server.connect() as monitor:
            monitor.call("MONITOR")
            for size in (10, 2 << 20):
                self.client.pipeline(("MULTI",), ("SET", "a", bytes(size)), ("GET", "b"), ("EXEC",))
                names = [str(monitor.read()).split('"')[1] for _ in range(4)]
                self.assertEqual(names, ["MULTI", "SET", "GET", "EXEC"])

    def test_marked_messages_of_connections_that_break(self):
        """A marked message is done once, or not at all, whether its connection still is or not."""
        value = random.randbytes(VALUE // 8)
        self.load_set("s")
        for i in range(12):
            first = packed.Client(self.server.port, client_id=78)
            one = packed.request(packed.APPLY, b"n", b"x", operand=packed.function(0, 0, b"append"))
            payload = one + b"".join(packed.request(packed.PUT, b"p%d" % k, value) for k in range(8))
            marked = {"count": 9, "flags": packed.REMEMBER, "message": 2000 + i}
            sorting = self.server.connect()
            sorting.send(encode("SORT", "s", "STORE", "sorted"))
            first.send(packed.BATCH, payload, **marked)
            first.close()
            again = packed.Client(self.server.port, client_id=78)
            answered = False
            while not answered:
                try:
                    _, reply = again.call(packed.BATCH, payload, **marked)
                    answered = True
                except packed.Refused as why:
                    self.assertIn("ask again", str(why))
            self.assertEqual(packed.outcomes(reply, 9)[1]["verdict"], packed.DONE)
            self.assertEqual(again.batch(packed.request(packed.GET, b"n"))[0]["value"], b"x" * (i + 1))
            self.assertEqual(sorting.read(), MEMBERS)
            again.close()
            sorting.close()

    def test_places(self):
        places = [word for i in range(MEMBERS) for word in (i % 100 / 10, i // 100 / 100, f"p{i}")]
        for at in range(0, len(places), 3000):
            self.client.call("GEOADD", "g", *places[at:at + 3000])
        found = self.bounded("GEOSEARCH", "g", "FROMLONLAT", 0, 0, "BYRADIUS", 20000, "km")
        self.assertEqual(len(found), MEMBERS)
        self.assertEqual(len(self.bounded("GEORADIUS_RO", "g", 0, 0, 20000, "km")), MEMBERS)

    def test_connections_that_break(self):
        """What of theirs has not begun is not done, and nobody else is hurt."""
        for i in range(20):
            self.load_zset()
            broken = self.server.connect()
            broken.send(encode("ZREMRANGEBYRANK", "z", 0, 29_999) + encode("ZUNIONSTORE", "t", "1", "z"))
            if i % 2:
                broken.send(encode("ZUNIONSTORE", "u", "1", "z"))
            broken.close()
            self.assertEqual(self.client.call("PING"), "PONG")
            self.until(lambda: self.info("connected_clients") == 1)
            self.assertIn(self.client.call("ZCARD", "z"), (MEMBERS, MEMBERS - 30_000))
            self.client.call("DEL", "z", "u", "t")

    def test_the_server_ends_while_it_is_busy(self):
        server = SkepServer("--workers", "1")
        with server.connect() as client:
            client.call("SET", "v", random.randbytes(VALUE))
            asking = [server.connect() for _ in range(4)]
            for one in asking:
                one.send(encode("BITOP", "NOT", "d", "v") * 20)
            client.call("PING")
        server.stop()
        for one in asking:
            one.close()


if __name__ == "__main__":
    unittest.main()
