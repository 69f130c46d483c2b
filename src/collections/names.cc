#include "collections/names.h"

#include <algorithm>

#include "types/text.h"

namespace skep::collections {

std::string NamesKey(uint64_t id) { return SegmentKey(id, Part::kNames, {}); }

std::string NamesValue(std::span<const std::string> names) {
  Scratch scratch;
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(types::JoinTexts(views, scratch));
}

std::vector<std::string> ReadNames(Access& access, uint64_t id) {
  const auto found = access.Get(NamesKey(id), types::kSegment);
  std::vector<std::string_view> views;
  if (found) types::TakeTexts(*found, &views);
  return {views.begin(), views.end()};
}

std::optional<types::LargeRecord> AnyRecord(Access& access, std::string_view key) {
  const uint8_t type = access.TypeOf(key);
  return types::IsLarge(type) ? access.Record(key, types::KindOf(type)) : std::nullopt;
}

bool ReadsRecords(Access& access) {
  for (uint64_t id = 1; id != 0; ++id) {
    Batch batch;
    const std::string lo = KeysOf(id);
    batch.Scan(Range::From(lo), {.limit = 1, .keys_only = true});
    const ItemRange items = access.Execute(batch).items(0);
    if (items.empty()) return true;
    // A key that a client has given, when no collection was large, may have no id.
    const uint64_t found = IdOf(items.front().key);
    if (found < id) return false;
    id = found;
    for (const std::string& name : ReadNames(access, id)) {
      const uint8_t type = access.TypeOf(name);
      if (types::IsLarge(type)) return access.Record(name, types::KindOf(type)).has_value();
    }
  }
  return true;
}

bool HasRecord(Access& access, std::span<const std::string> names, uint64_t id) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto record = AnyRecord(access, name);
    return record && record->id == id;
  });
}

}  // namespace skep::collections
