#!/usr/bin/env python3
"""Goal: skep-cli does at a terminal, on a command line and in a script what its page says.
Method: the real program beside real servers. What it prints is compared with what redis-cli prints
for the same command; a person at a terminal is a pseudo-terminal and a screen.

Usage: cli_test.py SKEP_CLI"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from skep_process import PATIENCE_S, REDIS_BINARY, RedisServer, SkepServer, needs
from terminal import Terminal

CLI = ""
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("SKEPCLI_")}


def run(*command, stdin=b"", **environment):
    """(exit code, standard output, standard error)."""
    done = subprocess.run([str(word) if not isinstance(word, bytes) else word for word in command],
                          input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=PATIENCE_S, check=False, env=ENVIRONMENT | environment)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class CliTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="skep-e2e-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self, *options):
        server = SkepServer(*options)
        self.addCleanup(server.stop)
        client = server.connect()
        self.addCleanup(client.close)
        return server, client


# What both must print alike, in this order, from an empty server on. A status, an error, integers,
# bytes, nil, arrays in arrays, maps, doubles.
ALIKE = [
    ("PING",), ("SET", "a", "1"), ("SET", b"\xff\x80", b"x\"\\\n\r\t\a\b\x01\xc3\xa9"), ("GET", "a"),
    ("GET", b"\xff\x80"), ("GET", "none"), ("INCRBY", "a", "-5"), ("MGET", "a", "none", b"\xff\x80"),
    ("SET", "e", ""), ("GET", "e"), ("KEYS", "x"), ("NOSUCH", "a"), ("GET",), ("INCR", "e"),
    ("CONFIG", "GET", "maxmemory"), ("CONFIG", "GET", "nosuch"),
    ("COMMAND", "INFO", "GET", "nosuch"), ("MSET", *"0 a 1 b 2 c 3 d 4 e 5 f".split()),
    ("MGET", *"0123456789"), ("CLIENT", "GETNAME"), ("TYPE", "a"), ("EXISTS", "a", "a"),
]
ALIKE_IN_REDIS = ALIKE + [
    ("SADD", "s", "m"), ("SMEMBERS", "s"), ("HSET", "h", "f", "1", "g", ""), ("HGETALL", "h"),
    ("ZADD", "z", "1.5", "m", "inf", "n"), ("ZRANGE", "z", "0", "-1", "WITHSCORES"),
    ("ZSCORE", "z", "m"), ("XADD", "x", "1-1", "f", "v"), ("XRANGE", "x", "-", "+"),
    ("EVAL", "return {1,{2,{}},'a'}", "0"), ("DEBUG", "PROTOCOL", "VERBATIM"),
    ("EVAL", "redis.setresp(3); return {map={a=1}}", "0"),
    ("EVAL", "redis.setresp(3); return {map={a={1}}}", "0"),
    ("EVAL", "redis.setresp(3); return {map={a={{1,2}}}}", "0"),
    ("EVAL", "redis.setresp(3); return {map={a={map={x={}}}}}", "0"), ("GET", "s"), ("LRANGE", "l", "0", "1"),
    ("EVAL", "redis.setresp(3); return true", "0"), ("EVAL", "return {double=3.25}", "0"),
]


@needs(shutil.which("redis-cli"), "redis-tools")
class AlikeTest(CliTest):
    def compare(self, client, where, commands):
        for style in (("--raw",), ("--no-raw",), ("--no-raw", "-3"), ("-3", "--raw")):
            client.call("FLUSHALL")
            for command in commands:
                theirs = run("redis-cli", *where, *style, *command)[1]
                self.undo(client, command)
                code, ours, said = run(CLI, *where, *style, *command)
                self.assertEqual((ours, said), (theirs, ""), (style, command))
                is_error = ours.startswith((b"(error)", b"ERR", b"WRONGTYPE"))
                self.assertEqual(code, int(is_error), (style, command))

    def undo(self, client, command):
        """Undoes a command, so that the second client finds what the first one found."""
        if command[0] == "INCRBY":
            client.call("INCRBY", command[1], -int(command[2]))
        elif command[0] in ("SADD", "HSET", "ZADD", "XADD"):
            client.call("DEL", command[1])

    def test_on_skep(self):
        server, client = self.server()
        self.compare(client, ("-p", server.port), ALIKE)

    @needs(REDIS_BINARY, "redis-tools")
    def test_on_redis(self):
        redis = RedisServer("--enable-debug-command", "yes")
        self.addCleanup(redis.stop)
        client = redis.connect()
        self.addCleanup(client.close)
        self.compare(client, ("-s", f"{redis.folder}/socket"), ALIKE_IN_REDIS)

    def test_lines(self):
        server, _ = self.server()
        lines = b"SET a \"x\\x00y\"\n\nGET a\nget 'a'\nNOSUCH\nINCR n\n"
        theirs = run("redis-cli", "-p", server.port, stdin=lines)[1].replace(b"\n1\n", b"\n2\n")
        code, ours, _ = run(CLI, "-p", server.port, stdin=lines)
        self.assertEqual((code, ours), (1, theirs))


class CommandLineTest(CliTest):
    def test_exit_status(self):
        server, _ = self.server()
        at = ("-p", server.port)
        self.assertEqual(run(CLI, *at, "PING"), (0, b"PONG\n", ""))
        self.assertEqual(run(CLI, *at, "GET")[0], 1)
        code, _, said = run(CLI, "-p", 1, "PING")
        self.assertEqual((code, said), (2, "skep-cli: 127.0.0.1:1: I/O error: cannot connect "
                                        "(Connection refused)\n"))
        self.assertEqual(run(CLI, "-h", "no.such.host.invalid", "PING")[0], 2)
        self.assertEqual(run(CLI, "-s", self.path("nothing"), "PING")[0], 2)
        self.assertEqual(run(CLI, *at, "--nosuch", "PING")[0], 2)
        self.assertEqual(run(CLI, *at, "--stat", "PING")[0], 2)
        self.assertEqual(run(CLI, *at, "-n", 99, "PING")[0], 2)
        self.assertEqual(run(CLI, "--help")[0], 0)

    def test_log_in_and_keyspace(self):
        path = self.path("socket")
        server, client = self.server("--requirepass", "secret", "--unixsocket", path)
        client.call("AUTH", "secret")
        self.assertEqual(run(CLI, "-p", server.port, "GET", "a")[0::2], (1, ""))
        self.assertEqual(run(CLI, "-p", server.port, "-a", "wrong", "PING")[0], 2)
        self.assertEqual(run(CLI, "-p", server.port, "-a", "secret", "SET", "a", "0"),
                         (0, b"OK\n", ""))
        self.assertEqual(run(CLI, "-s", path, "-n", 3, "SET", "a", "3", SKEPCLI_AUTH="secret"),
                         (0, b"OK\n", ""))
        self.assertEqual(client.call("GET", "a"), b"0")
        client.call("SELECT", 3)
        self.assertEqual(client.call("GET", "a"), b"3")
        lines = b"GET a\nAUTH secret\nGET a\n"
        self.assertEqual(run(CLI, "-s", path, "-n", 3, stdin=lines)[1],
                         b"NOAUTH Authentication required.\n\nOK\n3\n")
        # The variable may be meant for another server: one without a password takes everybody.
        open_to_all, _ = self.server()
        self.assertEqual(run(CLI, "-p", open_to_all.port, "PING", SKEPCLI_AUTH="secret"),
                         (0, b"PONG\n", ""))

    def test_bytes(self):
        server, client = self.server()
        at = ("-p", server.port)
        self.assertEqual(run(CLI, *at, "-x", "SET", "a", stdin=b"\x00\xff\n")[1], b"OK\n")
        self.assertEqual(client.call("GET", "a"), b"\x00\xff\n")
        self.assertEqual(run(CLI, *at, "--hex", "GET", "a")[1], b"0x00ff0a\n")
        self.assertEqual(run(CLI, *at, "--hex", "SET", "0xFF00", "0x", "EX", "100")[1], b"OK\n")
        self.assertEqual(client.call("GET", b"\xff\x00"), b"")
        self.assertEqual(run(CLI, *at, "--hex", "--no-raw", "KRANGE", "-", "+")[1],
                         b"1) 0x61\n2) 0xff00\n")
        code, _, said = run(CLI, *at, "--hex", "GET", "0xf")
        self.assertEqual((code, said), (1, 'skep-cli: "0xf" is not hex\n'))

    def test_json(self):
        server, client = self.server()

        def reply(*command):
            code, said, _ = run(CLI, "-p", server.port, "--json", *command)
            self.assertEqual(said.count(b"\n"), 1)
            return code, json.loads(said)
        client.call("MSET", "a", "\u20ac\n", "b", b"\xff")
        self.assertEqual(reply("MGET", "a", "b", "c"), (0, ["\u20ac\n", {"base64": "/w=="}, None]))
        self.assertEqual(reply("DBSIZE"), (0, 2))
        self.assertEqual(reply("GET"), (
            1, {"error": "ERR wrong number of arguments for 'get' command"}))
        code, said, _ = run(CLI, "-p", server.port, "--json", "-3", "CONFIG", "GET", "maxmemory")
        self.assertEqual((code, list(json.loads(said))), (0, ["maxmemory"]))

    def test_shutdown(self):
        server = SkepServer()
        self.assertEqual(run(CLI, "-p", server.port, "SHUTDOWN"), (0, b"", ""))
        server.check_exit()

    def test_watching(self):
        server, client = self.server()
        client.pipeline(*[("SET", i, i) for i in range(10)])
        code, said, _ = run(CLI, "-p", server.port, "--latency", "-i", "0.05", "-c", 2)
        line = rb"min [\d.]+  avg [\d.]+  p99 [\d.]+  max [\d.]+ ms  \(\d+ pings\)\n"
        self.assertEqual(code, 0)
        self.assertRegex(said, rb"\A" + line + line + rb"\Z")
        code, said, _ = run(CLI, "-p", server.port, "--stat", "-i", "0.05", "-c", 3)
        self.assertEqual(code, 0)
        header, *lines = said.decode().splitlines()
        self.assertEqual(header.split()[0], "keys")
        self.assertEqual([line.split()[0] for line in lines], ["10"] * 3)
        self.assertEqual(run(CLI, "-p", 1, "--latency")[0], 2)


class LoadTest(CliTest):
    def test_tab(self):
        server, client = self.server()
        count = 50_000
        text = b"".join(b"key:%d\tvalue %d\n" % (i, i) for i in range(count))
        code, said, how = run(CLI, "-p", server.port, "-n", 2, "--bulk", "tab",
                              stdin=text + b"\xff\x00\ta\tb\r\nempty\t")
        self.assertEqual((code, said), (0, b""))
        self.assertRegex(how, rf"\A{count + 2} keys in [\d.]+ s, \d+ keys/s, 0 errors\n\Z")
        self.assertEqual(client.call("DBSIZE"), 0)
        client.call("SELECT", 2)
        self.assertEqual(client.call("DBSIZE"), count + 2)
        self.assertEqual(client.call("GET", "key:49999"), b"value 49999")
        self.assertEqual(client.call("MGET", b"\xff\x00", "empty"), [b"a\tb\r", b""])

    def test_commands(self):
        server, client = self.server()
        text = (b"SET a 1\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
                b"SET \"b\\n\" 'x y'\r\n\r\nINCR a\nGET nothing\n")
        code, said, how = run(CLI, "-p", server.port, "--bulk", "commands", stdin=text)
        self.assertEqual((code, said), (0, b""))
        self.assertRegex(how, r"\A5 commands in .* 0 errors\n\Z")
        self.assertEqual(client.call("MGET", "a", "b\n"), [b"3", b"x y"])

    def test_errors_are_counted(self):
        server, client = self.server()
        code, _, how = run(CLI, "-p", server.port, "--bulk", "commands",
                           stdin=b"SET a 1\nSET a\nNOSUCH\nSET b 2\n")
        self.assertEqual(code, 1)
        self.assertRegex(how, r"\Askep-cli: command 2: ERR wrong .*\nskep-cli: command 3: ERR .*\n"
                         r"4 commands in .*, 2 errors\n\Z")
        self.assertEqual(client.call("MGET", "a", "b"), [b"1", b"2"])
        text = b"x\n" * 25 + b"c\t3\n"
        code, _, how = run(CLI, "-p", server.port, "--bulk", "tab", stdin=text)
        self.assertEqual((code, how.count("no TAB")), (1, 10))
        self.assertRegex(how, r"\n1 keys in .*, 25 errors\n\Z")
        self.assertEqual(client.call("GET", "c"), b"3")
        code, _, how = run(CLI, "-p", server.port, "--bulk", "commands", stdin=b"SET d 4\n*1\r\n$x\r\n")
        self.assertEqual(code, 1)
        self.assertRegex(how, r"\Askep-cli: command 2: .*\n1 commands in .*, 0 errors\n\Z")
        self.assertEqual(client.call("GET", "d"), b"4")
        self.assertEqual(run(CLI, "-p", 1, "--bulk", "tab", stdin=b"a\t1\n")[0], 2)

    def test_a_bar_for_a_person(self):
        server, client = self.server()
        with open(self.path("pairs"), "wb") as file:
            file.write(b"".join(b"%d\t\n" % i for i in range(1000)))
        terminal = Terminal(["sh", "-c", f"'{CLI}' -p {server.port} --bulk tab <'{file.name}'"],
                            ENVIRONMENT | {"TERM": "xterm"})
        self.addCleanup(terminal.close)
        shown = []
        put = terminal.screen.put
        terminal.screen.put = lambda text: (shown.append(text), put(text))
        self.assertEqual(terminal.end(), 0)
        self.assertRegex("".join(shown), r"\[=+ *\] +\d+ %")
        self.assertRegex(terminal.screen.text(), r"\A1000 keys in .* 0 errors\Z")
        self.assertEqual(client.call("DBSIZE"), 1000)

    def test_export_and_import(self):
        server, client = self.server()
        target, back = self.server()
        keys = [b"", b"a", b"a\0", b"b", b"b\0", b"c", b"\xff"]
        client.pipeline(*[("SET", key, b"v" + key) for key in keys])
        for bounds in (("-", "+"), ("[a", "(b"), ("(a", "[b"), ("[a", "+"), ("-", "(b"), ("(b", "[a"),
                       ("PREFIX", "b")):
            with self.subTest(bounds=bounds):
                expected = client.call("KRANGE", *bounds)
                back.call("FLUSHALL")
                for form in ("resp", "jsonl"):
                    code, data, said = run(CLI, "-p", server.port, "--export", *bounds, "--format",
                                           form)
                    self.assertEqual((code, said),
                                     (0, f"exported {len(expected)} keys of one version\n"))
                    code, _, said = run(CLI, "-p", target.port, "--import", "--format", form,
                                        stdin=data)
                    self.assertEqual((code, said), (0, f"imported {len(expected)} keys\n"))
                    self.assertEqual(back.call("KRANGE", "-", "+"), expected)
        self.assertEqual(run(CLI, "-p", server.port, "--export", "a", "b")[0], 2)
        data = run(CLI, "-p", server.port, "--export", "-", "+")[1]
        self.assertEqual(run(CLI, "-p", target.port, "-n", 4, "--import", stdin=data)[0], 0)
        back.call("SELECT", 4)
        self.assertEqual(back.call("DBSIZE"), len(keys))


class SilentServer:
    """Takes connections and commands, and answers nothing but COMMAND DOCS."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.commands = []
        self.got_one = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            while data := connection.recv(1 << 16):
                if b"DOCS" in data:
                    connection.sendall(b"*0\r\n")
                else:
                    self.commands.append(data)
                    self.got_one.release()

    def close(self):
        self.listener.close()


