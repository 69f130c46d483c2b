#include "durable/rdb_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "durable/rdb_collection.h"
#include "durable/rdb_input.h"
#include "durable/rdb_types.h"
#include "types/value_type.h"

namespace skep::durable {
namespace {

// The first byte of each entry: what it is, or the type of the value of a key.
enum Opcode : uint8_t {
  kSlotInfo = 0xf4,
  kFunction2 = 0xf5,
  kFunctionPreRelease = 0xf6,
  kModuleAux = 0xf7,
  kIdle = 0xf8,
  kFreq = 0xf9,
  kAux = 0xfa,
  kResizeDb = 0xfb,
  kExpireTimeMs = 0xfc,
  kExpireTime = 0xfd,
  kSelectDb = 0xfe,
  kEof = 0xff,
};

// Skips the values that are no strings and no collections.
class ValueSkipper {
 public:
  explicit ValueSkipper(RdbInput& input) : in_(input) {}

  // A value of a type that has a name; `at` is the offset of its entry.
  void SkipValue(RdbType type, uint64_t at) {
    switch (type) {
      case RdbType::kStreamListpacks:
      case RdbType::kStreamListpacks2:
      case RdbType::kStreamListpacks3:
        return SkipStream(type);
      case RdbType::kModule2:
        in_.Length();  // the module
        return SkipModuleParts();
      default:
        in_.Fail(Status(Code::kNotSupported, "a module's value in an RDB file has no end", at));
    }
  }

  // Tagged parts, up to the tag of the end.
  void SkipModuleParts() {
    while (in_.ok()) {
      const uint64_t at = in_.offset();
      switch (in_.Length()) {
        case 0:
          return;
        case 1:  // a signed number
        case 2:  // an unsigned one
          in_.Length();
          break;
        case 3:
          in_.Skip(sizeof(float));
          break;
        case 4:
          in_.Skip(sizeof(double));
          break;
        case 5:
          in_.SkipString();
          break;
        default:
          in_.Fail(Status(Code::kCorrupt, "a module's value in an RDB file is malformed", at));
      }
    }
  }

 private:
  static constexpr uint64_t kMsBytes = 8;
  static constexpr uint64_t kStreamIdBytes = 16;

  // Calls `one` so many times. Each call takes a byte at least, so the end of the file ends the
  // loop.
  template <typename Do>
  void Times(uint64_t count, Do one) {
    for (uint64_t i = 0; i < count && in_.ok(); ++i) one();
  }
  void SkipLengths(int count) {
    for (int i = 0; i < count; ++i) in_.Length();
  }
  void SkipStrings(int count) {
    for (int i = 0; i < count; ++i) in_.SkipString();
  }

  void SkipStream(RdbType type) {
    const bool is_2 = type != RdbType::kStreamListpacks;
    const bool is_3 = type == RdbType::kStreamListpacks3;
    Times(in_.Length(), [&] { SkipStrings(2) /* first ID, listpack */; });
    SkipLengths(3);            // entries; last ID
    if (is_2) SkipLengths(5);  // first ID, largest deleted ID, entries ever added
    Times(in_.Length(), [&] { SkipGroup(is_2, is_3); });
  }
  void SkipGroup(bool is_2, bool is_3) {
    in_.SkipString();          // its name
    SkipLengths(2);            // last ID
    if (is_2) in_.Length();    // entries read
    Times(in_.Length(), [&] {  // pending entries: ID, time, deliveries
      in_.Skip(kStreamIdBytes + kMsBytes);
      in_.Length();
    });
    Times(in_.Length(), [&] {  // consumers: name, seen, active, pending entries
      in_.SkipString();
      in_.Skip(is_3 ? 2 * kMsBytes : kMsBytes);
      Times(in_.Length(), [&] { in_.Skip(kStreamIdBytes); });
    });
  }

  RdbInput& in_;
};

class RdbReader {
 public:
  RdbReader(File& file, uint64_t file_bytes, RdbVisitor& visitor)
      : in_(file, file_bytes), skipper_(in_), visitor_(visitor) {}

  Result<RdbSummary> Run() {
    ReadHeader();
    while (in_.ok() && !is_at_end_) ReadEntry();
    if (!in_.ok()) return Fail(in_.status());
    return summary_;
  }

 private:
  void ReadHeader() {
    char header[9] = {};
    for (char& byte : header) byte = static_cast<char>(in_.Byte());
    if (!in_.ok()) return;
    const std::string_view text(header, sizeof(header));
    for (const char digit : text.substr(5)) {
      if (digit < '0' || digit > '9') return in_.Fail(Status(Code::kCorrupt, kNoRdb, 5));
      summary_.version = summary_.version * 10 + static_cast<uint32_t>(digit - '0');
    }
    if (!text.starts_with("REDIS") || summary_.version == 0) {
      in_.Fail(Status(Code::kCorrupt, kNoRdb, 0));
    } else if (summary_.version > kRdbVersionMax) {
      in_.Fail(Status(Code::kNotSupported, kTooNew, summary_.version));
    }
  }

