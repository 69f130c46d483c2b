#include "server/message_replies.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/datagram_port.h"
#include "wire/packed_reply.h"

namespace skep {
namespace {

void FitReply(const Session& session, const packed::Header& header, std::string& out,
              size_t begin) {
  if (session.port != nullptr) FitIntoDatagram(out, begin, header, session.reply_bytes_max);
}

}  // namespace

void MessageReplies::Finish(Session& session, const packed::Header& header, const Batch& batch,
                            uint32_t first_slot, Engine& engine, Version ticket) {
  connections_.Queue(session);
  std::string& out = gates_.ReplyTo(session, engine, ticket, header.has(packed::kSync));
  const size_t begin = out.size();
  const bool is_remembered = header.has(packed::kRemember) && session.packed->client() != 0;
  // A reply that is kept, or has to fit a datagram, is one string.
  std::vector<packed::PinnedPart> pins;
  const bool may_refer = !is_remembered && session.port == nullptr;
  packed::AppendReply(out, header, batch, first_slot, header.count, turn_.now(),
                      packed::kReplyBytesMax / 2, may_refer ? &pins : nullptr);
  if (!pins.empty()) {
    &out == &session.out ? session.Refer(std::move(pins))
                         : session.packed->HoldPins(std::move(pins));
  }
  if (is_remembered) {
    memory_.Finish(session.packed->client(), header.id, std::string_view(out).substr(begin),
                   ticket);
  }
  FitReply(session, header, out, begin);
}

void MessageReplies::FinishGets(Session& session, const packed::Header& header,
                                std::span<const GetAnswer> answers, Engine& engine,
                                Version ticket) {
  connections_.Queue(session);
  std::string& out = gates_.ReplyTo(session, engine, ticket, header.has(packed::kSync));
  const size_t begin = out.size();
  packed::AppendGetReply(out, header, answers);
  FitReply(session, header, out, begin);
}

void MessageReplies::Repeat(Session& session, const packed::Header& header,
                            const ReplyMemory::Reply& reply, Engine& engine) {
  connections_.Queue(session);
  std::string& out = gates_.ReplyTo(session, engine, reply.ticket, header.has(packed::kSync));
  const size_t begin = out.size();
  out.append(*reply.bytes);
  FitReply(session, header, out, begin);
}

}  // namespace skep
