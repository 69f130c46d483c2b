#!/usr/bin/python3
"""Runs skep-bench with --json and checks what it prints.

usage: check_json.py path/to/skep-bench limits|ycsb|compare|kv-direct|hetero-kv|hstore|fat-btree option...
       check_json.py path/to/skep-bench expiry path/to/skep-server option...

Standard output must be one JSON object and nothing else; it must have every key of the interface,
with figures that are possible; standard error must be empty, since it is no terminal.
"""

import itertools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))

from skep_process import end_with_parent  # noqa: E402

LIMITS_FIGURES = ["random_read_mops", "random_rmw_mops", "random_read_4k_mops",
                  "random_start_3200b_mops", "chase_ns", "seq_read_gbs", "loopback_rtt_us",
                  "loopback_64_mops", "address_mops"]
YCSB_OPTIONS = ["engine", "host", "port", "workload", "scan-length", "read-percent", "dist",
                "records", "ops", "threads", "batch", "key-size", "value-size", "seed"]
YCSB_FIGURES = ["mops", "p50_ns", "p99_ns", "p999_ns", "max_ns", "bytes_per_item", "rss_bytes",
                "load_mops", "seconds"]
COMPARE_OPTIONS = ["engines", "peers", "workloads", "dist", "items", "ops", "repeats", "batch",
                   "threads", "snapshots", "key-size", "value-size", "seed", "apart"]
COMPARE_SETTINGS = ["items", "batch", "threads", "snapshots"]
COMPARE_FIGURES = ["mops", "ratio", "setting_ratio", "p50_ns", "p99_ns", "p999_ns", "max_ns"]
EXPIRY_OPTIONS = ["server", "host", "port", "items", "stay", "connections", "depth", "rate",
                  "seconds", "lead", "repeats", "key-size", "value-size", "seed"]
EXPIRY_FIGURES = ["seconds", "ops", "kops", "p50_ns", "p99_ns", "p999_ns", "max_ns"]
HETERO_KV_OPTIONS = ["figure", "records", "key-size", "value-size", "repeats", "seconds", "wanted",
                     "wait-us", "seed"]
FAT_BTREE_OPTIONS = ["figure", "points", "records", "training", "accesses", "alpha", "ranges", "layers",
                     "nodes", "leaf-trips", "clients", "servers", "read-share", "seed", "interrupt-ns",
                     "round-trip-ns", "hop-ns", "hops", "message-ns", "level-ns"]
HSTORE_OPTIONS = ["figure", "fabric", "items", "ops", "clients", "depth", "cache", "seconds", "key-size",
                  "value-size", "seed", "round-trip-ns", "bytes-per-us", "message-ns", "apply-ns"]
KV_DIRECT_OPTIONS = ["table", "figure", "mode", "bytes", "slots", "seed"]
WITHOUT_ORDER = ["absl-hash", "boost", "cuckoo", "tbb-hash"]
WITHOUT_THREADS = ["absl-hash", "absl", "boost", "tbb-map"]


def check_positive(result, names):
    for name in names:
        assert result[name] > 0, f"{name} is {result[name]}"


def check_limits(result):
    check_positive(result, LIMITS_FIGURES + ["bytes"])
    assert 0 <= result["huge_fraction"] <= 1
    assert result["huge_fraction_4k"] == 0


def check_ycsb(result, options):
    check_positive(result, YCSB_FIGURES)
    missing = [name for name in YCSB_OPTIONS if name not in result]
    assert not missing, f"missing: {missing}"
    assert result["errors"] == 0, result["first_error"]
    assert result["p50_ns"] <= result["p99_ns"] <= result["p999_ns"] <= result["max_ns"]
    assert (result["items_scanned"] > 0) == (result["workload"] in ("e", "scan", "cloud"))
    for name, value in zip(options[0::2], options[1::2]):
        if name == "--ops" and result["workload"] == "load":
            value = str(result["records"])
        assert str(result[name.removeprefix("--")]) == value, name


def lacks_something(engine, row, result):
    scans = row["workload"] == "e" or row["workload"].startswith(("scan", "cloud"))
    return (scans and engine in WITHOUT_ORDER or row["threads"] > 1 and engine in WITHOUT_THREADS
            or row["snapshots"] > 0 and engine in result["peers"])


def check_compare_row(row, result):
    if lacks_something(row["engine"], row, result):
        assert row["mops"] is None and row["ratio"] is None and row["setting_ratio"] is None
        return
    first = (result["peers"] + result["engines"])[0]
    figures = COMPARE_FIGURES
    if lacks_something(first, row, result):
        figures = [name for name in figures if name != "ratio"]
    check_positive(row, figures)
    assert row["bytes_per_item"] >= 0
    assert (row["pinned_bytes_per_item"] is not None) == (row["snapshots"] > 0)
    assert row["threads"] > 1 or row["core_round_trip_ns"] == []
    assert len(row["mops_of_repeats"]) == result["repeats"]
    assert row["engine"] != first or row["ratio"] == 1


