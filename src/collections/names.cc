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

bool HasRecord(Access& access, std::span<const std::string> names, uint64_t id) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto record = AnyRecord(access, name);
    return record && record->id == id;
  });
}

}  // namespace skep::collections
