#!/usr/bin/env python3
"""beside.py: what HStore's figure 7 costs on one machine without a pool: Redis, and skep-server.

    bench/hstore/beside.py --bin build/release/bin [--items N] [--clients 4,8,16,32] [--seconds N]
                           [--repeats N] [--ops N] [--depth N]

The same items (16-byte keys, 32-byte values) and closed loops of single operations, over loopback:
Debian's redis-server by RESP, and skep-server with one worker by its packed protocol, each with a core,
the load generator with the other; and `skep-bench hstore --figure 7` over shared memory, whose servers
and clients are threads on both cores. All in turns, medians of the repeats. Prints a table of thousands
of operations a second. Redis is left out where it is not installed.

With --depth 64 or 1024, GETs by so many at a time instead, of 16-byte values: of a pool in batches
(pool_engine_bench); of a server on one connection, in one message, and on each of four connections.
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
PROTOCOLS = {servers.PEER: "resp", servers.SKEP: "packed", servers.TABLE: "packed"}
NAMES = {servers.PEER: "redis", servers.SKEP: "packed", servers.TABLE: "packed, hash"}


def run(options, *arguments):
    command = [f"{options.bin}/skep-bench", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def of_server(options, kind, server, *arguments):
    return run(options, "net", "--protocol", PROTOCOLS[kind], "--port", server.port, "--cpu",
               options.generator_core, "--records", options.items, "--value-size",
               options.value_size, *arguments)


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


def measure_depth(options, started, figures):
    result = subprocess.run(
        [f"{options.bin}/pool_engine_bench", "--benchmark_format=json",
         f"--benchmark_filter=BM_Get<MemWorld>/depth:{options.depth}/"],
        env=os.environ | {"SKEP_POOL_ITEMS": str(options.items)}, stdout=subprocess.PIPE, check=True)
    pool = json.loads(result.stdout)["benchmarks"][0]["items_per_second"] / 1e3
    ways = {"1 connection": [1, options.depth, 1], "1 message": [1, 1, options.depth],
            "4 connections": [4, options.depth, 1]}
    for way, (connections, depth, group) in ways.items():
        figures.setdefault(("get", way, "hstore"), []).append(pool)
        for kind, server in started.items():
            result = of_server(options, kind, server, "--connections", connections, "--depth", depth,
                               "--group", group, "--seconds", options.seconds)
            figures.setdefault(("get", way, NAMES[kind]), []).append(result["mops"] * 1e3)


def print_table(figures):
    columns = list(dict.fromkeys(key[2] for key in figures))
    print("| operation | clients | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for operation, clients in dict.fromkeys(key[:2] for key in figures):
        kops = [statistics.median(figures[operation, clients, name]) for name in columns]
        print(f"| {operation} | {clients} | " + " | ".join(f"{figure:.1f}" for figure in kops) + " |")


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
    parser.add_argument("--depth", type=int, choices=[64, 1024])
    options = parser.parse_args()
    options.server_core, options.generator_core = cores[0], cores[1 % len(cores)]
    options.skep_options = ""
    options.value_size = 16 if options.depth else 32  # as pool_engine_bench and figure 7 have them
    kinds = [servers.PEER, servers.TABLE if options.depth else servers.SKEP]
    started = {}
    figures = {}
    try:
        for i, kind in enumerate(filter(servers.installed, kinds)):
            started[kind] = servers.Server(kind, options, 20000 + os.getpid() % 10000 + i)
            of_server(options, kind, started[kind], "--load", "--seconds", 0)
        for _ in range(options.repeats):
            (measure_depth if options.depth else measure)(options, started, figures)
    finally:
        for server in started.values():
            server.end()
    print_table(figures)


if __name__ == "__main__":
    main()
