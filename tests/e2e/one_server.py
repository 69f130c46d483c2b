"""one_server.py: tests of one server and what INFO tells of it."""

import time
import unittest

from skep_process import SkepServer


class OneServerTest(unittest.TestCase):
    """A new server with one worker, and a client, for each test."""

    def setUp(self):
        self.server = SkepServer("--workers", "1")
        self.addCleanup(self.server.stop)
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def info(self, field):
        text = self.client.call("INFO").decode()
        return int(dict(line.split(":", 1) for line in text.splitlines() if ":" in line)[field])

    def until(self, holds):
        """Waits until the server has come to a state, however slow the machine is."""
        for _ in range(3000):
            if holds():
                return
            time.sleep(0.02)
        self.fail("the server does not come to that state")