def check_compare_option(name, value, result):
    if name == "limits":
        check_limits(result["limits"])
    elif isinstance(result[name], list):
        assert ",".join(map(str, result[name])) == ("" if value == "none" else value), name
    else:
        assert str(result[name]) == value, name


def check_compare(result, options):
    assert result["errors"] == 0 and result["agrees"]
    missing = [name for name in COMPARE_OPTIONS if name not in result]
    assert not missing, f"missing: {missing}"
    assert result["apart"] == ("--apart" in options)
    assert (result["key-size"] == "mixed") == ("--mixed-sizes" in options)
    options = [option for option in options if option not in ("--apart", "--mixed-sizes")]
    for name, value in zip(options[0::2], options[1::2]):
        check_compare_option(name.removeprefix("--"), value, result)
    subjects = result["peers"] + result["engines"]
    workloads = [name.partition(":")[0] for name in result["workloads"]]
    settings = list(itertools.product(*(result[name] for name in COMPARE_SETTINGS)))
    wanted = list(itertools.product(workloads, settings, subjects))
    assert [(row["workload"], tuple(row[name] for name in COMPARE_SETTINGS), row["engine"])
            for row in result["rows"]] == wanted
    for row in result["rows"]:
        check_compare_row(row, result)
    assert [(footprint["items"], footprint["engine"]) for footprint in result["footprints"]] == list(
        itertools.product(result["items"], subjects))
    assert all(footprint["contents_checksum"] != 0 for footprint in result["footprints"])


def check_expiry(result, options):
    missing = [name for name in EXPIRY_OPTIONS if name not in result]
    assert not missing, f"missing: {missing}"
    for name, value in zip(options[0::2], options[1::2]):
        assert str(result[name.removeprefix("--")]) == value, name
    assert result["errors"] == 0, result["first_error"]
    assert result["server"].startswith("skep ")
    assert len(result["turns"]) == result["repeats"]
    for turn in result["turns"]:
        for part in ("before", "during", "after"):
            check_positive(turn[part], EXPIRY_FIGURES)
        for memory in ("memory_before", "memory_loaded", "memory_after"):
            check_positive(turn[memory], ["used_bytes", "rss_bytes"])


def check_figure(result, options, names):
    missing = [name for name in names if name not in result]
    assert not missing, f"missing: {missing}"
    for name, value in zip(options[0::2], options[1::2]):
        if value == "64K":
            value = str(64 << 10)
        told = result[name.removeprefix("--")]
        assert (",".join(map(str, told)) if isinstance(told, list) else str(told)) == value, name
    columns = result["rows"][0].keys()
    for row in result["rows"]:
        assert row.keys() == columns
        assert all(figure is None or isinstance(figure, str) or figure >= 0
                   for figure in row.values()), row
    for name in columns:
        assert any(row[name] is not None for row in result["rows"]), f"{name} has no figure"


def check_kv_direct(result, options):
    check_figure(result, options, KV_DIRECT_OPTIONS)
    assert (result["table"] is None) != (result["figure"] is None)


def with_server(server, run):
    """Calls run(port) while the server listens on loopback, on a port that the system chose."""
    with subprocess.Popen([server, "--bind", "127.0.0.1", "--port", "0"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=end_with_parent) as process:
        try:
            for line in process.stdout:
                if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                    return run(found.group(1))
            raise AssertionError("the server did not start")
        finally:
            process.terminate()


def main():
    program, command, *options = sys.argv[1:]
    if command != "expiry":
        return check(program, command, options)
    server, *options = options
    return with_server(server, lambda port: check(program, command, ["--port", port, *options]))


def check(program, command, options):
    run = subprocess.run([program, command, "--json", *options], capture_output=True, text=True)
    assert run.returncode == 0, f"exit status {run.returncode}: {run.stderr}"
    assert run.stderr == "", run.stderr
    assert run.stdout.count("\n") == 1 and run.stdout.endswith("\n"), "one line is one result"
    result = json.loads(run.stdout)
    assert result["machine"] and result["commit"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", result["date"])
    assert result["command"] == " ".join([os.path.basename(program), command, "--json", *options])
    if command == "limits":
        check_limits(result)
    elif command == "ycsb":
        check_ycsb(result, options)
    elif command == "expiry":
        check_expiry(result, options)
    elif command == "hetero-kv":
        check_figure(result, options, HETERO_KV_OPTIONS)
    elif command == "fat-btree":
        check_figure(result, options, FAT_BTREE_OPTIONS)
    elif command == "hstore":
        check_figure(result, options, HSTORE_OPTIONS)
        assert ("modelled" if result["fabric"] == "sim" else "measured") in result["title"]
    elif command == "kv-direct":
        check_kv_direct(result, options)
    else:
        check_compare(result, options)


main()
