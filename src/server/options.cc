#include "server/options.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <array>

#include "durable/log_sync_name.h"
#include "keyspace/factory.h"
#include "keyspace/keyspaces.h"
#include "netindex/leaves/share_place.h"
#include "ranges/served_ranges.h"
#include "server/event_classes.h"
#include "server/glob.h"
#include "server/option_values.h"

namespace skep {
namespace {

using namespace option_values;
using S = ServerOptions;

enum When : bool { kAtStart = false, kAnyTime = true };

constexpr std::array<std::string_view, 4> kLogLevels = {"debug", "verbose", "notice", "warning"};
constexpr std::array<std::string_view, 2> kNodeLayouts = {"heads", "paper"};
static_assert(static_cast<int>(NodeLayout::kHeads) == 0);
static_assert(static_cast<int>(NodeLayout::kPaper) == 1);
constexpr std::array<std::string_view, 1> kPolicies = {"noeviction"};
constexpr std::array<std::string_view, 3> kDebugClients = {"no", "local", "yes"};
constexpr std::array<std::string_view, 3> kSyncs = {"always", "everysec", "no"};
constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kSyncAgeMsMin = 1000;
// AUTH and HELLO with a password of this size fit into kStrangerBytesMax (turn_context.h).
constexpr size_t kPasswordBytesMax = 1024;

template <typename Value>
constexpr OptionInfo Row(std::string_view name, std::string_view value_name, When when,
                         std::string_view help) {
  return {name, value_name, help, when == kAnyTime, Value::kIsList, &Value::Set, &Value::Get};
}

struct SavePoints {
  static constexpr bool kIsList = true;
  static Status Set(ServerOptions& options, std::string_view value) {
    ServerOptions changed = options;
    changed.save = fmt::format("{}", fmt::join(SplitWords(value), " "));
    const size_t words = SplitWords(value).size();
    const std::vector<uint64_t> numbers = SavePointsOf(changed);
    bool is_valid = numbers.size() == words && words % 2 == 0;
    for (size_t i = 0; i < numbers.size(); i += 2) is_valid &= numbers[i] > 0;  // seconds
    if (!is_valid) {
      return {Code::kInvalidArgument, "Invalid save parameters"};
    }
    options.save = changed.save;
    return {};
  }
  static std::string Get(const ServerOptions& options) { return options.save; }
};

struct ClientOutputLimits {
  static constexpr bool kIsList = true;
  static Status Set(ServerOptions& options, std::string_view value) {
    return SetOutputLimits(value, options.client_output_buffer_limit);
  }
  static std::string Get(const ServerOptions& options) {
    return TextOf(options.client_output_buffer_limit);
  }
};

struct ClientMemory {
  static constexpr bool kIsList = false;
  static constexpr uint64_t kPercentMax = 100;
  static Status Set(ServerOptions& options, std::string_view value) {
    if (value.ends_with('%')) {
      const auto percent = ParseUint64(value.substr(0, value.size() - 1));
      if (!percent) return kNotMemoryOrPercent;
      if (*percent > kPercentMax) {
        return {Code::kInvalidArgument, "percentage argument must be less or equal to 100"};
      }
      options.maxmemory_clients = -static_cast<int64_t>(*percent);
      return {};
    }
    const auto bytes = ParseBytes(value);
    if (!bytes || *bytes > INT64_MAX) return kNotMemoryOrPercent;
    options.maxmemory_clients = static_cast<int64_t>(*bytes);
    return {};
  }
  static std::string Get(const ServerOptions& options) {
    const int64_t limit = options.maxmemory_clients;
    return limit < 0 ? fmt::format("{}%", -limit) : fmt::to_string(limit);
  }
  static constexpr Status kNotMemoryOrPercent{Code::kInvalidArgument,
                                              "argument must be a memory or percent value"};
};

struct EventClasses {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    const auto classes = ParseEventClasses(value);
    if (!classes) {
      return {Code::kInvalidArgument, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."};
    }
    options.notify_keyspace_events = *classes;
    return {};
  }
  static std::string Get(const ServerOptions& options) {
    return TextOfEventClasses(options.notify_keyspace_events);
  }
};

struct ServedRangesText {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    const auto read = ranges::ReadServedRanges(value);
    if (!value.empty() && !read) return read.error();
    options.ranges = value;
    return {};
  }
  static std::string Get(const ServerOptions& options) { return options.ranges; }
};

struct SharePlaceText {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    if (!value.empty() && !leaves::ParseSharePlace(value)) {
      return {Code::kInvalidArgument, leaves::kSharePlaces};
    }
    options.share_leaves = value;
    return {};
  }
  static std::string Get(const ServerOptions& options) { return options.share_leaves; }
};

