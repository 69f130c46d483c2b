#!/usr/bin/env python3
"""durable.py: what durability costs, and what recovery takes: the figures of docs/benchmarks.md.

    bench/durable.py --bin build/release/bin [--steps disk,log,always,snapshot,recovery,replay]
                     [--records N] [--repeats N] [--folder F] [--json FILE]

Each step compares in turns, A B A B: Skep, Debian's redis-server on the same disk, and Skep without a
log. Servers listen on loopback, in a folder of their own, and end with their turn. Prints a table a
step; --json also keeps every single figure.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")
SKEP, BARE, PEER = "skep", "skep without a log", "redis"


def median(values):
    return statistics.median(values)


def times(a, b):
    """a over b; in a very short run on a slow disk b may be zero."""
    return a / b if b else float("nan")


class Server:
    """A server in `folder`; `with` ends it."""

    def __init__(self, bench, kind, folder, *options):
        self.kind = kind
        self.bench = bench
        self.port = bench.free_port()
        if kind == PEER:
            # Debian's redis-tools has the server under another name: it goes by the name it is
            # started by.
            command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", folder,
                       "--save", "", *options]
            executable = REDIS
        else:
            command = [bench.program("skep-server"), "--port", self.port, "--save", "", *options]
            if kind == SKEP:
                command += ["--dir", folder]
            executable = command[0]
        self.log = tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.process = subprocess.Popen(list(map(str, command)), executable=executable,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        self.wait_until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGTERM)

    def end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait()

    def cli(self, *command):
        return subprocess.run(["redis-cli", "-p", str(self.port), *map(str, command)], check=False,
                              capture_output=True, text=True).stdout

    def wait_until_ready(self):
        while self.cli("ping").strip() != "PONG":
            if self.process.poll() is not None:
                raise SystemExit(f"{self.kind} did not start:\n{self.output()}")
            time.sleep(0.02)
        self.ready_s = time.monotonic() - self.started

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def info(self, section):
        pairs = re.findall(r"^([^#:\s]+):(\S*)", self.cli("info", section), re.MULTILINE)
        return dict(pairs)

    def memory(self):
        """Resident bytes of the server itself."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def copied(self):
        """Bytes that Redis's child has copied, by its own account."""
        return int(self.info("persistence").get("rdb_last_cow_size", 0))

    def is_saving(self):
        return self.info("persistence").get("rdb_bgsave_in_progress") == "1"

    def save(self):
        """BGSAVE, to its end."""
        self.cli("bgsave")
        while self.is_saving():
            time.sleep(0.05)


