// rdb_test.h: RDB files made by hand, and what was read of one as plain data.
#pragma once

#include <liblzf/lzf.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "durable/rdb_collection.h"
#include "durable/rdb_crc64.h"
#include "durable/rdb_reader.h"
#include "sim/sim_file.h"
#include "types/score.h"
#include "types/value_type.h"

namespace skep::durable {

class RdbBuilder {
 public:
  explicit RdbBuilder(std::string_view version = "0010") { Raw("REDIS").Raw(version); }

  RdbBuilder& Raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  RdbBuilder& Byte(unsigned byte) {
    bytes_ += static_cast<char>(byte);
    return *this;
  }
  template <typename T>
  RdbBuilder& Number(T number) {
    return Raw({reinterpret_cast<const char*>(&number), sizeof(number)});
  }
  RdbBuilder& Length(uint64_t length) {
    if (length < 64) return Byte(static_cast<unsigned>(length));
    if (length < 16'384)
      return Byte(static_cast<unsigned>(0x40 | length >> 8)).BigEndian(length, 1);
    if (length <= UINT32_MAX) return Byte(0x80).BigEndian(length, 4);
    return Byte(0x81).BigEndian(length, 8);
  }
  RdbBuilder& String(std::string_view bytes) { return Length(bytes.size()).Raw(bytes); }
  RdbBuilder& Lzf(std::string_view bytes) {
    std::string packed(bytes.size(), '\0');
    packed.resize(lzf_compress(bytes.data(), static_cast<unsigned>(bytes.size()), packed.data(),
                               static_cast<unsigned>(packed.size())));
    SKEP_CHECK(!packed.empty());
    return Byte(0xc3).Length(packed.size()).Length(bytes.size()).Raw(packed);
  }
  // The file with its end and a right checksum.
  std::string End() {
    Byte(0xff);
    return Number(RdbCrc64(bytes_)).bytes_;
  }
  // The file with its end and a checksum that says that it is not to be checked.
  std::string EndUnchecked() { return Byte(0xff).Number(uint64_t{0}).bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  RdbBuilder& BigEndian(uint64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) Byte(static_cast<unsigned>(number >> 8 * i & 0xff));
    return *this;
  }

  std::string bytes_;
};

struct RdbEntry {
  uint64_t db;
  std::string type;
  std::string key;
  std::string value;
  uint64_t deadline_ms;

  bool operator==(const RdbEntry&) const = default;
};

// The members of a collection, in an order of their own; of a list in its order. A field's value
// and deadline, and a member's score, follow it.
inline std::string TextOfMembers(uint8_t kind, std::string_view value) {
  std::vector<std::string> members;
  const bool is_right = ForEachMember(kind, value, [&](const RdbMember& member) {
    std::string text(member.member);
    if (kind == types::kHash) text += "=" + std::string(member.value);
    if (member.deadline_ms != 0) text += "@" + std::to_string(member.deadline_ms);
    if (kind == types::kSortedSet) text += "=" + types::ScoreText(member.score);
    members.push_back(std::move(text));
  });
  SKEP_CHECK(is_right);
  if (kind != types::kList) std::ranges::sort(members);
  std::string text;
  for (const std::string& member : members) text += member + " ";
  text.pop_back();
  return text;
}

struct RdbContents final : RdbVisitor {
  Status OnString(uint64_t db, std::string_view key, std::string_view value,
                  uint64_t deadline_ms) override {
    entries.push_back({db, "string", std::string(key), std::string(value), deadline_ms});
    return {};
  }
  // Pieces of a collection are entries of their own.
  Status OnMembers(uint64_t db, std::string_view key, const RdbMembers& members,
                   uint64_t deadline_ms) override {
    SKEP_CHECK(members.is_first == was_last);
    was_last = members.is_last;
    entries.push_back({db, std::string(types::NameOf(members.kind)), std::string(key),
                       TextOfMembers(members.kind, members.value), deadline_ms});
    return {};
  }
  Status OnSkipped(uint64_t db, std::string_view key, std::string_view type) override {
    entries.push_back({db, std::string(type), std::string(key), "", 0});
    return {};
  }

  std::vector<RdbEntry> entries;
  bool was_last = true;  // of the pieces of a collection
  RdbSummary summary;
  Status status;
};

inline RdbContents ReadRdbBytes(std::string_view bytes, uint64_t seed = 1) {
  Trace trace;
  SimFileSystem files(seed, trace);
  auto file = files.Open("dump", FileSystem::Mode::kCreate);
  SKEP_CHECK(file && (*file)->Append(bytes).ok());
  RdbContents contents;
  const Result<RdbSummary> summary = ReadRdb(files, "dump", contents);
  if (summary) {
    contents.summary = *summary;
  } else {
    contents.status = summary.error();
  }
  return contents;
}

}  // namespace skep::durable
