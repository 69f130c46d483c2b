// message_replies.h: the replies to messages of the packed protocol, and which of them are
// remembered.
//
//   Finish   encodes the reply from the outcomes of the message's slots, or from the answers of
//            gets; a message that is marked (packed::kRemember) is remembered with its ticket
//            (reply_memory.h)
//   Repeat   sends a remembered reply
//
// Each reply leaves once its ticket is released, or synced if the message asks for that, whatever
// the replies before it wait for. A reply that does not fit its datagram is not kept while it
// waits.
//
// Callers: the batch of the turn, what runs apart from it, and postponed tasks.
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine.h"
#include "server/connections.h"
#include "server/reply_gates.h"
#include "server/reply_memory.h"
#include "server/session.h"
#include "server/turn_context.h"
#include "skep/batch.h"
#include "skep/get_answer.h"
#include "wire/packed.h"

namespace skep {

class MessageReplies {
 public:
  // All arguments must outlive this object.
  MessageReplies(ReplyMemory& memory, const TurnContext& turn, ReplyGates& gates,
                 Connections& connections)
      : memory_(memory), turn_(turn), gates_(gates), connections_(connections) {}

  // The message has as many slots of the batch as it has operations, from `first_slot` on; the
  // batch was executed on the engine, with this ticket.
  void Finish(Session& session, const packed::Header& header, const Batch& batch,
              uint32_t first_slot, Engine& engine, Version ticket);
  // The same for a message of gets alone, which is not remembered.
  void FinishGets(Session& session, const packed::Header& header,
                  std::span<const GetAnswer> answers, Engine& engine, Version ticket);
  void Repeat(Session& session, const packed::Header& header, const ReplyMemory::Reply& reply,
              Engine& engine);

 private:
  ReplyMemory& memory_;
  const TurnContext& turn_;
  ReplyGates& gates_;
  Connections& connections_;
};

}  // namespace skep
