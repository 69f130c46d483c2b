#include "collections/joint_calls.h"

#include "collections/list_calls.h"
#include "collections/member_calls.h"
#include "collections/sorted_set_calls.h"

namespace skep::collections {

bool JointCalls::Has(const Function& function) {
  if (function.type == types::kList) return ListCalls::Has(function);
  return MemberCalls::Names(function) || SortedSetCalls::IsPop(function);
}

std::unique_ptr<JointCalls> JointCalls::Of(Access& access, std::string_view key, uint8_t kind,
                                           const types::LargeRecord& record) {
  if (kind == types::kList) return std::make_unique<ListCalls>(access, key, record);
  if (kind == types::kSortedSet) return std::make_unique<SortedSetCalls>(access, key, record);
  return std::make_unique<MemberCalls>(access, key, kind, record);
}

// Writes what the calls have made. Nothing: the collection has changed meanwhile.
std::optional<Answer> JointCalls::Write() {
  if (!has_changes()) return IsNewest() ? std::optional(Answer()) : std::nullopt;
  Batch batch(Batch::Kind::kAtomic);
  if (!AddTo(batch)) return std::nullopt;
  return AnswerOfWrite(access_, batch, [&] { return Done(batch); });
}

bool JointCalls::Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  if (ReadEach(calls, answers)) return true;
  const size_t answered = answers->size();
  Expect(calls);
  bool is_read = true;
  for (const FunctionCall& call : calls) {
    if (members() == 0) break;
    is_read = Make(call, &answers->emplace_back());
    if (!is_read) break;
  }
  std::optional<Answer> written = is_read ? Write() : std::nullopt;
  if (!written && !access_.status().ok()) written.emplace().status = access_.status();
  // What is refused is refused because of one of the calls, so the caller makes each alone.
  const bool is_refused = written && !written->status.ok();
  if (!written || (is_refused && calls.size() > 1)) {
    answers->resize(answered);
    return false;
  }
  for (Answer& answer : std::span(*answers).subspan(answered)) {
    if (is_refused) answer = {.status = written->status};
    answer.version = written->version;
  }
  answers->back().segments_added = written->segments_added;
  answers->back().is_erased = written->is_erased;
  return true;
}

}  // namespace skep::collections
