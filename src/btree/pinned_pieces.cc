#include "btree/pinned_pieces.h"

#include <algorithm>
#include <utility>

#include "base/prefetch.h"

namespace skep::btree {
namespace {

constexpr uint64_t kDisowned = uint64_t{1} << 63;
constexpr size_t kAhead = 16;  // words that are fetched while others are changed

uint64_t* WordAt(const Arena& arena, ArenaAddress piece) {
  return reinterpret_cast<uint64_t*>(arena.At(piece) + kOutsideHeaderBytes);
}
std::atomic_ref<uint64_t> WordOf(const Arena& arena, ArenaAddress piece) {
  return std::atomic_ref<uint64_t>(*WordAt(arena, piece));
}

// Calls change(piece) for each, with their words on the way to the cache.
template <typename Change>
void ForEach(const Arena& arena, std::vector<OutsideBlock>& pieces, Change change) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i + kAhead < pieces.size()) FetchLine(WordAt(arena, pieces[i + kAhead].at));
    change(pieces[i]);
  }
}

}  // namespace

void UnpinnedPieces::Give(Pieces&& pieces) {
  const MutexLock lock(mutex_);
  pieces_.splice(pieces_.end(), pieces);
  has_some_.store(true, std::memory_order_relaxed);
}

bool UnpinnedPieces::Take(OutsideBlock* piece) {
  if (is_empty()) return false;
  const MutexLock lock(mutex_);
  if (pieces_.empty()) return false;
  *piece = pieces_.front().back();
  pieces_.front().pop_back();
  if (pieces_.front().empty()) pieces_.pop_front();
  has_some_.store(!pieces_.empty(), std::memory_order_relaxed);
  return true;
}

PinnedPieces::PinnedPieces(const Arena& arena, UnpinnedPieces& unpinned, const Pieces& value,
                           size_t begin, size_t end)
    : arena_(arena),
      unpinned_(unpinned),
      pieces_(1),
      begin_(begin % kPieceBytes),
      size_(end - begin) {
  std::vector<OutsideBlock>& pieces = pieces_.front();
  const size_t last = (end - 1) / kPieceBytes;
  pieces.reserve(last - begin / kPieceBytes + 1);
  for (size_t i = begin / kPieceBytes; i <= last; ++i) pieces.push_back(value.block(i));
  ForEach(arena, pieces, [&](const OutsideBlock& piece) {
    WordOf(arena, piece.at).fetch_add(1, std::memory_order_acq_rel);  // (1), (2)
  });
}

// The pieces that are this pin's to give are moved to the front of their list.
PinnedPieces::~PinnedPieces() {
  std::vector<OutsideBlock>& pieces = pieces_.front();
  size_t given = 0;
  ForEach(arena_, pieces, [&](const OutsideBlock& piece) {
    const uint64_t before = WordOf(arena_, piece.at).fetch_sub(1, std::memory_order_acq_rel);
    if (before == kDisowned + 1) pieces[given++] = piece;  // (3)
  });
  pieces.resize(given);
  if (given > 0) unpinned_.Give(std::move(pieces_));
}

std::string_view PinnedPieces::From(size_t offset) const {
  const size_t at = begin_ + offset;
  const OutsideBlock& piece = pieces_.front()[at / kPieceBytes];
  const auto* const bytes =
      reinterpret_cast<const char*>(arena_.At(piece.at)) + kPieceHeaderBytes + at % kPieceBytes;
  const size_t together = piece.bytes - kPieceHeaderBytes - at % kPieceBytes;
  return {bytes, std::min(together, size_ - offset)};
}

bool Disown(const Arena& arena, ArenaAddress piece) {
  return WordOf(arena, piece).fetch_or(kDisowned, std::memory_order_acq_rel) == 0;  // (3)
}

}  // namespace skep::btree
