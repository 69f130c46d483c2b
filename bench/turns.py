#!/usr/bin/env python3
"""turns.py: one benchmark of skep-bench on several servers in turns, A B A B.

    bench/turns.py [--bin build/release/bin] [--repeats 5] [--server "skep --workers 2" --server redis]
                   --figure p99_ratio --figure "turns.0.during.p99_ns/1000=p99 during, us"
                   -- expiry --repeats 1

A server is skep (skep-server) or redis (Debian's redis-server 7.0, left out if it is not installed), with
further options; without --server it is one of each. Each turn starts it anew, on a port of its own on
loopback and in a folder of its own, runs `skep-bench ARGUMENT... --port PORT --json`, and ends it.

A figure is a field of what skep-bench says, by its path; divided by a number; and how it is called.
Prints a row for each server: medians of the turns, the smallest and the largest beside them, and the
most memory that the server had.
"""

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys

from servers import REDIS, Server


class MeasuredServer(Server):
    def most_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * 1024


class Figure:
    def __init__(self, text):
        path, _, name = text.partition("=")
        path, _, divisor = path.partition("/")
        self.name, self.path, self.divisor = name or path, path.split("."), float(divisor or 1)

    def of(self, result):
        for part in self.path:
            result = result[int(part) if isinstance(result, list) else part]
        return result / self.divisor


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def cell(values):
    middle, least, most = map(number, (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"


def main():
    parser = argparse.ArgumentParser(description="One benchmark on several servers in turns")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--server", action="append", help="skep or redis, and options")
    parser.add_argument("--figure", action="append", type=Figure, required=True,
                        help="PATH[/NUMBER][=NAME]")
    parser.add_argument("arguments", nargs="+", help="of skep-bench, behind --")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    servers = [name for name in options.server or ["skep", "redis"]
               if REDIS or not name.startswith("redis")]
    runs = {name: [] for name in servers}
    most = dict.fromkeys(servers, 0)
    for _ in range(options.repeats):
        for name in servers:
            with MeasuredServer(name.split(), options.bin) as server:
                run = subprocess.run(
                    [f"{options.bin}/skep-bench", *options.arguments, "--port", str(server.port),
                     "--json"], stdout=subprocess.PIPE, check=True, text=True)
                most[name] = max(most[name], server.most_bytes())
            runs[name].append(json.loads(run.stdout))
    print("| server |" + "".join(f" {figure.name} |" for figure in options.figure) + " memory, MiB |")
    print("|---" * (len(options.figure) + 2) + "|")
    for name in servers:
        cells = [cell([figure.of(run) for run in runs[name]]) for figure in options.figure]
        print(f"| {name} | {' | '.join(cells)} | {most[name] / 2**20:.0f} |")


if __name__ == "__main__":
    main()
