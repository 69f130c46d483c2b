#include "bench/net/packed_protocol.h"

#include "bench/net/outcome_tally.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep::bench {

PackedProtocol::PackedProtocol(const NetFormat& format)
    : value_bytes_(format.value_bytes),
      scans_(format.scan_command == ScanCommand::kKrange),
      fat_root_(format.fat_root),
      greets_(!format.datagrams),
      greeted_(format.datagrams),
      datagrams_(format.datagrams) {}

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
  if (fat_root_ != nullptr) Ask(out);
  UnderWay& message = under_way_.emplace_back();
  message.id = ++last_id_;
  packed::AppendBatch(out, {.id = message.id}, batch_, 0, FillIn(message));
}

// Appends a question for a page, if there is one to be asked.
void PackedProtocol::Ask(std::string& out) {
  if (!has_top_) return;
  const auto question = fat_root_->Question();
  if (!question) return;
  const size_t begin = packed::BeginMessage(out, {.id = ++last_id_, .kind = packed::Kind::kTop});
  out.append(*question);
  packed::EndMessage(out, begin);
}

// Returns the hints of the batch, and keeps them until its answer comes; none without a fat root.
std::span<const Hint> PackedProtocol::FillIn(UnderWay& message) {
  if (fat_root_ == nullptr) return {};
  fat_root_->FillIn(batch_, &message.hints);
  for (const Request& request : batch_.requests()) message.keys.push_back(request.key);
  return message.hints;
}

// Tells the fat root which hints of the message, if it has any, were stale.
void PackedProtocol::NoteStale(const UnderWay& message) {
  for (uint32_t slot = 0; slot < message.hints.size(); ++slot) {
    if (client::FatRoot::IsStale(message.hints[slot], answered_.outcome(slot).hint)) {
      fat_root_->NoteStale(message.keys[slot]);
    }
  }
}

void PackedProtocol::TakePage(const packed::Header& header, std::string_view payload) {
  if ((header.flags & packed::kFailed) != 0) return fat_root_->TakeNone(/*is_final=*/true);
  fat_root_->TakeAnswer(payload);
}

NetProtocol::Event PackedProtocol::ReadHello(std::string_view input, size_t& consumed) {
  if (input.size() < sizeof(packed::ServerHello)) return Event::kNeedMore;
  if (!packed::IsHello(input)) return Event::kCorrupt;
  const auto hello = packed::Read<packed::ServerHello>(input);
  if (hello.version != packed::kVersion) return Event::kCorrupt;
  consumed = sizeof(packed::ServerHello);
  greeted_ = true;
  has_top_ = (hello.features & packed::kHasTop) != 0;
  return Event::kAnswer;
}

size_t PackedProtocol::Whose(std::string_view input) const {
  if (!greeted_) input.remove_prefix(std::min(input.size(), sizeof(packed::ServerHello)));
  while (input.size() >= sizeof(packed::Header)) {
    const auto header = packed::Read<packed::Header>(input);
    if (header.kind != packed::Kind::kTop) {
      const auto at = Find(header.id);
      return at == under_way_.end() ? 0 : static_cast<size_t>(at - under_way_.begin());
    }
    input.remove_prefix(std::min(input.size(), sizeof(header) + header.payload_bytes));
  }
  return 0;
}

NetProtocol::Event PackedProtocol::Read(std::string_view input, const NetAsked& asked,
                                        size_t& consumed, NetTally& tally) {
  consumed = 0;
  if (!greeted_) {
    if (const Event event = ReadHello(input, consumed); event != Event::kAnswer) return event;
  }
  packed::Header header;
  std::string_view payload;
  do {
    const std::string_view message = input.substr(consumed);
    if (message.size() < sizeof(header)) return Event::kNeedMore;
    header = packed::Read<packed::Header>(message);
    const std::string_view rest = message.substr(sizeof(header));
    if (rest.size() < header.payload_bytes) return Event::kNeedMore;
    consumed += sizeof(header) + header.payload_bytes;
    payload = rest.substr(0, header.payload_bytes);
    if (header.kind == packed::Kind::kTop && fat_root_ != nullptr) TakePage(header, payload);
  } while (header.kind == packed::Kind::kTop && fat_root_ != nullptr);
  return ReadBatch(header, payload, asked, tally);
}

NetProtocol::Event PackedProtocol::ReadBatch(const packed::Header& header, std::string_view payload,
                                             const NetAsked& asked, NetTally& tally) {
  if ((header.flags & packed::kFailed) != 0 && header.kind == packed::Kind::kError) {
    Status status;
    if (packed::TakeStatus(payload, &status)) tally.CountError(status.what(), asked.count);
    return Event::kCorrupt;
  }
  const auto message = Find(header.id);
  if (message == under_way_.end()) return Event::kCorrupt;
  if (const Event event = ReadOutcomes(header, payload, asked, tally); event != Event::kAnswer) {
    return event;
  }
  if ((header.flags & packed::kFailed) == 0) NoteStale(*message);
  under_way_.erase(datagrams_ ? under_way_.cbegin() : message, message + 1);
  return Event::kAnswer;
}

NetProtocol::Event PackedProtocol::ReadOutcomes(const packed::Header& header,
                                                std::string_view payload, const NetAsked& asked,
                                                NetTally& tally) {
  while (answered_.size() < asked.count) answered_.Get({});
  if (answered_.size() > asked.count) answered_.DropFrom(asked.count);
  if ((header.flags & packed::kFailed) != 0) {
    Status status;
    if (!packed::TakeStatus(payload, &status)) return Event::kCorrupt;
    tally.CountError(status.what(), asked.count);
    return Event::kAnswer;
  }
  if (!packed::ReadReply(header, payload, answered_).ok()) return Event::kCorrupt;
  Judge(asked, tally);
  return Event::kAnswer;
}

void PackedProtocol::Judge(const NetAsked& asked, NetTally& tally) const {
  for (uint32_t slot = 0; slot < asked.count; ++slot) {
    CountOutcome(asked.kind, answered_.outcome(slot), value_bytes_, tally);
  }
}

}  // namespace skep::bench
