#include "sim/sim_inode.h"

#include <algorithm>
#include <utility>

namespace skep {

void SimInode::Read(uint64_t offset, char* to, size_t bytes) const {
  const uint64_t from = std::min<uint64_t>(offset, content_.bytes.size());
  const size_t count = std::min<uint64_t>(bytes, content_.bytes.size() - from);
  std::copy_n(content_.bytes.data() + from, count, to);
  std::fill_n(to + count, bytes - count, '\0');
}

void SimInode::Write(uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  Do({.kind = Change::Kind::kWrite, .offset = offset, .bytes = std::string(bytes)});
}

void SimInode::Truncate(uint64_t bytes) { Do({.kind = Change::Kind::kTruncate, .offset = bytes}); }

void SimInode::Do(Change change) {
  Apply(change, content_);
  unsynced_.push_back(std::move(change));
}

void SimInode::Sync() {
  for (const Change& change : unsynced_) Apply(change, durable_);
  unsynced_.clear();
}

void SimInode::FailSync(Random& random) {
  for (Change& change : unsynced_) {
    if (change.kind == Change::Kind::kWrite && random.Chance(1, 2)) change.given_up = true;
  }
}

void SimInode::LosePower(Random& random) {
  const size_t whole = random.Below(unsynced_.size() + 1);
  for (size_t i = 0; i < whole; ++i) {
    const Change& change = unsynced_[i];
    const bool overwrites =
        change.kind == Change::Kind::kWrite && change.offset + change.bytes.size() <= durable_.size;
    if (!overwrites || random.Chance(3, 4)) Apply(change, durable_);  // I2
  }
  if (whole < unsynced_.size() && unsynced_[whole].kind == Change::Kind::kWrite) {
    Change& torn = unsynced_[whole];
    torn.bytes.resize(random.Below(torn.bytes.size() + 1));  // I1
    if (!torn.bytes.empty()) Apply(torn, durable_);
  }
  unsynced_.clear();
  content_ = durable_;
}

void SimInode::Apply(const Change& change, Content& to) {
  if (change.kind == Change::Kind::kTruncate) {
    to.bytes.resize(std::min<uint64_t>(to.bytes.size(), change.offset));
    to.size = change.offset;
    return;
  }
  const uint64_t end = change.offset + change.bytes.size();
  to.size = std::max(to.size, end);
  if (change.given_up) return;
  const bool is_zeroes = change.bytes.find_first_not_of('\0') == std::string::npos;
  if (is_zeroes && change.offset >= to.bytes.size()) return;
  to.bytes.resize(std::max<uint64_t>(to.bytes.size(), end));
  std::ranges::copy(change.bytes, to.bytes.begin() + static_cast<ptrdiff_t>(change.offset));
}

}  // namespace skep
