#include "collections/moves.h"

#include <algorithm>

#include "collections/names.h"

namespace skep::collections {

Moves::Moves(Access& access, const Batch& batch) : access_(access) {
  for (const Request& r : batch.requests()) {
    if (r.op != Op::kMove) continue;
    targets_.emplace_back(r.other);
    if (const auto record = AnyRecord(access, r.key)) {
      names_[record->id] = ReadNames(access, record->id);
    }
  }
}

Status Moves::AddNames() {
  for (auto& [id, names] : names_) {
    for (const std::string& target : targets_) {
      if (std::ranges::find(names, target) == names.end()) names.push_back(target);
    }
    if (const Status s = Store(id, names); !s.ok()) return s;
  }
  return access_.status();
}

void Moves::CutNames() {
  for (auto& [id, names] : names_) {
    std::vector<std::string> right;
    for (const std::string& name : names) {
      const auto record = AnyRecord(access_, name);
      if (record && record->id == id) right.push_back(name);
    }
    if (right.empty() || right == names) continue;
    static_cast<void>(Store(id, right));
  }
}

Status Moves::Store(uint64_t id, const std::vector<std::string>& names) {
  const std::string key = NamesKey(id);
  const std::string value = NamesValue(names);
  Batch batch;
  batch.Add({.op = Op::kPut, .type = types::kSegment, .key = key, .value = value});
  const Outcome& out = access_.Execute(batch).outcome(0);
  return out.verdict == Verdict::kRefused ? out.status : Status();
}

}  // namespace skep::collections
