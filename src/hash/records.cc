#include "hash/records.h"

#include <algorithm>
#include <new>

#include "base/prefetch.h"

namespace skep::hash {

SlabAddress Records::Add(const Pair& pair, Record::Form form, Arena::Limit limit) {
  const uint32_t size_class = ClassOf(pair, form);
  const SlabAddress at = slabs_.Allocate(size_class, limit);
  if (at == 0) return 0;
  ArenaAddress body = {};
  if (form == Record::Form::kLarge) {
    try {
      body = arena_.Allocate(cache_, pair.key.size() + pair.value.size(), limit);
    } catch (const std::bad_alloc&) {
    }
    if (!body) {
      slabs_.Free(size_class, at);
      return 0;
    }
    ++large_;
  }
  Record::Write(slabs_.At(at), pair, form, body ? arena_.At(body) : nullptr, body);
  return at;
}

void Records::Free(uint32_t size_class, SlabAddress at) {
  const Record record = At(at);
  if (record.form() == Record::Form::kLarge) {
    arena_.Free(cache_, record.body_at(), record.body_bytes());
    --large_;
  }
  slabs_.Free(size_class, at);
}

bool Records::Fits(const Bucket::Pointer& pointer, const Pair& pair, Record::Form form) const {
  const Record record = At(pointer.address);
  const bool is_large = form == Record::Form::kLarge;
  const bool was_large = record.form() == Record::Form::kLarge;
  if (ClassOf(pair, form) != pointer.size_class || is_large != was_large) return false;
  const size_t bytes = pair.key.size() + pair.value.size();
  return !is_large || Arena::RoundUp(bytes) == Arena::RoundUp(record.body_bytes());
}

void Records::Overwrite(SlabAddress at, const Pair& pair, Record::Form form) {
  const ArenaAddress body = form == Record::Form::kLarge ? At(at).body_at() : ArenaAddress();
  Record::Write(slabs_.At(at), pair, form, body ? arena_.At(body) : nullptr, body);
}

void Records::PrefetchBody(SlabAddress at) const {
  constexpr size_t kBytesMax = 512;  // from there on the core fetches ahead by itself
  const Record record = At(at);
  if (record.form() != Record::Form::kLarge) return;
  const std::byte* const body = arena_.At(record.body_at());
  FetchLines(body, body + std::min(record.body_bytes(), kBytesMax));
}

}  // namespace skep::hash
