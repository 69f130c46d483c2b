#!/usr/bin/env python3
"""beside.py: what HStore's figure 7 costs on one machine without a pool: Redis, and skep-server.

    bench/hstore/beside.py --bin build/release/bin [--items N] [--clients 4,8,16,32] [--seconds N]
                           [--repeats N] [--ops N]

The same items (16-byte keys, 32-byte values) and closed loops of single operations, over loopback:
Debian's redis-server by RESP, and skep-server with one worker by its packed protocol, each with a core,
the load generator with the other; and `skep-bench hstore --figure 7` over shared memory, whose servers
and clients are threads on both cores. All in turns, medians of the repeats. Prints a table of thousands
of operations a second. Redis is left out where it is not installed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))

import servers  # noqa: E402

OPERATIONS = {"put": ["--get-percent", 0], "get": []}
SERVERS = [kind for kind in (servers.PEER, servers.SKEP) if servers.installed(kind)]
PROTOCOLS = {servers.PEER: "resp", servers.SKEP: "packed"}
NAMES = {servers.PEER: "redis", servers.SKEP: "packed"}


def run(options, *arguments):
    command = [f"{options.bin}/skep-bench", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def of_server(options, kind, server, *arguments):
    return run(options, "net", "--protocol", PROTOCOLS[kind], "--port", server.port, "--cpu",
               options.generator_core, "--records", options.items, "--value-size", 32, *arguments)


def measure(options, started, figures):
    pool = run(options, "hstore", "--figure", 7, "--items", options.items, "--ops", options.ops,
               "--clients", ",".join(map(str, options.clients)))
    for row in pool["rows"]:
        if row["workload"] in OPERATIONS:
            figures.setdefault((row["workload"], row["clients"], "hstore"), []).append(row["hstore_kops"])
    for operation, how in OPERATIONS.items():
        for clients in options.clients:
            for kind, server in started.items():
                result = of_server(options, kind, server, "--connections", clients, "--seconds",
                                   options.seconds, *how)
                if result["misses"]:
                    raise SystemExit(f"{NAMES[kind]}: {result['misses']} misses")
                figures.setdefault((operation, clients, NAMES[kind]), []).append(result["mops"] * 1e3)


def main():
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description="HStore's figure 7 beside servers of one machine")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--ops", type=int, default=200_000)
    parser.add_argument("--clients", type=lambda text: list(map(int, text.split(","))),
                        default=[4, 8, 16, 32])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.server_core, options.generator_core = cores[0], cores[1 % len(cores)]
    options.skep_options = ""
    started = {}
    figures = {}
    try:
        for i, kind in enumerate(SERVERS):
            started[kind] = servers.Server(kind, options, 20000 + os.getpid() % 10000 + i)
            of_server(options, kind, started[kind], "--load", "--seconds", 0)
        for _ in range(options.repeats):
            measure(options, started, figures)
    finally:
        for server in started.values():
            server.end()
    columns = ["hstore", *(NAMES[kind] for kind in SERVERS)]
    print("| operation | clients | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for operation in OPERATIONS:
        for clients in options.clients:
            kops = [statistics.median(figures[operation, clients, name]) for name in columns]
            print(f"| {operation} | {clients} | " + " | ".join(f"{figure:.1f}" for figure in kops) + " |")


if __name__ == "__main__":
    main()
