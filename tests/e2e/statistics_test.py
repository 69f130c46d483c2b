#!/usr/bin/env python3
"""What a server tells of itself: INFO beside Redis's, SLOWLOG, LATENCY, MEMORY, and what
prometheus-redis-exporter makes of it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from beside_redis import BesideRedisTest
from resp import Error
from skep_process import (BINARY, PATIENCE_S, ServerTest, SkepServer, end_with_parent,
                          free_port, needs)

EXPORTER = shutil.which("prometheus-redis-exporter")

# What redis_exporter, `redis-cli --stat` and client libraries look for.
FIELDS = """
    redis_version redis_mode os arch_bits multiplexing_api process_id run_id tcp_port
    server_time_usec uptime_in_seconds uptime_in_days config_file executable io_threads_active
    connected_clients cluster_connections maxclients blocked_clients tracking_clients
    clients_in_timeout_table
    used_memory used_memory_human used_memory_rss used_memory_rss_human used_memory_peak
    used_memory_peak_human used_memory_peak_perc total_system_memory total_system_memory_human
    used_memory_dataset used_memory_dataset_perc used_memory_overhead used_memory_vm_total
    used_memory_functions number_of_libraries lazyfree_pending_objects lazyfreed_objects
    used_memory_lua maxmemory maxmemory_human maxmemory_policy mem_fragmentation_ratio
    mem_fragmentation_bytes mem_clients_normal mem_clients_slaves mem_allocator
    active_defrag_running
    loading async_loading rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status
    rdb_last_bgsave_time_sec rdb_saves rdb_last_cow_size aof_enabled aof_rewrite_in_progress
    aof_rewrite_scheduled aof_last_rewrite_time_sec aof_current_rewrite_time_sec
    aof_last_bgrewrite_status aof_last_cow_size
    aof_last_write_status module_fork_in_progress
    total_connections_received total_commands_processed instantaneous_ops_per_sec
    total_net_input_bytes total_net_output_bytes instantaneous_input_kbps
    instantaneous_output_kbps rejected_connections sync_full sync_partial_ok sync_partial_err
    expired_keys evicted_keys evicted_clients keyspace_hits keyspace_misses pubsub_channels
    pubsub_patterns latest_fork_usec migrate_cached_sockets slave_expires_tracked_keys
    active_defrag_hits active_defrag_misses total_error_replies total_reads_processed
    total_writes_processed
    expired_stale_perc expired_time_cap_reached_count reply_buffer_shrinks
    instantaneous_input_repl_kbps
    role connected_slaves master_replid master_replid2 master_repl_offset second_repl_offset
    repl_backlog_active repl_backlog_first_byte_offset repl_backlog_histlen
    used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children
    cluster_enabled
