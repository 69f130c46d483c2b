#include "server/message_gets.h"

#include <algorithm>
#include <new>

#include "wire/packed_request.h"

namespace skep {

bool MessageGets::Answer(Session& session, const packed::Header& header, std::string_view payload) {
  if (header.kind != packed::Kind::kBatch || (header.flags & ~packed::kSync) != 0 ||
      header.count < kKeysMin) {
    return false;
  }
  if (session.packed->gets_left_out > 0) {
    --session.packed->gets_left_out;
    return false;
  }
  keys_.clear();
  if (!packed::TakeGets(payload, header.count, &keys_)) return false;
  Version ticket = 0;
  values_.Clear();
  if (!Read(header, &ticket)) {
    session.packed->gets_left_out = kRest;
    values_.Clear();
    return false;
  }
  const auto hits =
      static_cast<uint64_t>(std::ranges::count(answers_, Verdict::kDone, &GetAnswer::verdict));
  host_.turn().CountGets(hits, answers_.size() - hits, values_.used());
  Engine& engine = host_.state().keyspaces().at(header.keyspace);
  messages_.FinishGets(session, header, answers_, engine, ticket);
  return true;
}

// Reads all keys. False: one has no plain answer, or the values are too many bytes.
bool MessageGets::Read(const packed::Header& header, Version* ticket) {
  Keyspaces& keyspaces = host_.state().keyspaces();
  PlainGets* const gets = keyspaces.plain_gets(header.keyspace);
  ranges::RangeOwner* const owner = host_.state().range_owner();
  const bool is_shared = owner != nullptr && &keyspaces.at(header.keyspace) == &owner->engine();
  if (gets == nullptr || is_shared) return false;
  answers_.assign(keys_.size(), GetAnswer{});
  constexpr size_t kAtOnce = 256;
  try {
    for (size_t i = 0; i < keys_.size(); i += kAtOnce) {
      const size_t count = std::min(kAtOnce, keys_.size() - i);
      const auto answers = std::span(answers_).subspan(i, count);
      const Version seen =
          gets->GetManyPlain(std::span(keys_).subspan(i, count), answers, {values_, kBytesMax});
      *ticket = std::max(*ticket, seen);
      const bool is_whole = std::ranges::none_of(answers, [](const GetAnswer& answer) {
        return answer.verdict != Verdict::kDone && answer.verdict != Verdict::kAbsent;
      });
      if (!is_whole) return false;
    }
  } catch (const std::bad_alloc&) {
    return false;  // a batch says for each key what there is no memory for
  }
  return true;
}

}  // namespace skep
