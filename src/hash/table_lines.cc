#include "hash/table.h"

namespace skep::hash {
namespace {

constexpr uint64_t kLineBytes = 64;

uint32_t LinesIn(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kLineBytes - 1) / kLineBytes);
}

// Returns the number of lines of a record, with the body of a large one. Slabs of a line or more
// begin with a line, and smaller ones lie within one.
uint32_t LinesOfRecord(const Record& record, const Pair& pair) {
  const Record::Form form = record.form();
  const uint32_t lines = LinesIn(Record::SlabBytes(pair, form));
  return form == Record::Form::kLarge ? lines + LinesIn(record.body_bytes()) : lines;
}

}  // namespace

Table::Lines Table::LinesOf(const Key& key) const {
  uint32_t read = 0;
  const Bucket* bucket = &index_[BucketOf(key.hash)];
  for (; bucket != nullptr; bucket = Next(*bucket)) {
    ++read;
    if (bucket->Find(key).slots != 0) return {.get = read, .put = read + 1};
    for (uint32_t left = bucket->Match(SecondaryOf(key.hash)); left != 0; left &= left - 1) {
      const Record record =
          records_.At(bucket->PointerAt(static_cast<uint32_t>(std::countr_zero(left))).address);
      const Pair pair = record.Read(arena_);
      const uint32_t lines = LinesOfRecord(record, pair);
      if (pair.key == key.bytes) return {.get = read + lines, .put = read + 2 * lines};
      ++read;  // another key: its first line tells
    }
  }
  return {.get = read, .put = 0};
}

}  // namespace skep::hash