constexpr OptionInfo kOptions[] = {
    Row<Addresses<&S::bind>>("bind", "ADDRESS", kAtStart,
                             "Numeric address to listen on; may be given more than once."),
    Row<Number<&S::port, 0, 65535>>("port", "N", kAtStart,
                                    "TCP port to listen on; 0 takes a free one and logs it."),
    Row<Text<&S::unixsocket>>("unixsocket", "PATH", kAtStart, "Unix socket to listen on as well."),
    Row<Flag<&S::udp>>("udp", "yes|no", kAtStart,
                       "Take messages of the packed protocol as datagrams too, on bind and port."),
    Row<Text<&S::xdp>>(
        "xdp", "PATH", kAtStart,
        "With udp, hot GETs answered by the network driver: socket of skep-netindex xdp."),
    Row<SharePlaceText>("share-leaves", "PLACE", kAtStart,
                        "Let clients read keyspace 0 one-sided: mem:unix:PATH or tcp:HOST:PORT."),
    Row<Number<&S::maxclients, 1, UINT32_MAX>>("maxclients", "N", kAnyTime,
                                               "Connections served at the same time."),
    Row<Number<&S::timeout, 0, INT32_MAX>>("timeout", "SECONDS", kAnyTime,
                                           "Close a connection idle for this long; 0 is never."),
    Row<Number<&S::tcp_keepalive, 0, INT32_MAX>>(
        "tcp-keepalive", "SECONDS", kAtStart,
        "Ask a silent peer whether it is there after this long; 0 is never."),
    Row<Text<&S::requirepass>>("requirepass", "PASSWORD", kAnyTime,
                               "Password that AUTH must give before any other command."),
    Row<Flag<&S::protected_mode>>(
        "protected-mode", "yes|no", kAtStart,
        "Refuse to start if other machines could connect without a password."),
    Row<OneOf<&S::enable_debug_command, kDebugClients>>(
        "enable-debug-command", "no|local|yes", kAtStart,
        "Who may use DEBUG, which can stop a worker: nobody, clients of this machine, all."),
    Row<Text<&S::engine>>("engine", "NAME", kAtStart, "Index that holds every keyspace."),
    Row<Number<&S::databases, 1, 65536>>("databases", "N", kAtStart,
                                         "Keyspaces that SELECT can choose."),
    Row<NumberedNames<&S::keyspace_engines>>(
        "keyspace", "N=ENGINE", kAtStart,
        "Index of one keyspace, not of all: hashleaf,key=8,value=16; pool,zk=HOST,name=NAME."),
    Row<ServedRangesText>("ranges", "zk=...,name=...,at=...", kAtStart,
                          "Have of keyspace 0 only what a map in ZooKeeper gives to this server."),
    Row<Words<&S::function_libraries>>(
        "function-library", "PATH", kAtStart,
        "Shared object with functions of your own; may be given more than once."),
    Row<Bytes<&S::btree_node_bytes, 2048, 32768>>(
        "btree-node-bytes", "BYTES", kAtStart,
        "Size of a node of the btree engine: a power of two."),
    Row<Bytes<&S::btree_log_bytes, 0, 8192>>(
        "btree-log-bytes", "BYTES", kAtStart,
        "Changes a leaf collects before it is sorted: up to 1/4 of a node, of heads 2048."),
    Row<Choice<&S::btree_layout, kNodeLayouts>>(
        "btree-layout", "heads|paper", kAtStart,
        "How a node's bytes are arranged: heads is for the CPU, paper is Honeycomb's."),
    Row<Flag<&S::btree_multi_version>>(
        "btree-multi-version", "yes|no", kAtStart,
        "Keep old values: no gives up dir, snapshots, and ranges of one instant."),
    Row<Number<&S::workers, 0, 1024>>("workers", "N", kAtStart,
                                      "Threads that serve connections; 0 is one a core."),
    Row<Bytes<&S::maxmemory, 0>>("maxmemory", "BYTES", kAnyTime,
                                 "Memory the server may use, 100mb or 4gb; 0 is no limit."),
    Row<OneOf<&S::maxmemory_policy, kPolicies>>(
        "maxmemory-policy", "NAME", kAnyTime,
        "What happens at the limit; noeviction refuses writes."),
    Row<Text<&S::dir>>("dir", "PATH", kAtStart,
                       "Directory to keep the data in; empty keeps them in memory only."),
    Row<Flag<&S::appendonly>>("appendonly", "yes|no", kAtStart,
                              "With dir, log every write; there is no other way yet."),
    Row<OneOf<&S::appendfsync, kSyncs>>(
        "appendfsync", "always|everysec|no", kAnyTime,
        "When the log is synced, and a write survives a power loss."),
    Row<Number<&S::appendfsync_age_ms, 0, UINT32_MAX>>(
        "appendfsync-age-ms", "MS", kAnyTime,
        "With everysec: age of what is not synced at which writes are refused; 0 is never."),
    Row<Bytes<&S::log_segment_bytes, 4096, uint64_t{1} << 40>>(
        "log-segment-bytes", "BYTES", kAtStart,
        "Size of a file of the log; two are taken from the disk at once, and as much in reserve."),
    Row<Number<&S::recovery_threads, 0, 1024>>(
        "recovery-threads", "N", kAtStart, "Threads that read dir at the start; 0 is one a core."),
    Row<SavePoints>("save", "SECONDS CHANGES ...", kAnyTime,
                    "Write a snapshot after so many seconds if so many keys were changed."),
    Row<Number<&S::auto_snapshot_percentage, 0, UINT32_MAX>>(
        "auto-snapshot-percentage", "N", kAnyTime,
        "Write a snapshot when the log is so many percent of the last one; 0 is never."),
    Row<Bytes<&S::auto_snapshot_min_size, 0>>(
        "auto-snapshot-min-size", "BYTES", kAnyTime,
        "Size of the log below which auto-snapshot-percentage writes no snapshot."),
    Row<Bytes<&S::proto_max_bulk_len, kMiB>>("proto-max-bulk-len", "BYTES", kAnyTime,
                                             "Longest argument a command may have."),
    Row<Bytes<&S::client_query_buffer_limit, kMiB>>(
        "client-query-buffer-limit", "BYTES", kAnyTime,
        "Bytes of one unfinished command after which its connection is closed."),
    Row<ClientOutputLimits>(
        "client-output-buffer-limit", "normal HARD SOFT SECONDS", kAnyTime,
        "Bytes of unread replies after which a connection is closed; 0 is no limit."),
    Row<ClientMemory>(
        "maxmemory-clients", "BYTES|N%", kAnyTime,
        "Memory of all clients' buffers, over which the largest are closed; 0 is no limit."),
    Row<Bytes<&S::collection_value_bytes, 0, size_t{1} << 20>>(
        "collection-value-bytes", "BYTES", kAtStart,
        "Bytes from which a hash, set, list or sorted set is kept in parts; 0 is never."),
    Row<Number<&S::hash_max_listpack_entries, 0, INT64_MAX>>(
        "hash-max-listpack-entries", "N", kAnyTime,
        "Fields up to which OBJECT ENCODING calls a hash a listpack."),
    Row<Bytes<&S::hash_max_listpack_value, 0>>(
        "hash-max-listpack-value", "BYTES", kAnyTime,
        "Length of fields and values up to which OBJECT ENCODING calls a hash a listpack."),
    Row<Number<&S::list_compress_depth, 0, INT32_MAX>>(
        "list-compress-depth", "N", kAnyTime, "Taken from Redis's clients; it has no effect."),
    Row<Number<&S::list_max_listpack_size, INT32_MIN, INT32_MAX>>(
        "list-max-listpack-size", "N", kAnyTime, "Taken from Redis's clients; it has no effect."),
    Row<Number<&S::set_max_intset_entries, 0, INT64_MAX>>(
        "set-max-intset-entries", "N", kAnyTime,
        "Integers up to which OBJECT ENCODING calls a set an intset."),
    Row<Number<&S::zset_max_listpack_entries, 0, INT64_MAX>>(
        "zset-max-listpack-entries", "N", kAnyTime,
        "Members up to which OBJECT ENCODING calls a sorted set a listpack."),
    Row<Bytes<&S::zset_max_listpack_value, 0>>(
        "zset-max-listpack-value", "BYTES", kAnyTime,
        "Length of members up to which OBJECT ENCODING calls a sorted set a listpack."),
    Row<EventClasses>(
        "notify-keyspace-events", "LETTERS", kAnyTime,
        "Events of keys that are published, by Redis's letters, KEA say; none if empty."),
    Row<Number<&S::snapshot_age_ms, 1, INT64_MAX>>(
        "snapshot-age-ms", "MS", kAtStart,
        "Age at which a snapshot, and a KSCAN that reads it, ends."),
    Row<Number<&S::cursor_ttl_ms, 1, INT64_MAX>>(
        "cursor-ttl-ms", "MS", kAnyTime, "Time a SCAN or KSCAN that nobody carries on is kept."),
    Row<Number<&S::slowlog_log_slower_than, -1, INT64_MAX>>(
        "slowlog-log-slower-than", "MICROSECONDS", kAnyTime,
        "Time after which a command comes into SLOWLOG; 0 takes all, -1 none."),
    Row<Number<&S::slowlog_max_len, 0, UINT32_MAX>>("slowlog-max-len", "N", kAnyTime,
                                                    "Commands that SLOWLOG keeps."),
    Row<Number<&S::latency_monitor_threshold, 0, UINT32_MAX>>(
        "latency-monitor-threshold", "MS", kAnyTime,
        "Time after which a command is an event of LATENCY; 0 is never."),
    Row<OneOf<&S::loglevel, kLogLevels>>(
        "loglevel", "NAME", kAnyTime, "Least of what is logged: debug, verbose, notice, warning."),
    Row<Text<&S::logfile>>("logfile", "PATH", kAtStart,
                           "File to log to, or /dev/null; empty is standard output."),
};