class Bench:
    def __init__(self, options):
        self.options = options
        self.figures = {}
        self._port = 17000 + os.getpid() % 10000

    def free_port(self):
        self._port += 1
        return self._port

    def program(self, name):
        return os.path.join(self.options.bin, name)

    def folder(self):
        return tempfile.TemporaryDirectory(prefix="durable-", dir=self.options.folder)

    def keep(self, step, name, values, unit):
        self.figures.setdefault(step, {})[name] = {"values": values, "unit": unit}

    def show(self, step):
        rows = self.figures.get(step, {})
        print(f"\n{step}")
        for name, figure in rows.items():
            values = figure["values"]
            spread = ""
            if len(values) > 1:
                spread = f"  ({min(values):.4g} to {max(values):.4g}, {len(values)} times)"
            print(f"  {name:<58} {median(values):>10.4g} {figure['unit']}{spread}")
        sys.stdout.flush()

    def ycsb(self, server, *options):
        run = subprocess.run(
            [self.program("skep-bench"), "ycsb", "--host", "127.0.0.1", "--port", str(server.port),
             "--json", *map(str, options)], check=True, capture_output=True, text=True)
        report = json.loads(run.stdout)
        if report["errors"]:
            raise SystemExit(f"{report['errors']} errors: {report['first_error']}")
        return report

    # ---- Steps ----

    def disk(self):
        """Measures the disk: bytes written in order, and one small sync after the other."""
        with self.folder() as folder:
            path = os.path.join(folder, "file")
            chunk = os.urandom(1 << 20)
            rates, syncs = [], []
            for _ in range(self.options.repeats):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                begin = time.monotonic()
                for _ in range(self.options.disk_mib):
                    os.write(file, chunk)
                os.fdatasync(file)
                rates.append(self.options.disk_mib / (time.monotonic() - begin))
                os.lseek(file, 0, os.SEEK_SET)
                for _ in range(100):
                    begin = time.monotonic()
                    os.write(file, chunk[:4096])
                    os.fdatasync(file)
                    syncs.append((time.monotonic() - begin) * 1e6)
                os.close(file)
        self.keep("disk", "written in order", rates, "MiB/s")
        self.keep("disk", "fdatasync of 4 KiB that were there", syncs, "us")

    def net(self, server, *options):
        """The load of one thread, to the server over the Redis protocol."""
        run = subprocess.run(
            [self.program("skep-bench"), "net", "--port", str(server.port), "--records",
             str(min(self.options.records, 1_000_000)), "--seconds", str(self.options.seconds),
             "--warm-up", str(self.options.seconds / 4), "--json", *map(str, options)],
            check=True, capture_output=True, text=True)
        return json.loads(run.stdout)

    def log(self):
        """YCSB A in pipelines of 64 with a log that is synced every second, beside none."""
        kinds = {"skep everysec": (SKEP, ["--appendfsync", "everysec"]), "skep, no log": (BARE, []),
                 "redis everysec": (PEER, ["--appendonly", "yes", "--appendfsync", "everysec"]),
                 "redis, no log": (PEER, ["--appendonly", "no"])}
        log_rates = []
        for connections in (2, 8):
            rates = {name: [] for name in kinds}
            for _ in range(self.options.repeats):
                for name, (kind, options) in kinds.items():
                    with self.folder() as folder, Server(self, kind, folder, *options) as server:
                        before = int(server.info("persistence").get("log_position", 0))
                        begin = time.monotonic()
                        run = self.net(server, "--load", "--workload", "a", "--key-size", 23,
                                       "--value-size", 100, "--connections", connections,
                                       "--depth", 64)
                        rates[name].append(run["mops"])
                        if name == "skep everysec":
                            after = int(server.info("persistence")["log_position"])
                            seconds = time.monotonic() - begin
                            log_rates.append((after - before) / seconds / 2**20)
            for name, values in rates.items():
                self.keep("log", f"YCSB A, {connections} connections, {name}", values, "M/s")
            for name in ("skep", "redis"):
                pairs = zip(rates[f"{name} everysec"], rates[f"{name}, no log"])
                self.keep("log", f"{connections} connections, {name}: everysec times no log",
                          [times(a, b) for a, b in pairs], "")
        self.keep("log", "skep's log grows by, loading too", log_rates, "MiB/s")

    def always(self):
        """Measures SETs of 16 + 100 B, each answered when it is on the disk."""
        kinds = {"skep": (SKEP, ["--appendfsync", "always"]),
                 "redis": (PEER, ["--appendonly", "yes", "--appendfsync", "always"])}
        for connections in (1, 2, 4, 8, 16, 50, 200):
            rates = {name: [] for name in kinds}
            tails = {name: [] for name in kinds}
            for _ in range(self.options.repeats):
                for name, (kind, options) in kinds.items():
                    with self.folder() as folder, Server(self, kind, folder, *options) as server:
                        run = self.net(server, "--get-percent", 0, "--value-size", 100,
                                       "--connections", connections)
                        rates[name].append(run["mops"] * 1e3)
                        tails[name].append(run["p99_us"] / 1e3)
            for name in kinds:
                self.keep("always", f"{connections} connections, {name}", rates[name], "k/s")
                self.keep("always", f"{connections} connections, {name}: p99", tails[name], "ms")
            self.keep("always", f"{connections} connections: skep times redis",
                      [times(a, b) for a, b in zip(rates["skep"], rates["redis"])], "")

    def snapshot(self):
        """A snapshot while YCSB A runs at a part of the rate that the server takes."""
        o = self.options
        kinds = {"skep": (SKEP, ["--appendfsync", "everysec"]),
                 "redis": (PEER, ["--appendonly", "yes", "--appendfsync", "everysec",
                                  "--auto-aof-rewrite-percentage", "0"])}
        for name, (kind, options) in kinds.items():
            with self.folder() as folder, Server(self, kind, folder, *options) as server:
                shape = ["--workload", "a", "--records", o.records, "--threads", 4, "--batch", 1]
                self.ycsb(server, "--workload", "load", "--records", o.records, "--batch", 256)
                most = self.ycsb(server, *shape, "--loaded", "--ops", o.ops // 10)["mops"] * 1e6
                rate = most * o.load
                begin = time.monotonic()
                server.save()
                seconds = max(time.monotonic() - begin, 0.5)
                size = self.snapshot_bytes(folder, name)
                results = {"without": [], "with": []}
                added, took = [], []
                for _ in range(o.repeats):
                    for which, runs in results.items():
                        before = server.memory()
                        peak = Peak(server)
                        if which == "with":
                            server.cli("bgsave")
                        runs.append(self.ycsb(server, *shape, "--loaded", "--rate", rate, "--ops",
                                              int(rate * seconds) + 100))
                        while server.is_saving():
                            time.sleep(0.05)
                        grown = peak.stop() - before + server.copied()
                        if which == "with":
                            added.append(grown / 2**20)
                            took.append(float(server.info("persistence")["rdb_last_bgsave_time_sec"]))
                        time.sleep(0.5)
                self.keep("snapshot", f"{name}: load", [rate / 1e3], "k/s")
                self.keep("snapshot", f"{name}: memory of the data", [before / 2**20], "MiB")
                self.keep("snapshot", f"{name}: memory added at most", added, "MiB")
                self.keep("snapshot", f"{name}: bytes of the file, an item", [size / o.records], "B")
                self.keep("snapshot", f"{name}: took", took, "s")
                for tail in ("p50_ns", "p99_ns", "p999_ns", "max_ns"):
                    for which, runs in results.items():
                        self.keep("snapshot", f"{name}: {tail[:-3]} {which}",
                                  [run[tail] / 1e6 for run in runs], "ms")
                    pairs = zip(results["with"], results["without"])
                    self.keep("snapshot", f"{name}: {tail[:-3]} with / without",
                              [times(a[tail], b[tail]) for a, b in pairs], "")

    @staticmethod
    def snapshot_bytes(folder, name):
        ending = ".sks" if name == "skep" else ".rdb"
        return sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder)
                   if file.endswith(ending))

    def recovery(self):
        """Measures a recovery from a snapshot, until the server answers."""
        o = self.options
        for value_bytes in (8, 100):
            for name, kind in (("skep", SKEP), ("redis", PEER)):
                with self.folder() as folder:
                    with Server(self, kind, folder) as server:
                        self.ycsb(server, "--workload", "load", "--records", o.records, "--batch",
                                  256, "--value-size", value_bytes)
                        server.save()
                        server.end(signal.SIGKILL)
                    rates = []
                    for _ in range(o.repeats):
                        with Server(self, kind, folder) as server:
                            if int(server.cli("dbsize")) != o.records:
                                raise SystemExit("not everything was recovered")
                            rates.append(o.records / self.load_seconds(server) / 1e6)
                    size = self.snapshot_bytes(folder, name) / o.records
                    shape = f"23 + {value_bytes} B"
                    self.keep("recovery", f"items of {shape} from a snapshot, {name}", rates, "M/s")
                    self.keep("recovery", f"bytes of the file, an item of {shape}, {name}", [size],
                              "B")

    @staticmethod
    def load_seconds(server):
        pattern = r"items in ([\d.]+) s" if server.kind == SKEP else r"loaded from disk: ([\d.]+) s"
        found = re.search(pattern, server.output())
        return max(float(found.group(1)), 0.001)

    def replay(self):
        """Measures a recovery from the log, beside storing the same pairs in an engine in process."""
        o = self.options
        records = o.records // 2
        rates, inserts, ratios = [], [], []
        with self.folder() as folder:
            with Server(self, SKEP, folder) as server:
                self.ycsb(server, "--workload", "load", "--records", records, "--batch", 256)
                position = int(server.info("persistence")["log_position"])
                server.end(signal.SIGKILL)
            for _ in range(o.repeats):
                with Server(self, SKEP, folder) as server:
                    found = re.search(r"log: (\d+) changes of \d+ records in ([\d.]+) s", server.output())
                    rates.append(int(found.group(1)) / max(float(found.group(2)), 0.001) / 1e6)
                run = subprocess.run(
                    [self.program("skep-bench"), "ycsb", "--workload", "load", "--records",
                     str(records), "--batch", "256", "--threads", "2", "--json"],
                    check=True, capture_output=True, text=True)
                inserts.append(json.loads(run.stdout)["load_mops"])
                ratios.append(rates[-1] / inserts[-1])
        self.keep("replay", "changes from the log", rates, "M/s")
        self.keep("replay", "inserts in process, two threads", inserts, "M/s")
        self.keep("replay", "the first times the second", ratios, "")
        self.keep("replay", "bytes of the log, a change of 23 + 100 B", [position / records], "B")


class Peak:
    """Records the most memory that a server has while this object watches it."""

    def __init__(self, server):
        self._server = server
        self._most = server.memory()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._ends.wait(0.1):
            self._most = max(self._most, self._server.memory())

    def stop(self):
        self._ends.set()
        self._thread.join()
        return self._most


STEPS = ("disk", "log", "always", "snapshot", "recovery", "replay")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--ops", type=int, default=5_000_000)
    parser.add_argument("--load", type=float, default=0.5, help="of the step snapshot")
    parser.add_argument("--seconds", type=float, default=2, help="of a turn of log and always")
    parser.add_argument("--disk-mib", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="on the disk that is measured")
    parser.add_argument("--json")
    options = parser.parse_args()
    bench = Bench(options)
    for step in options.steps.split(","):
        if step not in STEPS:
            parser.error(f"--steps: one of {', '.join(STEPS)}")
        getattr(bench, step)()
        bench.show(step)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.figures, file, indent=1)


main()
