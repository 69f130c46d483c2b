#include "durable/rdb_collection.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/decimal.h"
#include "base/float_text.h"
#include "durable/rdb_packed.h"
#include "durable/rdb_types.h"
#include "skep/batch.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/list.h"
#include "types/sorted_set.h"
#include "types/value_type.h"

namespace skep::durable {
namespace {

// Reads the members of one value.
class MembersReader {
 public:
  MembersReader(RdbInput& in, const OnRdbMember& on_member)
      : in_(in), on_member_(on_member), at_(in.offset()) {}

  void Read(RdbType type) {
    switch (type) {
      case RdbType::kHashListpackEx:
        in_.Skip(kDeadlineBytes);
        [[fallthrough]];
      case RdbType::kHashListpackExPreRelease:
        return ShowPackedFieldsWithDeadlines();
      case RdbType::kHashMetadata:
        return ShowFieldsWithDeadlines(in_.Number<uint64_t>());
      case RdbType::kHashMetadataPreRelease:
        return ShowFieldsWithDeadlines(1);
      default:
        break;
    }
    for (const Packing& packing : Packings()) {
      if (packing.type != type) continue;
      return packing.show != nullptr ? ShowPairs(packing.read, packing.show)
                                     : ShowElements(packing.read);
    }
    ReadOneByOne(type);
  }

 private:
  static constexpr uint64_t kDeadlineBytes = 8;
  using ReadPacked = bool (*)(std::string_view, const OnPacked&);
  using ShowPair = void (MembersReader::*)(std::string_view, std::string_view);
  // A type whose values are one packed string.
  struct Packing {
    RdbType type;
    ReadPacked read;
    ShowPair show;  // null: each entry is a member
  };
  static std::span<const Packing> Packings();

  void ReadOneByOne(RdbType type) {
    switch (type) {
      case RdbType::kList:
      case RdbType::kSet:
        return Times([&] { ShowElement(String(first_)); });
      case RdbType::kHash:
        return Times([&] {
          in_.String(&first_);
          in_.String(&second_);
          ShowField(first_, second_);
        });
      case RdbType::kZset:
        return Times([&] {
          in_.String(&first_);
          ShowScored(first_, DecimalScore());
        });
      case RdbType::kZset2:
        return Times([&] {
          in_.String(&first_);
          ShowScored(first_, in_.Number<double>());
        });
      case RdbType::kListQuicklist:
        return Times([&] { ShowElements(ReadZiplist); });
      case RdbType::kListQuicklist2:
        return Times([&] { ShowQuicklistNode(); });
      default:
        return Malformed();
    }
  }
  // Reads fields whose deadlines are told as by how much they are behind `first_ms`, and 1 more.
  void ShowFieldsWithDeadlines(uint64_t first_ms) {
    Times([&] {
      const uint64_t behind_ms = in_.Length();
      in_.String(&first_);
      in_.String(&second_);
      const bool is_right =
          behind_ms == 0 || (first_ms > 0 && first_ms <= kDeadlineMax && behind_ms <= kDeadlineMax);
      if (!is_right) return Malformed();
      ShowField(first_, second_, behind_ms == 0 ? 0 : first_ms + behind_ms - 1);
    });
  }

  void Malformed() {
    in_.Fail(Status(Code::kCorrupt, "a collection in an RDB file is malformed", at_));
  }

  // Calls `one` as often as the length that is next says. Each call takes a byte at least, so the
  // end of the file ends the loop.
  template <typename Do>
  void Times(Do one) {
    const uint64_t count = in_.Length();
    for (uint64_t i = 0; i < count && in_.ok(); ++i) one();
  }
  std::string_view String(std::string& to) {
    in_.String(&to);
    return to;
  }
  // A length of one byte, and so many digits; the lengths above stand for other numbers.
  double DecimalScore() {
    constexpr uint8_t kNotANumber = 253;
    constexpr uint8_t kInfinity = 254;
    const uint8_t digits = in_.Byte();
    if (digits == kNotANumber) return NAN;
    if (digits >= kInfinity) return digits == kInfinity ? INFINITY : -INFINITY;
    std::string text;
    for (uint8_t i = 0; i < digits; ++i) text += static_cast<char>(in_.Byte());
    return ParseDouble(text).value_or(NAN);
  }

