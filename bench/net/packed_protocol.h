// packed_protocol.h: Skep's packed protocol for the load generator: a request is one message with a
// batch.
//
// A server answers in any order: whose an answer is, its message's id tells.
//
// With a fat root, each request has a hint, and a question for a page goes before a message when
// there is one to be asked; its answer comes before that of the message.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/net/protocol.h"
#include "client/fat_root.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep::bench {

class PackedProtocol final : public NetProtocol {
 public:
  explicit PackedProtocol(const NetFormat& format);

  // Scans use kKrange.
  bool Does(OpKind kind) const override;
  bool GroupsScans() const override { return true; }
  bool DoesDatagrams() const override { return true; }
  void AppendFrame(uint32_t number, std::string& out) const override;
  bool TakeFrame(uint32_t number, std::string_view& datagram) const override;
  void Encode(const NetAsked& asked, const OpStream& stream, size_t first, const ValuePool& values,
              std::string& out) override;
  size_t Whose(std::string_view input) const override;
  Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
             NetTally& tally) override;

 private:
  // A message with a batch that has no answer yet.
  struct UnderWay {
    uint32_t id;
    std::vector<Hint> hints;             // with a fat root
    std::vector<std::string_view> keys;  // those that the hints are of
  };

  std::deque<UnderWay>::const_iterator Find(uint32_t id) const {
    return std::ranges::find(under_way_, id, &UnderWay::id);
  }
  Event ReadHello(std::string_view input, size_t& consumed);
  Event ReadBatch(const packed::Header& header, std::string_view payload, const NetAsked& asked,
                  NetTally& tally);
  Event ReadOutcomes(const packed::Header& header, std::string_view payload, const NetAsked& asked,
                     NetTally& tally);
  void Ask(std::string& out);
  std::span<const Hint> FillIn(UnderWay& message);
  void NoteStale(const UnderWay& message);
  void TakePage(const packed::Header& header, std::string_view payload);
  void Judge(const NetAsked& asked, NetTally& tally) const;

  const size_t value_bytes_;
  const bool scans_;
  client::FatRoot* const fat_root_;
  Batch batch_;     // the batch being encoded
  Batch answered_;  // receives the outcomes that are read; its requests do not matter
  uint32_t last_id_ = 0;
  bool greets_;           // the hello is still to be sent
  bool greeted_;          // the server's hello has come
  bool has_top_ = false;  // the server answers questions for pages
  const bool datagrams_;  // an answer shows that those before it are lost
  std::deque<UnderWay> under_way_;
};

}  // namespace skep::bench
