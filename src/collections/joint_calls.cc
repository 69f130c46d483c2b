#include "collections/joint_calls.h"

#include <algorithm>
#include <thread>

#include "collections/list_calls.h"
#include "collections/member_calls.h"
#include "collections/set_calls.h"
#include "collections/sorted_set_calls.h"

namespace skep::collections {

bool JointCalls::Has(const Function& function) {
  if (function.type == types::kList) return ListCalls::Has(function);
  return MemberCalls::Names(function) || SortedSetCalls::IsPop(function) ||
         SortedSetCalls::IsCut(function) || SetCalls::IsPop(function);
}

std::unique_ptr<JointCalls> JointCalls::Of(Access& access, std::string_view key, uint8_t kind,
                                           const types::LargeRecord& record) {
  if (kind == types::kList) return std::make_unique<ListCalls>(access, key, record);
  if (kind == types::kSortedSet) return std::make_unique<SortedSetCalls>(access, key, record);
  if (kind == types::kSet) return std::make_unique<SetCalls>(access, key, record);
  return std::make_unique<MemberCalls>(access, key, kind, record);
}

bool JointCalls::IsLong(const Access& access, uint8_t kind, const types::LargeRecord& record,
                        const FunctionCall& call) {
  if (kind == types::kList) return ListCalls::IsLong(access, record, call);
  if (MemberCalls::Names(*call.function)) return MemberCalls::NamesMany(access, call);
  return access.IsLongWrite(kind == types::kSet ? SetCalls::Taken(record, call)
                                                : SortedSetCalls::Taken(record, call));
}

// Writes what the calls have made. Nothing: the collection has changed meanwhile.
std::optional<Answer> JointCalls::Write() {
  if (!has_changes()) return IsNewest() ? std::optional(Answer()) : std::nullopt;
  Batch batch(Batch::Kind::kAtomic);
  if (!AddTo(batch)) return std::nullopt;
  auto written = AnswerOfWrite(access_, batch, [&] { return Done(batch); });
  if (!written && CorrectHints(batch)) access_.NoteWrongHint();
  return written;
}

bool JointCalls::IsOfOneVersion(std::string_view key, uint8_t kind,
                                const types::LargeRecord& record) {
  const auto stays = [this](const Request& r) { return access_.Get(r.key, r.type) == r.other; };
  while (true) {
    Batch batch(Batch::Kind::kAtomic);
    collections::RequireRecord(batch, key, kind, record);
    RequireRead(batch);
    if (access_.Execute(batch).applied()) return true;
    if (!std::ranges::all_of(batch.requests(), stays) || !access_.status().ok()) return false;
    access_.engine().Release();
    std::this_thread::yield();
  }
}

bool JointCalls::Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  if (ReadEach(calls, answers) || PutEach(calls, answers)) return true;
  const size_t answered = answers->size();
  Expect(calls);
  // The bound is about the bytes that calls read after the read ahead, which serves all of them.
  const size_t work_before = access_.work();
  bool is_read = true;
  for (const FunctionCall& call : calls) {
    const bool is_first = answers->size() == answered;
    if (members() == 0 || (!is_first && !CanMake(call))) break;
    if (!is_first && access_.work() - work_before > kWorkBytesMax) break;
    is_read = Make(call, &answers->emplace_back());
    if (!is_read) break;
    if (!answers->back().is_too_long) continue;
    if (is_first) return true;
    answers->pop_back();
    break;
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