constexpr OldOptionName kOldNames[] = {
    {"hash-max-ziplist-entries", "hash-max-listpack-entries"},
    {"hash-max-ziplist-value", "hash-max-listpack-value"},
    {"list-max-ziplist-size", "list-max-listpack-size"},
    {"zset-max-ziplist-entries", "zset-max-listpack-entries"},
    {"zset-max-ziplist-value", "zset-max-listpack-value"},
};

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("[::1]:");
}

Status Refuse(std::string* why, std::string text) {
  *why = std::move(text);
  return {Code::kInvalidArgument, "options refused"};
}

// Whoever can connect to a share reads all keys, of a tree that one process has.
Status CheckShare(const ServerOptions& options, std::string* why) {
  const auto place = leaves::ParseSharePlace(options.share_leaves);
  if (!place) return Refuse(why, leaves::kSharePlaces);
  if (!options.requirepass.empty()) {
    return Refuse(why,
                  "share-leaves: readers of memory are asked for no password; unset requirepass, "
                  "or share-leaves");
  }
  if (!options.ranges.empty()) {
    return Refuse(why,
                  "share-leaves: readers of memory would see keys that a map has given to another "
                  "server; unset ranges, or share-leaves");
  }
  const bool is_open = place->fabric == "tcp" && !IsLoopback(place->address);
  if (is_open && options.protected_mode) {
    return Refuse(why,
                  "share-leaves lets other machines read all keys without a password: set "
                  "protected-mode no to allow it");
  }
  const auto first = options.keyspace_engines.find(0);
  const std::string& engine =
      first == options.keyspace_engines.end() ? options.engine : first->second;
  if (engine != "btree") {
    return Refuse(why, fmt::format("share-leaves: keyspace 0 has the engine {}; only the leaves of "
                                   "a btree are shared",
                                   engine));
  }
  if (options.btree_layout != NodeLayout::kHeads || !options.btree_multi_version) {
    return Refuse(why, "share-leaves: needs btree-layout heads and btree-multi-version yes");
  }
  return {};
}

}  // namespace

