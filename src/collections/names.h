// names.h: under which keys the record of a large collection may lie.
//
// The item of part 'z' of an id (layout.h) has the names: texts (types/text.h), one for each key.
//
// Invariant N. If a record has the id, it lies under one of its names. So whoever finds no record
// with the id under its names knows that nobody has the collection any more (sweeper.h).
//
// A collection is made with the name it has then, in one atomic batch. A key is renamed under locks
// of both names (collection_engine.h): first the new name is added, then the key is moved, then the
// names are cut to those that are right. A process that ends in between leaves a name too many.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/access.h"

namespace skep::collections {

// The item's key and its value.
std::string NamesKey(uint64_t id);
std::string NamesValue(std::span<const std::string> names);
// The names of an id; none if it has no such item.
std::vector<std::string> ReadNames(Access& access, uint64_t id);
// Whether a record under one of the names has the id.
bool HasRecord(Access& access, std::span<const std::string> names, uint64_t id);
// Whether the record of the first id that has one is of the size that this version writes. An
// engine may have been loaded from files of another version, whose records all have another size.
// Cost: of a look at the ids without a record in front of it.
bool ReadsRecords(Access& access);
// The record under the key, of whatever kind; nothing if it has no large collection.
std::optional<types::LargeRecord> AnyRecord(Access& access, std::string_view key);

}  // namespace skep::collections
