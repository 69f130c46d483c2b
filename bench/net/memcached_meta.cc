#include "bench/net/memcached_meta.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/net/answer_line.h"

namespace skep::bench {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";

}  // namespace

MemcachedMeta::MemcachedMeta(const NetFormat& format)
    : value_bytes_(format.value_bytes),
      set_tail_(fmt::format(" {}\r\n", format.value_bytes)),
      quiet_set_tail_(fmt::format(" {} q\r\n", format.value_bytes)),
      value_head_(fmt::format("VA {}\r\n", format.value_bytes)) {}

bool MemcachedMeta::Does(OpKind kind) const {
  return kind == OpKind::kRead || kind == OpKind::kUpdate || kind == OpKind::kInsert ||
         kind == OpKind::kReadModifyWrite;
}

void MemcachedMeta::Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                           const ValuePool& values, std::string& out) {
  const bool is_quiet = asked.count > 1;
  const std::string_view read_tail = is_quiet ? " v q\r\n" : " v\r\n";
  const std::string_view write_tail = is_quiet ? quiet_set_tail_ : set_tail_;
  for (size_t i = first; i < first + asked.count; ++i) {
    if (asked.kind == OpKind::kRead) {
      out.append("mg ").append(stream.at(i).key).append(read_tail);
    } else {
      out.append("ms ").append(stream.at(i).key).append(write_tail);
      out.append(values.at(i)).append(kEndOfLine);
    }
  }
  if (is_quiet) out.append("mn\r\n");
}

NetProtocol::Event MemcachedMeta::Read(std::string_view input, const NetAsked& asked,
                                       size_t& consumed, NetTally& tally) {
  consumed = 0;
  while (!is_over_) {
    size_t unit = 0;
    const Event event = ReadUnit(input.substr(consumed), asked, unit, tally);
    if (event != Event::kAnswer) return event;
    consumed += unit;
    is_over_ = is_over_ || asked.count == 1;
  }
  done_ = 0;
  is_over_ = false;
  return Event::kAnswer;
}

NetProtocol::Event MemcachedMeta::ReadUnit(std::string_view input, const NetAsked& asked,
                                           size_t& consumed, NetTally& tally) {
  const bool is_read = asked.kind == OpKind::kRead;
  if (is_read && input.starts_with(value_head_)) return ReadValue(input, consumed, tally);
  const auto line = FirstLine(input);
  if (!line) return input.size() > kAnswerLineBytesMax ? Event::kCorrupt : Event::kNeedMore;
  consumed = line->size() + kEndOfLine.size();
  return JudgeLine(*line, asked, tally) ? Event::kAnswer : Event::kCorrupt;
}

NetProtocol::Event MemcachedMeta::ReadValue(std::string_view input, size_t& consumed,
                                            NetTally& tally) {
  const size_t end = value_head_.size() + value_bytes_;
  if (input.size() < end + kEndOfLine.size()) return Event::kNeedMore;
  if (input.substr(end, kEndOfLine.size()) != kEndOfLine) return Event::kCorrupt;
  consumed = end + kEndOfLine.size();
  ++done_;
  ++tally.hits;
  return Event::kAnswer;
}

bool MemcachedMeta::JudgeLine(std::string_view line, const NetAsked& asked, NetTally& tally) {
  const bool is_read = asked.kind == OpKind::kRead;
  const bool is_quiet = asked.count > 1;
  if (is_quiet && line == "MN") {
    if (done_ > asked.count) return false;
    (is_read ? tally.misses : tally.stored) += asked.count - done_;
    is_over_ = true;
  } else if (!is_quiet && is_read && line == "EN") {
    ++tally.misses;
  } else if (!is_quiet && !is_read && line == "HD") {
    ++tally.stored;
  } else if (line.find("ERROR") != std::string_view::npos || (!is_read && line == "NS")) {
    tally.CountError(line);
    ++done_;
  } else {
    return false;
  }
  return true;
}

}  // namespace skep::bench