std::span<const OptionInfo> AllOptions() { return kOptions; }

std::span<const OldOptionName> OldOptionNames() { return kOldNames; }

const OptionInfo* FindOption(std::string_view name) {
  for (const OldOptionName& old : kOldNames) {
    if (EqualsIgnoringCase(old.name, name)) name = old.option;
  }
  const auto found = std::ranges::find_if(
      kOptions, [&](const OptionInfo& option) { return EqualsIgnoringCase(option.name, name); });
  return found == std::end(kOptions) ? nullptr : &*found;
}

std::vector<const OptionInfo*> MatchOptions(std::string_view pattern) {
  const std::string lower = LowerCase(pattern);
  std::vector<const OptionInfo*> matches;
  for (const OptionInfo& option : kOptions) {
    if (GlobMatch(lower, option.name)) matches.push_back(&option);
  }
  return matches;
}

Status SetOption(ServerOptions& options, std::string_view name, std::string_view value) {
  const OptionInfo* option = FindOption(name);
  if (option == nullptr) return {Code::kInvalidArgument, "unknown option"};
  return option->set(options, value);
}

Status CheckOptions(const ServerOptions& options, std::string* why) {
  const auto open = std::ranges::find_if_not(options.bind, IsLoopback);
  if (open != options.bind.end() && options.requirepass.empty() && options.protected_mode) {
    return Refuse(why, fmt::format("bind {} lets other machines connect, and there is no password: "
                                   "set requirepass, or protected-mode no to allow it",
                                   *open));
  }
  if (options.requirepass.size() > kPasswordBytesMax) {
    return Refuse(why, fmt::format("requirepass is longer than {} bytes: who has not logged in may "
                                   "not send that much",
                                   kPasswordBytesMax));
  }
  if (options.bind.empty() && options.unixsocket.empty()) {
    return Refuse(why, "nothing to listen on: set bind or unixsocket");
  }
  if (options.udp && options.bind.empty()) {
    return Refuse(why, "udp yes: there is no address to take datagrams on; set bind");
  }
  if (!options.xdp.empty() && !options.udp) {
    return Refuse(why, "xdp: it answers datagrams, which this server does not take; set udp yes");
  }
  if (!options.xdp.empty() && !options.requirepass.empty()) {
    return Refuse(why,
                  "xdp: the network driver asks nobody for a password; unset requirepass, or xdp");
  }
  if (!options.xdp.empty() && !options.ranges.empty()) {
    return Refuse(why,
                  "xdp: the network driver would go on answering for keys that a map has given to "
                  "another server; unset ranges, or xdp");
  }
  if (!options.share_leaves.empty()) {
    if (const Status s = CheckShare(options, why); !s.ok()) return s;
  }
  if (constexpr size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;
      options.unixsocket.size() > kPathMax) {
    return Refuse(why, fmt::format("unixsocket is longer than {} bytes", kPathMax));
  }
  std::string problem;
  if (!ParseEngine(options.engine, IndexOptions{}, &problem) ||
      !Keyspaces::Check(StoreOptions(options), &problem).ok()) {
    return Refuse(why, problem);
  }
  if (!options.dir.empty() && !options.appendonly) {
    return Refuse(why, "appendonly no: with dir every write is logged");
  }
  if (options.appendfsync_age_ms != 0 && options.appendfsync_age_ms < kSyncAgeMsMin) {
    return Refuse(why, fmt::format("appendfsync-age-ms: everysec syncs what is half a second old, "
                                   "which takes time; it is {} at least, or 0",
                                   kSyncAgeMsMin));
  }
  if (!options.dir.empty() && !options.btree_multi_version) {
    return Refuse(why, "btree-multi-version no: a store that is kept in dir needs versions");
  }
  return {};
}

