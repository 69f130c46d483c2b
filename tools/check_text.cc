#include <fmt/chrono.h>
#include <fmt/format.h>

#include <iterator>

#include "pool/index_log.h"
#include "tools/check_report.h"
#include "tools/escape.h"

namespace skep {
namespace {

using durable::Damage;
using durable::KeyspaceInLog;
using durable::LogChange;
using durable::SegmentCheck;
using Kind = LogChange::Kind;

constexpr std::string_view kEndsEarly =
    "the log is gone or ends before the snapshot: what was written since then is not there";

// Returns "1 item", "2 items".
std::string Count(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class Lines {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void Append(const std::string& lines) { text_ += lines; }
  void AddDamage(std::string_view what, const std::vector<Damage>& damages) {
    for (const Damage& damage : damages) {
      Add("{}: {}: {} from byte {} on: {}", what, damage.file, Count(damage.bytes, "byte"),
          damage.offset, damage.what);
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string AgeOf(uint64_t then_ms, uint64_t now_ms) {
  const uint64_t seconds = now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
  if (seconds < 120) return Count(seconds, "second");
  if (seconds < 120 * 60) return Count(seconds / 60, "minute");
  if (seconds < 48 * 60 * 60) return Count(seconds / 3600, "hour");
  return Count(seconds / 86400, "day");
}

std::string TimeOf(uint64_t ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(ms / 1000)));
}

std::string KindsOf(const SegmentCheck& segment) {
  std::string text;
  for (size_t kind = 0; kind < SegmentCheck::kKinds; ++kind) {
    if (segment.changes[kind] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", segment.changes[kind],
                        NameOf(static_cast<Kind>(kind)));
  }
  return text;
}

std::string PoolRecordsOf(const SegmentCheck& segment) {
  std::string text;
  for (const auto& [kind, count] : segment.pool) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        pool::NameOf(static_cast<pool::IndexLog::Kind>(kind)));
  }
  return text;
}

std::string LineOfKeyspace(uint32_t index, const KeyspaceInLog& keyspace) {
  const std::string complete =
      keyspace.complete == 0 ? "not said" : fmt::format("{}", keyspace.complete);
  return fmt::format("keyspace {}: {}, highest version {}, complete to {}", index,
                     Count(keyspace.changes, "change"), keyspace.highest, complete);
}

std::string TextOfSegment(const SegmentCheck& segment) {
  Lines lines;
  lines.Add("{}: positions {} to {}, {}", segment.file, segment.begin, segment.end,
            Count(segment.file_bytes, "byte"));
  lines.Add("  {}: {} of changes, {} of progress, {} of a start, {} of an end",
            Count(segment.records, "record"), segment.batches, segment.progresses, segment.starts,
            segment.ends);
  if (segment.all_changes() > 0) lines.Add("  changes: {}", KindsOf(segment));
  if (!segment.pool.empty()) lines.Add("  of a pool: {}", PoolRecordsOf(segment));
  for (const auto& [index, keyspace] : segment.keyspaces) {
    lines.Add("  {}", LineOfKeyspace(index, keyspace));
  }
  if (segment.synced_position > 0) lines.Add("  synced to {}", segment.synced_position);
  return lines.Take();
}

std::string TextOfLog(const durable::LogCheck& log) {
  Lines lines;
  for (const SegmentCheck& segment : log.segments) lines.Append(TextOfSegment(segment));
  return lines.Take();
}

std::string VerdictOf(const std::vector<Damage>& damage) {
  return damage.empty() ? "sound" : fmt::format("damaged in {}", Count(damage.size(), "place"));
}

}  // namespace

std::string TextOf(const durable::SnapshotCheck& check, uint64_t now_ms) {
  Lines lines;
  lines.Add("{}: {} in {}, {}", check.file, Count(check.items, "item"),
            Count(check.blocks, "block"), Count(check.file_bytes, "byte"));
  if (check.created_ms) {
    lines.Add("  begun {}, {} ago", TimeOf(*check.created_ms), AgeOf(*check.created_ms, now_ms));
  }
  if (!check.keyspaces) lines.Add("  what keyspaces it has is lost");
  if (check.keyspaces) {
    for (const durable::SnapshotKeyspace& keyspace : *check.keyspaces) {
      lines.Add("  keyspace {}, {}: {} at version {}, log from {} on", keyspace.index,
                keyspace.engine, Count(keyspace.items, "item"), keyspace.version,
                keyspace.log_position);
    }
  }
  return lines.Take() + fmt::format("{}: {}\n", check.file, VerdictOf(check.damage));
}

std::string TextOf(const durable::LogCheck& check) {
  Lines lines;
  lines.Append(TextOfLog(check));
  if (!check.torn_file.empty()) {
    lines.Add("  bytes of no whole record from byte {} on: a torn end, or left from older use",
              check.torn_offset);
  }
  lines.AddDamage("damage", check.damage);
  lines.Add("{}", VerdictOf(check.damage));
  return lines.Take();
}

std::string TextOf(const durable::RdbCheck& check) {
  Lines lines;
  lines.Add("{}: RDB version {}, {}", check.file, check.summary.version,
            Count(check.file_bytes, "byte"));
  lines.Add("  {}, {}, {} of other types, {} with functions, checksum {}",
            Count(check.summary.strings, "string"), Count(check.summary.collections, "collection"),
            Count(check.summary.skipped, "key"), Count(check.summary.functions, "record"),
            check.summary.is_checked ? "right" : "absent or not reached");
  lines.AddDamage("damage", check.damage);
  lines.Add("{}", VerdictOf(check.damage));
  return lines.Take();
}

std::string TextOf(const durable::DirectoryCheck& check, uint64_t now_ms) {
  Lines lines;
  for (const auto& [index, engine] : check.keyspaces) lines.Add("keyspace {}: {}", index, engine);
  for (const durable::SnapshotCheck& snapshot : check.snapshots) {
    lines.Append(TextOf(snapshot, now_ms));
  }
  const durable::LogCheck& log = check.log;
  lines.Append(TextOfLog(log));
  if (log.segments.empty()) {
    lines.Add("log: none");
  } else {
    lines.Add("log: ends at {}, synced to {} as it says itself, {}", log.end, log.synced_position,
              log.is_ended ? "the store was closed" : "the store was not closed");
  }
  if (log.ends_early) lines.Add("  {}", kEndsEarly);
  if (log.incomplete > 0) {
    lines.Add("  {} never complete: nobody was told of them", Count(log.incomplete, "change"));
  }
  if (!log.torn_file.empty()) {
    lines.Add("  torn end: {}, byte {}", log.torn_file, log.torn_offset);
  }
  for (const std::string& file : log.superseded) lines.Add("superseded by a newer epoch: {}", file);
  for (const std::string& file : check.put_aside) lines.Add("put aside: {}", file);
  lines.AddDamage("damage that does not matter any more", check.not_needed);
  lines.AddDamage("damage", check.damage);
  lines.Add("{}: {}", check.directory, VerdictOf(check.damage));
  return lines.Take();
}

std::string TextOf(const durable::RecoveryReport& report) {
  Lines lines;
  const durable::RepairReport& repair = report.repair;
  if (!report.snapshot.empty()) {
    lines.Add("taken: {} of {}", Count(report.snapshot_items, "item"), report.snapshot);
  }
  lines.Add("taken: {} of {} of the log", Count(report.log_changes, "change"),
            Count(report.log_records, "record"));
  if (!report.torn_file.empty()) {
    lines.Add("cut: the torn end of {}, from byte {} on", report.torn_file, report.torn_offset);
  }
  if (report.log_dropped > 0) {
    lines.Add("dropped: {} that nobody was told of", Count(report.log_dropped, "change"));
  }
  if (report.lacks_log) lines.Add("{}", kEndsEarly);
  for (const std::string& file : repair.put_aside) lines.Add("put aside: {}", file);
  lines.AddDamage("made good", repair.made_good);
  lines.AddDamage("lost", repair.lost);
  if (repair.unconfirmed > 0) {
    lines.Add("taken, though perhaps never complete: {}", Count(repair.unconfirmed, "change"));
  }
  if (repair.refused > 0) {
    lines.Add("left out, as what they build on is lost: {}", Count(repair.refused, "change"));
  }
  if (!repair.lost.empty()) {
    lines.Add(
        "What was stored in a lost record keeps its older value, and what was deleted there, "
        "ranges");
    lines.Add(
        "included, is there again, but for what later changes, which were all applied, have "
        "made of it.");
  }
  return lines.Take();
}

std::string TextOf(const durable::Rehearsal& rehearsal) {
  Lines lines;
  lines.Append(TextOf(rehearsal.report));
  for (const auto& [index, items] : rehearsal.items) {
    lines.Add("keyspace {}: {}", index, Count(items, "key"));
  }
  lines.Add("a start succeeds");
  return lines.Take();
}

std::string LineOf(uint64_t keyspace, const durable::SnapshotItem& item) {
  const std::string until = item.deadline_ms == 0 ? "" : fmt::format(" until {}", item.deadline_ms);
  const std::string type = item.type == kPlainType ? "" : fmt::format(" type {}", item.type);
  return fmt::format("item {} {} {}{}{}\n", keyspace, Quoted(item.key), Quoted(item.value), type,
                     until);
}

std::string LineOf(const durable::LoggedChange& logged) {
  const LogChange& change = logged.change;
  std::string line = fmt::format("change {} {} {} {}", logged.position, logged.keyspace,
                                 change.version, NameOf(change.kind));
  if (change.kind == Kind::kEraseAll) return line + "\n";
  line += ' ';
  line += Quoted(change.key);
  switch (change.kind) {
    case Kind::kPutTyped:
      line += fmt::format(" {} {} {}", change.type, change.deadline_ms, Quoted(change.value));
      break;
    case Kind::kPutUntil:
      line += fmt::format(" {} {}", change.deadline_ms, Quoted(change.value));
      break;
    case Kind::kPut:
    case Kind::kMove:
    case Kind::kEraseRange:
      line += ' ';
      line += Quoted(change.value);
      break;
    case Kind::kSetDeadline:
      line += fmt::format(" {}", change.deadline_ms);
      break;
    case Kind::kApply:
      line += fmt::format(" {}{}{} {}", logged.function_name, logged.function_element ? " " : "",
                          logged.function_element ? NameOf(*logged.function_element) : "",
                          Quoted(change.value));
      break;
    default:
      break;
  }
  return line + "\n";
}

}  // namespace skep