  // What cannot be read is shown to nobody.
  void ShowElement(std::string_view element) {
    if (in_.ok()) on_member_({.member = element});
  }
  void ShowField(std::string_view field, std::string_view value) { ShowField(field, value, 0); }
  void ShowField(std::string_view field, std::string_view value, uint64_t deadline_ms) {
    if (!in_.ok()) return;
    if (deadline_ms > kDeadlineMax) return Malformed();
    on_member_({.member = field, .value = value, .deadline_ms = deadline_ms});
  }
  void ShowScored(std::string_view member, double score) {
    if (!in_.ok()) return;
    if (std::isnan(score)) return Malformed();
    on_member_({.member = member, .score = score == 0 ? 0 : score});
  }
  void ShowTextScored(std::string_view member, std::string_view score) {
    ShowScored(member, ParseDouble(score).value_or(NAN));
  }

  // Reads a packed string, whose entries are members.
  void ShowElements(ReadPacked read) {
    if (!read(String(first_), [&](std::string_view entry) { ShowElement(entry); })) Malformed();
  }
  void ShowQuicklistNode() {
    constexpr uint64_t kPlain = 1;
    constexpr uint64_t kPacked = 2;
    const uint64_t container = in_.Length();
    if (container == kPacked) return ShowElements(ReadListpack);
    if (container != kPlain) return Malformed();
    ShowElement(String(first_));
  }
  // Reads a packed string, whose entries come in pairs.
  void ShowPairs(ReadPacked read, ShowPair show) {
    bool has_first = false;
    const auto take = [&](std::string_view entry) {
      if (std::exchange(has_first, !has_first)) return (this->*show)(second_, entry);
      second_ = entry;
    };
    if (!read(String(first_), take) || has_first) Malformed();
  }
  // Reads a listpack of field, value and deadline, 0 if there is none.
  void ShowPackedFieldsWithDeadlines() {
    std::vector<std::string> entries;
    const auto take = [&](std::string_view entry) { entries.emplace_back(entry); };
    if (!ReadListpack(String(first_), take) || entries.size() % 3 != 0) {
      return Malformed();
    }
    for (size_t i = 0; i < entries.size(); i += 3) {
      const auto deadline_ms = ParseInt64(entries[i + 2]);
      if (!deadline_ms || *deadline_ms < 0) return Malformed();
      ShowField(entries[i], entries[i + 1], static_cast<uint64_t>(*deadline_ms));
    }
  }