class Conversation(CliTest):
    def converse(self, *options, **environment):
        terminal = Terminal([CLI, *options], ENVIRONMENT | {
            "TERM": "xterm", "HOME": self.folder, "LC_ALL": "C.UTF-8"} | environment)
        self.addCleanup(terminal.close)
        return terminal

    def history(self):
        with open(self.path(".skepcli_history"), encoding="utf-8") as file:
            return file.read().splitlines()


class ConversationTest(Conversation):
    def test_completion_hints_and_help(self):
        server, _ = self.server()
        prompt = rf"127\.0\.0\.1:{server.port}> "
        person = self.converse("-p", server.port)
        person.wait_for(prompt.rstrip())
        person.type("KRA\t")
        person.wait_for(prompt + r"KRANGE <min max \| PREFIX prefix> \[REV\] "
                        r"\[LIMIT offset count\] \[TYPE type\] \[WITHVAL\w*\]?")
        person.type("pref\t")
        person.wait_for(prompt + r"KRANGE prefix prefix \[REV\] .*")
        person.type("\x15krange P\t")
        person.wait_for(prompt + r"krange PREFIX prefix \[REV\] .*")
        person.type("x WITHVALUES ")
        person.wait_for(prompt + r"krange PREFIX x WITHVALUES \[REV\] \[LIMIT offset count\] \[TYPE type\]")
        person.type("\r")
        person.wait_for(r"krange PREFIX x WITHVALUES\n\(empty array\)\n" + prompt.rstrip())
        person.type("kc\t")
        person.wait_for(r"kcas +kceil +kcount\n" + prompt + "kc")
        person.type("o\t\x15config s\t")
        person.wait_for(prompt + r"config set <option> <value> .*")
        person.type("\x15help config get\r")
        person.wait_for(r"  CONFIG GET <pattern> \[<pattern> \.\.\.\]\n"
                        r"  Return the options that match, and their values\.\n.*\n" +
                        prompt.rstrip())
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    def test_replies_and_prompt(self):
        server, client = self.server()
        at = rf"127\.0\.0\.1:{server.port}"
        person = self.converse("-p", server.port)
        person.wait_for(at + ">")
        person.type("SET k\u00e9y \"a\\x00 b\"\r")
        person.wait_for(r"\nOK\n" + at + ">")
        person.type("GET k\u00e9y\r")
        person.wait_for(r"\n\"a\\x00 b\"\n" + at + ">")
        self.assertEqual(client.call("GET", "k\u00e9y"), b"a\0 b")
        person.type("SELECT 7\r")
        person.wait_for(r"\nOK\n" + at + r"\[7\]>")
        person.type("SELECT 99\r")
        person.wait_for(r"\n\(error\) ERR .*\n" + at + r"\[7\]>")
        person.type("MULTI\r")
        person.wait_for(r"\nOK\n" + at + r"\[7\]\(TX\)>")
        person.type("SET a 1\r")
        person.wait_for(r"\nQUEUED\n" + at + r"\[7\]\(TX\)>")
        person.type("EXEC\r")
        person.wait_for(r"\n1\) OK\n" + at + r"\[7\]>")
        person.type("MULTI\rNOSUCH\rEXEC\r")
        person.wait_for(r"\n\(error\) EXECABORT .*\n" + at + r"\[7\]>")
        person.type("GET \"a\r")
        person.wait_for(r"\nskep-cli: the quotes are not closed\n" + at + r"\[7\]>")
        person.type("INFO server\r")
        person.wait_for(r"\n# Server\n(.*\n)+" + at + r"\[7\]>")
        person.type("RESET\r")
        person.wait_for(r"\nRESET\n" + at + ">")
        person.type("\x04")
        self.assertEqual(person.end(), 0)

    def test_history(self):
        server, _ = self.server("--requirepass", "secret")
        at = rf"127\.0\.0\.1:{server.port}>"
        person = self.converse("-p", server.port)
        person.wait_for(at)
        person.type("GET a\r")
        person.wait_for(r"\(error\) NOAUTH .*\n" + at)
        person.type("AUTH secret\r")
        person.wait_for(r"AUTH secret\nOK\n" + at)
        person.type("CONFIG SET requirepass secret\r  auth secret\r")
        person.wait_for(r"OK\n.*auth secret\nOK\n" + at)
        # The last one that was kept is the one before the password; it can be typed again.
        person.type("\x1b[A")
        person.wait_for(at + " GET a")
        person.type("bc\r")
        person.wait_for(r"GET abc\n\(nil\)\n" + at)
        person.type("\x04")
        self.assertEqual(person.end(), 0)
        self.assertEqual(self.history(), ["GET a", "GET abc"])
        self.assertEqual(os.stat(self.path(".skepcli_history")).st_mode & 0o777, 0o600)

        again = self.converse("-p", server.port, SKEPCLI_AUTH="secret")
        again.wait_for(at)
        again.type("\x1b[A\x1b[A")
        again.wait_for(at + " GET a")
        again.type("\r")
        again.wait_for(r"GET a\n\(nil\)\n" + at)
        again.type("\x12abc")  # Ctrl-R
        again.wait_for(at + r" GET abc\n.*")
        again.type("\r")
        again.wait_for(r"GET abc\n\(nil\)\n" + at)
        again.type("exit\r")
        self.assertEqual(again.end(), 0)
        elsewhere = self.path("elsewhere")
        third = self.converse("-p", server.port, SKEPCLI_HISTFILE=elsewhere)
        third.wait_for(at)
        third.type("PING\rexit\r")
        self.assertEqual(third.end(), 0)
        with open(elsewhere, encoding="utf-8") as file:
            self.assertEqual(file.read(), "PING\nexit\n")
        self.assertEqual(self.history(), ["GET a", "GET abc", "GET a", "GET abc", "exit"])

    def test_a_server_that_is_started_again(self):
        path = self.path("socket")
        first = SkepServer("--unixsocket", path, "--requirepass", "secret")
        person = self.converse("-s", path, "-n", 3)
        person.wait_for(re.escape(path) + r"\[3\]>")
        person.type("AUTH secret\r")
        person.wait_for(r"AUTH secret\nOK\n" + re.escape(path) + r"\[3\]>")
        person.type("MULTI\r")
        person.wait_for(r"\(TX\)>")
        first.stop()
        person.type("PING\r")
        person.wait_for(r"PING\nskep-cli: the transaction is gone with its connection\n"
                        r"skep-cli: .*: I/O error: cannot connect .*\nnot connected>")
        second, client = self.server("--unixsocket", path, "--requirepass", "secret")
        person.type("SET a 1\r")
        person.wait_for(r"SET a 1\nconnected to " + re.escape(path) + r" again\nOK\n" +
                        re.escape(path) + r"\[3\]>")
        client.call("AUTH", "secret")
        client.call("SELECT", 3)
        self.assertEqual(client.call("GET", "a"), b"1")
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    def test_ctrl_c(self):
        server = SilentServer()
        self.addCleanup(server.close)
        at = rf"127\.0\.0\.1:{server.port}>"
        person = self.converse("-p", server.port)
        person.wait_for(at)
        person.type("half a li")
        person.wait_for(at + " half a li")
        person.type("\x03")
        person.wait_for(r"half a li\^C\n" + at)
        person.type("BLPOP list 0\r")
        self.assertTrue(server.got_one.acquire(timeout=PATIENCE_S))
        person.type("\x03")
        person.wait_for(r"BLPOP list 0\n(\^C)?skep-cli: interrupted; the command goes on, its reply "
                        rf"is lost\nconnected to 127\.0\.0\.1:{server.port} again\n" + at)
        person.type("PING\r")
        self.assertTrue(server.got_one.acquire(timeout=PATIENCE_S))
        person.type("\x03")
        person.wait_for(r"PING\n(\^C)?skep-cli: interrupted(.|\n)*" + at)
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    # Goal: Ctrl-Z gives the shell a terminal that echoes, and the line is there again afterwards.
    def test_ctrl_z(self):
        server, _ = self.server()
        person = self.converse("-p", server.port)
        person.wait_for(rf":{server.port}>")
        person.type("PIN")
        person.wait_for("> PIN")
        self.assertFalse(person.echoes())
        person.type("\x1a")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(person.popen.pid, os.WUNTRACED)[1]))
        self.assertTrue(person.echoes())
        os.kill(person.popen.pid, signal.SIGCONT)
        person.type("G\r")
        person.wait_for(rf"PING\nPONG\n127\.0\.0\.1:{server.port}>")
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    @needs(REDIS_BINARY, "redis-tools")
    def test_beside_redis(self):
        redis = RedisServer()
        self.addCleanup(redis.stop)
        client = redis.connect()
        self.addCleanup(client.close)
        at = re.escape(f"{redis.folder}/socket") + ">"
        person = self.converse("-s", f"{redis.folder}/socket")
        person.wait_for(at)
        person.type("ZRANGEBYSC\t")
        person.wait_for(at + r" ZRANGEBYSCORE key min max \[WITHSCORES\] .*")
        person.type("\x15XGROUP CREATEC\t")
        person.wait_for(at + r" XGROUP CREATECONSUMER key .*")
        person.type("\x15SUBSCRIBE news\r")
        person.wait_for(r"1\) \"subscribe\"\n2\) \"news\"\n3\) \(integer\) 1")
        client.call("PUBLISH", "news", "hello")
        person.wait_for(r"1\) \"message\"\n2\) \"news\"\n3\) \"hello\"")
        person.type("\x03")
        person.wait_for(r"again\n" + at)
        # Wherever in the printing of a stream it comes.
        for _ in range(3):
            person.type("SUBSCRIBE news\r")
            person.wait_for(r"1\) \"subscribe\"\n2\) \"news\"\n3\) \(integer\) 1")
            for _ in range(50):
                client.call("PUBLISH", "news", "hello")
            person.type("\x03")
            person.wait_for(r"again\n" + at)
        person.type("exit\r")
        self.assertEqual(person.end(), 0)


if __name__ == "__main__":
    CLI = sys.argv.pop(1)
    unittest.main(argv=sys.argv)
