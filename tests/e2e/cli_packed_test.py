#!/usr/bin/env python3
"""Goal: skep-cli --packed takes the same commands as over RESP, and prints the same.
Method: the same lines over both, into servers that are alike, and their output compared; every
command that --packed says it has is among the lines. Loads and dumps cross from one to the other.

Usage: cli_packed_test.py SKEP_CLI"""

import re
import signal
import subprocess
import sys
import time
import unittest

import cli_test
from cli_test import CliTest, Conversation, run
from skep_process import PATIENCE_S, SkepServer, end_with_parent

# From an empty keyspace to an empty one. No line's reply depends on the time.
LINES = r"""
PING
PING "a b"
PING a b
SET a 1
SET a 2 NX
SET a 3 XX GET
SET none 1 XX
SET a 4 IFEQ 3
SET a 5 IFEQ 3
SET a 5 PXAT 4102444800000 KEEPTTL
SET a 5 EXAT 4102444800
SET a 6 KEEPTTL
SET a 7 EX 0
SET a
PEXPIRETIME a
EXPIRETIME a
EXPIRETIME none
SETEX s 100 x
SETEX s 0 x
PSETEX s 100000 x
SETNX s y
SETNX t y
TTL none
TTL t
PTTL t
PTTL none
PERSIST a
PERSIST a
EXPIRE none 5
EXPIRE t -1
EXISTS t
EXPIRE a 5 NX XX
EXPIREAT a 4102444800 GT
EXPIREAT a 4102444800 NX
PEXPIRE a x
PEXPIREAT a 4102444800001 GT
PEXPIRETIME a
GET a
GET none
GET
GETSET a 8
GETDEL s
GETDEL s
GETEX a PERSIST
GETEX a EX 0
GETEX none EX 0
GETEX a BAD
APPEND a "\x00\xff\r\n"
STRLEN a
DIGEST a
DIGEST none
TYPE a
TYPE none
MSET b 1 c 2 d "x y"
MSET b
MSETNX e 1 b 2
MSETNX e 1 f 2
MSETEX 2 g 1 h 2 NX EXAT 4102444800
MSETEX 0
MGET a none b
EXISTS a a none
DEL e f none
UNLINK g h
DELEX d IFEQ no
DELEX d IFEQ "x y"
RENAME none x
RENAME b z
RENAMENX z c
RENAMENX z b
INCR b
INCRBY n 41
DECR n
DECRBY n -9223372036854775808
INCRBY n x
INCR a
KCAS n 40 41
KCAS n 40 42
KCAS none 1 2
KBATCH IF VALUE n 41 DO PUT n 42 GET n INCRBY n 1
KBATCH IF VALUE n 41 DO PUT n 42
KBATCH IF VALUE n
KRANGE - +
KRANGE - + REV WITHVALUES LIMIT 1 2
KRANGE PREFIX a WITHVALUES
KRANGE [b (c
KRANGE x +
KRANGE - + BAD
KCOUNT - +
KCOUNT PREFIX a
KCOUNT + -
KFIRST
KLAST WITHVALUE
KFLOOR bb
KFLOOR "" WITHVALUE
KCEIL bb WITHVALUE
KCEIL zz
KEXPIRE PREFIX n 4102444800000 LIMIT 1
PERSIST n
KDELRANGE PREFIX n LIMIT x
KDELRANGE PREFIX n LIMIT 1
KDELRANGE - [a
VUPDATE v add f64 1 CREATE 4
VUPDATE v add f64 1.5 RETURN NEW
VUPDATE v add nosuch 1
VREDUCE v sum f64
VREDUCE v max i64
VREDUCE none sum f64
VFILTER v gt f64 1
MULTI
SET t 1
INCR t
INCR v
MGET t none
SET t 1 BAD
KRANGE - + LIMIT 0 2
KCOUNT - +
PING
EXEC
MULTI
SET t 2
DISCARD
GET t
DISCARD
EXEC
MULTI
MULTI
NOSUCH
SET t 3
EXEC
MULTI
SELECT 2
EXEC
DBSIZE
SELECT 2
DBSIZE
SELECT 99
SELECT x
SELECT -1
FLUSHDB BAD
SAVE
"""
STYLES = (["--raw"], ["--no-raw"], ["--json"], ["--hex", "--no-raw"])


def lines_of(text):
    return text.strip().encode() + b"\n"


