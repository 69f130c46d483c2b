// rdb_types.h: the numbers that Redis gives to types of values and to their encodings.
//
// rdb_collection.h says what the values of collections are.
#pragma once

#include <cstdint>
#include <string_view>

namespace skep::durable {

enum class RdbType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kZset = 3,
  kHash = 4,
  kZset2 = 5,
  kModulePreRelease = 6,
  kModule2 = 7,
  kHashZipmap = 9,
  kListZiplist = 10,
  kSetIntset = 11,
  kZsetZiplist = 12,
  kHashZiplist = 13,
  kListQuicklist = 14,
  kStreamListpacks = 15,
  kHashListpack = 16,
  kZsetListpack = 17,
  kListQuicklist2 = 18,
  kStreamListpacks2 = 19,
  kSetListpack = 20,
  kStreamListpacks3 = 21,
  kHashMetadataPreRelease = 22,
  kHashListpackExPreRelease = 23,
  kHashMetadata = 24,
  kHashListpackEx = 25,
};

// The name by which OnSkipped (rdb_reader.h) knows the type: those of TYPE, and "module"; empty if
// there is no such type.
constexpr std::string_view NameOf(RdbType type) {
  using enum RdbType;
  switch (type) {
    case kString:
      return "string";
    case kList:
    case kListZiplist:
    case kListQuicklist:
    case kListQuicklist2:
      return "list";
    case kSet:
    case kSetIntset:
    case kSetListpack:
      return "set";
    case kZset:
    case kZset2:
    case kZsetZiplist:
    case kZsetListpack:
      return "zset";
    case kHash:
    case kHashZipmap:
    case kHashZiplist:
    case kHashListpack:
    case kHashMetadataPreRelease:
    case kHashListpackExPreRelease:
    case kHashMetadata:
    case kHashListpackEx:
      return "hash";
    case kStreamListpacks:
    case kStreamListpacks2:
    case kStreamListpacks3:
      return "stream";
    case kModulePreRelease:
    case kModule2:
      return "module";
    default:
      return "";
  }
}

}  // namespace skep::durable
