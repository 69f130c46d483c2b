#!/usr/bin/env python3
"""servers.py: servers over the network, side by side: the figures of docs/benchmarks.md.

    bench/net/servers.py --bin build/release/bin [--records N] [--repeats N] [--seconds N]
                         [--cases get1,mget32,...] [--lock FILE] [--json FILE]

Skep with one worker, Debian's redis-server and memcached with one thread, each on --server-core, with the
same records; the generator on --generator-core. Every case is measured in turns, A B A B, on servers that
were loaded once and wait meanwhile; servers that are not installed are left out. Prints a table: medians,
and the ratio of Skep to each other server, which is the median of the ratios of the repeats. --json appends
what skep-bench said, one line a run.

For machines that are shared: --lock is held during each turn of all servers; and a turn in which neither a
server nor the generator had --busy of its core, so that something else did, is measured again, up to
--attempts times in all.
"""

import argparse
import contextlib
import fcntl
import getpass
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")
MEMCACHED = shutil.which("memcached")
SKEP, PEER, SORTED, META, TEXT = "skep", "redis", "redis, sorted set", "memcached, meta", "memcached, text"
PACKED, PACKED_UDP, TEXT_UDP = "skep, packed", "skep, UDP", "memcached, UDP"
TABLE = "skep, packed, hash"
# Which speak to the server of another one.
SHARES = {TEXT: META, PACKED: SKEP, PACKED_UDP: SKEP, TEXT_UDP: META}
PROTOCOLS = {META: ["memcached-meta"], TEXT: ["memcached-text"], PACKED: ["packed"],
             TABLE: ["packed"], PACKED_UDP: ["packed", "--udp"], TEXT_UDP: ["memcached-text", "--udp"]}

# Options of the load generator for each server that the case is measured on.
EVERYWHERE = (SKEP, PEER, META)
IN_GROUPS = (SKEP, PEER, META, TEXT)


def scan(items):
    return {SKEP: ["--scan", items], SORTED: ["--scan", items, "--scan-command", "zrangebylex"]}


CASES = {
    **{f"get{depth}": dict.fromkeys(EVERYWHERE, ["--depth", depth]) for depth in (1, 16, 64)},
    **{f"set{depth}": dict.fromkeys(EVERYWHERE, ["--depth", depth, "--get-percent", 0])
       for depth in (1, 16, 64)},
    "mget32": dict.fromkeys(IN_GROUPS, ["--group", 32]),
    "mset32": dict.fromkeys(IN_GROUPS, ["--group", 32, "--get-percent", 0]),
    **{f"scan{items}": {server: ["--depth", 16, *options] for server, options in scan(items).items()}
       for items in (3, 24, 100)},
    "packed-get": dict.fromkeys((PACKED, TABLE, META), ["--group", 64, "--depth", 8]),
    "packed-set": dict.fromkeys((PACKED, TABLE, META),
                                ["--group", 64, "--depth", 8, "--get-percent", 0]),
    "packed-scan4": {PACKED: ["--group", 64, "--depth", 8, "--scan", 4],
                     SKEP: ["--depth", 16, "--scan", 4]},
    # A GET a datagram.
    **{f"udp-get{depth}": dict.fromkeys((PACKED_UDP, TEXT_UDP), ["--depth", depth])
       for depth in (1, 4)},
    # At a fixed rate: so much of the most that Redis reaches with the same options.
    **{f"tail{depth}": dict.fromkeys((SKEP, PEER), ["--depth", depth]) for depth in (1, 16)},
}
TAIL_LOAD = 0.7


class Server:
    """A server on a port of its own; end() ends it."""

    def __init__(self, kind, options, port):
        self.kind, self.port = kind, str(port)
        self.folder = tempfile.mkdtemp(prefix="net-servers-")
        executable = None
        if kind in (SKEP, TABLE):
            command = [f"{os.path.abspath(options.bin)}/skep-server", "--port", self.port,
                       "--bind", "127.0.0.1", "--workers", "1", "--udp", "yes",
                       "--engine", "hash" if kind == TABLE else "btree", *options.skep_options.split()]
        elif kind in (PEER, SORTED):
            # Debian's redis-tools has the server under another name: it goes by the name it is
            # started by.
            executable = REDIS
            command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                       "--appendonly", "no"]
        else:
            command = [MEMCACHED, "-l", "127.0.0.1", "-p", self.port, "-t", "1", "-m", "16384",
                       "-u", getpass.getuser(), "-U", self.port]
        self.process = subprocess.Popen(
            command, executable=executable, cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {options.server_core}))
        time.sleep(0.5)
        if self.process.poll() is not None:
            raise SystemExit(f"{kind} did not start: port {self.port} is taken?")

    def target(self, kind):
        return ["--protocol", *PROTOCOLS.get(kind, ["resp"]), "--port", self.port, "--server-pid", str(self.process.pid),
                "--name", kind]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder)


def busy(result):
    """The share of its core that the server or the generator used, whichever is larger."""
    return max(result["mops"] * (result["server_cpu_us_per_op"] or 0), result["generator_cpu"])


