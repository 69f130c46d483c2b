#include "bench/net/memcached_text.h"

#include <fmt/format.h>

#include "bench/net/answer_line.h"

namespace skep::bench {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::string_view kValue = "VALUE ";
constexpr size_t kFrameBytes = 8;  // the frame of a datagram

}  // namespace

MemcachedText::MemcachedText(const NetFormat& format)
    : key_bytes_(format.key_bytes),
      value_bytes_(format.value_bytes),
      set_tail_(fmt::format(" 0 0 {}\r\n", format.value_bytes)),
      value_tail_(fmt::format(" 0 {}\r\n", format.value_bytes)) {}

bool MemcachedText::Does(OpKind kind) const {
  return kind == OpKind::kRead || kind == OpKind::kUpdate || kind == OpKind::kInsert ||
         kind == OpKind::kReadModifyWrite;
}

void MemcachedText::AppendFrame(uint32_t number, std::string& out) const {
  const char frame[kFrameBytes] = {
      static_cast<char>(number >> 8), static_cast<char>(number), 0, 0, 0, 1, 0, 0};
  out.append(frame, sizeof(frame));
}

// Refuses an answer of several datagrams.
bool MemcachedText::TakeFrame(uint32_t number, std::string_view& datagram) const {
  if (datagram.size() < kFrameBytes) return false;
  std::string expected;
  AppendFrame(number, expected);
  if (datagram.substr(0, kFrameBytes) != expected) return false;
  datagram.remove_prefix(kFrameBytes);
  return true;
}

void MemcachedText::Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                           const ValuePool& values, std::string& out) {
  if (asked.kind == OpKind::kRead) {
    out.append("get");
    for (size_t i = first; i < first + asked.count; ++i) out.append(" ").append(stream.at(i).key);
    out.append(kEndOfLine);
    return;
  }
  for (size_t i = first; i < first + asked.count; ++i) {
    out.append("set ").append(stream.at(i).key).append(set_tail_);
    out.append(values.at(i)).append(kEndOfLine);
  }
}

NetProtocol::Event MemcachedText::Read(std::string_view input, const NetAsked& asked,
                                       size_t& consumed, NetTally& tally) {
  consumed = 0;
  while (!is_over_) {
    size_t unit = 0;
    const Event event = ReadUnit(input.substr(consumed), asked, unit, tally);
    if (event != Event::kAnswer) return event;
    consumed += unit;
  }
  done_ = 0;
  is_over_ = false;
  return Event::kAnswer;
}

NetProtocol::Event MemcachedText::ReadUnit(std::string_view input, const NetAsked& asked,
                                           size_t& consumed, NetTally& tally) {
  const bool is_read = asked.kind == OpKind::kRead;
  if (is_read && input.starts_with(kValue)) return ReadValue(input, consumed, tally);
  const auto line = FirstLine(input);
  if (!line) return input.size() > kAnswerLineBytesMax ? Event::kCorrupt : Event::kNeedMore;
  consumed = line->size() + kEndOfLine.size();
  if (is_read && *line == "END" && done_ <= asked.count) {
    tally.misses += asked.count - done_;
    is_over_ = true;
  } else if (is_read && line->find("ERROR") != std::string_view::npos) {
    tally.CountError(*line, asked.count - done_);
    is_over_ = true;
  } else if (!is_read) {
    *line == "STORED" ? void(++tally.stored) : tally.CountError(*line);
    is_over_ = ++done_ == asked.count;
  } else {
    return Event::kCorrupt;
  }
  return Event::kAnswer;
}

NetProtocol::Event MemcachedText::ReadValue(std::string_view input, size_t& consumed,
                                            NetTally& tally) {
  const size_t begin = kValue.size() + key_bytes_ + value_tail_.size();
  if (input.size() < begin + value_bytes_ + kEndOfLine.size()) return Event::kNeedMore;
  if (input.substr(kValue.size() + key_bytes_, value_tail_.size()) != value_tail_ ||
      input.substr(begin + value_bytes_, kEndOfLine.size()) != kEndOfLine) {
    return Event::kCorrupt;
  }
  consumed = begin + value_bytes_ + kEndOfLine.size();
  ++done_;
  ++tally.hits;
  return Event::kAnswer;
}

}  // namespace skep::bench
