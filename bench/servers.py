"""servers.py: skep-server and Debian's redis-server as benchmarks start and end them."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")
READY_SECONDS = 60


class Server:
    """A server of its own, on a port of its own on loopback; `with` starts it and ends it."""

    def __init__(self, words, programs):
        self.words, self.programs = words, os.path.abspath(programs)

    def __enter__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="server-")
        where = ["--bind", "127.0.0.1", "--port", str(self.port), *self.words[1:]]
        if self.words[0] == "redis":
            # Debian's redis-tools has the server under another name: it goes by the name it is
            # started by.
            command, program = ["redis-server", *where, "--save", "", "--appendonly", "no"], REDIS
        else:
            command, program = ["skep-server", *where], f"{self.programs}/skep-server"
        self.process = subprocess.Popen(command, executable=program, cwd=self.folder,
                                        stdout=subprocess.DEVNULL)
        until = time.monotonic() + READY_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise SystemExit(f"{' '.join(self.words)} did not start")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder)

    def answers(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0
