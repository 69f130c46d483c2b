#!/usr/bin/env python3
"""large_collections.py: what one very large collection costs, and what it costs others.

    bench/large_collections.py [--bin build/release/bin] [--members 10000000] [--kinds set,zset,hash,list]
                               [--server "skep --workers 1" --server redis] [--calls 4096]
                               [--ends DEL,PEXPIRE,FLUSHALL] [--seconds 2]

A server is skep (skep-server) or redis (Debian's redis-server 7.0, left out if it is not installed),
with further options; without --server it is one of each. For each kind of collection and each server a
new one is started, on a port of its own on loopback, and filled over one connection. Prints

    bytes a member      what the server's used_memory has grown by
    us a command        time of the server's processor for commands in a pipeline of 16; on a machine
                        that does other things, too, it is steadier than the time that has passed
    us of GET and SET   what another connection sees, one command at a time: p50, p99, p99.9, the
                        longest, while nothing is done with the collection, while it is walked,
                        ranked, and while it goes: by DEL, by a deadline, by FLUSHALL, until nothing
                        is left of it

Members have 13 bytes, `member:%06x` or longer; values 8 bytes; scores are integers in no order.
"""

import argparse
import multiprocessing
import os
import random
import re
import socket
import time

from servers import REDIS, Server

DEPTH = 16
FILL = 500  # members in a command that fills


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 20)

    def reply(self):
        line = self.file.readline()
        head, rest = line[:1], line[1:-2]
        if head == b"-":
            raise SystemExit(f"a server has answered {rest.decode()}")
        if head == b":":
            return int(rest)
        if head == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if head == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def call(self, *words):
        self.socket.sendall(encode(*words))
        return self.reply()

    def pipeline(self, commands):
        self.socket.sendall(b"".join(commands))
        return [self.reply() for _ in commands]


class ServerWithClient(Server):
    def __enter__(self):
        super().__enter__()
        self.client = Client(self.port)
        return self

    def info(self, field):
        """A number of INFO; 0 if it has none of that name."""
        found = re.search(rb"\b%s:(\d+)" % field, self.client.call("INFO", "everything"))
        return int(found.group(1)) if found else 0

    def processor_seconds(self):
        """Of all threads together."""
        tasks, nanoseconds = f"/proc/{self.process.pid}/task", 0
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat", encoding="ascii") as stat:
                nanoseconds += int(stat.read().split()[0])
        return nanoseconds / 1e9


def member(number):
    return b"member:%06x" % number


class Kind:
    """How a kind of collection is filled, what is measured of it, and how it is walked."""

    def __init__(self, fill, words, commands, walk, ranked):
        self.fill, self.words, self.commands = fill, words, commands
        self.walk, self.ranked = walk, ranked


def random_member(members, rng):
    return member(rng.randrange(members))


