// Functions of elements: VUPDATE, VREDUCE, VFILTER, and KREDUCE over a range.
#include <cstring>
#include <memory>
#include <string>

#include "engine/element_functions.h"
#include "server/commands.h"
#include "server/function_args.h"
#include "server/range_args.h"
#include "server/range_task.h"
#include "server/server_call.h"
#include "server/subcommands.h"
#include "skep/store.h"

namespace skep::commands {
namespace {

Plan Wrong(const std::string& text, Batch& batch) {
  return Plan::Error(batch.scratch().Concat("ERR ", text));
}

template <class T>
T StateAs(std::string_view state) {
  T number;
  std::memcpy(&number, state.data(), sizeof(number));
  return number;
}

// Replies null for an empty state: there was no element to begin with.
void ReplyState(const Call& call, const Function& function, std::string_view state) {
  RespWriter reply = call.reply();
  if (state.empty()) return reply.Null();
  if (function.state == Element::kF64) return reply.Double(StateAs<double>(state));
  const auto number = StateAs<int64_t>(state);
  if (function.state == Element::kU64 && number < 0) {
    return reply.BigNumber(std::to_string(StateAs<uint64_t>(state)));
  }
  reply.Integer(number);
}

// Folds the values of a range: one chunk at once, a longer range in turns (range_task.h).
class Fold {
 public:
  Fold(const Function& function, std::string_view first)
      : function_(function),
        state_(first.empty() ? FirstState(function) : first),
        has_state_(!first.empty() || !function.starts_with_first) {}

  // Returns an error if a value does not suit the function: then it is the reply for the whole
  // range.
  Status Add(const ItemRange& items) {
    for (const Item& item : items) {
      if (const Status s = CheckElements(function_, item.value.size()); !s.ok()) return s;
      const size_t count = item.value.size() / BytesOf(function_.element);
      has_state_ = has_state_ || count > 0;
      function_.kernel.reduce(function_, item.value.data(), count, state_.data());
    }
    return {};
  }
  void Reply(const Call& call) const {
    ReplyState(call, function_, has_state_ ? std::string_view(state_) : std::string_view());
  }

 private:
  const Function& function_;
  std::string state_;
  bool has_state_;
};

class ReduceTask final : public Task {
 public:
  static void Start(const ServerCall& call, const Range& range, const Function& function,
                    std::string_view first) {
    ReduceTask at_once({}, range, function, first);
    if (!at_once.Step(call)) return;
    auto pinned = PinRange(call);
    if (!pinned) return call.Error(pinned.error());
    call.Start(std::unique_ptr<Task>(new ReduceTask(std::move(*pinned), range, function, first)));
  }

  bool Step(const ServerCall& call) override {
    constexpr uint32_t kChunkItems = 512;
    constexpr size_t kChunkBytes = 256 * 1024;
    constexpr uint32_t kChunkVisits = 4096;
    Batch batch;
    batch.set_snapshot(snapshot_.ref());
    batch.set_scan_bytes_max(kChunkBytes);
    batch.set_scan_visits_max(kChunkVisits);
    const uint32_t slot =
        batch.Scan({.lo = lo_, .hi = hi_, .unbounded = unbounded_}, {.limit = kChunkItems});
    call.Execute(batch);
    const Outcome& out = batch.outcome(slot);
    if (call.Refused(out)) return false;
    if (const Status s = fold_.Add(batch.items(slot)); !s.ok()) {
      call.Error(s);
      return false;
    }
    if (!out.more) {
      fold_.Reply(call);
      return false;
    }
    lo_.assign(out.value);
    return true;
  }

 private:
  ReduceTask(Snapshot snapshot, const Range& range, const Function& function,
             std::string_view first)
      : snapshot_(std::move(snapshot)),
        lo_(range.lo),
        hi_(range.hi),
        unbounded_(range.unbounded),
        fold_(function, first) {}

  const Snapshot snapshot_;  // not valid for the first chunk, or if the engine has none (PinRange)
  std::string lo_;           // the rest of the range
  const std::string hi_;
  const bool unbounded_;
  Fold fold_;
};

void FnList(const ServerCall& call) {
  struct Entry {
    const Function* function;
    std::vector<std::string_view> elements;
  };
  std::vector<Entry> entries;
  for (const Function* const function : AllFunctions()) {
    if (function->kind == FunctionKind::kPlain) continue;
    if (entries.empty() || entries.back().function->kind != function->kind ||
        entries.back().function->name != function->name) {
      entries.push_back({.function = function, .elements = {}});
    }
    entries.back().elements.push_back(NameOf(function->element));
  }
  RespWriter reply = call.reply();
  reply.Array(entries.size());
  for (const Entry& entry : entries) {
    reply.Map(4);
    reply.Bulk("name");
    reply.Bulk(entry.function->name);
    reply.Bulk("kind");
    reply.Bulk(NameOf(entry.function->kind));
    reply.Bulk("operands");
    reply.Integer(entry.function->operands);
    reply.Bulk("types");
    reply.Array(entry.elements.size());
    for (const std::string_view element : entry.elements) reply.Bulk(element);
  }
}

constexpr Subcommand kFnSubcommands[] = {
    {"list", 2, "", "Return the functions of VUPDATE, VREDUCE, VFILTER and KREDUCE.", FnList},
};

}  // namespace

void FinishFn(const ServerCall& call, const Batch&, uint32_t) { RunSubcommand(call); }

std::span<const Subcommand> FnSubcommands() { return kFnSubcommands; }

Plan PlanVupdate(const Call& call, Batch& batch) {
  FunctionArgs args;
  const auto error = ParseFunctionArgs(FunctionKind::kUpdate, call.args().subspan(2), &args);
  if (!error.empty()) return Wrong(error, batch);
  batch.UpdateElements(call.arg(1), args.function, args.operands, args.options);
  return Plan::Requests();
}

void FinishVupdate(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (ParseUpdate(batch.requests()[slot].value)->returns == UpdateOptions::Returns::kNothing) {
    call.reply().Integer(out.integer);
  } else {
    call.reply().Bulk(out.value);
  }
}

Plan PlanVreduce(const Call& call, Batch& batch) {
  FunctionArgs args;
  const auto error = ParseFunctionArgs(FunctionKind::kReduce, call.args().subspan(2), &args);
  if (!error.empty()) return Wrong(error, batch);
  batch.ReduceElements(call.arg(1), args.function, batch.scratch().Copy(args.operands));
  return Plan::Requests();
}

void FinishVreduce(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) ReplyState(call, *batch.requests()[slot].function, out.value);
}

Plan PlanVfilter(const Call& call, Batch& batch) {
  FunctionArgs args;
  const auto error = ParseFunctionArgs(FunctionKind::kFilter, call.args().subspan(2), &args);
  if (!error.empty()) return Wrong(error, batch);
  batch.FilterElements(call.arg(1), args.function, batch.scratch().Copy(args.operands));
  return Plan::Requests();
}

void FinishVfilter(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Bulk(out.value);
}

void RunKreduce(const ServerCall& call) {
  Scratch scratch;
  const auto range = ParseRangeWords(call.arg(1), call.arg(2), scratch);
  if (!range) return call.Error(range.error());
  FunctionArgs args;
  const auto error = ParseFunctionArgs(FunctionKind::kReduce, call.args().subspan(3), &args);
  if (!error.empty()) return call.Error("ERR " + error);
  ReduceTask::Start(call, *range, *args.function, args.operands);
}

}  // namespace skep::commands
