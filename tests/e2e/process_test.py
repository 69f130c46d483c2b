#!/usr/bin/env python3
"""The process: how it starts, is configured and ends."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from resp import Connection, Error, encode
from skep_process import BINARY, PATIENCE_S, SkepServer, end_with_parent

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    """Runs the binary to its end: exit code, standard output, standard error."""
    done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class EndTest(unittest.TestCase):
    def test_signals_end_it_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = SkepServer()
            with server.connect() as idle, server.connect() as half, server.connect() as busy:
                half.send(b"*2\r\n$3\r\nGET\r\n$1")
                self.assertEqual(busy.call("SET", "a", 1), "OK")
                server.stop(number)
                for client in (idle, half, busy):
                    self.assertTrue(client.is_closed())

    # Goal: the end comes although one connection never takes its replies.
    def test_a_reader_that_never_reads_does_not_hold_up_the_end(self):
        server = SkepServer()
        with server.connect() as client, server.connect() as deaf:
            self.assertEqual(client.call("SET", "big", b"x" * (4 << 20)), "OK")
            deaf.send(encode("GET", "big") * 8)
            self.assertEqual(client.call("PING"), "PONG")
            server.stop()

    def test_shutdown_ends_it(self):
        for command in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["shutdown", "nosave", "now"]):
            with self.subTest(command=command):
                server = SkepServer()
                with server.connect() as client:
                    client.send(encode(*command))
                    self.assertTrue(client.is_closed())
                server.check_exit()

    def test_a_wrong_shutdown_does_not(self):
        with SkepServer() as server, server.connect() as client:
            self.assertEqual(client.call("SHUTDOWN", "nosuch"), Error("ERR syntax error"))
            self.assertEqual(client.call("PING"), "PONG")


    # Goal: a server that a test started never outlives the test, whatever ends that.
    # Method: a second interpreter starts a server as tests do, and is killed. The kernel closes the
    # server's connections when it ends the server.
    def test_a_killed_test_leaves_no_server(self):
        test = subprocess.Popen(
            [sys.executable, "-c", "import time\nfrom skep_process import SkepServer\n"
             "server = SkepServer()\nprint(server.port, server.folder, flush=True)\ntime.sleep(1e6)"],
            cwd=os.path.dirname(os.path.abspath(__file__)), stdout=subprocess.PIPE, text=True,
            preexec_fn=end_with_parent)
        port, folder = test.stdout.readline().split()
        self.addCleanup(shutil.rmtree, folder)
        with Connection(int(port)) as client:
            self.assertEqual(client.call("PING"), "PONG")
            test.kill()
            test.communicate()
            self.assertTrue(client.is_closed())


class StartTest(unittest.TestCase):
    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        for option in ("--port", "--bind", "--unixsocket", "--maxclients", "--maxmemory",
                       "--requirepass", "--workers", "--engine", "--config"):
            self.assertIn(option, out)
        code, out, err = run("--version")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^skep-server \d+\.\d+\.\d+\n$")

    def test_wrong_options_are_one_line_and_exit_code_2(self):
        for arguments, says in ((["--nosuch"], "--nosuch"), (["--port", "x"], "--port"),
                                (["--maxmemory", "1t"], "memory value"), (["stray"], "stray"),
                                (["--engine", "nosuch"], "model"),
                                (["--bind", "0.0.0.0"], "requirepass"),
                                (["--config", "/nonexistent"], "/nonexistent")):
            with self.subTest(arguments=arguments):
                code, out, err = run(*arguments)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(says, err)

    # Goal: what keeps the server from its start is told once, in one line that names the address or
    # the path; a log file has it too.
    def test_why_it_does_not_start_is_told_once(self):
        with (socket.create_server(("127.0.0.1", 0)) as taken,
              tempfile.TemporaryDirectory() as folder):
            port = taken.getsockname()[1]
            file, data, log = f"{folder}/file", f"{folder}/data", f"{folder}/log"
            with open(file, "wb"):
                pass
            free = ("--port", "0")
            failures = {
                f"127.0.0.1:{port}": ("--port", port),
                f"unix:{folder}/none/socket": (*free, "--unixsocket", f"{folder}/none/socket"),
                f"{folder}/none/data": (*free, "--dir", f"{folder}/none/data"),
                file: (*free, "--dir", file),
                data: (*free, "--dir", data),
                f"{folder}/none/log": (*free, "--logfile", f"{folder}/none/log")}
            with SkepServer("--dir", data):
                for path, arguments in failures.items():
                    for logs in ((), ("--logfile", log)) if "--logfile" not in arguments else ((),):
                        with self.subTest(path=path, logs=logs):
                            code, out, err = run(*map(str, arguments), *logs)
                            self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
                            self.assertIn(path, err)
                            if logs:
                                with open(log, encoding="utf-8") as lines:
                                    last = lines.readlines()[-1]
                                self.assertIn(err.removeprefix("skep-server: "), last)

    def test_configuration_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("maxclients = 77\nrequirepass = 'secret'\ntimeout = 5\n")
            file.flush()
            with SkepServer("--config", file.name, "--timeout", 9) as server:
                with server.connect() as client:
                    self.assertEqual(client.call("AUTH", "secret"), "OK")
                    self.assertEqual(client.call("CONFIG", "GET", "maxclients"),
                                     [b"maxclients", b"77"])
                    self.assertEqual(client.call("CONFIG", "GET", "timeout"), [b"timeout", b"9"])

    # Goal: the file that is installed is the one that the server prints, and it starts a server.
    def test_the_printed_file(self):
        code, out, err = run("--print-config")
        self.assertEqual((code, err), (0, ""))
        with open(ROOT / "tools/etc/skep.toml", encoding="utf-8") as file:
            self.assertEqual(out, file.read())
        code, out, err = run("--print-config", "--port", "7000", "--maxmemory", "1gb")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\nport = 7000\n", out)
        self.assertIn("\nmaxmemory = 1073741824\n", out)

    # Goal: a redis.conf is recognised, and translated to a file that starts a server.
    def test_a_configuration_file_of_redis(self):
        with tempfile.TemporaryDirectory() as folder:
            old, new = f"{folder}/redis.conf", f"{folder}/skep.toml"
            with open(old, "w", encoding="utf-8") as file:
                file.write("# mine\nport 0\nmaxclients 77\nactiverehashing yes\n")
            for arguments in ([old], ["--config", old]):
                code, out, err = run(*arguments)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(f"--convert-config {old}", err)
            code, out, err = run("--convert-config", old)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("#   4: activerehashing: skep-server has no such option\n", out)
            with open(new, "w", encoding="utf-8") as file:
                file.write(out)
            with SkepServer("--config", new) as server, server.connect() as client:
                self.assertEqual(client.call("CONFIG", "GET", "maxclients"), [b"maxclients", b"77"])
            self.assertEqual(run("--convert-config", folder + "/none")[0], 2)

    # Goal: what CONFIG SET changed lasts after CONFIG REWRITE, and the rest of the file stays.
    def test_config_rewrite(self):
        with SkepServer() as server, server.connect() as client:
            self.assertEqual(client.call("CONFIG", "REWRITE"),
                             Error("ERR The server is running without a config file"))
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/skep.toml"
            with open(path, "w", encoding="utf-8") as file:
                file.write("# mine\nmaxclients = 77 # few\n")
            with SkepServer("--config", path) as server, server.connect() as client:
                self.assertEqual(client.call("CONFIG", "SET", "maxclients", 78, "timeout", 9), "OK")
                self.assertEqual(client.call("CONFIG", "REWRITE"), "OK")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "# mine\nmaxclients = 78 # few\ntimeout = 9\n")
            self.assertEqual(os.listdir(folder), ["skep.toml"])
            with SkepServer("--config", path) as server, server.connect() as client:
                self.assertEqual(client.call("CONFIG", "GET", "maxclients"), [b"maxclients", b"78"])
                with open(path, "w", encoding="utf-8") as file:
                    file.write("maxclients 78\n")
                self.assertEqual(client.call("CONFIG", "REWRITE"), Error(
                    "ERR Rewriting config file: invalid argument: not a TOML file"))

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "skep.sock")
            with SkepServer("--unixsocket", path) as server:
                with Connection(path) as client, server.connect() as other:
                    self.assertEqual(client.call("SET", "a", 1), "OK")
                    self.assertEqual(other.call("GET", "a"), b"1")

    def test_any_number_of_workers_serves_one_store(self):
        for workers in (1, 2, 7):
            with SkepServer("--workers", workers) as server:
                clients = [server.connect() for _ in range(16)]
                for i, client in enumerate(clients):
                    self.assertEqual(client.call("SET", f"key{i}", i), "OK")
                for client in clients:
                    self.assertEqual(client.call("KCOUNT", "-", "+"), 16)
                    client.close()


if __name__ == "__main__":
    unittest.main()
