// options.h: every option of skep-server, in one table.
//
// The command line, the configuration file, CONFIG GET and CONFIG SET all read this table, so an
// option has one name, one help text, one form. Names and texts are Redis's where Redis has them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/output_limits.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep {

struct ServerOptions {
  std::vector<std::string> bind = {"127.0.0.1"};  // numeric addresses; none: no TCP
  uint16_t port = 6379;                           // 0: one the system chooses
  std::string unixsocket;                         // a path; empty: none
  bool udp = false;          // the packed protocol by datagrams, on the same addresses and port
  std::string xdp;           // with udp: the socket of a helper, skep-netindex xdp; empty: none
  std::string share_leaves;  // where clients read keyspace 0's leaves one-sided; empty: nowhere
  uint32_t maxclients = 10'000;
  uint64_t maxmemory = 0;  // bytes; 0: no limit
  std::string maxmemory_policy = "noeviction";
  std::string dir;                       // directory of the data; empty: in memory only
  bool appendonly = true;                // with dir: every write is logged
  std::string appendfsync = "everysec";  // with dir: when the log is synced
  uint32_t appendfsync_age_ms = 2'000;   // with everysec: age limit of unsynced writes; 0: none
  uint32_t recovery_threads = 0;         // 0: one a core
  uint64_t log_segment_bytes = uint64_t{64} << 20;
  std::string save = "3600 1";                          // with dir: points of snapshots
  uint32_t auto_snapshot_percentage = 200;              // growth over the last snapshot; 0: never
  uint64_t auto_snapshot_min_size = uint64_t{1} << 30;  // size of the log since the last snapshot
  std::string requirepass;                              // empty: none
  bool protected_mode = true;
  std::string enable_debug_command = "no";
  uint32_t workers = 0;  // 0: one a core
  std::string engine = "btree";
  uint32_t databases = 16;
  std::map<uint32_t, std::string> keyspace_engines;  // by number, instead of `engine`
  std::string ranges;                                // keyspace 0's, by a map; empty: all keys
  std::vector<std::string> function_libraries;       // paths of shared objects
  uint32_t btree_node_bytes = BtreeOptions{}.node_bytes;
  uint32_t btree_log_bytes = BtreeOptions{}.log_bytes;
  NodeLayout btree_layout = BtreeOptions{}.layout;
  bool btree_multi_version = BtreeOptions{}.multi_version;
  uint64_t proto_max_bulk_len = uint64_t{512} << 20;
  uint64_t client_query_buffer_limit = uint64_t{1} << 30;
  OutputLimits client_output_buffer_limit;
  // Limit of all clients' buffers together: bytes, or negative: percent of maxmemory; 0: no limit.
  int64_t maxmemory_clients = 0;
  uint32_t timeout = 0;          // idle seconds; 0: never
  uint32_t tcp_keepalive = 300;  // seconds without a byte after which a peer is asked; 0: never
  // Bytes from which a collection no longer lies in one value; 0: never.
  size_t collection_value_bytes = Options{}.collection_value_bytes;
  // Of Redis's encodings, which there are none of here: what OBJECT ENCODING answers
  // (object_encoding.h). The two of lists have no effect.
  uint64_t hash_max_listpack_entries = 512;
  uint64_t hash_max_listpack_value = 64;
  int32_t list_compress_depth = 0;
  int32_t list_max_listpack_size = -2;
  uint64_t set_max_intset_entries = 512;
  uint64_t zset_max_listpack_entries = 128;
  uint64_t zset_max_listpack_value = 64;
  uint32_t notify_keyspace_events = 0;  // classes of events (key_events.h); 0: none
  uint64_t snapshot_age_ms = 5 * 60 * 1000;
  uint64_t cursor_ttl_ms = 10 * 60 * 1000;
  int64_t slowlog_log_slower_than = 10'000;  // microseconds; 0: every command; -1: none
  uint32_t slowlog_max_len = 128;
  uint32_t latency_monitor_threshold = 0;  // milliseconds; 0: off
  std::string loglevel = "notice";
  std::string logfile;  // empty: standard output

  // The file that the options were read from, for CONFIG REWRITE; empty: none. Not in the table.
  std::string config_file;

  friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

// One row of the table.
struct OptionInfo {
  std::string_view name;        // as Redis spells it: "proto-max-bulk-len"
  std::string_view value_name;  // the kind of value, for --help: "BYTES", "yes|no"
  std::string_view help;        // one sentence
  bool mutable_at_run_time;     // CONFIG SET may change it
  bool is_list;                 // words between spaces; --name may be given more than once

  // Reads the value in the form that `get` prints. Changes nothing unless it is ok.
  //   kInvalidArgument  `what` is Redis's text for it: "argument must be a memory value"
  Status (*set)(ServerOptions& options, std::string_view value);
  std::string (*get)(const ServerOptions& options);
};

// All options, in the order of --help.
std::span<const OptionInfo> AllOptions();

// Upper and lower case are the same, and an old name stands for its option. Null if there is no
// such option.
const OptionInfo* FindOption(std::string_view name);

// A name that Redis has given to an option before.
struct OldOptionName {
  std::string_view name;
  std::string_view option;
};
std::span<const OldOptionName> OldOptionNames();

// The options whose name matches the pattern (glob.h; upper and lower case are the same).
std::vector<const OptionInfo*> MatchOptions(std::string_view pattern);

// Sets one option by name.
//   kInvalidArgument  no such option, or as OptionInfo::set
Status SetOption(ServerOptions& options, std::string_view name, std::string_view value);

// Whether a server may start with these options. *why is a line for a person if not.
//   kInvalidArgument  open to other machines without a password; nowhere to listen; no such engine;
//                     options of the engine that do not fit together
Status CheckOptions(const ServerOptions& options, std::string* why);

// The numbers of the option save, in pairs: seconds, changes.
std::vector<uint64_t> SavePointsOf(const ServerOptions& options);

// The bytes that the buffers of all clients together may take; 0: no limit. Any other limit is at
// least kClientBytesMin, as in Redis: below that no client could send the server a better one.
inline constexpr uint64_t kClientBytesMin = 128 << 10;
uint64_t ClientBytesMax(const ServerOptions& options);

// How the server opens its keyspaces.
Options StoreOptions(const ServerOptions& options);

}  // namespace skep