KINDS = {
    "set": Kind("SADD", lambda i: (member(i),), {
        "SISMEMBER": lambda n, rng: ("SISMEMBER", "c", random_member(n, rng)),
        "SRANDMEMBER": lambda n, rng: ("SRANDMEMBER", "c"),
        "SRANDMEMBER 10": lambda n, rng: ("SRANDMEMBER", "c", 10),
        "SPOP": lambda n, rng: ("SPOP", "c"),
        "SPOP 10": lambda n, rng: ("SPOP", "c", 10),
    }, "SSCAN", "SRANDMEMBER"),
    "zset": Kind("ZADD", lambda i: (i * 7919 % 1000003, member(i)), {
        "ZSCORE": lambda n, rng: ("ZSCORE", "c", random_member(n, rng)),
        "ZRANK": lambda n, rng: ("ZRANK", "c", random_member(n, rng)),
        "ZRANGE of 1": lambda n, rng: ("ZRANGE", "c", *[rng.randrange(n)] * 2),
        "ZRANGE of 100": lambda n, rng: ("ZRANGE", "c", at := rng.randrange(n - 100), at + 99),
        "ZCOUNT": lambda n, rng: ("ZCOUNT", "c", rng.randrange(500000), rng.randrange(1000000)),
        "ZPOPMIN": lambda n, rng: ("ZPOPMIN", "c"),
        "ZPOPMIN 10": lambda n, rng: ("ZPOPMIN", "c", 10),
        "ZREMRANGEBYRANK of 1": lambda n, rng: ("ZREMRANGEBYRANK", "c", *[rng.randrange(n // 2)] * 2),
    }, "ZSCAN", "ZRANK"),
    "hash": Kind("HSET", lambda i: (member(i), b"%08d" % i), {
        "HGET": lambda n, rng: ("HGET", "c", random_member(n, rng)),
        "HRANDFIELD": lambda n, rng: ("HRANDFIELD", "c"),
        "HRANDFIELD 10": lambda n, rng: ("HRANDFIELD", "c", 10),
    }, "HSCAN", "HRANDFIELD"),
    "list": Kind("RPUSH", lambda i: (member(i),), {
        "LINDEX": lambda n, rng: ("LINDEX", "c", rng.randrange(n)),
        "LRANGE of 100": lambda n, rng: ("LRANGE", "c", at := rng.randrange(n - 100), at + 99),
        "LSET": lambda n, rng: ("LSET", "c", rng.randrange(n), b"another-value"),
        "LPOP": lambda n, rng: ("LPOP", "c"),
        "RPOP 10": lambda n, rng: ("RPOP", "c", 10),
    }, None, "LINDEX"),
}


def fill(server, kind, members):
    """Makes the collection `c`, and lets the server rest."""
    for begin in range(0, members, FILL * DEPTH):
        commands = []
        for at in range(begin, min(begin + FILL * DEPTH, members), FILL):
            words = []
            for number in range(at, min(at + FILL, members)):
                words += kind.words(number)
            commands.append(encode(kind.fill, "c", *words))
        server.client.pipeline(commands)
    time.sleep(0.2)


def measure(server, kind, members, calls):
    """Microseconds of the server's processor that each command takes."""
    rng = random.Random(1)
    figures = {}
    for name, command in kind.commands.items():
        before = server.processor_seconds()
        for _ in range(0, calls, DEPTH):
            server.client.pipeline([encode(*command(members, rng)) for _ in range(DEPTH)])
        figures[name] = (server.processor_seconds() - before) / calls * 1e6
    return figures


def watch(port, pipe):
    """Another client: how long each of its commands takes, until it is told to stop."""
    client = Client(port)
    value = b"v" * 32
    while (phase := pipe.recv()) is not None:
        rng = random.Random(2)
        times = []
        while not pipe.poll() or len(times) < 100:
            key = b"other:%d" % rng.randrange(1000)
            begin = time.perf_counter()
            client.call(*((b"GET", key) if len(times) % 2 else (b"SET", key, value)))
            times.append((time.perf_counter() - begin) * 1e6)
        pipe.recv()
        times.sort()
        pipe.send((phase, len(times), *(times[min(int(len(times) * part), len(times) - 1)]
                                        for part in (0.5, 0.99, 0.999, 1))))


class Others:
    """What another client sees meanwhile: `with` begins and ends its process."""

    def __init__(self, server):
        self.pipe, far = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=watch, args=(server.port, far))
        self.rows = []

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.pipe.send(None)
        self.process.join()

    def during(self, phase, work):
        self.pipe.send(phase)
        begin = time.monotonic()
        work()
        seconds = time.monotonic() - begin
        self.pipe.send("end")
        self.rows.append((*self.pipe.recv(), seconds))


def walk(server, kind, seconds):
    """Walks through the collection, which may be of any size."""
    cursor = b"0"
    until = time.monotonic() + seconds
    while True:
        cursor, _ = server.client.call(kind.walk, "c", cursor, "COUNT", 100)
        if cursor == b"0" or time.monotonic() > until:
            return


def rank(server, kind, members, seconds):
    rng = random.Random(3)
    command = kind.commands[kind.ranked]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        server.client.pipeline([encode(*command(members, rng)) for _ in range(DEPTH)])


def end(server, way):
    """Ends the collection; returns when nothing of it is left."""
    if way == "FLUSHALL":
        server.client.call("FLUSHALL")
    elif way == "PEXPIRE":
        server.client.call("PEXPIRE", "c", 1)
        while server.client.call("EXISTS", "c"):
            time.sleep(0.01)
    else:
        server.client.call("DEL", "c")
    while server.info(b"db0_collection_items"):
        time.sleep(0.02)


def run(words, name, options):
    kind = KINDS[name]
    with ServerWithClient(words, options.bin) as server:
        empty = server.info(b"used_memory")
        fill(server, kind, options.members)
        bytes_a_member = (server.info(b"used_memory") - empty) / options.members
        with Others(server) as others:
            others.during("nothing", lambda: time.sleep(options.seconds))
            if kind.walk:
                others.during(kind.walk, lambda: walk(server, kind, options.seconds))
            others.during(kind.ranked, lambda: rank(server, kind, options.members, options.seconds))
            figures = measure(server, kind, options.members, options.calls)
            for i, way in enumerate(options.ends):
                if i > 0:
                    fill(server, kind, options.members)
                others.during(way, lambda way=way: end(server, way))
    return bytes_a_member, figures, others.rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--members", type=int, default=10_000_000)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--server", action="append")
    parser.add_argument("--calls", type=int, default=4096)
    parser.add_argument("--ends", type=lambda text: text.split(","), default=["DEL", "PEXPIRE", "FLUSHALL"])
    parser.add_argument("--seconds", type=float, default=2, help="of each walk, and of each ranking")
    options = parser.parse_args()
    servers = [text.split() for text in options.server or ("skep --workers 1", "redis")]
    servers = [words for words in servers if words[0] != "redis" or REDIS]
    for name in options.kinds:
        results = [run(words, name, options) for words in servers]
        titles = [" ".join(words) for words in servers]
        print(f"\n{name} of {options.members:,} members | " + " | ".join(titles))
        print("bytes a member | " + " | ".join(f"{result[0]:.1f}" for result in results))
        for command in KINDS[name].commands:
            print(f"{command}, us | " + " | ".join(f"{result[1][command]:.1f}" for result in results))
        for title, (_, _, rows) in zip(titles, results):
            for phase, commands, *times, seconds in rows:
                print(f"{title}: others during {phase} | " + " / ".join(f"{us:.0f}" for us in times) +
                      f" us of {commands} commands in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
