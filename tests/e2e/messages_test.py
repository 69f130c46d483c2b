#!/usr/bin/env python3
"""Goal: SUBSCRIBE, PUBLISH and their kin do as Redis 7.0 does, on all workers: nothing is lost,
doubled or out of order while the connection lives, and what a publisher has written is seen by
whoever gets its message.
Method: conversations of several clients with skep-server and the packaged redis-server beside each
other; crowds of publishers and subscribers on several workers, whose messages are numbered.
"""

import collections
import shutil
import signal
import tempfile
import threading
import unittest

from beside_redis import BesideRedisTest
from resp import Closed, Error, encode
from skep_process import SANITIZED, SkepServer

WORKERS = ("--workers", "3")
MESSAGES = 300 if SANITIZED else 1500

# Client and command. Redis's order of patterns is its own, so no channel has two for one client.
CONVERSATIONS = {
    "channels": """
        a SUBSCRIBE x y x
        a GET k
        a CLIENT ID
        a nosuch
        a PING
        a PING hi
        b PUBLISH x hello
        b PUBLISH y ""
        b PUBLISH z nobody
        b PUBSUB CHANNELS [x]
        b PUBSUB CHANNELS x*
        b PUBSUB NUMSUB x y z
        b PUBSUB NUMSUB
        c SUBSCRIBE x
        b PUBLISH x both
        a UNSUBSCRIBE x nosuch
        b PUBLISH x one
        a UNSUBSCRIBE
        a UNSUBSCRIBE
        a GET k
        c RESET
        b PUBLISH x none
        b PUBSUB CHANNELS""",
    "patterns": """
        a PSUBSCRIBE n?ws.[ab]*
        a SUBSCRIBE news.a1
        b PUBLISH news.a1 twice
        b PUBLISH nws.a1 no
        b PUBLISH n.ws.b once
        b PUBSUB NUMPAT
        b PUBSUB CHANNELS [x]
        c PSUBSCRIBE n?ws.[ab]*
        b PUBSUB NUMPAT
        b PUBLISH news.a1 thrice
        a PUNSUBSCRIBE nosuch
        a PUNSUBSCRIBE
        b PUBLISH news.a1 twice
        a UNSUBSCRIBE
        a PUNSUBSCRIBE""",
    "shards": """
        a SSUBSCRIBE s1 s2
        a SUBSCRIBE s1
        b SPUBLISH s1 shard
        b PUBLISH s1 channel
        b PUBSUB SHARDCHANNELS *1
        b PUBSUB SHARDNUMSUB s1 s3
        a SUNSUBSCRIBE s1
        a SUNSUBSCRIBE
        a SUNSUBSCRIBE
        a UNSUBSCRIBE""",
    "transactions": """
        a SUBSCRIBE x
        b MULTI
        b PUBLISH x 1
        b SET k v
        b PUBLISH x 2
        b EXEC
        c MULTI
        c SUBSCRIBE x
        c SET k w
        c EXEC
        b PUBLISH x 3
        c UNSUBSCRIBE
        b MULTI
        b PUBLISH x 4
        b DISCARD""",
    "errors": """
        b PUBLISH x
        b SUBSCRIBE
        b PSUBSCRIBE
        b PUBSUB
        b PUBSUB nosuch
        b PUBSUB CHANNELS a b
        b PUBSUB NUMPAT x
        b PUBSUB NUMSUB
        b COMMAND GETKEYS SPUBLISH a b
        b CLIENT LIST TYPE pubsub
        b CLIENT KILL TYPE pubsub""",
}


def words(line):
    return [b"" if word == '""' else word.encode() for word in line.split()]


