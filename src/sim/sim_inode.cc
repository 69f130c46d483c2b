#include "sim/sim_inode.h"

#include <algorithm>
#include <utility>

namespace skep {

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
    const bool overwrites = change.kind == Change::Kind::kWrite &&
                            change.offset + change.bytes.size() <= durable_.size();
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

void SimInode::Apply(const Change& change, std::string& to) {
  if (change.kind == Change::Kind::kTruncate) {
    to.resize(change.offset);
    return;
  }
  to.resize(std::max<size_t>(to.size(), change.offset + change.bytes.size()));
  if (!change.given_up) std::ranges::copy(change.bytes, to.begin() + change.offset);
}

}  // namespace skep
