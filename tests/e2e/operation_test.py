#!/usr/bin/env python3
"""An operator's view of the server: its log, its file, its limits, signals."""

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from packed import AUTH, Client, Refused
from resp import Error
from skep_process import BINARY, PATIENCE_S, SkepServer


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class IncidentTest(unittest.TestCase):
    # Goal: the log tells of wrong passwords and refused clients, with where they came from, and does
    # not grow with their number.
    def test_the_log_tells_once(self):
        with SkepServer("--requirepass", "secret", "--maxclients", 3) as server:
            with server.connect() as client:
                for _ in range(500):
                    self.assertIsInstance(client.call("AUTH", "wrong"), Error)
                packed = Client(server.port)
                with self.assertRaises(Refused):
                    packed.call(AUTH, b"wrong")
                others = [server.connect()]
                for _ in range(100):
                    with server.connect() as refused:
                        self.assertEqual(refused.read(), Error("ERR max number of clients reached"))
                for other in (*others, packed):
                    other.close()
            server.wait_for_line(rb"a wrong password came from 127\.0\.0\.1:\d+")
            server.wait_for_line(rb"connection from 127\.0\.0\.1:\d+ refused: maxclients \(3\)")
            self.assertEqual(server.output().count(b"wrong password"), 1)
            self.assertEqual(server.output().count(b"refused: maxclients"), 1)

    # Goal: a snapshot that cannot be written is told once, and that it can again.
    # Method: for a while the process may open no file. One snapshot is written before: the sanitizer
    # opens files, too, when it first sees an object of a class.
    def test_snapshots_that_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            with SkepServer("--dir", folder, "--log-segment-bytes", "1mb") as server, \
                    server.connect() as client:
                client.call("SET", "a", 1)
                self.assertEqual(client.call("SAVE"), "OK")
                pid = server.popen.pid
                before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
                for _ in range(3):
                    self.assertIsInstance(client.call("SAVE"), Error)
                server.wait_for_line(rb"a snapshot could not be written")
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
                wait_until(lambda: client.call("SAVE") == "OK")
                server.wait_for_line(rb"snapshots are written again")
                self.assertEqual(server.output().count(b"could not be written"), 1)


class LogFileTest(unittest.TestCase):
    # Goal: logs are rotated as everywhere: the file is moved away and the server told (SIGHUP), or
    # it is copied and cut; a start appends to what there is.
    def test_rotation(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "skep.log")
            with open(path, "w", encoding="utf-8") as file:
                file.write("of another run\n")
            with SkepServer(log=path) as server:
                wait_until(lambda: "ready to accept" in read(path))
                self.assertTrue(read(path).startswith("of another run\n"))
                os.rename(path, path + ".1")
                server.signal(signal.SIGHUP)
                wait_until(lambda: os.path.exists(path) and "opened anew" in read(path + ".1"))
                with socket.create_connection(("127.0.0.1", server.port)) as page:
                    page.sendall(b"POST / HTTP/1.1\r\n\r\n")
                    page.recv(1)
                wait_until(lambda: "SECURITY ATTACK" in read(path))
                self.assertNotIn("SECURITY ATTACK", read(path + ".1"))
                os.truncate(path, 0)
                server.signal(signal.SIGHUP)
                wait_until(lambda: "opened anew" in read(path))
                self.assertNotIn("\0", read(path))
                with server.connect() as client:
                    self.assertEqual(client.call("PING"), "PONG")

    def test_hangup_without_a_file(self):
        with SkepServer() as server, server.connect() as client:
            server.signal(signal.SIGHUP)
            server.wait_for_line(rb"opened anew")
            self.assertEqual(client.call("PING"), "PONG")


