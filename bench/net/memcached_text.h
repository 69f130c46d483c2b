// memcached_text.h: memcached's text protocol, as a protocol of the load generator.
//
//   operation       request of n              answer
//   read            get key ...               VALUE key flags bytes, value for each that exists;
//                                             END
//   update, insert  set key 0 0 bytes, value  STORED; n of both, as no command sets several keys
//
// Keys must be without blanks and control characters (KeyFormat::Text).
#pragma once

#include <string>
#include <string_view>

#include "bench/net/protocol.h"

namespace skep::bench {

class MemcachedText final : public NetProtocol {
 public:
  explicit MemcachedText(const NetFormat& format);

  bool Does(OpKind kind) const override;
  bool DoesDatagrams() const override { return true; }
  // A frame is eight bytes: request id, sequence number, datagrams in the message, reserved;
  // big-endian.
  void AppendFrame(uint32_t number, std::string& out) const override;
  bool TakeFrame(uint32_t number, std::string_view& datagram) const override;
  void Encode(const NetAsked& asked, const OpStream& stream, size_t first, const ValuePool& values,
              std::string& out) override;
  Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
             NetTally& tally) override;

 private:
  // Reads one line, or a value with the line before it.
  Event ReadUnit(std::string_view input, const NetAsked& asked, size_t& consumed, NetTally& tally);
  Event ReadValue(std::string_view input, size_t& consumed, NetTally& tally);

  const size_t key_bytes_;
  const size_t value_bytes_;
  const std::string set_tail_;    // behind a key: " 0 0 16\r\n"
  const std::string value_tail_;  // behind the key of a value: " 0 16\r\n"
  // State of the answer that is being read.
  uint32_t done_ = 0;  // values found, or sets answered
  bool is_over_ = false;
};

}  // namespace skep::bench
