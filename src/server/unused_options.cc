#include "server/unused_options.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/option_values.h"

namespace skep {
namespace {

using enum UnusedOption::Kind;

constexpr UnusedOption kOptions[] = {
    {"activedefrag", "no", kYesNo},
    {"activerehashing", "yes", kYesNo},
    {"aof-use-rdb-preamble", "yes", kYesNo},
    {"auto-aof-rewrite-min-size", "67108864", kBytes},
    {"auto-aof-rewrite-percentage", "100"},
    {"busy-reply-threshold", "5000"},
    {"dynamic-hz", "yes", kYesNo},
    {"hll-sparse-max-bytes", "3000", kBytes},
    {"hz", "10"},
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
    {"maxmemory-samples", "5"},
    {"no-appendfsync-on-rewrite", "no", kYesNo},
    {"notify-keyspace-events", "", kEmpty},
    {"rdb-key-save-delay", "0"},
    {"rdbcompression", "yes", kYesNo},
    {"repl-backlog-size", "1048576", kBytes},
    {"repl-timeout", "60"},
    {"sanitize-dump-payload", "no", kWords},
    {"set-max-listpack-entries", "128"},
    {"set-max-listpack-value", "64", kBytes},
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
    case kEmpty:
      if (value.empty()) return {};
      return {Code::kInvalidArgument, "argument must be empty: there is nothing to be told of"};
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
