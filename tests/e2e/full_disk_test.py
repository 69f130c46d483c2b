#!/usr/bin/python3
"""A server whose disk is really full: a small file system of its own, which needs root.

What is refused and what goes on, that it recovers by itself, and that it starts on a full disk.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import skep_process
from resp import Error
from skep_process import SkepServer

SKIPPED = 77
DISK_BYTES = 64 << 20
MISCONF = "MISCONF "


class SmallDisk:
    """A file system in memory, of DISK_BYTES; it goes when the `with` ends, however it does."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="skep-e2e-disk-")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "skep-test", self.path],
                                 capture_output=True, check=False)
        self.is_mounted = mounted.returncode == 0
        if not self.is_mounted:
            os.rmdir(self.path)
            raise unittest.SkipTest(f"no file system can be mounted: {mounted.stderr.decode()}")
        return self

    def __exit__(self, *_):
        # Lazily: a server that did not end as it should still has files open.
        subprocess.run(["umount", "-l", self.path], check=True)
        os.rmdir(self.path)

    @property
    def dir(self):
        return f"{self.path}/data"

    def free_bytes(self):
        about = os.statvfs(self.path)
        return about.f_bavail * about.f_frsize

    def fill(self):
        """Fills the rest of the disk, as another process would."""
        with open(f"{self.path}/filler", "ab", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass

    def empty(self):
        os.remove(f"{self.path}/filler")


def is_refused(reply):
    return isinstance(reply, Error) and str(reply).startswith(MISCONF)


class FullDiskTest(unittest.TestCase):

    def setUp(self):
        self.disk = SmallDisk()
        self.disk.__enter__()
        self.addCleanup(self.disk.__exit__)
        self.options = ["--dir", self.disk.dir, "--log-segment-bytes", "1mb"]

    def start(self):
        server = SkepServer(*self.options)
        self.addCleanup(self.end, server)
        return server

    def connect(self, server):
        client = server.connect()
        self.addCleanup(client.close)
        return client

    @staticmethod
    def end(server, number=signal.SIGTERM):
        server.signal(number)
        server.wait()
        server.popen.stdout.close()
        shutil.rmtree(server.folder, ignore_errors=True)

    def fill_until_refused(self, client, value, keys):
        for i in range(200_000):
            reply = client.call("SET", f"key:{i % keys}", value)
            if is_refused(reply):
                return i
            self.assertEqual(reply, "OK")
        self.fail("nothing was refused")

    def wait_until_stored(self, client):
        """Waits until the server stores again, which it does by itself."""
        deadline = time.monotonic() + skep_process.PATIENCE_S
        while is_refused(reply := client.call("SET", "again", "1")):
            self.assertLess(time.monotonic(), deadline, "it stays refused")
            time.sleep(0.05)
        self.assertEqual(reply, "OK")
        self.assertEqual(client.call("DEL", "again"), 1)

    def check_reads(self, client, keys):
        self.assertEqual(client.call("DBSIZE"), keys)
        self.assertEqual(client.call("EXISTS", "key:0", "key:1", "key:2"), 3)
        self.assertEqual(len(client.call("MGET", "key:0", "key:1")), 2)
        self.assertEqual(client.call("KCOUNT", "-", "+"), keys)
        self.assertEqual(len(client.call("KRANGE", "-", "+")), keys)
        self.assertEqual(client.call("KFIRST"), b"key:0")
        self.assertEqual(len(client.call("SCAN", "0", "COUNT", "1000")), 2)

    def test_another_fills_it(self):
        server = self.start()
        client = self.connect(server)
        value = b"x" * 20_000
        for i in range(100):
            self.assertEqual(client.call("SET", f"key:{i}", value), "OK")
        self.disk.fill()
        self.fill_until_refused(client, os.urandom(20_000), 100)
        self.check_reads(client, 100)
        # Deletes go on, in whatever form, and others are still refused.
        for i in range(50, 90):
            self.assertEqual(client.call("DEL", f"key:{i}"), 1)
        self.assertEqual(client.call("UNLINK", "key:90", "key:91"), 2)
        self.assertEqual(client.call("KDELRANGE", "[key:92", "+"), 8)
        self.check_reads(client, 50)
        self.disk.empty()
        self.wait_until_stored(client)
        # A crash: what was answered is there.
        self.end(server, signal.SIGKILL)
        again = self.start()
        self.check_reads(self.connect(again), 50)

    def test_overwritten_for_ever(self):
        """The live data are 1 MB; three times the disk's size is written over them."""
        client = self.connect(self.start())
        values = [os.urandom(1_000) for _ in range(100)]
        for first in range(0, 200_000, 100):
            replies = client.pipeline(*[("SET", f"key:{(first + i) % 1000}", values[i])
                                        for i in range(100)])
            # Who writes faster than a snapshot is written has to wait for it.
            if any(reply != "OK" for reply in replies):
                self.assertTrue(all(reply == "OK" or is_refused(reply) for reply in replies))
                self.wait_until_stored(client)
        self.check_reads(client, 1000)
        self.assertEqual(client.call("DEL", "key:0"), 1)

    def test_overwritten_while_another_fills_it(self):
        client = self.connect(self.start())
        for i in range(100):
            self.assertEqual(client.call("SET", f"key:{i}", os.urandom(1_000)), "OK")
        self.wait_for_reserve()
        self.disk.fill()
        for i in range(6_000):
            if is_refused(client.call("SET", f"key:{i % 100}", os.urandom(1_000))):
                self.wait_until_stored(client)
        self.check_reads(client, 100)

    def wait_for_reserve(self):
        deadline = time.monotonic() + skep_process.PATIENCE_S
        while not os.path.exists(f"{self.disk.dir}/reserve.tmp"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_starts(self):
        server = self.start()
        client = self.connect(server)
        for i in range(1000):
            self.assertEqual(client.call("SET", f"key:{i}", os.urandom(1_000)), "OK")
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.end(server, number)
            for name in ("log-next.tmp", "reserve.tmp"):
                if os.path.exists(f"{self.disk.dir}/{name}"):
                    os.remove(f"{self.disk.dir}/{name}")
            self.disk.fill()
            server = self.start()
            client = self.connect(server)
            self.check_reads(client, 1000)
            self.assertTrue(is_refused(client.call("SET", "key:0", "other")))
            self.check_reads(client, 1000)
            self.disk.empty()
            self.wait_until_stored(client)
            self.check_reads(client, 1000)
        client.call("SET", "key:0", "last")
        self.end(server)
        self.assertEqual(self.connect(self.start()).call("GET", "key:0"), b"last")

    def test_the_directory_is_removed(self):
        server = self.start()
        client = self.connect(server)
        for i in range(100):
            self.assertEqual(client.call("SET", f"key:{i}", os.urandom(1_000)), "OK")
        shutil.rmtree(self.disk.dir)
        self.fill_until_refused(client, os.urandom(1_000), 100)
        self.check_reads(client, 100)
        self.assertTrue(is_refused(client.call("SET", "key:0", "1")))


if __name__ == "__main__":
    if os.geteuid() != 0 or shutil.which("mount") is None:
        print("needs root, to mount a file system")
        sys.exit(SKIPPED)
    unittest.main()
