#include "pool/state_receiver.h"

#include "base/check.h"
#include "pool/fields.h"
#include "pool/item.h"

namespace skep::pool {

StateReceiver::Result StateReceiver::Take(rma::PeerId peer, std::string_view fields) {
  Transfer transfer;
  uint64_t number = 0;
  if (!TakeVarint(fields, &transfer.first) || !TakeVarint(fields, &transfer.second) ||
      !TakeVarint(fields, &number) || fields.empty()) {
    return Result::kRefused;
  }
  const auto part = static_cast<StatePart>(fields[0]);
  fields.remove_prefix(1);
  if (part == StatePart::kBegin) {
    if (transfer <= newest_ || number != 0) return Result::kRefused;
    Forget();
    newest_ = transfer;
    if (!Begin(fields)) return Result::kRefused;
    peer_ = peer;
    return Result::kBegun;
  }
  if (peer != peer_ || transfer != newest_) return Result::kRefused;
  if (number != next_number_++ || !TakePart(part, fields)) {
    Forget();
    return Result::kRefused;
  }
  if (part != StatePart::kEnd) return Result::kTaken;
  peer_ = 0;
  return Result::kWhole;
}

void StateReceiver::Forget() {
  peer_ = 0;
  next_number_ = 1;
  next_chunk_ = 0;
  state_ = {};
}

bool StateReceiver::Begin(std::string_view fields) {
  DigestKeys& keys = state_.keys;
  if (!TakeNumber(fields, &state_.hash_server) || state_.hash_server == 0) return false;
  for (uint64_t* word : {&keys.index[0], &keys.index[1], &keys.tag[0], &keys.tag[1]}) {
    if (!TakeWord(fields, word)) return false;
  }
  state_.epoch = newest_.first;
  state_.tree = make_tree_();
  SKEP_CHECK(state_.tree != nullptr);
  return fields.empty();
}

bool StateReceiver::TakePart(StatePart part, std::string_view fields) {
  switch (part) {
    case StatePart::kKeys:
      return TakeKeys(fields);
    case StatePart::kServers:
      return state_.chunks.DecodeServers(fields) && fields.empty();
    case StatePart::kChunks:
      return state_.chunks.DecodeChunks(fields, next_chunk_, &next_chunk_);
    case StatePart::kSessions:
      return TakeSessions(fields);
    case StatePart::kEnd:
      return TakeEnd(fields);
    case StatePart::kBegin:
      break;
  }
  return false;
}

bool StateReceiver::TakeKeys(std::string_view fields) {
  batch_.Clear();
  while (!fields.empty()) {
    std::string_view key;
    if (!TakeBytes(fields, &key) || key.size() > kKeyBytesMax || fields.size() < sizeof(Slot)) {
      return false;
    }
    const std::string_view slot = fields.substr(0, sizeof(Slot));
    fields.remove_prefix(sizeof(Slot));
    if (SlotOf(slot)) {
      batch_.Put(key, slot);
    } else {
      batch_.Delete(key);
    }
  }
  state_.tree->Execute(batch_);
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Verdict verdict = batch_.outcome(i).verdict;
    SKEP_CHECK(verdict == Verdict::kDone || verdict == Verdict::kAbsent);
  }
  batch_.Clear();
  return true;
}

bool StateReceiver::TakeSessions(std::string_view fields) {
  while (!fields.empty()) {
    if (!state_.sessions.DecodeClient(fields)) return false;
  }
  return true;
}

bool StateReceiver::TakeEnd(std::string_view fields) {
  return next_chunk_ == state_.chunks.all().size() && TakeVarint(fields, &state_.applied) &&
         TakeNumber(fields, &state_.next_client) && fields.empty();
}

}  // namespace skep::pool