  RdbInput& in_;
  const OnRdbMember& on_member_;
  const uint64_t at_;
  std::string first_;
  std::string second_;
};

std::span<const MembersReader::Packing> MembersReader::Packings() {
  static constexpr Packing kPackings[] = {
      {RdbType::kListZiplist, ReadZiplist, nullptr},
      {RdbType::kSetIntset, ReadIntset, nullptr},
      {RdbType::kSetListpack, ReadListpack, nullptr},
      {RdbType::kHashZipmap, ReadZipmap, &MembersReader::ShowField},
      {RdbType::kHashZiplist, ReadZiplist, &MembersReader::ShowField},
      {RdbType::kHashListpack, ReadListpack, &MembersReader::ShowField},
      {RdbType::kZsetZiplist, ReadZiplist, &MembersReader::ShowTextScored},
      {RdbType::kZsetListpack, ReadListpack, &MembersReader::ShowTextScored},
  };
  return kPackings;
}

// Whether no text is there twice. Sorts them.
bool AreDistinct(types::Texts& texts) {
  std::ranges::sort(texts);
  return std::ranges::adjacent_find(texts) == texts.end();
}

void AppendText(std::string& to, std::string_view text) {
  AppendVarint(to, text.size() + 1);
  to += text;
}
void AppendScore(std::string& to, double score) {
  to.append(reinterpret_cast<const char*>(&score), sizeof(score));
}

}  // namespace

uint8_t KindOfRdbType(uint8_t rdb_type) {
  const std::string_view name = NameOf(static_cast<RdbType>(rdb_type));
  for (const uint8_t kind : {types::kHash, types::kSet, types::kList, types::kSortedSet}) {
    if (name == types::NameOf(kind)) return kind;
  }
  return types::kString;
}

void ReadRdbMembers(RdbInput& in, uint8_t rdb_type, const OnRdbMember& on_member) {
  MembersReader(in, on_member).Read(static_cast<RdbType>(rdb_type));
}

void CollectionBuilder::Add(const RdbMember& member) {
  ++members_;
  AppendText(texts_, member.member);
  if (kind_ == types::kHash) AppendText(texts_, member.value);
  if (member.deadline_ms != 0) {
    deadlines_.resize(members_);
    deadlines_.back() = member.deadline_ms;
  }
  if (kind_ == types::kSortedSet) scores_.push_back(member.score);
}

std::optional<std::string> CollectionBuilder::Take() {
  const std::string bytes = std::exchange(texts_, {});
  const std::vector<double> scores = std::exchange(scores_, {});
  std::vector<uint64_t> deadlines = std::exchange(deadlines_, {});
  types::Texts texts;
  types::TakeTexts(bytes, &texts);
  std::string value;
  AppendVarint(value, std::exchange(members_, 0));
  if (kind_ == types::kList) {
    for (const std::string_view text : texts) types::AppendElement(value, text);
    return value;
  }
  if (kind_ == types::kSet) {
    if (!AreDistinct(texts)) return std::nullopt;
    for (const std::string_view text : texts) AppendText(value, text);
    return value;
  }
  if (kind_ == types::kHash) {
    types::Texts fields;
    for (size_t i = 0; i < texts.size(); i += 2) fields.push_back(texts[i]);
    if (!AreDistinct(fields)) return std::nullopt;
    if (deadlines.empty()) return value += bytes;
    types::HashFields dated;
    for (size_t i = 0; i < texts.size(); i += 2) dated.push_back({texts[i], texts[i + 1]});
    for (size_t i = 0; i < deadlines.size(); ++i) dated[i].deadline_ms = deadlines[i];
    Scratch scratch;
    return std::string(types::WriteHash(dated, scratch));
  }
  std::vector<types::Entry> entries;
  for (size_t i = 0; i < texts.size(); ++i) entries.push_back({scores[i], texts[i]});
  if (!AreDistinct(texts)) return std::nullopt;
  std::ranges::sort(entries, types::IsBelow);
  for (const types::Entry& entry : entries) {
    AppendScore(value, entry.score);
    AppendText(value, entry.member);
  }
  return value;
}

bool ForEachMember(uint8_t kind, std::string_view value, const OnRdbMember& on_member) {
  if (kind == types::kHash && types::HasDeadlineForm(value)) {
    const auto fields = types::ReadHash(value);
    if (!fields || fields->empty()) return false;
    for (const auto& [name, text, deadline_ms] : *fields) {
      on_member({.member = name, .value = text, .deadline_ms = deadline_ms});
    }
    return true;
  }
  const auto counted = types::ReadCounted(value);
  if (!counted) return false;
  std::string_view rest = counted->body;
  for (uint64_t i = 0; i < counted->members; ++i) {
    RdbMember member;
    types::Entry entry;
    bool is_right = false;
    if (kind == types::kList) {
      is_right = types::TakeElement(rest, &member.member);
    } else if (kind == types::kSortedSet) {
      is_right = types::TakeEntry(rest, &entry);
      member = {.member = entry.member, .score = entry.score};
    } else {
      is_right = types::TakeText(rest, &member.member) &&
                 (kind == types::kSet || types::TakeText(rest, &member.value));
    }
    if (!is_right) return false;
    on_member(member);
  }
  return rest.empty();
}

uint8_t RdbTypeOf(uint8_t kind) {
  switch (kind) {
    case types::kHash:
      return static_cast<uint8_t>(RdbType::kHash);
    case types::kSet:
      return static_cast<uint8_t>(RdbType::kSet);
    case types::kList:
      return static_cast<uint8_t>(RdbType::kList);
    case types::kSortedSet:
      return static_cast<uint8_t>(RdbType::kZset2);
    default:
      return static_cast<uint8_t>(RdbType::kString);
  }
}

}  // namespace skep::durable
