#include "server/unused_options.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/option_values.h"

namespace skep {
namespace {

using enum UnusedOption::Kind;

constexpr UnusedOption kOptions[] = {
    {"acllog-max-len", "128"},
    {"active-defrag-cycle-max", "25"},
    {"active-defrag-cycle-min", "1"},
    {"active-defrag-ignore-bytes", "104857600", kBytes},
    {"active-defrag-max-scan-fields", "1000"},
    {"active-defrag-threshold-lower", "10"},
    {"active-defrag-threshold-upper", "100"},
    {"active-expire-effort", "1"},
    {"activedefrag", "no", kYesNo},
    {"activerehashing", "yes", kYesNo},
    {"aof-load-truncated", "yes", kYesNo},
    {"aof-rewrite-incremental-fsync", "yes", kYesNo},
    {"aof-timestamp-enabled", "no", kYesNo},
    {"aof-use-rdb-preamble", "yes", kYesNo},
    {"auto-aof-rewrite-min-size", "67108864", kBytes},
    {"auto-aof-rewrite-percentage", "100"},
    {"busy-reply-threshold", "5000"},
    {"crash-log-enabled", "yes", kYesNo},
    {"crash-memcheck-enabled", "yes", kYesNo},
    {"dynamic-hz", "yes", kYesNo},
    {"hll-sparse-max-bytes", "3000", kBytes},
    {"hz", "10"},
    {"jemalloc-bg-thread", "yes", kYesNo},
    {"key-load-delay", "0"},
    {"latency-tracking", "yes", kYesNo},
    {"latency-tracking-info-percentiles", "50 99 99.9", kWords},
    {"lazyfree-lazy-eviction", "no", kYesNo},
    {"lazyfree-lazy-expire", "no", kYesNo},
    {"lazyfree-lazy-server-del", "no", kYesNo},
    {"lazyfree-lazy-user-del", "no", kYesNo},
    {"lazyfree-lazy-user-flush", "no", kYesNo},
    {"lfu-decay-time", "1"},
    {"lfu-log-factor", "10"},
    {"lua-time-limit", "5000"},
    {"masterauth", "", kWords},
    {"masteruser", "", kWords},
    {"maxmemory-eviction-tenacity", "10"},
    {"maxmemory-samples", "5"},
    {"min-replicas-max-lag", "10"},
    {"min-replicas-to-write", "0"},
    {"min-slaves-max-lag", "10"},
    {"min-slaves-to-write", "0"},
    {"no-appendfsync-on-rewrite", "no", kYesNo},
    {"oom-score-adj", "no", kWords},
    {"rdb-del-sync-files", "no", kYesNo},
    {"rdb-key-save-delay", "0"},
    {"rdb-save-incremental-fsync", "yes", kYesNo},
    {"rdbcompression", "yes", kYesNo},
    {"repl-backlog-size", "1048576", kBytes},
    {"repl-backlog-ttl", "3600"},
    {"repl-disable-tcp-nodelay", "no", kYesNo},
    {"repl-diskless-load", "disabled", kWords},
    {"repl-diskless-sync", "yes", kYesNo},
    {"repl-diskless-sync-delay", "5"},
    {"repl-diskless-sync-max-replicas", "0"},
    {"repl-ping-replica-period", "10"},
    {"repl-ping-slave-period", "10"},
    {"repl-timeout", "60"},
    {"replica-announce-port", "0"},
    {"replica-announced", "yes", kYesNo},
    {"replica-ignore-disk-write-errors", "no", kYesNo},
    {"replica-ignore-maxmemory", "yes", kYesNo},
    {"replica-lazy-flush", "no", kYesNo},
    {"replica-priority", "100"},
    {"replica-read-only", "yes", kYesNo},
    {"replica-serve-stale-data", "yes", kYesNo},
    {"sanitize-dump-payload", "no", kWords},
    {"set-max-listpack-entries", "128"},
    {"set-max-listpack-value", "64", kBytes},
    {"shutdown-timeout", "10"},
    {"slave-priority", "100"},
    {"slave-read-only", "yes", kYesNo},
    {"slave-serve-stale-data", "yes", kYesNo},
    {"stop-writes-on-bgsave-error", "yes", kYesNo},
    {"stream-node-max-bytes", "4096", kBytes},
    {"stream-node-max-entries", "100"},
    {"tracking-table-max-keys", "1000000"},
};

size_t IndexOf(const UnusedOption& option) { return static_cast<size_t>(&option - kOptions); }

}  // namespace

std::span<const UnusedOption> AllUnusedOptions() { return kOptions; }

const UnusedOption* FindUnusedOption(std::string_view name) {
  const auto at = std::ranges::find_if(
      kOptions, [&](const UnusedOption& o) { return EqualsIgnoringCase(o.name, name); });
  return at == std::end(kOptions) ? nullptr : at;
}

Status CheckUnusedOption(const UnusedOption& option, std::string_view value) {
  switch (option.kind) {
    case kYesNo:
      if (EqualsIgnoringCase(value, "yes") || EqualsIgnoringCase(value, "no")) return {};
      return {Code::kInvalidArgument, "argument must be 'yes' or 'no'"};
    case kNumber:
      if (ParseInt64(value)) return {};
      return {Code::kInvalidArgument, "argument couldn't be parsed into an integer"};
    case kBytes:
      if (ParseBytes(value)) return {};
      return {Code::kInvalidArgument, "argument must be a memory value"};
    case kWords:
      return {};
  }
  return {};
}

UnusedOptions::UnusedOptions() {
  for (const UnusedOption& option : kOptions) values_.emplace_back(option.value);
}

void UnusedOptions::Set(const UnusedOption& option, std::string_view value) {
  const MutexLock lock(mutex_);
  std::string& kept = values_[IndexOf(option)];
  switch (option.kind) {
    case kYesNo:
      kept = LowerCase(value);
      return;
    case kBytes:
      kept = fmt::to_string(ParseBytes(value).value_or(0));
      return;
    default:
      kept = value;
  }
}

std::string UnusedOptions::Get(const UnusedOption& option) const {
  const MutexLock lock(mutex_);
  return values_[IndexOf(option)];
}

}  // namespace skep
