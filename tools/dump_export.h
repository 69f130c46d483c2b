// dump_export.h: exports the keys of a server to a file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/dump_format.h"
#include "tools/server_client.h"

namespace skep {

enum class DumpFormat : uint8_t { kResp, kJsonl, kRdb };

struct ExportOptions {
  uint64_t db = 0;
  std::string from;                       // inclusive
  std::optional<std::string> to;          // exclusive; none: no upper bound
  std::optional<std::string> prefix;      // instead of both
  DumpFormat format = DumpFormat::kResp;  // not kRdb
};

struct ExportSummary {
  uint64_t keys = 0;
  uint64_t skipped = 0;  // keys of other types than strings
  bool is_one_version = false;
};

// Takes the bytes; returns false if it cannot, which ends the export.
using DumpTarget = std::function<bool(std::string_view bytes)>;

// Writes every key of the range. In a keyspace with an order and versions all keys are of one
// version; else each key is as it was at some instant of the export, and a key that exists
// throughout is written. Returns a line for people that says why it failed, or nothing. Memory:
// some MiB, or the largest value three times.
std::string Export(ServerClient& client, const ExportOptions& options, const DumpTarget& target,
                   ExportSummary* summary);

}  // namespace skep
