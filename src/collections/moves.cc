#include "collections/moves.h"

#include <set>
#include <string_view>
#include <vector>

#include "collections/names.h"

namespace skep::collections {

Moves::Moves(Access& access, const Batch& batch) : access_(access) {
  // The ids that may lie under a key once the moves up to some slot are done.
  std::map<std::string_view, std::set<uint64_t>> ids;
  std::set<std::string_view> read;
  for (const Request& r : batch.requests()) {
    if (r.op != Op::kMove || r.key == r.other) continue;
    const bool is_new = read.insert(r.key).second;
    std::set<uint64_t>& here = ids[r.key];
    if (const auto record = is_new ? AnyRecord(access, r.key) : std::nullopt) {
      here.insert(record->id);
      const auto names = ReadNames(access, record->id);
      names_[record->id].insert(names.begin(), names.end());
    }
    for (const uint64_t id : here) {
      names_[id].insert(std::string(r.other));
      ids[r.other].insert(id);
    }
  }
}

Status Moves::AddNames() {
  for (const auto& [id, names] : names_) {
    if (const Status s = Store(id, names); !s.ok()) return s;
  }
  return access_.status();
}

void Moves::CutNames() {
  for (const auto& [id, names] : names_) {
    std::set<std::string> right;
    for (const std::string& name : names) {
      const auto record = AnyRecord(access_, name);
      if (record && record->id == id) right.insert(name);
    }
    if (right.empty() || right == names) continue;
    static_cast<void>(Store(id, right));
  }
}

Status Moves::Store(uint64_t id, const std::set<std::string>& names) {
  const std::string key = NamesKey(id);
  const std::string value = NamesValue(std::vector<std::string>(names.begin(), names.end()));
  Batch batch;
  batch.Add({.op = Op::kPut, .type = types::kSegment, .key = key, .value = value});
  const Outcome& out = access_.Execute(batch).outcome(0);
  return out.verdict == Verdict::kRefused ? out.status : Status();
}

}  // namespace skep::collections
