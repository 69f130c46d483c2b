#!/usr/bin/env python3
"""Conditional commands as clients see them: SET IFEQ and its kin, DELEX, DIGEST, MSETEX, KCAS, KBATCH."""

import random
import threading
import unittest

from resp import NOT_A_BOUND, Error
from skep_process import ServerTest

SYNTAX = Error("ERR syntax error")
NOT_AN_INTEGER = Error("ERR value is not an integer or out of range")
NOT_A_DIGEST = Error("ERR a digest must be exactly 32 hexadecimal characters")
EMPTY_DIGEST = b"99aa06d3014798d86001c324468d497f"  # XXH3's published value for no bytes
FAR_MS = 4102444800_000  # in 2100


def arity(command):
    return Error(f"ERR wrong number of arguments for '{command}' command")


class CompareTest(ServerTest):
    def test_digest(self):
        self.check(None, "DIGEST", "absent")
        self.check("OK", "SET", "k", "")
        self.check(EMPTY_DIGEST, "DIGEST", "k")
        self.check("OK", "SET", "k", "a" * 100_000)
        first = self.client.call("DIGEST", "k")
        self.assertRegex(first, rb"^[0-9a-f]{32}$")
        self.check(100_001, "APPEND", "k", "b")
        self.assertNotEqual(self.client.call("DIGEST", "k"), first)
        self.check(arity("digest"), "DIGEST")
        self.check(arity("digest"), "DIGEST", "a", "b")

    def test_set_if(self):
        self.check("OK", "SET", "x", "x")
        self.check("OK", "SET", "v", "v")
        digest = {value: self.client.call("DIGEST", value) for value in ("x", "v")}
        rows = [  # option, operand, whether it stores over absent, x, v
            ("IFEQ", "v", (False, False, True)), ("IFNE", "v", (True, True, False)),
            ("IFDEQ", digest["v"], (False, False, True)),
            ("IFDNE", digest["v"], (True, True, False)),
            ("ifdeq", digest["v"].upper(), (False, False, True)),
        ]
        for option, operand, stores in rows:
            for before, stored in zip((None, "x", "v"), stores):
                for get in (False, True):
                    self.client.call("DEL", "k")
                    if before is not None:
                        self.check("OK", "SET", "k", before)
                    was = before.encode() if before else None
                    reply = was if get else "OK" if stored else None
                    self.check(reply, "SET", "k", "new", option, operand, *(["GET"] * get))
                    self.check(b"new" if stored else was, "GET", "k")

    def test_set_if_with_deadlines(self):
        self.check("OK", "SET", "k", "v", "PXAT", FAR_MS)
        self.check(None, "SET", "k", "w", "IFEQ", "x", "PXAT", FAR_MS + 1)
        self.check(FAR_MS, "PEXPIRETIME", "k")
        self.check("OK", "SET", "k", "w", "KEEPTTL", "IFEQ", "v")
        self.check(FAR_MS, "PEXPIRETIME", "k")
        self.check("OK", "SET", "k", "w", "IFNE", "v")
        self.check(-1, "PEXPIRETIME", "k")

    def test_set_if_errors(self):
        for options in (["IFEQ"], ["IFEQ", "v", "NX"], ["NX", "IFEQ", "v"], ["XX", "IFDNE", "v"],
                        ["IFEQ", "v", "IFNE", "v"], ["IFDEQ", EMPTY_DIGEST, "XX"],
                        ["IFDEQ", "short", "FOO"]):
            self.check(SYNTAX, "SET", "k", 1, *options)
        for digest in ("", "0", EMPTY_DIGEST[1:], EMPTY_DIGEST + b"0", "g" * 32):
            self.check(NOT_A_DIGEST, "SET", "k", 1, "IFDEQ", digest)
            self.check(NOT_A_DIGEST, "SET", "k", 1, "IFDNE", digest)
        self.check(0, "EXISTS", "k")

    def test_delex(self):
        self.check(0, "DELEX", "k")
        self.check("OK", "SET", "k", "")
        for option, operand, done in (("IFEQ", "x", 0), ("IFEQ", "", 1), ("IFNE", "", 0),
                                      ("ifne", "x", 1), ("IFDEQ", "0" * 32, 0),
                                      ("IFDEQ", EMPTY_DIGEST, 1), ("IFDNE", EMPTY_DIGEST, 0),
                                      ("IFDNE", "0" * 32, 1)):
            self.check(done, "DELEX", "k", option, operand)
            self.check(1 - done, "EXISTS", "k")
            self.check(0, "DELEX", "absent", option, operand)
            self.check("OK", "SET", "k", "")
        self.check(1, "DELEX", "k")
        self.check(arity("delex"), "DELEX")
        self.check(arity("delex"), "DELEX", "k", "IFEQ")
        self.check(arity("delex"), "DELEX", "k", "IFEQ", "a", "b")
        self.check(Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
                   "DELEX", "k", "FOO", "a")
        self.check(NOT_A_DIGEST, "DELEX", "k", "IFDEQ", "a")

    def test_kcas(self):
        self.check([0, None], "KCAS", "k", "", "new")
        self.check(0, "EXISTS", "k")
        self.check("OK", "SET", "k", "a", "PXAT", FAR_MS)
        self.check([0, b"a"], "KCAS", "k", "b", "c")
        self.check([1, None], "KCAS", "k", "a", "b", "KEEPTTL")
        self.check(FAR_MS, "PEXPIRETIME", "k")
        self.check([0, b"b"], "KCAS", "k", "a", "c", "PXAT", FAR_MS + 1)
        self.check(FAR_MS, "PEXPIRETIME", "k")
        self.check([1, None], "KCAS", "k", "b", "", "PXAT", FAR_MS + 1)
        self.check(FAR_MS + 1, "PEXPIRETIME", "k")
        self.check([1, None], "KCAS", "k", "", b"\0\xff")
        self.check(-1, "PEXPIRETIME", "k")
        self.check(b"\0\xff", "GET", "k")
        self.check(arity("kcas"), "KCAS", "k", "old")
        for options in (["NX"], ["EX"], ["EX", 1, "KEEPTTL"], ["PERSIST"]):
            self.check(SYNTAX, "KCAS", "k", "old", "new", *options)
        self.check(NOT_AN_INTEGER, "KCAS", "k", "old", "new", "EX", "x")
        self.check(Error("ERR invalid expire time in 'kcas' command"),
                   "KCAS", "k", "old", "new", "EX", 0)

    def test_kcas_counts(self):
        """Goal: no increment is lost. Method: many clients retry with the value they are shown."""
        self.check("OK", "SET", "n", 0)
        clients, each = 4, 200

        def work():
            with self.server.connect() as client:
                seen = b"0"
                for _ in range(each):
                    while True:
                        stored, now = client.call("KCAS", "n", seen, int(seen) + 1)
                        if stored:
                            seen = b"%d" % (int(seen) + 1)
                            break
                        seen = now
        threads = [threading.Thread(target=work) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.check(b"%d" % (clients * each), "GET", "n")


class MsetExTest(ServerTest):
    def test_options(self):
        self.check(1, "MSETEX", 2, "a", 1, "b", 2)
        self.check([b"1", b"2", None], "MGET", "a", "b", "c")
        self.check(0, "MSETEX", 2, "c", 3, "a", 4, "NX")
        self.check(0, "MSETEX", 2, "a", 4, "c", 3, "xx")
        self.check([b"1", b"2", None], "MGET", "a", "b", "c")
        self.check(1, "MSETEX", 1, "c", 3, "NX", "PXAT", FAR_MS)
        self.check(FAR_MS, "PEXPIRETIME", "c")
        self.check(1, "MSETEX", 2, "c", 4, "a", 5, "KEEPTTL", "XX")
        self.check(FAR_MS, "PEXPIRETIME", "c")
        self.check(-1, "PEXPIRETIME", "a")
        self.check(1, "MSETEX", 2, "NX", "XX", "EX", "PX", "EXAT", FAR_MS // 1000)
        self.check([b"XX", b"PX"], "MGET", "NX", "EX")
        self.check(FAR_MS, "PEXPIRETIME", "EX")
        self.check(1, "MSETEX", 2, "a", 1, "a", 2)
        self.check(b"2", "GET", "a")
        self.check(1, "MSETEX", 2, "a", 1, "c", 2, "PXAT", 1)
        self.check(0, "EXISTS", "a", "c")

    def test_errors(self):
        self.check(arity("msetex"), "MSETEX", 1, "a")
        for count in ("x", 0, -1, 1 << 31, 1 << 63, "1.0", "key"):
            self.check(Error("ERR invalid numkeys value"), "MSETEX", count, "a", 1)
        for count in (2, (1 << 31) - 1):
            self.check(Error("ERR wrong number of key-value pairs"), "MSETEX", count, "a", 1, "b")
        for options in (["FOO"], ["NX", "XX"], ["EX"], ["EX", 1, "PX", 1], ["EX", 1, "KEEPTTL"],
                        ["PERSIST"], ["b", 2], ["EX", "x", "b"]):
            self.check(SYNTAX, "MSETEX", 1, "a", 1, *options)
        self.check(NOT_AN_INTEGER, "MSETEX", 1, "a", 1, "EX", "x")
        for number in (0, -1, (1 << 63) - 1):
            self.check(Error("ERR invalid expire time in 'msetex' command"),
                       "MSETEX", 1, "a", 1, "EX", number)
        self.check(0, "DBSIZE")


class KbatchTest(ServerTest):
    def test_operations(self):
        self.check("OK", "MSET", "a", 1, "p1", "x", "p2", "y", "log", "ab")
        self.check([1, [b"1", None, "OK", 1, 0, 6, 3, 2, 1, 0, 1, 0, b"7"]], "KBATCH", "DO",
                   "GET", "a", "GET", "none", "PUT", "a", 7, "DELETE", "log", "DELETE", "log",
                   "INCRBY", "n", 6, "APPEND", "t", "abc", "DELRANGE", "PREFIX", "p",
                   "EXPIRE", "t", 1000, "PEXPIRE", "none", 1000, "PERSIST", "t", "PERSIST", "n",
                   "GET", "a")
        self.check([b"a", b"7", b"n", b"6", b"t", b"abc"], "KRANGE", "-", "+", "WITHVALUES")

    def test_deadlines(self):
        self.check([1, ["OK", "OK", "OK"]], "KBATCH", "DO", "PUT", "a", 1, "EX", 1000,
                   "PUT", "b", 1, "PXAT", FAR_MS, "PUT", "c", 1)
        self.assertGreater(self.client.call("PTTL", "a"), 1)
        self.check(FAR_MS, "PEXPIRETIME", "b")
        self.check(-1, "PTTL", "c")
        self.check([1, ["OK", 5]], "KBATCH", "DO", "PUT", "b", 2, "KEEPTTL", "INCRBY", "b", 3)
        self.check(FAR_MS, "PEXPIRETIME", "b")
        self.check([1, [1, 1, 0]], "KBATCH", "DO", "EXPIRE", "a", 0, "PEXPIRE", "c", -5,
                   "DELETE", "a")
        self.check([b"b"], "KRANGE", "-", "+")

    def test_conditions(self):
        self.check("OK", "MSET", "a", 1, "b", "")
        rows = [  # condition, None if it holds, else key and value seen
            (["VALUE", "a", 1], None), (["VALUE", "a", 2], (b"a", b"1")),
            (["VALUE", "x", ""], (b"x", None)), (["VALUE", "b", ""], None),
            (["DIGEST", "b", EMPTY_DIGEST], None), (["digest", "a", EMPTY_DIGEST], (b"a", b"1")),
            (["DIGEST", "x", EMPTY_DIGEST], (b"x", None)),
            (["ABSENT", "x"], None), (["ABSENT", "a"], (b"a", b"1")),
            (["PRESENT", "a"], None), (["PRESENT", "x"], (b"x", None)),
            (["EMPTY", "(b", "+"], None), (["EMPTY", "-", "+"], (b"a", None)),
            (["EMPTY", "PREFIX", "x"], None), (["EMPTY", "PREFIX", "b"], (b"b", None)),
        ]
        for protocol in (2, 3):
            self.client.call("HELLO", protocol)
            for condition, failure in rows:
                for before in (0, 2):
                    words = ["KBATCH"] + ["IF", "PRESENT", "a"] * before + ["IF", *condition]
                    words += ["IF", "PRESENT", "b", "DO", "PUT", "hit", 1]
                    if failure:
                        self.check([0, [before, *failure]], *words)
                        self.check(0, "EXISTS", "hit")
                    else:
                        self.check([1, ["OK"]], *words)
                        self.check(1, "DEL", "hit")

    def test_conditions_see_the_state_before(self):
        self.check([1, ["OK", b"1"]], "KBATCH", "IF", "ABSENT", "a", "DO", "PUT", "a", 1,
                   "GET", "a")
        self.check([1, [1, None]], "KBATCH", "IF", "VALUE", "a", 1, "DO", "DELRANGE", "-", "+",
                   "GET", "a")

    def test_the_first_failure_is_named(self):
        self.check([0, [0, b"a", None]], "KBATCH", "IF", "PRESENT", "a", "IF", "PRESENT", "b",
                   "DO", "GET", "a")

    def test_replies_byte_for_byte(self):
        self.check("OK", "SET", "k", b"\0\xff")
        for protocol, null in ((2, b"$-1\r\n"), (3, b"_\r\n")):
            self.client.call("HELLO", protocol)
            for words, raw in (
                    (["KBATCH", "DO", "GET", "k", "GET", "x"],
                     b"*2\r\n:1\r\n*2\r\n$2\r\n\0\xff\r\n" + null),
                    (["KBATCH", "IF", "ABSENT", "k", "DO", "GET", "k"],
                     b"*2\r\n:0\r\n*3\r\n:0\r\n$1\r\nk\r\n$2\r\n\0\xff\r\n"),
                    (["KBATCH", "IF", "PRESENT", "x", "DO", "GET", "k"],
                     b"*2\r\n:0\r\n*3\r\n:0\r\n$1\r\nx\r\n" + null),
                    (["KCAS", "k", "a", "b"], b"*2\r\n:0\r\n$2\r\n\0\xff\r\n"),
                    (["KCAS", "x", "a", "b"], b"*2\r\n:0\r\n" + null)):
                self.client.send(b"*%d\r\n" % len(words) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
                self.assertEqual(self.client.read_reply()[1], raw, (protocol, words))

    def test_errors_of_operations_abort_all(self):
        self.check("OK", "SET", "t", "text")
        self.check(Error("ERR KBATCH operation 1: value is not an integer or out of range"),
                   "KBATCH", "IF", "ABSENT", "a", "DO", "PUT", "a", 1, "INCRBY", "t", 1)
        self.check("OK", "SET", "n", (1 << 63) - 1)
        self.check(Error("ERR KBATCH operation 1: increment or decrement would overflow"),
                   "KBATCH", "DO", "DELETE", "t", "INCRBY", "n", 1)
        long = "k" * (64 * 1024 + 1)
        for words in (["IF", "ABSENT", "a", "IF", "ABSENT", long, "DO", "PUT", "a", 1],
                      ["DO", "PUT", "a", 1, "PUT", long, 1]):
            reply = self.client.call("KBATCH", *words)
            self.assertIsInstance(reply, Error)
            self.assertRegex(reply, "^ERR KBATCH (condition|operation) 1: key ")
        self.check([b"n", b"t"], "KRANGE", "-", "+")

    def test_grammar(self):
        # Each text is in batch_args_test.cc; here is how they arrive.
        self.check(arity("kbatch"), "KBATCH", "DO", "GET")
        for text, words in {
                ": DO and its operations are missing": ["IF", "ABSENT", "a"],
                ": expected IF or DO, not 'PUT'": ["PUT", "a", 1],
                ": no operation after DO": ["IF", "ABSENT", "a", "DO"],
                " condition 1: there is no condition 'GET'": [
                    "IF", "ABSENT", "a", "IF", "GET", "a"],
                " condition 0: VALUE takes key value": ["IF", "VALUE", "a"],
                " condition 0: a digest must be exactly 32 hexadecimal characters": [
                    "IF", "DIGEST", "a", "x", "DO", "GET", "a"],
                " operation 1: there is no operation 'KEEPTTL'": [
                    "DO", "PUT", "a", 1, "EX", 1, "KEEPTTL"],
                " operation 0: INCRBY takes key number": ["DO", "INCRBY", "a"],
                " operation 0: invalid expire time in 'kbatch' command": [
                    "DO", "PUT", "a", 1, "EX", 0],
                " operation 1: " + NOT_A_BOUND.removeprefix("ERR "): [
                    "DO", "GET", "a", "DELRANGE", "a", "b"],
        }.items():
            self.check(Error("ERR KBATCH" + text), "KBATCH", *words)
        self.check(Error("ERR KBATCH takes at most 4096 conditions and operations"), "KBATCH", "DO",
                   *(["PUT", "a", 1] * 4097))
        self.check(0, "DBSIZE")
        self.check([1, ["OK"] * 4096], "KBATCH", "DO", *(["PUT", "a", 1] * 4096))

    def test_keys_may_be_called_anything(self):
        self.check([1, ["OK", "OK", b"DO"]], "KBATCH", "IF", "ABSENT", "DO", "DO", "PUT", "DO",
                   "EX", "PUT", "IF", "DO", "GET", "IF")
        self.check([b"DO", b"EX", b"IF", b"DO"], "KRANGE", "-", "+", "WITHVALUES")

    def test_a_pipeline_is_in_order(self):
        self.assertEqual(
            self.client.pipeline(["SET", "a", 1], ["KBATCH", "IF", "VALUE", "a", 1, "DO", "GET",
                                                   "a"], ["INCR", "a"],
                                 ["KBATCH", "DO", "GET", "a", "INCRBY", "a", 1], ["GET", "a"]),
            ["OK", [1, [b"1"]], 2, [1, [b"2", 3]], b"3"])

    def test_agrees_with_a_model(self):
        """Goal: all or none, whatever is asked. Method: random batches against a dict."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        with self.subTest(seed=seed):
            model = {}
            for _ in range(400):
                conditions, operations = random_batch(rng, model)
                words = [w for c in conditions for w in ("IF", *c)]
                words += ["DO"] + [w for o in operations for w in o]
                self.check(run_model(model, conditions, operations), "KBATCH", *words)
                items = [w for key in sorted(model) for w in (key, model[key])]
                self.check(items, "KRANGE", "-", "+", "WITHVALUES")

    def test_transfers_keep_the_sum(self):
        """Goal: nobody sees half a batch. Method: clients move amounts between accounts, each if
        the balance it read still is the balance; one reads all of them meanwhile."""
        accounts, each = [f"acc{i}" for i in range(5)], 100
        self.check("OK", "MSET", *(w for account in accounts for w in (account, 100)))
        left = threading.Semaphore(0)

        def work(seed):
            rng = random.Random(seed)
            with self.server.connect() as client:
                for _ in range(each):
                    source, sink = rng.sample(accounts, 2)
                    balance = client.call("GET", source)
                    amount = rng.randrange(int(balance) + 1)
                    client.call("KBATCH", "IF", "VALUE", source, balance, "DO",
                                "INCRBY", source, -amount, "INCRBY", sink, amount)
            left.release()
        seed = random.randrange(1 << 32)
        with self.subTest(seed=seed):
            threads = [threading.Thread(target=work, args=(seed + i,)) for i in range(3)]
            for thread in threads:
                thread.start()
            done = 0
            while done < len(threads):
                done += left.acquire(blocking=False)
                self.assertEqual(sum(map(int, self.client.call("MGET", *accounts))), 500)
            for thread in threads:
                thread.join()
            balances = list(map(int, self.client.call("MGET", *accounts)))
            self.assertEqual(sum(balances), 500)
            self.assertGreaterEqual(min(balances), 0)


class TransactionTest(ServerTest):
    def test_each_is_a_part_of_its_own(self):
        self.check("OK", "SET", "a", 1)
        digest = self.client.call("DIGEST", "a")
        commands = [
            (["KBATCH", "IF", "ABSENT", "a", "DO", "PUT", "b", 1], [0, [0, b"a", b"1"]]),
            (["KBATCH", "IF", "ABSENT", "b", "DO", "PUT", "b", 1, "GET", "a"], [1, ["OK", b"1"]]),
            (["KBATCH", "DO", "PUT", "b", "x", "INCRBY", "b", 1],
             Error("ERR KBATCH operation 1: value is not an integer or out of range")),
            (["KBATCH", "IF", "NO", "DO", "GET", "a"],
             Error("ERR KBATCH condition 0: there is no condition 'NO'")),
            (["MSETEX", 2, "b", 5, "c", 5, "NX"], 0),
            (["MSETEX", 2, "b", 5, "c", 5, "XX"], 0),
            (["MSETEX", 1, "c", 5, "NX", "PXAT", FAR_MS], 1),
            (["MSETEX", "x", "c", 5], Error("ERR invalid numkeys value")),
            (["KCAS", "b", 1, 2], [1, None]),
            (["KCAS", "b", 1, 3], [0, b"2"]),
            (["SET", "a", 2, "IFDEQ", digest], "OK"),
            (["SET", "a", 3, "IFEQ", 1, "GET"], b"2"),
            (["DIGEST", "none"], None),
            (["DELEX", "a", "IFNE", 2], 0),
            (["DELEX", "a", "IFEQ", 2], 1),
            (["KBATCH", "IF", "EMPTY", "-", "(b", "DO", "DELRANGE", "-", "+"], [1, [2]]),
            (["PING"], "PONG"),
            (["KBATCH", "IF", "ABSENT", "b", "DO", "GET", "b"], [1, [None]]),
        ]
        self.check("OK", "MULTI")
        for words, _ in commands:
            self.check("QUEUED", *words)
        self.check([reply for _, reply in commands], "EXEC")
        self.check(0, "DBSIZE")


KEYS = [b"a", b"b", b"c", b"d"]


def random_batch(rng, model):
    """Conditions that mostly hold, and operations of which few are errors."""
    def condition():
        key = rng.choice(KEYS)
        if rng.random() < 0.1:
            return rng.choice([("ABSENT", key), ("PRESENT", key), ("VALUE", key, b"0"),
                               ("EMPTY", b"[" + key, b"+")])
        return ("VALUE", key, model[key]) if key in model else ("ABSENT", key)

    def operation():
        key = rng.choice(KEYS)
        return rng.choice([("PUT", key, b"%d" % rng.randrange(9)), ("PUT", key, b"t"),
                           ("GET", key), ("DELETE", key), ("INCRBY", key, b"3"),
                           ("APPEND", key, b"1"), ("DELRANGE", b"[" + key, b"+")])
    return ([condition() for _ in range(rng.randrange(4))],
            [operation() for _ in range(rng.randrange(1, 5))])


def run_model(model, conditions, operations):
    """The reply of a KBATCH; changes the model if it is applied."""
    for index, (kind, key, *rest) in enumerate(conditions):
        seen = model.get(key)
        if kind == "EMPTY":
            above = [k for k in sorted(model) if k >= key[1:]]
            if above:
                return [0, [index, above[0], None]]
        elif not {"ABSENT": seen is None, "PRESENT": seen is not None,
                  "VALUE": rest and seen == rest[0]}[kind]:
            return [0, [index, key, seen]]
    after, results = dict(model), []
    for index, (kind, key, *rest) in enumerate(operations):
        if kind == "PUT":
            after[key] = rest[0]
            results.append("OK")
        elif kind == "GET":
            results.append(after.get(key))
        elif kind == "DELETE":
            results.append(int(after.pop(key, None) is not None))
        elif kind == "APPEND":
            after[key] = after.get(key, b"") + rest[0]
            results.append(len(after[key]))
        elif kind == "DELRANGE":
            gone = [k for k in after if k >= key[1:]]
            for k in gone:
                del after[k]
            results.append(len(gone))
        else:
            before = after.get(key, b"0")
            if str(before, "latin-1") != str(int(before) if before.isdigit() else "no number"):
                return Error(f"ERR KBATCH operation {index}: "
                             "value is not an integer or out of range")
            number = int(before) + int(rest[0])
            if number >= 1 << 63:
                return Error(f"ERR KBATCH operation {index}: "
                             "increment or decrement would overflow")
            after[key] = b"%d" % number
            results.append(number)
    model.clear()
    model.update(after)
    return [1, results]


if __name__ == "__main__":
    unittest.main()
