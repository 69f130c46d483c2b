#include "server/member_scan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "server/glob.h"
#include "server/scan_args.h"
#include "server/type_args.h"
#include "types/text.h"

namespace skep {
namespace {

uint64_t NumberOfCursor(const Call& call) {
  return ParseDecimal<uint64_t>(call.arg(2)).value_or(0);
}

Plan AddScan(const Call& call, Batch& batch, const Function* function, std::string_view from,
             std::string_view count) {
  if (!IsScanCursor(call.arg(2))) return Plan::Error("ERR invalid cursor");
  const std::string_view words[] = {from, count};
  return PlanOnKey(call, batch, function, words);
}

// What the function has returned: the member to go on from, and the texts of members.
struct Scanned {
  std::optional<std::string_view> next;
  std::vector<std::string_view> texts;
};
Scanned ReadScanned(const Outcome& out) {
  Scanned scanned;
  std::string_view bytes = out.value;
  types::TakeMaybeText(bytes, &scanned.next);
  types::TakeTexts(bytes, &scanned.texts);
  return scanned;
}

// As in Redis, nobody looks at the options if there is no key. False: an error was sent.
bool ParseOptions(const Call& call, const Outcome& out, ScanArgs& scan) {
  if (!out.present) return true;
  const auto error = ParseScan(call.args().subspan(3), false, scan);
  if (!error.empty()) call.Error(error);
  return error.empty();
}

void Reply(const Call& call, uint64_t cursor, const ScanArgs& scan,
           const std::vector<std::string_view>& texts, size_t each) {
  std::vector<size_t> matching;
  for (size_t i = 0; i < texts.size(); i += each) {
    if (GlobMatch(scan.pattern, texts[i])) matching.push_back(i);
  }
  RespWriter reply = call.reply();
  reply.Array(2);
  reply.Bulk(std::to_string(cursor));
  reply.Array(matching.size() * each);
  for (const size_t at : matching) {
    for (size_t i = at; i < at + each; ++i) reply.Bulk(texts[i]);
  }
}

}  // namespace

Plan PlanMemberScan(const Call& call, Batch& batch, const Function* function) {
  return AddScan(call, batch, function, {}, "4294967295");
}

Plan PlanMemberScan(const ServerCall& call, Batch& batch, const Function* function) {
  ScanArgs scan;
  // What is wrong with the options is told when there is a key.
  static_cast<void>(ParseScan(call.args().subspan(3), false, scan));
  const uint64_t number = NumberOfCursor(call);
  const auto cursor = number == 0 ? std::nullopt
                                  : call.state().cursors().Find(number, call.monotonic_ms(),
                                                                call.session().info->id);
  const bool is_known = cursor && (*cursor)->keyspace == call.session().keyspace;
  const std::string_view from =
      is_known ? batch.scratch().Copy((*cursor)->next_key) : std::string_view();
  return AddScan(call, batch, function, from, batch.scratch().Copy(std::to_string(scan.count)));
}

void FinishMemberScan(const Call& call, const Batch& batch, uint32_t slot, size_t each) {
  const Outcome& out = batch.outcome(slot);
  ScanArgs scan;
  if (call.Refused(out) || !ParseOptions(call, out, scan)) return;
  Reply(call, 0, scan, ReadScanned(out).texts, each);
}

void FinishMemberScan(const ServerCall& call, const Batch& batch, uint32_t slot, size_t each) {
  const Outcome& out = batch.outcome(slot);
  ScanArgs scan;
  if (call.Refused(out) || !ParseOptions(call, out, scan)) return;
  const Scanned scanned = ReadScanned(out);
  const uint64_t number = NumberOfCursor(call);
  uint64_t next = 0;
  if (scanned.next) {
    auto cursor = std::make_shared<ScanCursor>();
    cursor->next_key = *scanned.next;
    cursor->keyspace = call.session().keyspace;
    const size_t bytes = sizeof(ScanCursor) + cursor->next_key.size();
    call.session().has_scans = true;
    next = call.state().cursors().Put(std::move(cursor), bytes, call.monotonic_ms(),
                                      call.session().info->id, number);
  } else if (number != 0) {
    call.state().cursors().EraseScan(number);
  }
  Reply(call, next, scan, scanned.texts, each);
}

}  // namespace skep
