// resp_pieces.h: feeds bytes to the RESP readers as a network does, and checks the rules that every
// answer must satisfy. For tests and fuzzers.
//
// Every call gets a new heap copy of exactly the bytes received, and the last copy is freed: a
// reader that looks behind the end, or at bytes of an earlier call, is caught by AddressSanitizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/resp_decoder.h"
#include "wire/resp_reply.h"

namespace skep {

// How many bytes arrive next; at least 1.
using NextPiece = std::function<size_t()>;

inline NextPiece AllAtOnce() {
  return [] { return std::string_view::npos; };
}
inline NextPiece PiecesOf(size_t bytes) {
  return [bytes] { return bytes; };
}
// Returns the sizes in turn, then the rest.
inline NextPiece PiecesOf(std::vector<size_t> sizes) {
  return [sizes = std::move(sizes), next = size_t{0}]() mutable {
    return next < sizes.size() ? sizes[next++] : std::string_view::npos;
  };
}

// The bytes that a connection has received and not consumed.
class PieceFeeder {
 public:
  PieceFeeder(std::string_view stream, NextPiece next_piece)
      : stream_(stream), next_piece_(std::move(next_piece)) {}

  // Returns a new copy of the bytes that have arrived since the last consumed one; frees the copy
  // before.
  std::string_view Received() {
    copy_ = std::vector<char>(stream_.begin() + start_, stream_.begin() + end_);
    return {copy_.data(), copy_.size()};
  }

  // False if everything has arrived.
  bool Receive() {
    if (end_ == stream_.size()) return false;
    const size_t bytes = next_piece_();
    SKEP_CHECK(bytes > 0);
    end_ += std::min(bytes, stream_.size() - end_);
    return true;
  }

  void Consume(size_t bytes) {
    SKEP_CHECK(bytes > 0 && bytes <= end_ - start_);
    start_ += bytes;
  }

  size_t received_bytes() const { return end_ - start_; }

 private:
  std::string_view stream_;
  NextPiece next_piece_;
  size_t start_ = 0;
  size_t end_ = 0;
  std::vector<char> copy_;
};

struct DecodedCommands {
  std::vector<std::vector<std::string>> commands;  // empty ones included
  std::vector<size_t> consumed;                    // of each
  std::string error;                               // empty: none
  bool operator==(const DecodedCommands&) const = default;
};

inline DecodedCommands DecodeInPieces(std::string_view stream, const RespLimits& limits,
                                      NextPiece next_piece) {
  DecodedCommands decoded;
  PieceFeeder feeder(stream, std::move(next_piece));
  RespDecoder decoder;
  std::vector<std::string_view> args;
  size_t promised = 1;  // a lower bound of the command's size
  for (;;) {
    switch (decoder.Next(feeder.Received(), limits, args)) {
      case RespDecoder::Event::kCommand:
        SKEP_CHECK(decoder.consumed() >= promised);
        promised = 1;
        decoded.commands.emplace_back(args.begin(), args.end());
        decoded.consumed.push_back(decoder.consumed());
        feeder.Consume(decoder.consumed());
        break;
      case RespDecoder::Event::kNeedMore:
        SKEP_CHECK(decoder.wanted() > 0);
        promised = std::max(promised, feeder.received_bytes() + decoder.wanted());
        if (!feeder.Receive()) return decoded;
        break;
      case RespDecoder::Event::kError:
        SKEP_CHECK(!decoder.error().empty());
        SKEP_CHECK(decoder.error().find_first_of("\r\n") == std::string_view::npos);
        SKEP_CHECK(decoder.Next(feeder.Received(), limits, args) == RespDecoder::Event::kError);
        decoded.error = decoder.error();
        return decoded;
    }
  }
}

struct ParsedReplies {
  std::vector<RespReply> replies;  // without contents if skipped
  std::vector<size_t> consumed;    // of each
  std::string types;               // of each
  std::string error;               // empty: none
  bool operator==(const ParsedReplies&) const = default;
};

inline ParsedReplies ParseInPieces(std::string_view stream, NextPiece next_piece, bool skip) {
  ParsedReplies parsed;
  PieceFeeder feeder(stream, std::move(next_piece));
  RespReplyParser parser;
  size_t promised = 1;
  for (;;) {
    RespReply reply;
    const std::string_view input = feeder.Received();
    switch (skip ? parser.Skip(input) : parser.Next(input, reply)) {
      case RespReplyParser::Event::kReply:
        SKEP_CHECK(parser.consumed() >= promised);
        promised = 1;
        parsed.replies.push_back(std::move(reply));
        parsed.consumed.push_back(parser.consumed());
        parsed.types.push_back(parser.type());
        feeder.Consume(parser.consumed());
        break;
      case RespReplyParser::Event::kNeedMore:
        SKEP_CHECK(parser.wanted() > 0);
        promised = std::max(promised, feeder.received_bytes() + parser.wanted());
        if (!feeder.Receive()) return parsed;
        break;
      case RespReplyParser::Event::kError:
        SKEP_CHECK(!parser.error().empty());
        SKEP_CHECK(parser.Skip(input) == RespReplyParser::Event::kError);
        parsed.error = parser.error();
        return parsed;
    }
  }
}

}  // namespace skep