class DescriptorTest(unittest.TestCase):
    # Goal: clients cannot take the descriptors that the log needs.
    # Method: few descriptors; maxclients cannot be set beyond them; with all clients there that there
    # can be, more segments of the log are opened than before, and a snapshot is written.
    def test_some_are_kept_back(self):
        with tempfile.TemporaryDirectory() as folder:
            with SkepServer("--dir", folder, "--log-segment-bytes", "64kb") as server, \
                    server.connect() as client:
                resource.prlimit(server.popen.pid, resource.RLIMIT_NOFILE, (400, 400))
                reply = client.call("CONFIG", "SET", "maxclients", 1_000_000)
                self.assertRegex(reply, "not able to handle the specified number of clients")
                possible = int(re.search(r"try with (\d+)", reply).group(1))
                self.assertLess(possible, 400)
                self.assertEqual(client.call("CONFIG", "SET", "maxclients", 100), "OK")
                self.assertEqual(client.call("CONFIG", "SET", "maxclients", possible), "OK")
                crowd = [server.connect() for _ in range(possible + 20)]
                for i in range(100):
                    self.assertEqual(client.call("SET", f"key:{i}", b"x" * 20_000), "OK")
                self.assertEqual(client.call("SAVE"), "OK")
                for connection in crowd:
                    connection.close()

    # Goal: a peer that is gone without a word is found out.
    # Method: what the system keeps of the accepted side of a connection.
    def test_keepalive(self):
        for seconds, expected in ((300, True), (0, False)):
            with SkepServer("--tcp-keepalive", seconds) as server, server.connect() as client:
                self.assertEqual(client.call("PING"), "PONG")
                port = client.socket.getsockname()[1]
                self.assertEqual(self.has_timer(server.port, port), expected)

    # /proc/net/tcp tells of a running timer as 02:..., and of none as 00:....
    def has_timer(self, local, remote):
        for line in read("/proc/net/tcp").splitlines()[1:]:
            words = line.split()
            ports = tuple(int(words[i].split(":")[1], 16) for i in (1, 2))
            if ports == (local, remote):
                return words[5].startswith("02:")
        raise AssertionError("the connection is not there")


def waits_for(pid, number):
    """Whether the process has blocked the signal, as a server does that looks for it."""
    blocked = re.search(r"SigBlk:\s+(\w+)", read(f"/proc/{pid}/status")).group(1)
    return bool(int(blocked, 16) & 1 << number - 1)


class StartTest(unittest.TestCase):
    @staticmethod
    def fill(folder):
        """Makes a log that takes a while to read."""
        with SkepServer("--dir", folder) as server, server.connect() as client:
            for i in range(0, 200_000, 100):
                client.call("MSET", *(b"%d" % n for n in range(2 * i, 2 * i + 200)))

    # Goal: a server that recovers ends when it is told to.
    # Method: the signal comes as soon as the server looks for it.
    def test_a_signal_ends_the_recovery(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fill(folder)
            for number in (signal.SIGTERM, signal.SIGINT):
                process = subprocess.Popen([BINARY, "--port", "0", "--dir", folder],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    wait_until(lambda: waits_for(process.pid, number))
                    process.send_signal(number)
                    _, error = process.communicate(timeout=PATIENCE_S)
                finally:
                    process.kill()
                self.assertEqual(process.returncode, 0)
                self.assertIn(b"ending before the start is done", error)

    def test_a_log_to_a_device(self):
        for device, told_in in (("null", ""), ("stdout", "out"), ("stderr", "error")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")
                process = subprocess.Popen([BINARY, "--port", "0", "--unixsocket", path,
                                            "--logfile", f"/dev/{device}"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    wait_until(lambda: os.path.exists(path))
                    process.send_signal(signal.SIGTERM)
                    out, error = process.communicate(timeout=PATIENCE_S)
                finally:
                    process.kill()
                self.assertEqual(process.returncode, 0)
                self.assertEqual((b"bye" in out, b"bye" in error),
                                 (told_in == "out", told_in == "error"))

    # Goal: a log file that is moved away while a server recovers is opened anew.
    # Method: the signal comes as soon as the server looks for it.
    def test_hangup_during_the_recovery(self):
        with tempfile.TemporaryDirectory() as folder:
            data, path = os.path.join(folder, "data"), os.path.join(folder, "skep.log")
            self.fill(data)
            process = subprocess.Popen([BINARY, "--port", "0", "--dir", data, "--logfile", path])
            try:
                wait_until(lambda: waits_for(process.pid, signal.SIGHUP) and os.path.exists(path))
                os.rename(path, path + ".1")
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: os.path.exists(path))
                self.assertIn("opened anew", read(path + ".1"))
                wait_until(lambda: "ready to accept" in read(path))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE_S), 0)
            finally:
                process.kill()


if __name__ == "__main__":
    unittest.main()
