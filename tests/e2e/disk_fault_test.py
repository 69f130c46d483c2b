#!/usr/bin/env python3
"""The n-th system call of a kind on the server's files fails, once or from then on. The server goes
on, ends or is killed; a start without faults has all that was answered.

The simulation lets every n of every kind fail (durable_faults_test); here the real process and the
real calls are sampled. SKEP_FAULT_ROUNDS is how often, SKEP_FAULT_SEED what each round is drawn from;
a failure prints the seed of its round, which repeats it with SKEP_FAULT_ROUNDS=1.
"""

import errno
import os
import random
import shutil
import tempfile
import unittest

from resp import Closed, Connection, Error
from skep_process import BINARY, PATIENCE_S, REPORT, SANITIZED, Process

SHIM = os.environ.get("SKEP_DISK_FAULT_SHIM", "")
ROUNDS = int(os.environ.get("SKEP_FAULT_ROUNDS", "15"))
SEED = int(os.environ.get("SKEP_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))

# How often a round makes each call, about: n is drawn from below.
CALLS = {"open": 60, "pread": 20, "pwrite": 300, "fdatasync": 60, "fsync": 20, "fallocate": 20,
         "ftruncate": 4, "rename": 20, "remove": 20, "opendir": 20, "mkdir": 2}
FOR_EVER = 1 << 62
COMMANDS = 600
KEYS = 40


class Server(Process):
    """`fault`: the environment of the shim."""

    def __init__(self, directory, options, fault):
        super().__init__([BINARY, "--bind", "127.0.0.1", "--port", "0", "--dir", directory, *options],
                         os.path.dirname(directory), environment=os.environ | fault)

    def connect(self):
        """Connects. Returns None if the server has ended before."""
        try:
            found = self.wait_for_line(rb"ready to accept.*127\.0\.0\.1:(\d+)")
        except AssertionError:
            return None
        return Connection(int(found.group(1)), timeout=PATIENCE_S)

    def end(self, kills):
        if kills:
            self.popen.kill()
        else:
            self.popen.terminate()
        code = self.wait()
        self.popen.stdout.close()
        if REPORT.search(self.output()):
            raise AssertionError(self.output().decode(errors="replace"))
        return code


class Load:
    """Commands on some keys, and for each key which values a start may find."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.may_be = {b"key:%d" % i: {None} for i in range(KEYS)}
        self.answered = 0

    def _command(self):
        key = b"key:%d" % self._random.randrange(KEYS)
        if self._random.random() < 0.2:
            return ("DEL", key), key, None
        size = self._random.choice((8, 100, 20_000, 60_000))
        value = b"%d:" % self._random.getrandbits(64) + b"v" * size
        return ("SET", key, value), key, value

    def run(self, client, commands):
        """Sends so many commands, or fewer if the connection ends."""
        for _ in range(commands):
            command, key, value = self._command()
            # Until the answer both are possible; a refusal has changed nothing.
            before = self.may_be[key]
            self.may_be[key] = before | {value}
            reply = client.call(*command)
            if isinstance(reply, Error):
                self.may_be[key] = before
            else:
                self.may_be[key] = {value}
                self.answered += 1

    def check(self, client):
        for key, values in self.may_be.items():
            found = client.call("GET", key)
            if found not in values:
                shown = [value and value[:24] for value in values]
                raise AssertionError(f"{key}: found {found and found[:24]}, may be {shown}")
            self.may_be[key] = {found}


class Round:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="skep-fault-")
        self.directory = os.path.join(self.folder, "data")
        self.load = Load(self.random.random())
        self.engine = self.random.choice(("btree", "hash"))
        self.described = "no fault"
        self.is_hit = False

    def options(self):
        options = ["--appendfsync", self.random.choice(("always", "everysec", "no"))]
        if self.random.random() < 0.7:
            options += ["--log-segment-bytes", "1mb"]
        return [*options, "--engine", self.engine]

    def fault(self):
        call = self.random.choice(sorted(CALLS))
        at = 1 + int(CALLS[call] ** self.random.random())
        is_once = self.random.random() < 0.6
        self.described = f"{call} {at} {'once' if is_once else 'for ever'}"
        return {"LD_PRELOAD": SHIM, "SKEP_FAULT_DIRECTORY": self.directory, "SKEP_FAULT_CALL": call,
                "SKEP_FAULT_AT": str(at), "SKEP_FAULT_COUNT": str(1 if is_once else FOR_EVER),
                "SKEP_FAULT_ERRNO": str(self.random.choice((errno.EIO, errno.ENOSPC))),
                "SKEP_FAULT_PARTLY": self.random.choice(("", "1"))}

    def life(self, fault, commands):
        """Lets the server live from a start to an end. False: it did not start."""
        server = Server(self.directory, self.options(), fault)
        client = server.connect()
        if client is None:
            server.end(kills=True)
            self.is_hit |= b"fault: " in server.output()
            return False
        with client:
            # Where a disk fails for ever what waits for it waits for ever.
            client.socket.settimeout(2 if fault else PATIENCE_S)
            try:
                self.load.check(client)
                self.load.run(client, commands // 2)
                if self.random.random() < 0.5:
                    client.call("BGSAVE")
                self.load.run(client, commands // 2)
            except (OSError, Closed):
                if not fault:
                    raise
        server.end(kills=self.random.random() < 0.5)
        self.is_hit |= b"fault: " in server.output()
        return True

    def run(self):
        if self.random.random() < 0.5:
            self.life({}, COMMANDS // 4)
        for _ in range(self.random.choice((1, 2))):
            self.life(self.fault(), COMMANDS)
        if not self.life({}, COMMANDS // 4) or not self.life({}, 0):
            raise AssertionError("the store does not start")
        shutil.rmtree(self.folder)


@unittest.skipIf(SANITIZED, "a sanitizer's library has to be loaded first")
class DiskFaultTest(unittest.TestCase):
    def test_what_was_answered_is_there(self):
        hits = answered = 0
        for i in range(ROUNDS):
            one = Round(SEED + i)
            try:
                one.run()
            except Exception as why:
                raise AssertionError(f"seed {SEED + i}, {one.described}, in {one.folder}: {why}") from why
            hits += one.is_hit
            answered += one.load.answered
        print(f"{ROUNDS} rounds from seed {SEED}: {hits} met their fault, {answered} answered writes")
        if ROUNDS > 10:
            self.assertGreater(hits, ROUNDS // 4)

    # Goal: a stop that cannot end the log is no success, so that who started the server learns of it.
    # Method: no sync works from the n-th on, for the first n with which the server starts and writes.
    def test_a_stop_that_cannot_sync_is_an_error(self):
        for at in range(1, 50):
            with tempfile.TemporaryDirectory(prefix="skep-fault-") as folder:
                directory = os.path.join(folder, "data")
                server = Server(directory, ["--appendfsync", "no"],
                                {"LD_PRELOAD": SHIM, "SKEP_FAULT_DIRECTORY": directory,
                                 "SKEP_FAULT_CALL": "fdatasync", "SKEP_FAULT_AT": str(at),
                                 "SKEP_FAULT_COUNT": str(FOR_EVER), "SKEP_FAULT_ERRNO": str(errno.EIO)})
                client = server.connect()
                if client is None:
                    server.end(kills=True)
                    continue
                with client:
                    reply = client.call("SET", "a", 1)
                if reply != "OK":  # a sync behind the start has failed already
                    server.end(kills=True)
                    continue
                self.assertEqual(server.end(kills=False), 1)
                self.assertIn(b"the log could not be ended", server.output())
                return
        self.fail("the server does not write")


if __name__ == "__main__":
    unittest.main(verbosity=2)
