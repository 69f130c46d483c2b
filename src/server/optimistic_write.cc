#include "server/optimistic_write.h"

#include <vector>

namespace skep {
namespace {

// The watches of one attempt.
class Watched {
 public:
  explicit Watched(Engine& engine) : engine_(engine) {}
  ~Watched() {
    for (const uint64_t watch : watches_) engine_.Unwatch(watch);
  }

  Status Add(std::string_view key, uint64_t now_ms) {
    const Result<uint64_t> watch = engine_.Watch(key, now_ms);
    if (!watch) return watch.error();
    watches_.push_back(*watch);
    return {};
  }
  uint64_t at(size_t index) const { return watches_[index]; }

 private:
  Engine& engine_;
  std::vector<uint64_t> watches_;
};

// Whether a key has got a value of another type since the look at its type.
bool HasOtherType(const Batch& read) {
  for (uint32_t i = 0; i < read.size(); ++i) {
    const Outcome& out = read.outcome(i);
    if (out.verdict == Verdict::kRefused && out.status.code() == Code::kWrongType) return true;
  }
  return false;
}

}  // namespace

bool ReadOfAnyTypes(const std::function<void(Batch&)>& execute,
                    std::span<const std::string_view> keys, Batch& read) {
  Batch look;
  for (const std::string_view key : keys) {
    look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  }
  execute(look);
  for (uint32_t i = 0; i < keys.size(); ++i) {
    read.Add({.op = Op::kGet, .type = look.outcome(i).type, .key = keys[i]});
  }
  execute(read);
  return !HasOtherType(read);
}

bool WriteIfUnchanged(const ServerCall& call, std::span<const std::string_view> keys,
                      ValuesOf values, const MakeWrites& make, Batch& write) {
  for (int attempt = 0; attempt < kOptimisticAttemptsMax; ++attempt) {
    Watched watched(call.engine());
    Batch read;
    read.set_answer_bytes_max(call.AnswerBytesMax());
    for (const std::string_view key : keys) {
      if (const Status s = watched.Add(key, call.time_ms()); !s.ok()) {
        call.Error(s);
        return false;
      }
      if (values == ValuesOf::kStrings) read.Get(key);
    }
    const auto execute = [&](Batch& batch) { call.Execute(batch); };
    if (values == ValuesOf::kStrings) {
      execute(read);
    } else if (!ReadOfAnyTypes(execute, keys, read)) {
      continue;
    }
    if (call.Refused(read)) return false;
    write.Clear();
    for (size_t i = 0; i < keys.size(); ++i) write.RequireUnchanged(keys[i], watched.at(i));
    make(read, write);
    if (write.size() == keys.size()) return true;
    call.Execute(write);
    if (call.Refused(write)) return false;
    if (write.applied()) return true;
  }
  call.Error(kWrittenAllTheTime);
  return false;
}

}  // namespace skep