class ConversationTest(BesideRedisTest):
    SKEP_OPTIONS = WORKERS

    def settle(self, clients, sender, queueing, number):
        """All that the clients got, up to the reply of a PING of their own; the sender's first, so
        that its command was executed. A client in a transaction gets one reply."""
        got = {}
        for name in [sender, *(name for name in sorted(clients) if name != sender)]:
            client = clients[name]
            if name in queueing:
                got[name] = [client.read_reply()[1]] if name == sender else []
                continue
            client.send(encode("PING", number))
            got[name] = []
            while True:
                value, raw = client.read_reply()
                if value in (number, [b"pong", number]):
                    break
                got[name].append(raw)
        return got

    def test_confirmations_are_sent_without_replies(self):
        """CLIENT REPLY OFF and SKIP take back replies, but not what confirms subscriptions."""
        pipelines = (
            ("CLIENT REPLY OFF", "SUBSCRIBE a b", "GET k", "UNSUBSCRIBE a", "CLIENT REPLY ON", "PING"),
            ("CLIENT REPLY SKIP", "PSUBSCRIBE x* y*", "PUNSUBSCRIBE", "CLIENT REPLY SKIP", "GET k", "PING"),
            ("CLIENT REPLY SKIP", "SSUBSCRIBE a", "SUNSUBSCRIBE", "SUNSUBSCRIBE", "PING"),
            ("CLIENT REPLY OFF", "SUBSCRIBE", "PUBLISH a m", "UNSUBSCRIBE nosuch", "CLIENT REPLY ON", "PING"),
        )
        for protocol in (2, 3):
            for lines in pipelines:
                got = []
                for server in (self.redis, self.skep):
                    with server.connect() as client:
                        if protocol == 3:
                            client.call("HELLO", 3)
                        # A client of RESP2 that has subscribed may say few words, so it ends that.
                        end = ("UNSUBSCRIBE b",) if protocol == 2 and "SUBSCRIBE a b" in lines else ()
                        client.send(b"".join(encode(*words(line)) for line in (*lines[:-2], *end, *lines[-2:])))
                        replies = []
                        while not replies or b"PONG" not in replies[-1]:
                            replies.append(client.read_reply()[1])
                        got.append(replies)
                self.assertEqual(*got, (protocol, lines))

    def test_beside_redis(self):
        for protocol in (2, 3):
            for name, conversation in CONVERSATIONS.items():
                self.converse(name, protocol, conversation)

    def converse(self, name, protocol, conversation):
        sides = [{}, {}]
        for server, clients in zip((self.redis, self.skep), sides):
            for client in "abc":
                clients[client] = server.connect()
                self.addCleanup(clients[client].close)
                if protocol == 3:
                    clients[client].call("HELLO", 3)
        queueing = set()
        for step, line in enumerate(conversation.strip().splitlines()):
            client, *command = words(line.strip())
            client = client.decode()
            if command == [b"CLIENT", b"ID"] and protocol == 3:
                continue
            if command == [b"MULTI"]:
                queueing.add(client)
            elif command[0] in (b"EXEC", b"DISCARD"):
                queueing.discard(client)
            got = []
            for clients in sides:
                clients[client].send(encode(*command))
                got.append(self.settle(clients, client, queueing, b"settled-%d" % step))
            with self.subTest(name=name, protocol=protocol, command=command):
                self.assertEqual(got[1], got[0])
        for clients in sides:
            for client in clients.values():
                client.close()