  void ReadEntry() {
    const uint64_t at = in_.offset();
    const uint8_t opcode = in_.Byte();
    switch (opcode) {
      case kSlotInfo:  // number, keys, keys with a deadline
        in_.Length();
        in_.Length();
        in_.Length();
        return;
      case kFunction2:
        in_.SkipString();
        ++summary_.functions;
        return;
      case kFunctionPreRelease:
        return in_.Fail(
            Status(Code::kNotSupported, "an RDB file has functions of before Redis 7.0", at));
      case kModuleAux:  // module, tag, when
        in_.Length();
        in_.Length();
        in_.Length();
        return skipper_.SkipModuleParts();
      case kIdle:
        in_.Length();
        return;
      case kFreq:
        in_.Skip(1);
        return;
      case kAux:
        in_.SkipString();
        in_.SkipString();
        return;
      case kResizeDb:
        in_.Length();
        in_.Length();
        return;
      case kExpireTimeMs:
        return SetDeadline(in_.Number<int64_t>());
      case kExpireTime:
        return SetDeadline(int64_t{in_.Number<int32_t>()} * 1000);
      case kSelectDb:
        db_ = in_.Length();
        return;
      case kEof:
        return ReadEnd();
      default:
        return ReadKey(opcode, at);
    }
  }

  // A deadline before 1970 becomes one that has passed: 0 would mean none.
  void SetDeadline(int64_t ms) { deadline_ms_ = static_cast<uint64_t>(std::max(ms, int64_t{1})); }

  void ReadKey(uint8_t opcode, uint64_t at) {
    const auto type = static_cast<RdbType>(opcode);
    if (NameOf(type).empty()) {
      return in_.Fail(Status(Code::kCorrupt, "an RDB file has an entry of unknown kind", at));
    }
    in_.String(&key_);
    if (type == RdbType::kString) {
      ReadString();
    } else if (const uint8_t kind = KindOfRdbType(opcode); kind != types::kString) {
      ReadCollection(opcode, kind);
    } else {
      skipper_.SkipValue(type, at);
      Skipped(NameOf(type));
    }
    deadline_ms_ = 0;
  }

  void ReadString() {
    in_.String(&value_);
    if (!in_.ok()) return;
    ++summary_.strings;
    in_.Fail(visitor_.OnString(db_, key_, value_, deadline_ms_));
  }

  void ReadCollection(uint8_t rdb_type, uint8_t kind) {
    CollectionBuilder builder(kind);
    bool is_first = true;
    const auto show = [&](bool is_last) {
      const auto value = builder.Take();
      if (!value) {
        return in_.Fail(
            Status(Code::kCorrupt, "a collection in an RDB file has a member twice", in_.offset()));
      }
      in_.Fail(visitor_.OnMembers(db_, key_,
                                  {.kind = kind,
                                   .value = *value,
                                   .is_first = std::exchange(is_first, false),
                                   .is_last = is_last},
                                  deadline_ms_));
    };
    ReadRdbMembers(in_, rdb_type, [&](const RdbMember& member) {
      if (builder.bytes() >= kRdbMembersBytes) show(false);
      builder.Add(member);
    });
    if (!in_.ok() || builder.members() == 0) return;
    ++summary_.collections;
    show(true);
  }

  void Skipped(std::string_view type) {
    if (!in_.ok()) return;
    ++summary_.skipped;
    in_.Fail(visitor_.OnSkipped(db_, key_, type));
  }

  void ReadEnd() {
    constexpr uint32_t kFirstVersionWithChecksum = 5;
    is_at_end_ = true;
    if (summary_.version >= kFirstVersionWithChecksum) {
      const uint64_t crc = in_.Crc();
      const uint64_t at = in_.offset();
      const auto stored = in_.Number<uint64_t>();
      if (stored != 0 && stored != crc) {
        return in_.Fail(Status(Code::kCorrupt, "the checksum of an RDB file is wrong", at));
      }
      summary_.is_checked = stored != 0;
    }
    if (in_.left() > 0) {
      in_.Fail(Status(Code::kCorrupt, "an RDB file has bytes behind its end", in_.offset()));
    }
  }

  static constexpr const char* kNoRdb = "not an RDB file";
  static constexpr const char* kTooNew = "RDB files are read up to version 12, the file's is";
  static_assert(kRdbVersionMax == 12);

  RdbInput in_;
  ValueSkipper skipper_;
  RdbVisitor& visitor_;
  RdbSummary summary_;
  uint64_t db_ = 0;
  uint64_t deadline_ms_ = 0;  // of the next key
  std::string key_;
  std::string value_;
  bool is_at_end_ = false;
};

}  // namespace

Result<RdbSummary> ReadRdb(FileSystem& files, const std::string& path, RdbVisitor& visitor) {
  const auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return Fail(file.error());
  const Result<uint64_t> bytes = (*file)->Size();
  if (!bytes) return Fail(bytes.error());
  return RdbReader(**file, *bytes, visitor).Run();
}

}  // namespace skep::durable