""".split()


def info(client, *sections):
    """The fields of INFO, as strings."""
    text = client.call("INFO", *sections).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def counts(fields):
    """Of the fields of INFO those that count commands and errors, without times."""
    kept = {}
    for name, value in fields.items():
        if name.startswith("cmdstat_"):
            kept[name] = re.sub(r"usec=\d+,usec_per_call=[\d.]+,", "", value)
        elif name.startswith("errorstat_") or name in ("keyspace_hits", "keyspace_misses",
                                                       "total_error_replies"):
            kept[name] = value
    return kept


class InfoTest(BesideRedisTest):
    def test_fields(self):
        redis, skep = (info(connection, "everything") for connection in self.connect_both())
        self.assertEqual([field for field in FIELDS if field not in redis], [])
        self.assertEqual([field for field in FIELDS if field not in skep], [])
        self.assertEqual(int(skep["used_memory_dataset"]) + int(skep["used_memory_overhead"]),
                         int(skep["used_memory"]))
        self.assertRegex(skep["master_replid"], "^[0-9a-f]{40}$")
        self.assertEqual(os.path.realpath(skep["executable"]), os.path.realpath(BINARY))

    # Goal: what both count they count alike.
    # Method: the same commands go to both, right and wrong ones, alone, in a pipeline and in a
    # transaction; then the counters must be equal.
    def test_counters(self):
        told = []
        for connection in self.connect_both():
            connection.call("CONFIG", "RESETSTAT")
            connection.pipeline(["SET", "a", 1], ["SET", "b", "x"], ["GET", "a"], ["GET", "nosuch"],
                                ["MGET", "a", "b", "nosuch"], ["EXISTS", "a", "nosuch"],
                                ["TTL", "nosuch"], ["STRLEN", "b"], ["GETDEL", "b"],
                                ["GETEX", "nosuch"], ["SET", "a", 2, "GET"], ["SETNX", "a", 3],
                                ["INCR", "nosuch2"], ["GETRANGE", "a", 0, 1], ["TOUCH", "a"])
            connection.pipeline(["GET"], ["GET", "a", "b"], ["NOSUCH"], ["SET", "a", 1, "EX", 0],
                                ["INCR", "a"], ["SET", "a", "x"], ["INCR", "a"], ["DEL", "a"])
            connection.pipeline(["MULTI"], ["SET", "c", "x"], ["INCR", "c"], ["GET", "c"], ["EXEC"])
            connection.pipeline(["MULTI"], ["GET"], ["EXEC"])
            connection.pipeline(["CLIENT", "GETNAME"], ["client", "GetName"], ["CLIENT", "SETNAME"],
                                ["OBJECT", "ENCODING", "a"], ["OBJECT", "HELP"], ["COMMAND"],
                                ["MULTI"], ["CONFIG", "GET", "hz"], ["EXEC"])
            histogram = connection.call("LATENCY", "HISTOGRAM", "client", "object|encoding", "exec")
            self.assertEqual(sorted(histogram[::2]), [b"client|getname", b"exec", b"object|encoding"])
            fields = info(connection, "all")
            self.assertGreater(int(fields["total_commands_processed"]), 20)
            self.assertRegex(fields["latency_percentiles_usec_get"],
                             r"p50=\d+\.\d+,p99=\d+\.\d+,p99\.9=\d+\.\d+")
            told.append(counts(fields))
        self.assertEqual(told[1], told[0])

    # Goal: a command that is refused for want of memory has been rejected, and has not failed, in
    # whatever way it runs.
    def test_refusals_are_no_failures(self):
        told = []
        for connection in self.connect_both():
            connection.pipeline(["SET", "a", 5], ["SADD", "s", 1], ["CONFIG", "SET", "maxmemory", 1],
                                ["CONFIG", "RESETSTAT"])
            replies = connection.pipeline(
                ["SET", "a", 1], ["GET", "a"], ["MSET", "a", 1, "b", 2], ["BITOP", "NOT", "b", "a"],
                ["SADD", "s", 2], ["INCR", "a"], ["SPOP", "nosuch"],
                ["MULTI"], ["SET", "a", 1], ["EXEC"], ["CONFIG", "SET", "maxmemory", 0])
            self.assertEqual([str(r)[:4] for r in replies[:6]],
                             ["OOM ", "b'5'", "OOM ", "OOM ", "OOM ", "OOM "])
            told.append(counts(info(connection, "all")))
        self.assertEqual(told[0]["cmdstat_set"], "calls=0,rejected_calls=2,failed_calls=0")
        self.assertEqual(told[1], told[0])

    def test_databases(self):
        for connection in self.connect_both():
            connection.pipeline(["SET", "a", 1], ["SET", "b", 1, "EX", 1000], ["SELECT", 3],
                                ["SET", "a", 1])
            fields = info(connection, "keyspace")
            self.assertRegex(fields["db0"], r"^keys=2,expires=1,avg_ttl=\d+$")
            self.assertRegex(fields["db3"], r"^keys=1,expires=0,avg_ttl=0$")
            self.assertNotIn("db1", fields)


class SlowCommandsTest(ServerTest):
    OPTIONS = ("--latency-monitor-threshold", "100")

    # Goal: the words, the client and the number of what SLOWLOG has, from commands that share a
    # batch, run by themselves, and take many turns.
    def test_slowlog(self):
        call = self.client.call
        call("CLIENT", "SETNAME", "me")
        call("CONFIG", "SET", "slowlog-max-len", 4, "slowlog-log-slower-than", 0)
        # The command that sets the threshold is noted by it.
        self.assertEqual(call("SLOWLOG", "GET", 1)[0][3][:2], [b"CONFIG", b"SET"])
        self.client.pipeline(["SET", "a", 1], ["GET", "a"], ["MSET", *(["k", "v"] * 20)])
        call("HELLO", 2, "AUTH", "default", "secret")
        self.check(4, "SLOWLOG", "LEN")
        entries = call("SLOWLOG", "GET", -1)
        words = [entry[3] for entry in entries]
        self.assertEqual(words[0], [b"SLOWLOG", b"LEN"])
        self.assertEqual(words[1], [b"HELLO", b"2", b"(redacted)", b"(redacted)", b"(redacted)"])
        self.assertEqual((len(words[2]), words[2][-1]), (32, b"... (10 more arguments)"))
        self.assertEqual(words[3], [b"GET", b"a"])
        ids = [entry[0] for entry in entries]
        self.assertEqual(ids, list(range(ids[0], ids[0] - 4, -1)))
        for _, seconds, microseconds, _, address, name in entries:
            self.assertLess(abs(seconds - time.time()), 1000)
            self.assertGreaterEqual(microseconds, 0)
            self.assertRegex(address, rb"^127\.0\.0\.1:\d+$")
            self.assertEqual(name, b"me")
        call("CONFIG", "SET", "slowlog-max-len", 128)
        self.client.pipeline(*(["SET", f"key:{i}", "v" * 1000] for i in range(2000)))
        call("SLOWLOG", "RESET")
        call("KRANGE", "-", "+", "WITHVALUES")
        self.assertIn([b"KRANGE", b"-", b"+", b"WITHVALUES"],
                      [entry[3] for entry in call("SLOWLOG", "GET", 2)])
        call("CONFIG", "SET", "slowlog-log-slower-than", -1)
        call("SLOWLOG", "RESET")
        call("GET", "a")
        self.check(0, "SLOWLOG", "LEN")

    # Method: a command that is slow for certain: LCS of the largest table that it takes.
    def test_latency_events(self):
        call = self.client.call
        self.check("OK", "CONFIG", "SET", "latency-monitor-threshold", 1)
        call("MSET", "a", "ab" * 2000, "b", "ba" * 2000)
        call("LATENCY", "RESET")
        self.assertEqual(call("LCS", "a", "b", "LEN"), 3999)
        (event,) = call("LATENCY", "LATEST")
        self.assertEqual(event[0], b"command")
        self.assertGreaterEqual(event[3], 1)
        history = call("LATENCY", "HISTORY", "command")
        self.assertIn([event[1], event[2]], history)
        self.assertIn(b"command", call("LATENCY", "DOCTOR"))
        self.check(1, "LATENCY", "RESET", "command", "nosuch")
        self.check([], "LATENCY", "LATEST")

    def test_latency_histogram(self):
        call = self.client.call
        call("CONFIG", "RESETSTAT")
        self.client.pipeline(*[["GET", "a"]] * 10, ["SET", "a", 1])
        name, about = call("LATENCY", "HISTOGRAM", "get")
        self.assertEqual((name, about[:2], about[2]), (b"get", [b"calls", 10], b"histogram_usec"))
        bounds, counts = about[3][::2], about[3][1::2]
        self.assertEqual((sorted(bounds), sorted(counts)), (bounds, counts))
        self.assertEqual(counts[-1], 10)
        self.assertEqual(set(call("LATENCY", "HISTOGRAM")[::2]), {b"config|resetstat", b"get", b"latency|histogram",
                                                                  b"set"})

    def test_memory(self):
        call = self.client.call
        call("SET", "key", "v" * 1000, "EX", 1000)
        self.check(3 + 1000 + 8, "MEMORY", "USAGE", "key")
        self.check(None, "MEMORY", "USAGE", "nosuch")
        stats = call("MEMORY", "STATS")
        stats = dict(zip(stats[::2], stats[1::2]))
        self.assertEqual(stats[b"keys.count"], 1)
        self.assertGreaterEqual(stats[b"peak.allocated"], stats[b"total.allocated"])
        self.assertIn(b"memory", call("MEMORY", "DOCTOR"))
        self.client.pipeline(["MULTI"], ["MEMORY", "USAGE", "key"], ["OBJECT", "HELP"])
        usage, text = call("EXEC")
        self.assertEqual((usage, text[0][:6]), (1011, "OBJECT"))

    # Goal: LASTSAVE and rdb_last_save_time of a server that has saved nothing: when it began.
    def test_last_save(self):
        began = self.client.call("LASTSAVE")
        self.assertLess(abs(began - time.time()), 10_000)
        self.assertEqual(info(self.client, "persistence")["rdb_last_save_time"], str(began))


class SavedChangesTest(unittest.TestCase):
    # Goal: dashboards see what the next snapshot would save.
    def test_changes_since_the_last_snapshot(self):
        with tempfile.TemporaryDirectory() as folder, SkepServer("--dir", folder) as server:
            with server.connect() as client:
                client.pipeline(["SET", "a", 1], ["MSET", "b", 1, "c", 2], ["GET", "a"],
                                ["DEL", "nosuch"])
                told = info(client, "persistence")
                self.assertEqual(told["rdb_changes_since_last_save"], "3")
                self.assertEqual(told["rdb_current_bgsave_time_sec"], "-1")
                self.assertEqual(client.call("SAVE"), "OK")
                self.assertEqual(info(client, "persistence")["rdb_changes_since_last_save"], "0")
                client.call("DEL", "a")
                self.assertEqual(info(client, "persistence")["rdb_changes_since_last_save"], "1")


@needs(EXPORTER, "prometheus-redis-exporter")
class ExporterTest(ServerTest):
    OPTIONS = ("--slowlog-log-slower-than", "-1")
    maxDiff = None

    # Goal: the exporter that people run finds what it looks for.
    # Method: it is started beside the server; what it tells must be true of what was done.
    def test_exporter(self):
        self.client.pipeline(["SET", "a", 1, "EX", 1000], ["SET", "b", 1], ["GET", "a"],
                             ["GET", "nosuch"], ["INCR", "nosuch", 1])
        port = free_port()
        exporter = subprocess.Popen(
            [EXPORTER, "-redis.addr", f"redis://127.0.0.1:{self.server.port}",
             "-web.listen-address", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.addCleanup(exporter.wait)
        self.addCleanup(exporter.send_signal, signal.SIGTERM)
        told = self.metrics(port)
        expected = {
            "redis_up": 1, "redis_exporter_last_scrape_error": 0, "redis_cluster_enabled": 0,
            "redis_blocked_clients": 0, "redis_evicted_keys_total": 0,
            "redis_slowlog_length": 0, 'redis_db_keys{db="db0"}': 2,
            'redis_db_keys_expiring{db="db0"}': 1, "redis_keyspace_hits_total": 1,
            "redis_keyspace_misses_total": 1, 'redis_commands_total{cmd="get"}': 2,
            'redis_commands_total{cmd="set"}': 2,
        }
        found = {name: self.value(told, name) for name in expected}
        self.assertEqual(found, expected)
        for name in ("redis_memory_used_bytes", "redis_memory_max_bytes", "redis_memory_used_rss_bytes",
                     "redis_memory_used_peak_bytes", "redis_uptime_in_seconds",
                     "redis_connections_received_total", "redis_commands_processed_total",
                     "redis_net_input_bytes_total", "redis_cpu_sys_seconds_total",
                     "redis_rdb_last_save_timestamp_seconds", "redis_connected_clients",
                     "redis_mem_fragmentation_ratio"):
            self.assertIsNotNone(self.value(told, name), name)

    def metrics(self, port):
        """What it tells once it has the server's answers."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                              timeout=PATIENCE_S).read().decode()
            except OSError:
                text = ""
            if "redis_up 1" in text or time.monotonic() > deadline:
                return text
            time.sleep(0.05)

    def value(self, text, name):
        """The value of a metric; labels that are not asked for may be there."""
        found = re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return float(found.group(1)) if found else None


if __name__ == "__main__":
    unittest.main()