class CrowdTest(unittest.TestCase):
    def setUp(self):
        self.server = SkepServer(*WORKERS)
        self.addCleanup(self.server.stop)

    def connect(self, *protocol):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        if protocol:
            connection.call("HELLO", *protocol)
        return connection

    def subscribed(self, *names, command="SUBSCRIBE", protocol=()):
        connection = self.connect(*protocol)
        connection.send(encode(command, *names))
        for _ in names:
            connection.read()
        return connection

    def test_all_subscribers_get_all_messages_in_one_order(self):
        publishers = 4
        subscribers = [self.subscribed("c", protocol=(3,) if i % 2 else ()) for i in range(6)]
        received = collections.defaultdict(list)

        def publish(connection, name):
            for begin in range(0, MESSAGES, 50):
                counts = connection.pipeline(*(("PUBLISH", "c", f"{name} {i}")
                                               for i in range(begin, begin + 50)))
                self.assertEqual(counts, [len(subscribers)] * 50)

        def receive(connection, number):
            for _ in range(publishers * MESSAGES):
                received[number].append(connection.read()[2])

        threads = [threading.Thread(target=publish, args=(self.connect(), i))
                   for i in range(publishers)]
        threads += [threading.Thread(target=receive, args=(connection, i))
                    for i, connection in enumerate(subscribers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(publishers):
            mine = [m for m in received[0] if m.startswith(b"%d " % i)]
            self.assertEqual(mine, [b"%d %d" % (i, j) for j in range(MESSAGES)])
        for number in range(1, len(subscribers)):
            self.assertEqual(received[number], received[0])

    def test_what_was_written_before_is_seen(self):
        subscriber = self.subscribed("c")
        reader = self.connect()
        publisher = self.connect()

        def publish():
            for i in range(MESSAGES):
                publisher.pipeline(("SET", "k", i), ("PUBLISH", "c", i))

        thread = threading.Thread(target=publish)
        thread.start()
        for i in range(MESSAGES):
            self.assertEqual(subscriber.read()[2], b"%d" % i)
            self.assertGreaterEqual(int(reader.call("GET", "k")), i)
        thread.join()

    def test_a_subscription_begins_and_ends_at_its_confirmations(self):
        publisher = self.connect()
        subscriber = self.connect(3)
        stop = threading.Event()
        published = [0]

        def publish():
            while not stop.is_set():
                publisher.call("PUBLISH", "c", published[0])
                published[0] += 1

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            for _ in range(MESSAGES // 10):
                self.assertEqual(subscriber.call("SUBSCRIBE", "c"), [b"subscribe", b"c", 1])
                first = subscriber.read()
                self.assertEqual(first[0], b"message")
                expected = int(first[2])
                subscriber.send(encode("UNSUBSCRIBE", "c"))
                while (got := subscriber.read())[0] == b"message":
                    expected += 1
                    self.assertEqual(int(got[2]), expected)
                self.assertEqual(got, [b"unsubscribe", b"c", 0])
                self.assertEqual(subscriber.call("PING"), "PONG")
        finally:
            stop.set()
            thread.join()

    def test_replies_that_take_many_turns_are_whole(self):
        connection = self.subscribed("c", protocol=(3,))
        self.connect().pipeline(*(("SET", f"key:{i:06}", i) for i in range(20000)))
        publisher = self.connect()
        stop = threading.Event()

        def publish():
            while not stop.is_set():
                publisher.call("PUBLISH", "c", "m")

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            for _ in range(5):
                connection.send(encode("KEYS", "*"))
                while (got := connection.read()) == [b"message", b"c", b"m"]:
                    pass
                self.assertEqual(len(got), 20000)
        finally:
            stop.set()
            thread.join()

    def test_who_does_not_read_is_closed(self):
        control = self.connect()
        control.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1048576 0 0")
        slow = self.subscribed("c", "d")
        quick = self.subscribed("d", protocol=(3,))
        self.assertIn(b" sub=2 psub=0 ssub=0 ", control.call("CLIENT", "LIST", "TYPE", "pubsub"))
        payload = b"x" * 65536
        for _ in range(100000):
            if control.call("PUBLISH", "c", payload) == 0:
                break
        else:
            self.fail("the client that does not read is still subscribed")
        with self.assertRaises(Closed):
            while True:
                slow.read()
        self.assertEqual(control.call("PUBLISH", "d", "m"), 1)
        self.assertEqual(quick.read(), [b"message", b"d", b"m"])
        self.assertEqual(control.call("PUBSUB", "NUMSUB", "c", "d"), [b"c", 0, b"d", 1])

    def test_who_is_gone_is_not_counted(self):
        control = self.connect()
        for end in ("close", "KILL", "RESET"):
            subscriber = self.subscribed("c*", command="PSUBSCRIBE")
            self.assertEqual(control.call("PUBLISH", "c1", "m"), 1)
            if end == "close":
                subscriber.close()
            elif end == "RESET":
                subscriber.send(encode("RESET"))
            else:
                self.assertEqual(control.call("CLIENT", "KILL", "TYPE", "pubsub"), 1)
            for _ in range(100000):
                if control.call("PUBSUB", "NUMPAT") == 0:
                    break
            self.assertEqual(control.call("PUBLISH", "c1", "m"), 0)
        info = control.call("INFO", "stats")
        self.assertIn(b"pubsub_channels:0\r\npubsub_patterns:0\r\n", info)

    def test_many_names_count_as_memory(self):
        subscriber = self.connect(3)
        number = subscriber.call("CLIENT", "ID")

        def memory():
            line = subscriber.call("CLIENT", "INFO")
            return int(line.split(b"tot-mem=")[1].split()[0])

        before = memory()
        subscriber.send(encode("SUBSCRIBE", *(f"channel:{i}" for i in range(10000))))
        for i in range(10000):
            self.assertEqual(subscriber.read()[2], i + 1)
        self.assertGreater(memory(), before + 10000 * 100)
        subscriber.send(encode("UNSUBSCRIBE"))
        for i in range(10000):
            self.assertEqual(subscriber.read()[2], 9999 - i)
        self.assertLess(memory(), before + 100000, number)

    # Goal: with `always`, whoever gets a message finds what its publisher has written before, though
    # the server is killed then.
    def test_messages_come_behind_what_is_synced(self):
        folder = tempfile.mkdtemp(prefix="skep-messages-")
        self.addCleanup(shutil.rmtree, folder)
        options = (*WORKERS, "--dir", folder, "--appendonly", "yes", "--appendfsync", "always")
        told = -1
        for _ in range(3):
            server = SkepServer(*options)
            with server.connect() as publisher, server.connect() as subscriber:
                self.assertEqual(publisher.call("EXISTS", *range(told + 1)) if told >= 0 else 0, told + 1)
                subscriber.call("SUBSCRIBE", "c")
                publisher.send(b"".join(encode("SET", i, "v") + encode("PUBLISH", "c", i)
                                        for i in range(told + 1, told + 401)))
                for i in range(told + 1, told + 201):
                    self.assertEqual(subscriber.read(), [b"message", b"c", b"%d" % i])
                told += 200
                server.signal(signal.SIGKILL)
                self.assertEqual(server.end(), -signal.SIGKILL)
                shutil.rmtree(server.folder)

    def test_a_stranger_hears_nothing(self):
        server = SkepServer("--requirepass", "secret")
        self.addCleanup(server.stop)
        with server.connect() as stranger:
            for command in ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "PUBSUB CHANNELS"):
                reply = stranger.call(*command.split(), "c")
                self.assertIsInstance(reply, Error)
                self.assertTrue(reply.startswith("NOAUTH"))


if __name__ == "__main__":
    unittest.main()
