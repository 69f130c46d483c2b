#include "bench/net/packed_protocol.h"

#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep::bench {

PackedProtocol::PackedProtocol(const NetFormat& format)
    : value_bytes_(format.value_bytes),
      scans_(format.scan_command == ScanCommand::kKrange),
      greets_(!format.datagrams),
      greeted_(format.datagrams) {}

bool PackedProtocol::Does(OpKind kind) const {
  return kind != OpKind::kDelete && (kind != OpKind::kScan || scans_);
}

// The number takes the place of the client's id, which the server repeats.
void PackedProtocol::AppendFrame(uint32_t number, std::string& out) const {
  packed::Append(out, packed::DatagramHead{.client = number});
}

bool PackedProtocol::TakeFrame(uint32_t number, std::string_view& datagram) const {
  if (datagram.size() < sizeof(packed::DatagramHead)) return false;
  const auto head = packed::Read<packed::DatagramHead>(datagram);
  if (head.why != packed::kHelloAccepted || head.client != number) return false;
  datagram.remove_prefix(sizeof(head));
  return true;
}

void PackedProtocol::Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                            const ValuePool& values, std::string& out) {
  if (greets_) packed::Append(out, packed::ClientHello{});
  greets_ = false;
  batch_.Clear();
  for (size_t i = first; i < first + asked.count; ++i) {
    const std::string_view key = stream.at(i).key;
    if (asked.kind == OpKind::kRead) {
      batch_.Get(key);
    } else if (asked.kind == OpKind::kScan) {
      batch_.Scan(Range::From(key), {.limit = asked.items});
    } else {
      batch_.Put(key, values.at(i));
    }
  }
  packed::AppendBatch(out, {.id = ++last_id_}, batch_);
}

NetProtocol::Event PackedProtocol::Read(std::string_view input, const NetAsked& asked,
                                        size_t& consumed, NetTally& tally) {
  consumed = 0;
  if (!greeted_) {
    if (input.size() < sizeof(packed::ServerHello)) return Event::kNeedMore;
    if (!packed::IsHello(input)) return Event::kCorrupt;
    if (packed::Read<packed::ServerHello>(input).version != packed::kVersion)
      return Event::kCorrupt;
    consumed = sizeof(packed::ServerHello);
    greeted_ = true;
  }
  const std::string_view message = input.substr(consumed);
  if (message.size() < sizeof(packed::Header)) return Event::kNeedMore;
  const auto header = packed::Read<packed::Header>(message);
  const std::string_view rest = message.substr(sizeof(header));
  if (rest.size() < header.payload_bytes) return Event::kNeedMore;
  consumed += sizeof(header) + header.payload_bytes;
  std::string_view payload = rest.substr(0, header.payload_bytes);
  if ((header.flags & packed::kFailed) != 0) {
    Status status;
    if (!packed::TakeStatus(payload, &status)) return Event::kCorrupt;
    tally.CountError(status.what(), asked.count);
    return header.kind == packed::Kind::kError ? Event::kCorrupt : Event::kAnswer;
  }
  while (answered_.size() < asked.count) answered_.Get({});
  if (answered_.size() > asked.count) answered_.DropFrom(asked.count);
  if (!packed::ReadReply(header, payload, answered_).ok()) return Event::kCorrupt;
  Judge(asked, tally);
  return Event::kAnswer;
}

void PackedProtocol::Judge(const NetAsked& asked, NetTally& tally) const {
  for (uint32_t slot = 0; slot < asked.count; ++slot) {
    const Outcome& outcome = answered_.outcome(slot);
    if (outcome.verdict == Verdict::kRefused) {
      tally.CountError(outcome.status.what());
    } else if (asked.kind == OpKind::kScan) {
      ++tally.scans;
      tally.items += outcome.item_count;
    } else if (asked.kind != OpKind::kRead) {
      ++tally.stored;
    } else if (outcome.verdict != Verdict::kDone) {
      ++tally.misses;
    } else if (outcome.value.size() == value_bytes_) {
      ++tally.hits;
    } else {
      tally.CountError("a value has the wrong size");
    }
  }
}

}  // namespace skep::bench
