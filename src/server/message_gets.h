// message_gets.h: messages of the packed protocol that get values and do nothing else.
//
// Such a message needs no batch: its keys stay in an array, and answers of 16 bytes become its
// reply (engine/plain_gets.h), which spares most of what a request and an outcome cost.
//
// Order: the message would overtake what is pending in the batch of the turn, so one whose session
// has a request there joins that batch.
//
// Keys that an engine does not answer without a batch: those with a deadline, with a long value or
// of another type. If a message has one, a batch reads all of its keys again, and the session's
// next kRest messages are left to batches at once. So a session that has such keys in all of its
// messages reads the keys of one message in kRest + 1 twice.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/message_replies.h"
#include "server/server_call.h"
#include "server/session.h"
#include "skep/get_answer.h"
#include "skep/scratch.h"
#include "wire/packed.h"

namespace skep {

class MessageGets {
 public:
  // Fewer keys are better off in the batch of the turn, where those of other messages wait for
  // memory side by side with them.
  static constexpr uint32_t kKeysMin = 16;
  // More values, in bytes, are left to a batch, which divides its work among turns.
  static constexpr size_t kBytesMax = size_t{256} << 10;
  static constexpr uint32_t kRest = 63;

  // All arguments must outlive this object.
  MessageGets(ServerHost& host, MessageReplies& messages) : host_(host), messages_(messages) {}

  // Answers the message if it only gets values and each key can be answered so; nothing of the
  // session may be pending. False: nothing was done.
  bool Answer(Session& session, const packed::Header& header, std::string_view payload);

 private:
  bool Read(const packed::Header& header, Version* ticket);

  ServerHost& host_;
  MessageReplies& messages_;
  std::vector<std::string_view> keys_;
  std::vector<GetAnswer> answers_;
  Scratch values_;
};

}  // namespace skep
