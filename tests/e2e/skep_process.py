"""skep_process.py: starts servers for the tests, and makes sure how they end.

SKEP_SERVER names the binary under test. Every server listens on 127.0.0.1, on a port the system
chose, and in a folder of its own; only processes started here are ever signalled.

A test fails if its server exits with anything but 0, does not exit, or leaves a sanitizer's report.
"""

import ctypes
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from resp import Connection, Error

BINARY = os.environ.get("SKEP_SERVER", "")
ROOT = Path(__file__).resolve().parents[2]
SANITIZED = bool(os.environ.get("SKEP_SANITIZED"))

# Debian's redis-tools has the server under another name: which it is, the program learns from the
# name it is started by. The package redis-server adds a link, and a service that takes port 6379.
REDIS_BINARY = shutil.which("redis-server") or shutil.which("redis-check-rdb")

# How long anything may take before it counts as hung. Nothing is ever timed against it.
PATIENCE_S = 120

REPORT = re.compile(rb"(AddressSanitizer|ThreadSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer"
                    rb"|runtime error:|CHECK failed)")


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def end_with_parent():
    """In a child: the kernel ends it when the thread that started it ends, however that comes."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def needs(program, package):
    """Decorates a test that needs a program of a package. Without it the test is skipped, but fails
    where CI is set: scripts/packages.txt should have brought the package."""
    if not program and os.environ.get("CI"):
        raise SystemExit(f"{package} is not installed")
    return unittest.skipUnless(program, f"{package} is not installed")


def zookeeper_jar():
    """Whether scripts/zookeeper can run here."""
    return shutil.which("java") and os.path.exists("/usr/share/java/zookeeper.jar")


def library_environment(library):
    """Of a Python program that uses this libskep."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "SKEP_LIBRARY": library}
    if SANITIZED:
        environment["LD_PRELOAD"] = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True,
            text=True).stdout.strip()
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
    return environment


def free_port():
    """A port at which nobody listens, for a server that must know it beforehand. It is none of those
    that the system gives to outgoing connections, so none takes it until the server is started, or
    started again."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Process:
    """A running process with its output collected."""

    def __init__(self, command, folder, executable=None, environment=None):
        self.folder = folder
        self._lines = []
        self._grown = threading.Condition()
        self.popen = subprocess.Popen(command, executable=executable, cwd=folder,
                                      env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      preexec_fn=end_with_parent)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.popen.stdout:
            with self._grown:
                self._lines.append(line)
                self._grown.notify_all()
        with self._grown:
            self._lines.append(None)
            self._grown.notify_all()

    def output(self):
        with self._grown:
            return b"".join(line for line in self._lines if line)

    def wait_for_line(self, pattern):
        """The match of the first line of output that has the pattern."""
        seen = 0
        deadline = time.monotonic() + PATIENCE_S
        with self._grown:
            while True:
                for line in self._lines[seen:]:
                    if line is None:
                        raise AssertionError(f"ended before {pattern!r}:\n{self._text()}")
                    if found := re.search(pattern, line):
                        return found
                seen = len(self._lines)
                if not self._grown.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no {pattern!r} in:\n{self._text()}")

    def _text(self):
        return b"".join(line for line in self._lines if line).decode(errors="replace")

    def wait(self):
        """The exit code; kills what does not end."""
        try:
            code = self.popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(f"did not end:\n{self.output().decode(errors='replace')}") from None
        finally:
            self._reader.join(PATIENCE_S)
        return code

    def signal(self, number):
        if self.popen.poll() is None:
            self.popen.send_signal(number)

    def end(self):
        """Has it end, if it has not, and closes its output; the exit code."""
        self.signal(signal.SIGTERM)
        code = self.wait()
        self.popen.stdout.close()
        return code

    def rss_bytes(self):
        with open(f"/proc/{self.popen.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024


def wait_for(path, pattern):
    """The first match of the pattern in the file."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if os.path.exists(path):
            with open(path, "rb") as file:
                if found := re.search(pattern, file.read()):
                    return found
        assert time.monotonic() < deadline, f"no {pattern!r} in {path}"
        time.sleep(0.01)


class SkepServer(Process):
    """`with SkepServer("--maxclients", "10") as server:` connects, and ends it cleanly. `log` is the
    path of its log, if that is not what it prints."""

    def __init__(self, *options, log=None):
        folder = tempfile.mkdtemp(prefix="skep-e2e-")
        if log is not None:
            options = (*options, "--logfile", log)
        super().__init__([BINARY, "--bind", "127.0.0.1", "--port", "0", *map(str, options)], folder)
        try:
            listening = rb"127\.0\.0\.1:(\d+)"
            found = self.wait_for_line(listening) if log is None else wait_for(log, listening)
            self.port = int(found.group(1))
        except AssertionError:
            self._discard()
            raise

    def connect(self, **options):
        return Connection(self.port, **options)

    def stop(self, number=signal.SIGTERM):
        """Ends the server; fails if it does not end as it should."""
        self.signal(number)
        self.check_exit()

    def check_exit(self):
        """Waits for the end, and fails unless it was a clean one."""
        try:
            code = self.wait()
            output = self.output()
            assert not REPORT.search(output), output.decode(errors="replace")
            assert code == 0, f"exit code {code}:\n{output.decode(errors='replace')}"
        finally:
            self._discard()

    def _discard(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close() if not self._reader.is_alive() else None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.signal(signal.SIGTERM)
            self.wait()
            print(self.output().decode(errors="replace"))
            self._discard()


class RedisServer(Process):
    """The packaged redis-server, on a unix socket, with nothing saved. For comparison."""

    def __init__(self, *options):
        folder = tempfile.mkdtemp(prefix="skep-e2e-redis-")
        super().__init__(["redis-server", "--port", "0", "--bind", "127.0.0.1",
                          "--unixsocket", f"{folder}/socket",
                          "--save", "", "--appendonly", "no", *map(str, options)], folder,
                         executable=REDIS_BINARY)
        self.wait_for_line(rb"ready to accept connections|The server is now ready")

    def connect(self, **options):
        return Connection(f"{self.folder}/socket", **options)

    def stop(self):
        self.signal(signal.SIGTERM)
        self.wait()
        self.popen.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class ServerTest(unittest.TestCase):
    """Tests that share one server, started with OPTIONS; it is empty when each begins."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = SkepServer(*cls.OPTIONS)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.client = self.server.connect()
        self.addCleanup(self.client.close)
        self.assertEqual(self.client.call("FLUSHALL"), "OK")

    def check(self, expected, *args):
        """Sends a command; its reply must be the expected one, and an error only if expected."""
        value = self.client.call(*args)
        shown = repr(args)[:200]
        self.assertEqual(isinstance(value, Error), isinstance(expected, Error), (shown, value))
        self.assertEqual(value, expected, shown)
