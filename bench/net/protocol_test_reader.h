// protocol_test_reader.h: splits answers as a connection may, for tests of protocols.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/net/protocols.h"

namespace skep::bench {

inline constexpr NetFormat kTestFormat = {.key_bytes = 8, .value_bytes = 3};
inline constexpr NetAsked kGet = {.kind = OpKind::kRead, .count = 1};
inline constexpr NetAsked kGet3 = {.kind = OpKind::kRead, .count = 3};
inline constexpr NetAsked kSet = {.kind = OpKind::kUpdate, .count = 1};
inline constexpr NetAsked kSet2 = {.kind = OpKind::kInsert, .count = 2};

struct NetReading {
  NetTally tally;
  size_t answers = 0;
  size_t left = 0;  // bytes that belong to no answer
  bool corrupt = false;
};

// Reads `bytes`, which answer `asked`, in pieces that end at `ends` (ascending) and at the end. As
// a connection does, it keeps what was not consumed and adds the next piece.
inline NetReading ReadInPieces(NetProtocol& protocol, std::vector<NetAsked> asked,
                               std::string_view bytes, std::vector<size_t> ends) {
  NetReading reading;
  ends.push_back(bytes.size());
  size_t begin = 0;
  for (const size_t end : ends) {
    while (!asked.empty() && !reading.corrupt) {
      // The input is copied, so that a read beyond its end is one beyond the memory.
      const std::string input(bytes.substr(begin, end - begin));
      size_t consumed = 0;
      const size_t whose = protocol.Whose(input);
      const auto event = protocol.Read(input, asked.at(whose), consumed, reading.tally);
      reading.corrupt = event == NetProtocol::Event::kCorrupt;
      begin += consumed;
      if (event != NetProtocol::Event::kAnswer) break;
      ++reading.answers;
      asked.erase(asked.begin() + static_cast<ptrdiff_t>(whose));
    }
  }
  reading.left = bytes.size() - begin;
  return reading;
}

// Returns a protocol that has sent these requests.
inline std::unique_ptr<NetProtocol> HavingAsked(std::string_view protocol, const NetFormat& format,
                                                const std::vector<NetAsked>& asked) {
  auto sender = MakeNetProtocol(protocol, format);
  OpStream stream{KeyFormat::Text(format.key_bytes)};
  for (uint64_t number = 0; number < 8; ++number) stream.Add(OpKind::kRead, number);
  const ValuePool values(format.value_bytes, 1);
  std::string out;
  for (const NetAsked& one : asked) sender->Encode(one, stream, 0, values, out);
  return sender;
}

// One way to write an answer, and what must be read. Names are for people.
struct NetAnswerCase {
  std::string_view name;
  std::vector<NetAsked> asked;
  std::string_view bytes;
  NetTally tally;
};

inline bool operator==(const NetTally& a, const NetTally& b) {
  return a.hits == b.hits && a.misses == b.misses && a.stored == b.stored && a.scans == b.scans &&
         a.items == b.items && a.errors == b.errors && a.first_error == b.first_error;
}

// Checks that the bytes answer all requests of the case, with no byte left, however they are split:
// in two at every byte, and into single bytes. Returns nothing, or where that failed.
inline std::string CheckAllSplits(std::string_view protocol, const NetFormat& format,
                                  const NetAnswerCase& what) {
  std::vector<std::vector<size_t>> splits(1);
  for (size_t i = 0; i <= what.bytes.size(); ++i) splits.push_back({i});
  for (size_t i = 0; i < what.bytes.size(); ++i) splits[0].push_back(i);
  for (const std::vector<size_t>& ends : splits) {
    const auto reader = HavingAsked(protocol, format, what.asked);
    const NetReading reading = ReadInPieces(*reader, what.asked, what.bytes, ends);
    if (reading.corrupt || reading.left != 0 || reading.answers != what.asked.size() ||
        !(reading.tally == what.tally)) {
      return std::string(what.name) + ", split at " +
             (ends.size() == 1 ? std::to_string(ends[0]) : "every byte") + ": " +
             reading.tally.first_error;
    }
  }
  return {};
}

// Returns whether such an answer is refused as corrupt.
inline bool IsCorrupt(std::string_view protocol, const NetFormat& format, const NetAsked& asked,
                      std::string_view bytes) {
  const auto reader = HavingAsked(protocol, format, {asked});
  return ReadInPieces(*reader, {asked}, bytes, {}).corrupt;
}

// Returns a request of the stream's first operations.
inline std::string Encoded(std::string_view protocol, const NetFormat& format,
                           const NetAsked& asked, const OpStream& stream, const ValuePool& values) {
  std::string out;
  MakeNetProtocol(protocol, format)->Encode(asked, stream, 0, values, out);
  return out;
}

}  // namespace skep::bench
