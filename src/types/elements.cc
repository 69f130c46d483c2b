#include "types/elements.h"

#include "types/collection.h"
#include "types/list.h"

namespace skep::types {

std::optional<std::vector<Entry>> ReadScored(uint8_t type, std::string_view value) {
  std::vector<Entry> entries;
  if (type == kSet) {
    const auto members = ReadTexts(value, 1);
    if (!members) return std::nullopt;
    for (const std::string_view member : *members) entries.push_back({1, member});
    return entries;
  }
  const auto counted = type == kSortedSet ? ReadCounted(value) : std::nullopt;
  if (!counted) return std::nullopt;
  entries.reserve(counted->members);
  std::string_view rest = counted->body;
  Entry entry;
  while (!rest.empty()) {
    if (!TakeEntry(rest, &entry)) return std::nullopt;
    entries.push_back(entry);
  }
  return entries;
}

std::optional<std::vector<std::string_view>> ReadElements(uint8_t type, std::string_view value) {
  if (type == kList) {
    const auto list = ReadCounted(value);
    return list ? ReadListElements(*list) : std::nullopt;
  }
  if (type == kSet) return ReadTexts(value, 1);
  const auto entries = ReadScored(type, value);
  if (!entries) return std::nullopt;
  Texts texts;
  for (const Entry& entry : *entries) texts.push_back(entry.member);
  return texts;
}

}  // namespace skep::types
