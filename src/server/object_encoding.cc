#include "server/object_encoding.h"

#include <algorithm>

#include "base/decimal.h"
#include "types/collection.h"
#include "types/elements.h"
#include "types/hash_fields.h"
#include "types/value_type.h"

namespace skep {
namespace {

constexpr std::string_view kListpack = "listpack";
constexpr std::string_view kHashtable = "hashtable";
constexpr std::string_view kSkiplist = "skiplist";
constexpr std::string_view kQuicklist = "quicklist";

std::string_view StringEncoding(std::string_view value) {
  constexpr size_t kEmbeddedBytesMax = 44;
  if (value.size() <= kDecimalBytesMax && ParseInt64(value)) return "int";
  return value.size() <= kEmbeddedBytesMax ? "embstr" : "raw";
}

// Whether there are at most so many texts, none of which is longer than that.
bool ArePacked(const types::Texts& texts, uint64_t count_max, uint64_t bytes_max) {
  return texts.size() <= count_max && std::ranges::all_of(texts, [&](std::string_view text) {
           return text.size() <= bytes_max;
         });
}

bool IsIntset(const types::Texts& members, uint64_t count_max) {
  return members.size() <= count_max && std::ranges::all_of(members, [](std::string_view member) {
           return member.size() <= kDecimalBytesMax && ParseInt64(member).has_value();
         });
}

}  // namespace

std::string_view EncodingOf(uint8_t type, std::string_view value, const ServerOptions& options) {
  const bool is_small = !types::IsLarge(type);
  switch (types::KindOf(type)) {
    case types::kHash: {
      types::Texts both;
      const auto fields = types::ReadHash(value).value_or(types::HashFields());
      for (const types::HashField& field : fields) {
        both.insert(both.end(), {field.name, field.value});
      }
      if (!is_small || !ArePacked(both, 2 * options.hash_max_listpack_entries,
                                  options.hash_max_listpack_value)) {
        return kHashtable;
      }
      return types::HasDeadlineForm(value) ? "listpackex" : kListpack;
    }
    case types::kSet:
      return is_small && IsIntset(types::ReadTexts(value, 1).value_or(types::Texts()),
                                  options.set_max_intset_entries)
                 ? "intset"
                 : kHashtable;
    case types::kList:
      return kQuicklist;
    case types::kSortedSet:
      return is_small && ArePacked(
                             types::ReadElements(types::kSortedSet, value).value_or(types::Texts()),
                             options.zset_max_listpack_entries, options.zset_max_listpack_value)
                 ? kListpack
                 : kSkiplist;
    default:
      return StringEncoding(value);
  }
}

}  // namespace skep
