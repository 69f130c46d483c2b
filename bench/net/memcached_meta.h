// memcached_meta.h: memcached's meta commands, as a protocol of the load generator.
//
//   operation       request              answer
//   read            mg key v             VA bytes, value; or EN: a miss
//   update, insert  ms key bytes, value  HD
//   n reads         n times mg key v q; mn  VA for each existing key, then MN
//   n writes        n times ms key bytes q, value; mn   nothing for each stored key, then MN
//
// The flag q suppresses answers that say only that a command succeeded (HD) or that a key is absent
// (EN), so the answer to many writes is one line. It need not be known which key was absent, so no
// opaque is sent. Keys must be without blanks and control characters (KeyFormat::Text).
#pragma once

#include <string>
#include <string_view>

#include "bench/net/protocol.h"

namespace skep::bench {

class MemcachedMeta final : public NetProtocol {
 public:
  explicit MemcachedMeta(const NetFormat& format);

  bool Does(OpKind kind) const override;
  void Encode(const NetAsked& asked, const OpStream& stream, size_t first, const ValuePool& values,
              std::string& out) override;
  Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
             NetTally& tally) override;

 private:
  // Reads one line, or a value with the line before it.
  Event ReadUnit(std::string_view input, const NetAsked& asked, size_t& consumed, NetTally& tally);
  Event ReadValue(std::string_view input, size_t& consumed, NetTally& tally);
  // Returns false if such a line cannot be part of the answer.
  bool JudgeLine(std::string_view line, const NetAsked& asked, NetTally& tally);

  const size_t value_bytes_;
  const std::string set_tail_;        // behind a key: " 16\r\n"
  const std::string quiet_set_tail_;  // " 16 q\r\n"
  const std::string value_head_;      // "VA 16\r\n"
  // State of the answer that is being read.
  uint32_t done_ = 0;  // operations answered so far
  bool is_over_ = false;
};

}  // namespace skep::bench