class PackedCase(CliTest):
    def cli(self, server, *words, **more):
        return run(cli_test.CLI, "-p", server.port, *words, **more)


class CommandTest(PackedCase):
    def compare(self, server, keyspace, text):
        """Compares the output of both for these lines; lines with a command that only one has are apart."""
        lines = lines_of(text + f"\nSELECT {keyspace}\nFLUSHDB\n")
        for style in STYLES:
            with self.subTest(style=style, keyspace=keyspace):
                resp, packed = (self.cli(server, *mode, *style, "-n", keyspace, stdin=lines)
                                for mode in ([], ["--packed"]))
                unknown = rb"ERR unknown command 'NOSUCH'|ERR 'NOSUCH' is no command"
                self.assertEqual(self.without(packed[1], unknown), self.without(resp[1], unknown))
                self.assertEqual((packed[0], packed[2]), (1, ""))

    def without(self, output, pattern):
        kept = [line for line in output.split(b"\n") if not re.search(pattern, line)]
        self.assertEqual(len(kept), output.count(b"\n"))  # one was left out
        return kept

    def test_every_command_is_as_over_resp(self):
        server, _ = self.server("--dir", self.path("data"), "--keyspace", "1=hash")
        self.compare(server, 0, LINES)
        self.compare(server, 1, LINES)
        code, said, _ = self.cli(server, "--packed", "NOSUCH")
        names = re.search(rb"which has (.*)", said)[1].decode().split()
        tried = {line.split()[0] for line in LINES.strip().splitlines()} - {"NOSUCH"}
        self.assertEqual((code, sorted(tried | {"FLUSHDB", "INFO", "SNAPSHOT"})), (1, names))

    # Goal: what a server reads in many pieces is whole; and none of it is bounded as in a
    # transaction, by 1,048,576 keys.
    def test_long_ranges(self):
        server, client = self.server()
        count = 1_100_000
        self.cli(server, "--packed", "--bulk", "tab",
                 stdin=b"".join(b"%07d\t%d\n" % (i, i) for i in range(count)))
        for command in (("KCOUNT", "-", "+"), ("KRANGE", "PREFIX", "00", "WITHVALUES"),
                        ("KRANGE", "-", "+", "REV", "LIMIT", 80_000, 5)):
            with self.subTest(command=command):
                resp = self.cli(server, *command)
                self.assertEqual(self.cli(server, "--packed", *command), resp)
                self.assertEqual(resp[0::2], (0, ""))
        self.assertEqual(self.cli(server, "--packed", "KDELRANGE", "(0000010", "+"),
                         (0, b"%d\n" % (count - 11), ""))
        self.assertEqual(client.call("DBSIZE"), 11)

    def test_lifetimes(self):
        server, client = self.server()
        self.cli(server, "--packed", "SET", "a", "1", "EX", "1000")
        self.assertIn(client.call("TTL", "a"), range(900, 1001))
        client.call("PEXPIRE", "a", 2_000_000)
        self.assertIn(int(self.cli(server, "--packed", "TTL", "a")[1]), range(1900, 2001))
        self.assertIn(int(self.cli(server, "--packed", "PTTL", "a")[1]), range(1_900_000, 2_000_001))

    def test_snapshot(self):
        server, _ = self.server("--keyspace", "1=hash")
        lines = lines_of("""
SET a 1
SNAPSHOT
SET a 2
SET b 2
GET a
MGET a b
KRANGE - +
DBSIZE
SELECT 3
MULTI
SNAPSHOT
EXEC
SNAPSHOT END
GET a
SNAPSHOT END
SNAPSHOT NOW
KRANGE - + TYPE string
""")
        code, said, why = self.cli(server, "--packed", stdin=lines)
        got = said.split(b"\n")
        self.assertRegex(got.pop(1), rb"\A\d+\Z")
        self.assertEqual((code, why), (1, ""))
        self.assertEqual([line for line in got if line], [
            b"OK", b"OK", b"OK", b"1", b"1", b"a", b"1",
            b"ERR SELECT while a snapshot is open: it is of one database", b"OK",
            b"ERR Command not allowed inside a transaction: it is not of the transaction",
            b"EXECABORT Transaction discarded because of previous errors.", b"OK", b"2",
            b"ERR SNAPSHOT END without SNAPSHOT", b"ERR syntax error", b"ERR syntax error"])

    def test_a_snapshot_that_is_too_old(self):
        server, client = self.server("--snapshot-age-ms", "1")
        cli = subprocess.Popen([cli_test.CLI, "--packed", "-p", str(server.port)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=cli_test.ENVIRONMENT,
                               preexec_fn=end_with_parent)
        cli.stdin.write(b"SET a 1\nSNAPSHOT\nSET a 2\n")
        cli.stdin.flush()
        while client.call("GET", "a") != b"2" or b"snapshots=0" not in client.call("INFO", "keyspace"):
            pass
        said, why = cli.communicate(b"GET a\nGET a\n", PATIENCE_S)
        self.assertRegex(said, rb"\AOK\n\d+\nOK\nSNAPSHOTTOOOLD .*\n\n2\n\Z")
        self.assertEqual((cli.returncode, why), (
            1, b"skep-cli: the snapshot is gone, by its age or with its connection; reads are of "
            b"now again\n"))

    def test_info(self):
        server, client = self.server("--keyspace", "1=hash")
        client.pipeline(*[("SET", i, i) for i in range(10)])
        code, said, _ = self.cli(server, "--packed", "INFO")
        self.assertEqual(code, 0)
        self.assertRegex(said, rb"\A# Keyspace\r\ndb0:keys=10,engine=btree,bytes=\d+,")
        self.assertRegex(said, rb"\n# Engine\r\n(.*\n)*db0_height:\d+\r\n")


class CommandLineTest(PackedCase):
    def test_exit_status(self):
        server, _ = self.server()
        self.assertEqual(self.cli(server, "--packed", "PING"), (0, b"PONG\n", ""))
        self.assertEqual(self.cli(server, "--packed", "GET")[0], 1)
        code, _, why = run(cli_test.CLI, "-p", 1, "--packed", "PING")
        self.assertEqual(code, 2)
        self.assertRegex(why, r"\Askep-cli: 127\.0\.0\.1:1: unavailable: cannot connect .*\n\Z")
        code, _, why = self.cli(server, "--packed", "-n", 99, "PING")
        self.assertEqual((code, why), (
            2, f"skep-cli: 127.0.0.1:{server.port}: ERR DB index is out of range\n"))

    def test_what_needs_resp_is_refused(self):
        server, _ = self.server()
        for words in (["--resp3"], ["--user", "a"], ["--latency"], ["--stat"],
                      ["--bulk", "commands"]):
            self.assertEqual(self.cli(server, "--packed", *words), (
                2, b"", f"skep-cli: {' '.join(words) if words[0] == '--bulk' else words[0]} "
                "needs RESP: without --packed\n"))

    def test_log_in_and_socket(self):
        path = self.path("socket")
        server, client = self.server("--requirepass", "secret", "--unixsocket", path)
        client.call("AUTH", "secret")
        code, _, why = self.cli(server, "--packed", "PING")
        self.assertEqual(code, 2)
        self.assertIn("password", why)
        self.assertEqual(self.cli(server, "--packed", "-a", "wrong", "PING")[0], 2)
        self.assertEqual(run(cli_test.CLI, "--packed", "-s", path, "-n", 3, "SET", "a", "3",
                             SKEPCLI_AUTH="secret"), (0, b"OK\n", ""))
        client.call("SELECT", 3)
        self.assertEqual(client.call("GET", "a"), b"3")

    def test_bytes_from_input(self):
        server, client = self.server()
        self.assertEqual(self.cli(server, "--packed", "-x", "SET", "a", stdin=b"\x00\xff\n")[1],
                         b"OK\n")
        self.assertEqual(client.call("GET", "a"), b"\x00\xff\n")


class LoadTest(PackedCase):
    def test_tab(self):
        server, client = self.server()
        count = 50_000
        text = b"".join(b"key:%d\tvalue %d\n" % (i, i) for i in range(count))
        text += b"no tab\n\xff\x00\ta\tb\r\nkey:1\tagain\n" + b"k" * 70_000 + b"\tlong\nempty\t"
        code, said, how = self.cli(server, "--packed", "-n", 2, "--bulk", "tab", stdin=text)
        self.assertEqual((code, said), (1, b""))
        self.assertRegex(how, rf"\Askep-cli: line {count + 1}: no TAB\n"
                         rf"skep-cli: line {count + 4}: ERR .*65536.*\n"
                         rf"{count + 4} keys in [\d.]+ s, \d+ keys/s, 2 errors\n\Z")
        client.call("SELECT", 2)
        self.assertEqual(client.call("DBSIZE"), count + 2)
        self.assertEqual(client.call("MGET", "key:1", "key:49999", b"\xff\x00", "empty"),
                         [b"again", b"value 49999", b"a\tb\r", b""])

    def test_a_server_that_ends_meanwhile(self):
        server = SkepServer()
        cli = subprocess.Popen([cli_test.CLI, "--packed", "-p", str(server.port), "--bulk", "tab"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=cli_test.ENVIRONMENT,
                               preexec_fn=end_with_parent)
        cli.stdin.write(b"".join(b"%d\t\n" % i for i in range(200_000)))
        cli.stdin.flush()
        server.stop()
        _, how = cli.communicate(b"".join(b"%d\t\n" % i for i in range(200_000)), PATIENCE_S)
        self.assertEqual(cli.returncode, 1)
        self.assertRegex(how, rb"\Askep-cli: unavailable: .*; the last \d+ commands may or may not "
                         rb"have been executed\n\d+ keys in .*, 0 errors\n\Z")

    def test_no_server(self):
        self.assertEqual(run(cli_test.CLI, "--packed", "-p", 1, "--bulk", "tab", stdin=b"a\t1")[0], 2)
        self.assertEqual(run(cli_test.CLI, "--packed", "-p", 1, "--export", "-", "+")[0], 1)
        self.assertEqual(run(cli_test.CLI, "--packed", "-p", 1, "--import", stdin=b"")[0], 1)

    def test_export_and_import(self):
        server, client = self.server("--keyspace", "1=hash")
        target, back = self.server("--keyspace", "1=hash")
        for keyspace in (0, 1):
            client.call("SELECT", keyspace)
            back.call("SELECT", keyspace)
            client.pipeline(*[("SET", b"%d\xff" % i, b"v" * (i % 5000), "PXAT", 4102444800000 + i)
                              for i in range(1000)])
            client.call("SET", "a", "no deadline")
            for bounds in (("-", "+"), ("[a", "+"), ("[3", "(5"), ("PREFIX", "12")):
                for form in ("resp", "jsonl"):
                    with self.subTest(keyspace=keyspace, bounds=bounds, form=form):
                        words = ("-n", keyspace, "--export", *bounds, "--format", form)
                        resp = self.cli(server, *words)
                        packed = self.cli(server, "--packed", *words)
                        self.assertEqual(packed[0::2], resp[0::2])
                        self.assertEqual(sorted(packed[1].split(b"\n")), sorted(resp[1].split(b"\n")))
                        back.call("FLUSHDB")
                        code, _, said = self.cli(target, "--packed", "-n", keyspace, "--import",
                                                 "--format", form, stdin=packed[1])
                        keys = int(re.search(r"\d+", resp[2])[0])
                        self.assertEqual((code, said), (0, f"imported {keys} keys\n"))
                        again = self.cli(target, *words)
                        self.assertEqual(sorted(again[1].split(b"\n")), sorted(resp[1].split(b"\n")))

    def test_import_goes_where_it_is_said(self):
        server, client = self.server()
        data = (b"SET a 1\nSELECT 3\nSET b 2 NX\nSET b 3 NX\nSET c 4 EX x\nSET d 5\n")
        code, _, said = self.cli(server, "--packed", "--import", stdin=data)
        self.assertEqual((code, said), (
            1, 'skep-cli: key "b": its condition does not hold\n'
            'skep-cli: key "c": ERR value is not an integer or out of range\n'
            "imported 3 keys, 2 were refused\n"))
        self.assertEqual(client.call("GET", "a"), b"1")
        client.call("SELECT", 3)
        self.assertEqual(client.call("MGET", "a", "b", "d"), [None, b"2", b"5"])
        self.cli(server, "--packed", "-n", 4, "--import", stdin=b"SET a 1\nSELECT 3\nSET b 2\n")
        client.call("SELECT", 4)
        self.assertEqual(client.call("DBSIZE"), 2)
        code, _, said = self.cli(server, "--packed", "--import", stdin=b"SELECT 99\nSET a 1\n")
        self.assertEqual((code, said), (
            1, "imported 0 keys\nskep-cli: database 99: ERR DB index is out of range\n"))


class ConversationTest(Conversation):
    def test_completion_hints_and_help(self):
        server, _ = self.server()
        prompt = rf"127\.0\.0\.1:{server.port}> "
        person = self.converse("--packed", "-p", server.port)
        person.wait_for(prompt.rstrip())
        person.type("KRA\t")
        person.wait_for(prompt + r"KRANGE <min max \| PREFIX prefix> \[REV\] "
                        r"\[LIMIT offset count\] \[TYPE type\] \[WITHVAL\w*\]?")
        person.type("pref\tx\r")
        person.wait_for(r"KRANGE prefix x\n\(empty array\)\n" + prompt.rstrip())
        person.type("snap\t")
        person.wait_for(prompt + r"snapshot \[END\]")
        person.type("e\t\x15help snapshot\r")
        person.wait_for(r"  SNAPSHOT \[END\]\n  Pins the database as it is now: .*\n.*\n" +
                        prompt.rstrip())
        person.type("ksc\t\x15help kscan\r")
        person.wait_for(r"has no command KSCAN\.\n" + prompt.rstrip())
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    def test_replies_and_prompt(self):
        server, client = self.server()
        at = rf"127\.0\.0\.1:{server.port}"
        person = self.converse("--packed", "-p", server.port)
        person.wait_for(at + ">")
        person.type("SELECT 7\r")
        person.wait_for(r"\nOK\n" + at + r"\[7\]>")
        person.type("SNAPSHOT\r")
        person.wait_for(r"\n\(integer\) \d+\n" + at + r"\[7\]\(SNAPSHOT\)>")
        person.type("MULTI\r")
        person.wait_for(r"\nOK\n" + at + r"\[7\]\(SNAPSHOT\)\(TX\)>")
        person.type("SET a 1\rEXEC\r")
        person.wait_for(r"\n1\) OK\n" + at + r"\[7\]\(SNAPSHOT\)>")
        person.type("GET a\r")
        person.wait_for(r"\n\(nil\)\n" + at + r"\[7\]\(SNAPSHOT\)>")
        person.type("SNAPSHOT END\r")
        person.wait_for(r"\nOK\n" + at + r"\[7\]>")
        person.type("INFO\r")
        person.wait_for(r"\n# Keyspace\n(.*\n)+" + at + r"\[7\]>")
        person.type("\x04")
        self.assertEqual(person.end(), 0)
        client.call("SELECT", 7)
        self.assertEqual(client.call("GET", "a"), b"1")

    def test_a_server_that_is_started_again(self):
        path = self.path("socket")
        first = SkepServer("--unixsocket", path)
        person = self.converse("--packed", "-s", path, "-n", 3)
        person.wait_for(re.escape(path) + r"\[3\]>")
        person.type("SNAPSHOT\r")
        person.wait_for(r"\(SNAPSHOT\)>")
        first.stop()
        person.type("GET a\r")
        person.wait_for(r"GET a\nskep-cli: the snapshot is gone.*\n(skep-cli: .*\n)+not connected>")
        self.server("--unixsocket", path)
        person.type("SET a 1\r")
        person.wait_for(r"SET a 1\nconnected to " + re.escape(path) + r" again\nOK\n" +
                        re.escape(path) + r"\[3\]>")
        person.type("exit\r")
        self.assertEqual(person.end(), 0)

    # Goal: a call that waits is ended with the program.
    def test_ctrl_c(self):
        server, _ = self.server()
        at = rf"127\.0\.0\.1:{server.port}>"
        person = self.converse("--packed", "-p", server.port)
        person.wait_for(at)
        person.type("half a li")
        person.wait_for(at + " half a li")
        person.type("\x03")
        person.wait_for(r"half a li\^C\n" + at)
        server.popen.send_signal(signal.SIGSTOP)
        self.addCleanup(server.popen.send_signal, signal.SIGCONT)
        # One that comes before the call waits drops the line, and one that comes while the terminal
        # changes its mode drops what is typed.
        until = time.monotonic() + PATIENCE_S
        while person.popen.poll() is None and time.monotonic() < until:
            person.type("GET a\r")
            again = time.monotonic() + 5
            while (not person.echoes() and person.popen.poll() is None and time.monotonic() < again):
                time.sleep(0.01)
            time.sleep(0.3)
            person.type("\x03")
            time.sleep(0.7)
        self.assertEqual(person.end(), -signal.SIGINT)
        server.popen.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    cli_test.CLI = sys.argv.pop(1)
    unittest.main(argv=sys.argv)
