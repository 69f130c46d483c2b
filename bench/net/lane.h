// lane.h: one connection of the load generator, or one socket for datagrams: what is to be sent,
// what is on its way, what has come.
//
// Datagrams get lost: an answer says that all before it are. Of one that came late nobody hears.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/network.h"
#include "bench/net/protocol.h"
#include "bench/stream_connection.h"

namespace skep::bench {

// Thread safety: none; one owner.
class NetLane {
 public:
  // `depth` (> 0): requests on their way, at most.
  NetLane(StreamConnection connection, std::unique_ptr<NetProtocol> protocol, uint32_t depth);
  // The socket is one of SocketNetwork().
  NetLane(std::unique_ptr<DatagramSocket> socket, std::unique_ptr<NetProtocol> protocol,
          uint32_t depth);

  int descriptor() const { return descriptor_; }
  bool has_unsent() const { return sent_ < out_.size(); }
  // Nothing is on its way.
  bool empty() const { return begin_ == end_; }
  bool HasRoom() const { return end_ - begin_ < depth_; }
  bool HasMore() const { return next_ < stream_->size(); }

  // What comes next: the stream, `group` operations a request, once or again and again. empty();
  // the stream (not empty) and the values stay as they are until there is another one.
  void Take(const OpStream& stream, const ValuePool& values, uint32_t group, bool again);

  // Puts the next request together, to be sent with Send. HasMore() and HasRoom(). Of a
  // read-modify-write that are two, so there may be one more than `depth` on their way.
  void Issue(uint64_t meant_ns);

  // Sends what goes without waiting.
  Status Send();

  // What was received for one request.
  struct Answered {
    uint64_t meant_ns;
    uint32_t operations;  // 0: of a read-modify-write the update is still on its way
  };
  // Reads what has come (something must have), and calls take(Answered) for each request that is
  // answered by it; the tally counts what the answers say. Otherwise a line for a person: the
  // connection broke, or what came is not the protocol's.
  template <typename Take>
  std::expected<void, std::string> Receive(NetTally& tally, Take take) {
    if (datagrams_ != nullptr) return ReceiveDatagrams(tally, take);
    if (Status status = connection_->Receive(in_); !status.ok()) {
      return std::unexpected(status.ToString());
    }
    std::string_view rest = in_;
    auto event = NetProtocol::Event::kAnswer;
    while (!empty() && event == NetProtocol::Event::kAnswer) {
      size_t consumed = 0;
      event = protocol_->Read(rest, Oldest().asked, consumed, tally);
      if (event == NetProtocol::Event::kCorrupt) return std::unexpected(Unreadable(rest));
      rest.remove_prefix(consumed);
      if (event == NetProtocol::Event::kAnswer) take(Pop());
    }
    if (empty() && !rest.empty()) return std::unexpected(Unreadable(rest));
    in_.erase(0, in_.size() - rest.size());
    return {};
  }

  // Takes all that is on its way for lost if the oldest of it is older than that and was a
  // datagram.
  void GiveUp(uint64_t meant_before_ns, NetTally& tally) {
    if (datagrams_ == nullptr || empty() || Oldest().meant_ns >= meant_before_ns) return;
    tally.lost += end_ - begin_;
    begin_ = end_;
  }

 private:
  template <typename Take>
  std::expected<void, std::string> ReceiveDatagrams(NetTally& tally, Take take) {
    for (const Datagram& datagram : datagrams_->Receive()) {
      std::string_view rest = datagram.bytes;
      uint64_t answered = begin_;
      while (answered < end_ && !protocol_->TakeFrame(static_cast<uint32_t>(answered), rest)) {
        ++answered;
      }
      if (answered == end_) continue;  // late
      tally.lost += answered - begin_;
      begin_ = answered;
      size_t consumed = 0;
      const auto event = protocol_->Read(rest, Oldest().asked, consumed, tally);
      if (event != NetProtocol::Event::kAnswer || consumed != rest.size()) {
        return std::unexpected(Unreadable(rest));
      }
      take(Pop());
    }
    return {};
  }

  struct InFlight {
    uint64_t meant_ns;
    NetAsked asked;
    uint32_t operations;
  };

  void SendDatagrams();
  void Push(const NetAsked& asked, uint64_t meant_ns, uint32_t operations);
  const InFlight& Oldest() const { return ring_[begin_ & (ring_.size() - 1)]; }
  Answered Pop() {
    const InFlight& oldest = Oldest();
    ++begin_;
    return {.meant_ns = oldest.meant_ns, .operations = oldest.operations};
  }
  static std::string Unreadable(std::string_view bytes);

  std::optional<StreamConnection> connection_;  // or
  std::unique_ptr<DatagramSocket> datagrams_;
  int descriptor_;
  std::unique_ptr<NetProtocol> protocol_;
  const uint32_t depth_;
  const OpStream* stream_ = nullptr;
  const ValuePool* values_ = nullptr;
  uint32_t group_ = 1;
  bool again_ = false;
  size_t next_ = 0;  // of the stream
  std::string out_;
  size_t sent_ = 0;             // of out_
  std::vector<size_t> ends_;    // of datagrams, in out_
  std::vector<Datagram> send_;  // the same
  std::string in_;              // what has come and was not read
  std::vector<InFlight> ring_;  // [begin_, end_): in the order of their answers
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace skep::bench