def installed(kind):
    return {PEER: REDIS, SORTED: REDIS, META: MEMCACHED, TEXT: MEMCACHED,
            TEXT_UDP: MEMCACHED}.get(kind, True)


class Comparison:
    def __init__(self, options):
        self.options = options
        self.runs = {}  # by case and server
        self.item_bytes = {}
        self.servers = {}
        self.port = 20000 + os.getpid() % 10000

    @contextlib.contextmanager
    def turn(self):
        if not self.options.lock:
            yield
            return
        with open(self.options.lock, "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def measure(self, kind, *arguments):
        options = self.options
        command = [f"{options.bin}/skep-bench", "net", "--json", *self.server(kind).target(kind),
                   "--records", options.records, "--cpu", options.generator_core,
                   "--connections", options.connections, *arguments]
        run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(run.stdout)
        return json.loads(run.stdout)

    def server(self, kind):
        return self.servers[SHARES.get(kind, kind)]

    def load(self, kind):
        self.port += 1
        server = self.servers[kind] = Server(kind, self.options, self.port)
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            empty = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        how = ["--scan", 3, "--scan-command", "zrangebylex"] if kind == SORTED else []
        with self.turn():
            loaded = self.measure(kind, "--load", "--seconds", 0, *how)
        self.item_bytes[kind] = (loaded["server_rss_bytes"] - empty) / self.options.records

    def run(self):
        """Prints a row for each case and server: M operations a second, p50, p99, p99.9 in us, the server's us
        an operation, the generator's core; the first server's operations a second times this one's; this
        one's processor time an operation times the first's."""
        cases = {name: {kind: how for kind, how in CASES[name].items() if installed(kind)}
                 for name in self.options.cases.split(",") if REDIS or not name.startswith("tail")}
        kinds = dict.fromkeys(SHARES.get(kind, kind)
                              for servers in cases.values() for kind in servers)
        try:
            for kind in kinds:
                self.load(kind)
            for name, servers in cases.items():
                self.run_case(name, servers)
                print(self.rows(name, servers), end="", flush=True)
            for kind, size in self.item_bytes.items():
                print(f"{kind}: {size:.1f} bytes an item resident, "
                      f"{size / self.item_bytes[next(iter(kinds))]:.2f} times the first")
        finally:
            for server in self.servers.values():
                server.end()

    def run_case(self, name, servers):
        rate = 0
        if name.startswith("tail"):
            rate = TAIL_LOAD * 1e6 * statistics.median(
                self.measure(PEER, "--seconds", self.options.seconds, *servers[PEER])["mops"]
                for _ in range(3))
            servers = {kind: [*how, "--rate", f"{rate:.0f}"] for kind, how in servers.items()}
        for _ in range(self.options.repeats):
            for _ in range(self.options.attempts):
                results = self.take_turn(name, servers)
                if rate or all(busy(result) >= self.options.busy for result in results.values()):
                    break
            for kind, result in results.items():
                self.runs.setdefault((name, kind), []).append(result)

    def take_turn(self, name, servers):
        """The results of each server, by its kind."""
        results = {}
        with self.turn():
            for kind, arguments in servers.items():
                result = results[kind] = self.measure(kind, "--seconds", self.options.seconds, *arguments)
                # A cache may forget.
                if result["misses"] and kind not in (META, TEXT, TEXT_UDP):
                    raise SystemExit(f"{name}, {kind}: {result['misses']} misses")
        return results

    def median(self, name, kind, field):
        return statistics.median(run[field] for run in self.runs[name, kind])

    def times(self, name, kind, ratio):
        """ratio(the first server's run, this one's of the same turn), for each turn."""
        first = self.runs[name, next(iter(CASES[name]))]
        return [ratio(a, b) for a, b in zip(first, self.runs[name, kind])]

    def rows(self, name, servers):
        text = ""
        for kind in servers:
            figures = [self.median(name, kind, field) for field in
                       ("mops", "p50_us", "p99_us", "p999_us", "server_cpu_us_per_op", "generator_cpu")]
            mops = self.times(name, kind, lambda a, b: a["mops"] / b["mops"])
            cpu = statistics.median(self.times(name, kind, cpu_ratio))
            text += ("| {} | {} | {:.3f} | {:.0f} | {:.0f} | {:.0f} | {:.3f} | {:.0%} |".format(name, kind, *figures)
                     + f" {statistics.median(mops):.2f} ({min(mops):.2f} to {max(mops):.2f}) | {cpu:.2f} |\n")
        return text


def cpu_ratio(a, b):
    """b's processor time an operation over a's. In a very short run a's may be zero."""
    first, second = a["server_cpu_us_per_op"], b["server_cpu_us_per_op"]
    return second / first if first and second is not None else math.nan


def main():
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description="Servers over the network, side by side")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--server-core", type=int, default=cores[0])
    parser.add_argument("--generator-core", type=int, default=cores[1 % len(cores)])
    parser.add_argument("--skep-options", default="", help="further ones of skep-server")
    parser.add_argument("--lock")
    parser.add_argument("--busy", type=float, default=0.85)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--json")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    Comparison(parser.parse_args()).run()


if __name__ == "__main__":
    main()
