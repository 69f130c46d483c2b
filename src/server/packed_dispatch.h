// packed_dispatch.h: from the bytes of a connection, or of a datagram, to messages of the packed
// protocol that are executed.
//
//   DecodeHello   tells from a connection's first bytes which protocol it speaks
//   Decode        dispatches whole messages
//   Dispatch      a message of gets alone is answered without a batch, if it can be
//                 (message_gets.h); a batch of points joins the batch of the turn; other batches
//                 run apart from it, or, if they are much, beside the worker (message_task.h);
//                 other messages are answered at once (packed_messages.h). A message that is
//                 marked and was executed already is not executed again (reply_memory.h)
//
// Callers: command_dispatch.h, and datagrams.h for a message that came without a connection. It
// adds to the batch of the turn (turn_batch.h), which decides when that is executed.
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "server/connections.h"
#include "server/message_gets.h"
#include "server/message_replies.h"
#include "server/server_call.h"
#include "server/session.h"
#include "server/turn_batch.h"
#include "wire/packed.h"

namespace skep {

class PackedDispatch {
 public:
  // All arguments must outlive the dispatch.
  PackedDispatch(ServerHost& host, Connections& connections, TurnBatch& batch,
                 MessageReplies& messages)
      : host_(host),
        turn_(host.turn()),
        connections_(connections),
        batch_(batch),
        messages_(messages),
        gets_(host, messages) {}

  // Connections are told that messages may come as datagrams, too.
  void set_takes_datagrams() { takes_datagrams_ = true; }

  // How many of the first bytes are a hello, 0 if they are not; nullopt if that is not known yet.
  std::optional<size_t> DecodeHello(Session& session, std::string_view input);
  // Dispatches the messages in `input`; returns how many bytes of it were consumed.
  size_t Decode(Session& session, std::string_view input);
  // False if the message has to wait for a task of its connection, or for a turn that has time for
  // it, and must be decoded again.
  bool Dispatch(Session& session, const packed::Header& header, std::string_view payload);

 private:
  bool RunBatch(Session& session, const packed::Header& header, std::string_view payload);
  bool AddToShared(Session& session, const packed::Header& header, std::string_view payload);
  bool RunApart(Session& session, const packed::Header& header, std::string_view payload,
                bool goes_aside);
  bool GoesAside(const Session& session, const packed::Header& header,
                 std::string_view payload) const;
  Status RunAside(Session& session, const packed::Header& header, std::string_view payload);
  Status SetUpApart(Session& session, const packed::Header& header, std::string_view payload,
                    Batch& batch);
  void HangUp(Session& session, const Status& why);

  ServerHost& host_;
  TurnContext& turn_;
  Connections& connections_;
  TurnBatch& batch_;
  MessageReplies& messages_;
  MessageGets gets_;
  bool takes_datagrams_ = false;
};

}  // namespace skep
