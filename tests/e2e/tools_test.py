#!/usr/bin/env python3
"""Goal: skep-dump brings back what it wrote, in every format, and skep-check says what is there.
Method: the real programs beside real servers: what two servers hold is compared key by key.

Usage: tools_test.py SKEP_CHECK SKEP_DUMP"""

import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from skep_process import REDIS_BINARY, RedisServer, SkepServer, end_with_parent, needs

CHECK, DUMP = "", ""

LATER = 4_102_444_800_000


def run(*command, stdin=b""):
    """(exit code, standard output, standard error)."""
    done = subprocess.run([str(word) for word in command], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def dump(server, command, *options, stdin=b""):
    return run(DUMP, command, "--port", server.port, *options, stdin=stdin)


def some_items(rng, count=300):
    """{key: (value, deadline, -1 for none)}"""
    items = {b"": (b"", -1), b"empty": (b"", LATER), b"big": (rng.randbytes(1 << 20), -1),
             b"text": ("h\u00e9 \u20ac \U0001f41d".encode(), -1),
             b"\xff\x00\r\n\"\\": (b"\xfe\x00\r\n", LATER + 1), b"{": (b"*3\r\n$3\r\nSET\r\n", -1)}
    for i in range(count):
        key = b"key:%04d" % i if i % 3 else rng.randbytes(1 + i % 40)
        items[key] = (rng.randbytes(rng.randrange(100)), LATER + i if i % 5 == 0 else -1)
    return items


def fill(client, items):
    for key, (value, deadline) in items.items():
        assert client.call("SET", key, value, *([] if deadline < 0 else ["PXAT", deadline])) == "OK"


def contents(client):
    keys = client.call("KEYS", "*")
    return {key: (client.call("GET", key), client.call("PEXPIRETIME", key)) for key in keys}


class DumpTest(unittest.TestCase):
    maxDiff = 1000

    def setUp(self):
        seed = random.randrange(2**32)
        print("seed", seed)
        self.rng = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="skep-e2e-")
        self.addCleanup(shutil.rmtree, self.folder)

    def server(self, *options):
        server = SkepServer(*options)
        self.addCleanup(server.stop)
        client = server.connect()
        self.addCleanup(client.close)
        return server, client

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_round_trips(self):
        source, client = self.server("--keyspace", "1=hash")
        target, back = self.server("--keyspace", "1=hash")
        items = some_items(self.rng)
        for db in (0, 1):
            client.call("SELECT", db)
            back.call("SELECT", db)
            fill(client, items)
            for form in ("resp", "jsonl"):
                with self.subTest(db=db, form=form):
                    self.assertEqual(back.call("FLUSHDB"), "OK")
                    code, data, said = dump(source, "export", "--db", db, "--format", form)
                    how = " of one version" if db == 0 else ", each as it was when it was read"
                    self.assertEqual((code, said), (0, f"exported {len(items)} keys{how}\n"))
                    code, _, said = dump(target, "import", "--db", db, "--format", form, stdin=data)
                    self.assertEqual((code, said), (0, f"imported {len(items)} keys\n"))
                    self.assertEqual(contents(back), items)

    # Goal: an export of a keyspace that keeps one version of a key has all keys, and claims to be of
    # one version only if it was read in one piece.
    def test_keyspaces_of_one_version(self):
        options = ("--btree-multi-version", "no", "--keyspace", "1=hashleaf,key=8,value=8")
        source, client = self.server(*options)
        target, back = self.server(*options)
        for db in (0, 1):
            client.call("SELECT", db)
            back.call("SELECT", db)
            for count, how in ((500, " of one version"), (5000, ", each as it was when it was read")):
                with self.subTest(db=db, count=count):
                    items = {b"%08d" % i: (b"%08x" % i, -1) for i in range(count)}
                    client.pipeline(*[("SET", key, value) for key, (value, _) in items.items()])
                    code, _, said = dump(source, "export", "--db", db, "--output", self.path("all"))
                    self.assertEqual((code, said), (0, f"exported {count} keys{how}\n"))
                    code, _, said = dump(target, "import", "--db", db, self.path("all"))
                    self.assertEqual(code, 0, said)
                    self.assertEqual(contents(back), items)

    def test_many_keys(self):
        source, client = self.server()
        target, back = self.server()
        items = {b"k%06d" % i: (b"v%d" % i, -1) for i in range(20_000)}
        client.pipeline(*[("SET", key, value) for key, (value, _) in items.items()])
        code, _, said = dump(source, "export", "--output", self.path("all"))
        self.assertEqual(code, 0, said)
        code, _, said = dump(target, "import", self.path("all"))
        self.assertEqual(code, 0, said)
        self.assertEqual(contents(back), items)

    def test_ranges(self):
        source, client = self.server("--keyspace", "1=hash")
        for db in (0, 1):
            client.call("SELECT", db)
            for key in ("a", "b", "b1", "b2", "c", "\u00e9"):
                client.call("SET", key, key)
            for options, expected in ((("--from", "b", "--to", "c"), "b b1 b2"),
                                      (("--from", "b2"), "b2 c \u00e9"), (("--to", "b"), "a"),
                                      (("--prefix", "b"), "b b1 b2"), (("--prefix", "x"), "")):
                with self.subTest(db=db, options=options):
                    _, data, _ = dump(source, "export", "--db", db, "--format", "jsonl", *options)
                    keys = sorted(json.loads(line)["key"] for line in data.splitlines())
                    self.assertEqual(" ".join(keys), expected)
        self.assertEqual(dump(source, "export", "--prefix", "a", "--from", "b")[0], 2)

    def test_what_lines_look_like(self):
        source, client = self.server()
        client.call("SET", "user:1", "Ada", "PXAT", LATER)
        client.call("SET", b"\xff", "\u20ac\n")
        self.assertEqual(dump(source, "export", "--format", "jsonl")[1].decode().splitlines(), [
            '{"key":"user:1","value":"Ada","deadline_ms":%d}' % LATER,
            '{"key_base64":"/w==","value":"\u20ac\\n"}'])
        self.assertEqual(dump(source, "export")[1],
                         b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                         b"*5\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$3\r\nAda\r\n$4\r\nPXAT\r\n$13\r\n%d\r\n"
                         b"*3\r\n$3\r\nSET\r\n$1\r\n\xff\r\n$4\r\n\xe2\x82\xac\n\r\n" % LATER)

    # Goal: an export is of one version, whatever is written meanwhile.
    # Method: pairs of keys are moved back and forth; both halves are in an export, or none.
    def test_an_export_is_of_one_version(self):
        source, client = self.server()
        # Wide apart, and long enough for many chunks.
        client.pipeline(*[("SET", f"m{i:05}", b"x" * 1000) for i in range(5000)])
        client.call("SET", "a", 0)
        client.call("SET", "z", 0)
        process = subprocess.Popen([DUMP, "export", "--port", str(source.port), "--format", "jsonl",
                                    "--output", self.path("out")], stderr=subprocess.DEVNULL,
                                   preexec_fn=end_with_parent)
        count = 0
        while process.poll() is None:
            count += 1
            client.call("MSET", "a", count, "z", count)
        self.assertEqual(process.returncode, 0)
        with open(self.path("out"), encoding="utf-8") as lines:
            items = {item["key"]: item["value"] for item in map(json.loads, lines)}
        self.assertEqual(items["a"], items["z"])
        self.assertEqual(len(items), 5002)

    def test_import_errors(self):
        target, client = self.server("--requirepass", "secret")
        client.call("AUTH", "secret")
        code, _, said = dump(target, "import", stdin=b"SET a 1\r\n")
        self.assertEqual((code, said), (1, "imported 0 keys\nskep-dump: database 0: NOAUTH "
                                        "Authentication required.\n"))
        code, _, said = dump(target, "import", "--password", "wrong", stdin=b"")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"^skep-dump: 127\.0\.0\.1:\d+: WRONGPASS ")
        os.environ["REDISCLI_AUTH"] = "secret"
        self.addCleanup(os.environ.pop, "REDISCLI_AUTH")

        long = b"k" * 70_000
        text = b"SET a 1\r\nSET %s 1\r\nSET b 2 PXAT x\r\nSET c 3 XX\r\nSET d 4\r\n" % b'"\\x00"'
        code, _, said = dump(target, "import", stdin=text)
        self.assertEqual((code, said), (1, (
            'skep-dump: key "b": ERR value is not an integer or out of range\n'
            'skep-dump: key "c": its condition does not hold\n'
            "imported 3 keys, 2 were refused\n")))
        line = json.dumps({"key": long.decode(), "value": ""}).encode()
        code, _, said = dump(target, "import", "--format", "jsonl", stdin=line)
        self.assertEqual(code, 1)
        self.assertRegex(said, r'^skep-dump: key "k+": ERR .*\nimported 0 keys, 1 were refused\n$')
        code, _, said = dump(target, "import", "--format", "jsonl", stdin=b'{"key":"a"}')
        self.assertEqual((code, said), (1, "imported 0 keys\n"
                                        "skep-dump: standard input: line 1: no value\n"))
        code, _, said = dump(target, "import", stdin=b"SET e 5\r\nFLUSHALL\r\n")
        self.assertEqual((code, said), (1, (
            "imported 1 keys\nskep-dump: standard input: command 2: "
            '"FLUSHALL" with 0 arguments is neither SELECT nor SET\n')))
        code, _, said = dump(target, "import", stdin=b"SELECT 99\r\nSET f 1\r\n")
        self.assertEqual((code, said), (1, "imported 0 keys\nskep-dump: database 99: "
                                        "ERR DB index is out of range\n"))
        self.assertEqual(sorted(client.call("KEYS", "*")), [b"\0", b"a", b"d", b"e"])

    def test_files_and_servers_that_are_not_there(self):
        target, _ = self.server()
        nowhere = self.path("no/file")
        self.assertEqual(dump(target, "import", nowhere)[0::2],
                         (1, f"skep-dump: {nowhere}: No such file or directory\n"))
        self.assertEqual(dump(target, "export", "--output", nowhere)[0::2],
                         (1, f"skep-dump: {nowhere}: No such file or directory\n"))
        code, _, said = dump(target, "import", "--format", "rdb", nowhere)
        self.assertEqual(code, 1)
        self.assertIn("No such file or directory", said)
        self.assertEqual(dump(target, "import", "--format", "rdb")[0], 2)
        self.assertEqual(dump(target, "export", "--format", "rdb")[0], 2)
        if os.path.exists("/dev/full"):
            self.assertEqual(dump(target, "export", "/dev/full")[0::2],
                             (1, "skep-dump: /dev/full: No space left on device\n"))
        code, _, said = run(DUMP, "export", "--port", 1)
        self.assertEqual((code, said),
                         (1, "skep-dump: 127.0.0.1:1: I/O error: cannot connect (Connection refused)\n"))

    def test_a_unix_socket(self):
        path = self.path("socket")
        _, client = self.server("--unixsocket", path)
        code, _, said = run(DUMP, "import", "--socket", path, stdin=b"SET a 1\r\n")
        self.assertEqual((code, said), (0, "imported 1 keys\n"))
        self.assertEqual(run(DUMP, "export", "--socket", path, "--format", "jsonl")[1],
                         b'{"key":"a","value":"1"}\n')
        self.assertEqual(client.call("GET", "a"), b"1")
        self.assertEqual(run(DUMP, "export", "--socket", path + "x")[0::2], (
            1, f"skep-dump: {path}x: I/O error: cannot connect (No such file or directory)\n"))

    # Goal: the server is named as skep-cli has it named.
    def test_short_options(self):
        target, client = self.server("--requirepass", "secret")
        client.call("AUTH", "secret")
        self.assertEqual(client.call("SELECT", 3), "OK")
        self.assertEqual(client.call("SET", "a", 1), "OK")
        code, out, _ = run(DUMP, "export", "-p", target.port, "-a", "secret", "-n", 3, "--format", "jsonl")
        self.assertEqual((code, out), (0, b'{"key":"a","value":"1"}\n'))
        self.assertEqual(run(DUMP, "export", "-s", self.path("none"), "-a", "secret")[0], 1)
        for variable in ("SKEPCLI_AUTH", "REDISCLI_AUTH"):
            os.environ[variable] = "secret"
            self.addCleanup(os.environ.pop, variable, None)
            self.assertEqual(run(DUMP, "export", "-p", target.port)[0], 0, variable)
            os.environ["SKEPCLI_AUTH"] = "wrong"
        self.assertEqual(run(DUMP, "export", "-p", target.port)[0], 0)
        del os.environ["REDISCLI_AUTH"]
        self.assertEqual(run(DUMP, "export", "-p", target.port)[0], 1)

    def test_selects_in_the_stream(self):
        target, client = self.server()
        text = b"SELECT 2\r\nSET a 1\r\nSELECT 3\r\nSET b 2\r\n"
        self.assertEqual(dump(target, "import", stdin=text)[0], 0)
        self.assertEqual(dump(target, "import", "--db", 5, stdin=text)[0], 0)
        for db, keys in ((2, [b"a"]), (3, [b"b"]), (5, [b"a", b"b"]), (0, [])):
            client.call("SELECT", db)
            self.assertEqual(client.call("KEYS", "*"), keys)

    @needs(shutil.which("redis-cli"), "redis-tools")
    def test_redis_cli_takes_it(self):
        source, client = self.server()
        target, back = self.server()
        items = some_items(self.rng)
        fill(client, items)
        _, data, _ = dump(source, "export")
        code, said, _ = run("redis-cli", "-p", target.port, "--pipe", stdin=data)
        self.assertEqual(code, 0, said)
        self.assertEqual(contents(back), items)

    @needs(REDIS_BINARY, "redis-tools")
    def test_rdb(self):
        redis = RedisServer()
        self.addCleanup(redis.stop)
        theirs = redis.connect()
        self.addCleanup(theirs.close)
        items = some_items(self.rng)
        fill(theirs, items)
        theirs.call("XADD", "stream", "1-1", "f", "v")
        theirs.call("SELECT", 4)
        theirs.call("SET", "only", "4")
        theirs.call("XADD", b"\xff", "1-1", "f", "v")
        theirs.call("SAVE")
        rdb = os.path.join(redis.folder, "dump.rdb")

        target, client = self.server()
        code, _, said = dump(target, "import", "--format", "rdb", "--strict", rdb)
        self.assertEqual(code, 1)
        self.assertTrue(said.endswith(f"imported 0 keys, 2 of other types skipped\nskep-dump: {rdb}: "
                                      "2 keys or libraries cannot be stored: nothing was "
                                      "imported\n"), said)
        self.assertEqual(client.call("DBSIZE"), 0)
        code, _, said = dump(target, "import", "--format", "rdb", rdb)
        self.assertEqual((code, said), (0, (
            'skep-dump: skipped: database 0, key "stream": stream\n'
            'skep-dump: skipped: database 4, key "\\xff": stream\n'
            f"imported {len(items) + 1} keys, 2 of other types skipped\n")))
        self.assertEqual(contents(client), items)
        client.call("SELECT", 4)
        self.assertEqual(contents(client), {b"only": (b"4", -1)})
        self.assertEqual(dump(target, "import", "--format", "rdb", "--db", 7, rdb)[0], 0)
        client.call("SELECT", 7)
        self.assertEqual(contents(client), items | {b"only": (b"4", -1)})

        code, said, _ = run(CHECK, rdb)
        self.assertEqual(code, 0)
        self.assertIn(f"  {len(items) + 1} strings, 0 collections, 2 keys of other types", said.decode())
        with open(rdb, "r+b") as file:
            file.seek(os.path.getsize(rdb) - 20)
            file.write(b"\0\0")
        client.call("FLUSHALL")
        code, _, said = dump(target, "import", "--format", "rdb", rdb)
        self.assertEqual(code, 1)
        self.assertRegex(said, f"skep-dump: {rdb}: corrupt")
        self.assertEqual(client.call("DBSIZE"), 0)
        self.assertEqual(run(CHECK, rdb)[0], 1)


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="skep-e2e-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = os.path.join(self.folder, "data")

    def server(self, *options):
        return SkepServer("--dir", self.data, "--keyspace", "1=hash", "--appendfsync", "always",
                          "--log-segment-bytes", "1mb", *options)

    def fill(self):
        """A store that was closed: a snapshot and changes behind it. Returns what it has."""
        with self.server() as server, server.connect() as client:
            for i in range(100):
                client.call("SET", f"k{i:03}", f"old {i}", *(["PXAT", LATER] if i % 2 else []))
            client.call("SELECT", 1)
            client.call("SET", b"\xff", "hash")
            client.call("SELECT", 0)
            self.assertEqual(client.call("SAVE"), "OK")
            for i in range(50, 120):
                client.call("SET", f"k{i:03}", f"new {i}")
            client.call("KDELRANGE", "[k000", "(k010")
            client.call("VUPDATE", "v", "add", "i64", 1, "CREATE", 100)
            client.call("VUPDATE", "v", "add", "i64", 1)
            return contents(client)

    def contents(self):
        with self.server() as server, server.connect() as client:
            return contents(client)

    def file(self, suffix):
        names = [name for name in sorted(os.listdir(self.data)) if name.endswith(suffix)]
        return os.path.join(self.data, names[-1])

    def damage(self, path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 0xff]))

    def check(self, *options):
        """(exit code, object)"""
        code, said, errors = run(CHECK, self.data, "--json", *options)
        self.assertIn(code, (0, 1), errors)
        return code, json.loads(said)

    def test_a_sound_directory(self):
        self.fill()
        code, report = self.check()
        self.assertEqual((code, report["sound"]), (0, True))
        self.assertEqual(report["keyspaces"], [{"keyspace": 0, "engine": "btree"},
                                               {"keyspace": 1, "engine": "hash"}])
        (snapshot,) = report["snapshots"]
        self.assertEqual([keyspace["items"] for keyspace in snapshot["keyspaces"]], [100, 1])
        self.assertLess(abs(snapshot["created_ms"] - time.time() * 1000), 100_000)
        (segment,) = report["log"]["segments"]
        self.assertEqual(segment["changes"]["put"], 50 + 1 + 70)
        self.assertEqual(segment["changes"]["put until"], 50)
        self.assertEqual(segment["changes"]["erase range"], 1)
        self.assertEqual(report["log"]["closed"], True)
        self.assertEqual(report["log"]["torn"], None)
        for keyspace in report["log"]["keyspaces"]:
            self.assertEqual(keyspace["highest_version"], keyspace["complete_version"])
        code, said, _ = run(CHECK, self.data)
        self.assertEqual(code, 0)
        self.assertTrue(said.decode().endswith(f"{self.data}: sound\n"))
        for path in (self.file(".skl"), self.file(".sks")):
            self.assertEqual(run(CHECK, path)[0], 0)

    def test_listing(self):
        self.fill()
        code, said, _ = run(CHECK, "--list", self.data)
        lines = said.decode().splitlines()
        self.assertEqual(code, 0)
        self.assertIn('item 0 "k000" "old 0"', lines)
        self.assertIn(f'item 0 "k001" "old 1" until {LATER}', lines)
        self.assertIn('item 1 "\\xff" "hash"', lines)
        text = "\n".join(lines)
        self.assertRegex(text, r'\nchange \d+ 0 \d+ put "k119" "new 119"\n')
        self.assertRegex(text, rf'\nchange \d+ 0 \d+ put until "k099" {LATER} "old 99"\n')
        self.assertRegex(text, r'\nchange \d+ 0 \d+ erase range "k000" "k010"\n')
        self.assertRegex(text, r'\nchange \d+ 0 \d+ apply "v" add i64 "')
        self.assertEqual(sum(line.startswith("item ") for line in lines), 101)

    def test_beside_a_server(self):
        with self.server():
            for option in ("--list", "--repair", "--replay"):
                self.assertEqual(run(CHECK, option, self.data), (
                    2, b"", f"skep-check: {self.data}: a server has it open: end it first\n"))

    def test_what_is_no_store(self):
        self.assertEqual(run(CHECK, self.folder)[0], 2)
        self.assertEqual(run(CHECK, os.path.join(self.folder, "nothing"))[0], 2)
        self.assertEqual(run(CHECK)[0], 2)
        self.assertEqual(run(CHECK, "--list", "--json", self.folder)[0], 2)
        path = os.path.join(self.folder, "file")
        with open(path, "wb") as file:
            file.write(b"anything")
        code, _, said = run(CHECK, path)
        self.assertEqual((code, said), (
            2, f"skep-check: {path}: neither a directory, nor a segment of a log, a snapshot or an "
            "RDB file\n"))
        self.assertEqual(run(CHECK, "--help")[0], 0)

    def replay(self, *options):
        code, said, why = run(CHECK, "--replay", "--json", *options, self.data)
        self.assertEqual(why, "")
        return code, json.loads(said)

    # Goal: a replay says whether a server would start, and with what, and changes nothing.
    def test_replay(self):
        expected = self.fill()
        files = {name: os.stat(os.path.join(self.data, name)) for name in os.listdir(self.data)}
        code, report = self.replay()
        keys = {row["keyspace"]: row["keys"] for row in report["keyspaces"]}
        self.assertEqual((code, report["starts"], keys[0]), (0, True, len(expected)))
        self.assertGreater(report["log_changes"], 0)
        code, said, _ = run(CHECK, "--replay", self.data)
        self.assertEqual(code, 0)
        self.assertIn(f"keyspace 0: {len(expected)} keys\n".encode(), said)
        self.assertTrue(said.endswith(b"\na start succeeds\n"))
        for name in os.listdir(self.data):
            now = os.stat(os.path.join(self.data, name))
            self.assertEqual((now.st_size, now.st_mtime_ns),
                             (files[name].st_size, files[name].st_mtime_ns), name)

        log = self.file(".skl")
        said = run(CHECK, "--list", log)[1]
        position = int(re.search(r'change (\d+) 0 \d+ put "k060" "new 60"', said.decode()).group(1))
        self.damage(log, position + 30)
        code, report = self.replay()
        self.assertEqual((code, report["starts"]), (1, False))
        self.assertIn(log, report["problem"])
        with self.assertRaisesRegex(AssertionError, re.escape(report["problem"])):
            self.server()

    # Goal: a start applies again what functions have made of large values, and a replay says so.
    def test_replay_of_large_values(self):
        with self.server() as server, server.connect() as client:
            for db in (0, 1):
                client.call("SELECT", db)
                client.call("SET", "large", b"x" * (2 << 20))
                for _ in range(20):
                    client.call("APPEND", "large", "y")
                client.call("SET", "vector", b"\0" * (1 << 20))
                for _ in range(20):
                    client.call("VUPDATE", "vector", "add", "f32", 1)
        code, report = self.replay()
        self.assertEqual((code, report["starts"]), (0, True))
        with self.server() as server, server.connect() as client:
            for db in (0, 1):
                client.call("SELECT", db)
                value = client.call("GET", "large")
                self.assertTrue(value == b"x" * (2 << 20) + b"y" * 20, len(value))
                self.assertEqual(client.call("VREDUCE", "vector", "max", "f32"), b"20")

    # Goal: damage keeps a server from starting, and a repair takes all but what was hit.
    def test_repair(self):
        expected = self.fill()
        log = self.file(".skl")
        code, said, _ = run(CHECK, "--list", log)
        position = int(re.search(r'change (\d+) 0 \d+ put "k060" "new 60"', said.decode()).group(1))
        self.damage(log, position + 30)
        code, report = self.check()
        self.assertEqual((code, report["sound"]), (1, False))
        (damage,) = report["damage"]
        self.assertEqual((damage["file"], damage["offset"]), (log, position))

        with self.assertRaisesRegex(AssertionError, "skep-check --repair keeps what is good"):
            self.server()

        code, report = self.check("--repair")
        self.assertEqual(code, 1)
        self.assertEqual(report["lost"], [damage])
        self.assertEqual(report["put_aside"], [log + ".damaged"])
        self.assertEqual(report["refused_changes"], 0)
        expected[b"k060"] = (b"old 60", -1)
        self.assertEqual(self.contents(), expected)
        code, report = self.check()
        self.assertEqual((code, report["put_aside"]), (0, [log + ".damaged"]))
        self.assertEqual(run(CHECK, log + ".damaged")[0], 1)
        self.assertEqual(self.check("--repair")[0], 0)

    def test_repair_by_the_log(self):
        expected = self.fill()
        snapshot = self.file(".sks")
        self.damage(snapshot, 100)
        self.assertEqual(run(CHECK, snapshot)[0], 1)
        code, report = self.check("--repair")
        self.assertEqual((code, report["lost"]), (0, []))
        self.assertEqual([damage["file"] for damage in report["made_good"]], [snapshot])
        self.assertEqual(self.contents(), expected)


if __name__ == "__main__":
    CHECK, DUMP = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
