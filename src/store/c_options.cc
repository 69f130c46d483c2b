#include "store/c_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/decimal.h"
#include "durable/log_sync_name.h"

namespace skep::c_api {
namespace {

// Reads a value. False if the text is none.
template <class Integer>
  requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
bool Read(std::string_view text, Integer& to) {
  const auto number = ParseDecimal<Integer>(text);
  if (number) to = *number;
  return number.has_value();
}

bool Read(std::string_view text, bool& to) {
  to = text == "yes";
  return to || text == "no";
}

bool Read(std::string_view text, std::string& to) {
  to = text;
  return true;
}

bool Read(std::string_view text, LogSync& to) {
  const auto policy = durable::LogSyncOf(text);
  if (policy) to = *policy;
  return policy.has_value();
}

bool Read(std::string_view text, NodeLayout& to) {
  to = text == "paper" ? NodeLayout::kPaper : NodeLayout::kHeads;
  return to == NodeLayout::kPaper || text == "heads";
}

// Adds one more NUMBER=ENGINE.
bool Read(std::string_view text, std::map<uint32_t, std::string>& to) {
  const size_t equal = text.find('=');
  uint32_t number = 0;
  if (equal == std::string_view::npos || !Read(text.substr(0, equal), number)) return false;
  return to.emplace(number, text.substr(equal + 1)).second;
}

template <class Options>
struct Named {
  std::string_view name;
  bool (*set)(std::string_view text, Options& options);
};

constexpr Named<Options> kOpenOptions[] = {
    {"engine", [](auto text, Options& o) { return Read(text, o.engine); }},
    {"keyspaces", [](auto text, Options& o) { return Read(text, o.keyspaces); }},
    {"keyspace", [](auto text, Options& o) { return Read(text, o.keyspace_engines); }},
    {"memory_bytes_max", [](auto text, Options& o) { return Read(text, o.memory_bytes_max); }},
    {"snapshot_age_ms_max",
     [](auto text, Options& o) { return Read(text, o.snapshot_age_ms_max); }},
    {"directory", [](auto text, Options& o) { return Read(text, o.directory); }},
    {"log_sync", [](auto text, Options& o) { return Read(text, o.log_sync); }},
    {"log_segment_bytes", [](auto text, Options& o) { return Read(text, o.log_segment_bytes); }},
    {"recovery_threads", [](auto text, Options& o) { return Read(text, o.recovery_threads); }},
    {"btree.node_bytes", [](auto text, Options& o) { return Read(text, o.btree.node_bytes); }},
    {"btree.log_bytes", [](auto text, Options& o) { return Read(text, o.btree.log_bytes); }},
    {"btree.layout", [](auto text, Options& o) { return Read(text, o.btree.layout); }},
    {"btree.multi_version",
     [](auto text, Options& o) { return Read(text, o.btree.multi_version); }},
    {"hash.inline_bytes_max",
     [](auto text, Options& o) { return Read(text, o.hash.inline_bytes_max); }},
    {"hash.fill_slots", [](auto text, Options& o) { return Read(text, o.hash.fill_slots); }},
};

constexpr Named<ConnectOptions> kConnectOptions[] = {
    {"password", [](auto text, ConnectOptions& o) { return Read(text, o.password); }},
    {"fabric", [](auto text, ConnectOptions& o) { return Read(text, o.fabric); }},
    {"connections", [](auto text, ConnectOptions& o) { return Read(text, o.connections); }},
    {"timeout_ms", [](auto text, ConnectOptions& o) { return Read(text, o.timeout_ms); }},
    {"datagrams", [](auto text, ConnectOptions& o) { return Read(text, o.datagrams); }},
    {"fat_root", [](auto text, ConnectOptions& o) { return Read(text, o.fat_root); }},
    {"one_sided", [](auto text, ConnectOptions& o) { return Read(text, o.one_sided); }},
    {"remembers_writes",
     [](auto text, ConnectOptions& o) { return Read(text, o.remembers_writes); }},
    {"wants_versions", [](auto text, ConnectOptions& o) { return Read(text, o.wants_versions); }},
    {"syncs_writes", [](auto text, ConnectOptions& o) { return Read(text, o.syncs_writes); }},
};

// Values are not repeated in errors: one may be a password.
template <class Options>
Result<Options> Parse(const char* const* options, std::span<const Named<Options>> known,
                      std::string* problem) {
  Options parsed;
  for (; options != nullptr && *options != nullptr; ++options) {
    const std::string_view option = *options;
    const std::string_view name = option.substr(0, option.find('='));
    const auto found = std::ranges::find(known, name, &Named<Options>::name);
    if (found == known.end()) {
      *problem = fmt::format("no such option: {}", name);
      return Fail(Code::kInvalidArgument, "no such option");
    }
    if (name.size() == option.size() || !found->set(option.substr(name.size() + 1), parsed)) {
      *problem = fmt::format("not a value of the option {}", name);
      return Fail(Code::kInvalidArgument, "not a value of the option");
    }
  }
  return parsed;
}

}  // namespace

Result<Options> ParseOpenOptions(const char* const* options, std::string* problem) {
  return Parse<Options>(options, kOpenOptions, problem);
}

Result<ConnectOptions> ParseConnectOptions(const char* const* options, std::string* problem) {
  return Parse<ConnectOptions>(options, kConnectOptions, problem);
}

}  // namespace skep::c_api
