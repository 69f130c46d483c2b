// resp_protocol.h: the Redis protocol for the load generator: RESP2, and RESP3 without HELLO 3.
//
//   operation        request of one    request of n       answer
//   read             GET key           MGET key ...       a value, or an array of n; null is a miss
//   update, insert   SET key value     MSET key value ... +OK
//   scan             KRANGE [key + LIMIT 0 n WITHVALUES   array of keys and values in turn
//   with kZrangebylex
//   update, insert   ZADD skep-bench 0 member ...         :number; a member is a key and its value
//   scan             ZRANGEBYLEX skep-bench [key + LIMIT 0 n      array of members
//   with kMget
//   scan             MGET key ... of n keys               array of n, null is an error
//
// A value of the expected size is recognised by its first bytes, by a comparison; only bytes that
// begin otherwise are given to the parser of src/wire.
#pragma once

#include <string>
#include <string_view>

#include "bench/net/protocol.h"
#include "wire/resp_reply.h"

namespace skep::bench {

class RespProtocol final : public NetProtocol {
 public:
  explicit RespProtocol(const NetFormat& format);

  bool Does(OpKind kind) const override;
  void Encode(const NetAsked& asked, const OpStream& stream, size_t first, const ValuePool& values,
              std::string& out) override;
  Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
             NetTally& tally) override;

 private:
  void EncodeReads(const NetAsked& asked, const OpStream& stream, size_t first, std::string& out);
  void EncodeWrites(const NetAsked& asked, const OpStream& stream, size_t first,
                    const ValuePool& values, std::string& out);
  void EncodeAdds(const NetAsked& asked, const OpStream& stream, size_t first,
                  const ValuePool& values, std::string& out);
  void EncodeScan(const NetAsked& asked, std::string_view key, std::string& out);
  void EncodeMget(uint32_t count, const OpStream& stream, size_t first, std::string& out);

  bool IsArray(const NetAsked& asked) const;
  Event ReadSingle(std::string_view input, const NetAsked& asked, size_t& consumed,
                   NetTally& tally);
  Event ReadHead(std::string_view input, const NetAsked& asked, size_t& consumed, NetTally& tally);
  bool Open(int64_t elements, const NetAsked& asked, NetTally& tally);
  Event ReadElements(std::string_view input, const NetAsked& asked, size_t& consumed,
                     NetTally& tally);
  Event ReadElement(std::string_view input, const NetAsked& asked, size_t& consumed,
                    NetTally& tally);
  Event ReadUnexpected(std::string_view input, const NetAsked& asked, size_t& consumed,
                       NetTally& tally);

  // A bulk string of a known size.
  struct Bulk {
    explicit Bulk(size_t size);
    std::string head;  // "$16\r\n"
    size_t bytes;
  };
  const Bulk& Wanted(const NetAsked& asked) const;

  const ScanCommand scan_command_;
  const Bulk key_;
  const Bulk value_;
  const Bulk bound_;   // of a scan: "[" and the key
  const Bulk member_;  // a member of the sorted set
  RespReplyParser parser_;
  uint32_t left_ = 0;     // elements of the array that are still to be read
  bool is_open_ = false;  // the array's head has been read
};

}  // namespace skep::bench
