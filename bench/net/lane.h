// lane.h: one connection of the load generator, or one socket for datagrams: requests to send,
// requests under way, and answers that have come.
//
// Datagrams get lost. An answer shows that all earlier unanswered requests are lost; a late answer
// to one of these is ignored.
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
  // `depth` (> 0): the most requests under way.
  NetLane(StreamConnection connection, std::unique_ptr<NetProtocol> protocol, uint32_t depth);
  // The socket must be one of SocketNetwork().
  NetLane(std::unique_ptr<DatagramSocket> socket, std::unique_ptr<NetProtocol> protocol,
          uint32_t depth);

  int descriptor() const { return descriptor_; }
  bool has_unsent() const { return sent_ < out_.size(); }
  // Returns whether no request is under way.
  bool empty() const { return begin_ == end_; }
  bool HasRoom() const { return end_ - begin_ < depth_; }
  bool HasMore() const { return next_ < stream_->size(); }

  // Sets the next work: the stream, `group` operations a request, once or again and again. The lane
  // must be empty(). The stream (not empty) and the values must not change until the next Take.
  void Take(const OpStream& stream, const ValuePool& values, uint32_t group, bool again);

  // Encodes the next request, to be sent with Send. Requires HasMore() and HasRoom(). A
  // read-modify-write is two requests, so one more than `depth` may be under way.
  void Issue(uint64_t meant_ns);

  // Sends what is possible without waiting.
  Status Send();

  // The answer to one request.
  struct Answered {
    uint64_t meant_ns;
    uint32_t operations;  // 0: the update of a read-modify-write is still under way
  };
  // Reads the bytes that have come (there must be some), and calls take(Answered) for each request
  // that they answer; the tally counts the answers. On failure returns a line for people: the
  // connection broke, or the bytes are not the protocol's.
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
      MakeOldest(protocol_->Whose(rest));
      event = protocol_->Read(rest, Oldest().asked, consumed, tally);
      if (event == NetProtocol::Event::kCorrupt) return std::unexpected(Unreadable(rest));
      rest.remove_prefix(consumed);
      if (event == NetProtocol::Event::kAnswer) take(Pop());
    }
    if (empty() && !rest.empty()) return std::unexpected(Unreadable(rest));
    in_.erase(0, in_.size() - rest.size());
    return {};
  }

  // If the oldest request under way is a datagram that is older than that, takes all requests under
  // way for lost.
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
      if (answered == end_) continue;  // a late answer
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
  InFlight& At(uint64_t number) { return ring_[number & (ring_.size() - 1)]; }
  const InFlight& Oldest() const { return ring_[begin_ & (ring_.size() - 1)]; }
  // Moves the request at that place to the front; the others keep their order.
  void MakeOldest(size_t place) {
    for (uint64_t at = begin_ + place; at > begin_; --at) std::swap(At(at), At(at - 1));
  }
  Answered Pop() {
    const InFlight& oldest = Oldest();
    ++begin_;
    return {.meant_ns = oldest.meant_ns, .operations = oldest.operations};
  }
  static std::string Unreadable(std::string_view bytes);

  std::optional<StreamConnection> connection_;  // or datagrams_
  std::unique_ptr<DatagramSocket> datagrams_;
  int descriptor_;
  std::unique_ptr<NetProtocol> protocol_;
  const uint32_t depth_;
  const OpStream* stream_ = nullptr;
  const ValuePool* values_ = nullptr;
  uint32_t group_ = 1;
  bool again_ = false;
  size_t next_ = 0;  // index in the stream
  std::string out_;
  size_t sent_ = 0;             // how much of out_ is sent
  std::vector<size_t> ends_;    // ends of datagrams in out_
  std::vector<Datagram> send_;  // the same, to be sent
  std::string in_;              // received and not read yet
  std::vector<InFlight> ring_;  // [begin_, end_): in the order of their answers
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace skep::bench