std::vector<uint64_t> SavePointsOf(const ServerOptions& options) {
  std::vector<uint64_t> numbers;
  for (const std::string& word : SplitWords(options.save)) {
    if (const auto number = ParseDecimal<uint32_t>(word)) numbers.push_back(*number);
  }
  return numbers;
}

uint64_t ClientBytesMax(const ServerOptions& options) {
  const int64_t limit = options.maxmemory_clients;
  constexpr uint64_t kPercent = 100;
  const bool is_part = limit < 0;
  if (is_part ? options.maxmemory == 0 : limit == 0) return 0;
  const uint64_t bytes = is_part ? options.maxmemory / kPercent * static_cast<uint64_t>(-limit)
                                 : static_cast<uint64_t>(limit);
  return std::max(bytes, kClientBytesMin);
}

Options StoreOptions(const ServerOptions& options) {
  // Ranges move from server to server, and clients read shared leaves, key by key: the parts of a
  // collection are of no key.
  const bool has_whole_keyspaces = options.ranges.empty() && options.share_leaves.empty();
  return {.engine = options.engine,
          .keyspaces = options.databases,
          .keyspace_engines = options.keyspace_engines,
          .memory_bytes_max = options.maxmemory,
          .snapshot_age_ms_max = options.snapshot_age_ms,
          .collection_value_bytes = has_whole_keyspaces ? options.collection_value_bytes : 0,
          .directory = options.dir,
          .log_sync = *durable::LogSyncOf(options.appendfsync),
          .log_segment_bytes = options.log_segment_bytes,
          .recovery_threads = options.recovery_threads,
          .btree = {.node_bytes = options.btree_node_bytes,
                    .log_bytes = options.btree_log_bytes,
                    .layout = options.btree_layout,
                    .multi_version = options.btree_multi_version,
                    .shared = !options.share_leaves.empty()}};
}

}  // namespace skep
