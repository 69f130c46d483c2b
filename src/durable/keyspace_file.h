// keyspace_file.h: which engine each keyspace of a directory has, in a file of its own.
//
//   skep-keyspaces 1
//   0 btree
//   3 hash
//   crc 1c291ca3          CRC-32C of the lines before, in hexadecimal; ends a file of any version
//
// A keyspace is added when it is used for the first time, before anything of it is logged.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/file.h"

namespace skep::durable {

inline constexpr const char* kKeyspaceFile = "keyspaces";

using KeyspaceEngines = std::map<uint32_t, std::string>;

// Reads the list; it is empty if there is no such file.
//   kCorrupt       the file is damaged; `detail` is the number of the line
//   kNotSupported  a newer Skep wrote it
Result<KeyspaceEngines> ReadKeyspaceFile(FileSystem& files, const std::string& directory);
// Replaces the list in one step: a crash leaves the old one or the new one.
Status WriteKeyspaceFile(FileSystem& files, const std::string& directory,
                         const KeyspaceEngines& engines);

}  // namespace skep::durable
