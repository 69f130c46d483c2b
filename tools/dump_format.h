// dump_format.h: the formats of items that skep-dump writes and reads.
//
//   resp    commands as a client sends them: SELECT n, then for each item
//           SET key value [PXAT deadline]
//   jsonl   an object a line: {"key":"a","value":"1","deadline_ms":1800000000000}; no deadline_ms
//           without a deadline. Bytes that are not UTF-8 are "key_base64", "value_base64" instead
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace skep {

struct DumpItem {
  std::string_view key;
  std::string_view value;
  uint64_t deadline_ms = 0;  // 0: none
};

void AppendResp(const DumpItem& item, std::string* out);
void AppendJsonl(const DumpItem& item, std::string* out);

// Appends up to `bytes` bytes to the string; returns false at the end of the input, or if it fails.
// The source's owner tells the two apart at the end.
using DumpSource = std::function<bool(std::string* to, size_t bytes)>;

// What was wrong with the input: which command or line, and why; empty: nothing.
using DumpProblem = std::string;

// Reads commands to the end, as RESP arrays or inline, and hands each over until *goes_on is false
// or one has a problem. Memory: twice the largest command.
DumpProblem ReadCommands(const DumpSource& source,
                         const std::function<DumpProblem(std::span<const std::string_view> args,
                                                         bool* goes_on)>& on_command);

// Reads lines to the end, as ReadCommands does, without their LF; empty ones count as lines.
// Memory: twice the longest line.
DumpProblem ReadLines(
    const DumpSource& source,
    const std::function<DumpProblem(std::string_view line, bool* goes_on)>& on_line);

// Receives what was read. Each function returns whether to go on.
struct DumpSink {
  std::function<bool(uint64_t db)> on_select;
  // Takes a whole SET: its key is args[1].
  std::function<bool(std::span<const std::string_view> args)> on_set;
};
// Reads commands to the end: SELECT, and SET with any options. Memory: twice the largest command.
DumpProblem ReadResp(const DumpSource& source, const DumpSink& sink);

// Reads lines to the end, skipping empty ones. Memory: some times the longest line. `on_item`
// returns whether to go on.
DumpProblem ReadJsonl(const DumpSource& source,
                      const std::function<bool(const DumpItem& item)>& on_item);

}  // namespace skep
