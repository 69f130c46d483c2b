#include "bench/kv_direct/merge_model.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

namespace skep::bench {
namespace {

constexpr uint32_t kDigitBits = 9;
constexpr uint32_t kDigits = 1u << kDigitBits;
constexpr uint32_t kWordGroups = 64 / kMergeGroup;

// Calls work(thread) on all threads, the calling one among them.
template <typename Work>
void InParallel(uint32_t threads, Work work) {
  std::vector<std::jthread> others;
  for (uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0u);
}

// Returns where a thread's share of `count` begins; for the thread after the last: count.
size_t ShareBegin(size_t count, uint32_t thread, uint32_t threads) {
  return count / threads * thread + std::min<size_t>(count % threads, thread);
}

// Adds the largest aligned blocks of a group of sixteen slots, of which these bits are free.
void AddGroup(uint32_t first_slot, uint32_t bits, MergedBlocks& blocks) {
  constexpr std::array<uint32_t, kMergeClasses> kAligned = {0xffff, 0x5555, 0x1111, 0x0101, 0x0001};
  std::array<uint32_t, kMergeClasses> whole = {bits};  // a bit at the first slot of each block
  for (uint32_t c = 1; c < kMergeClasses; ++c) {
    whole[c] = whole[c - 1] & whole[c - 1] >> (1u << (c - 1)) & kAligned[c];
  }
  for (uint32_t c = kMergeClasses; c-- > 0 && bits != 0;) {
    const uint32_t block = (1u << (1u << c)) - 1;
    for (uint32_t left = whole[c] & bits; left != 0; left &= left - 1) {
      const auto at = static_cast<uint32_t>(std::countr_zero(left));
      blocks[c].push_back(first_slot + at);
      bits &= ~(block << at);
    }
  }
}

MergedBlocks Join(std::vector<MergedBlocks>& parts) {
  MergedBlocks all = std::move(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    for (uint32_t c = 0; c < kMergeClasses; ++c) {
      all[c].insert(all[c].end(), parts[i][c].begin(), parts[i][c].end());
    }
  }
  return all;
}

void SetBits(std::span<const uint32_t> free, std::vector<uint64_t>& map, uint32_t threads) {
  InParallel(threads, [&](uint32_t thread) {
    const size_t end = ShareBegin(free.size(), thread + 1, threads);
    for (size_t i = ShareBegin(free.size(), thread, threads); i < end; ++i) {
      uint64_t& word = map[free[i] / 64];
      const uint64_t bit = uint64_t{1} << free[i] % 64;
      if (threads == 1) {
        word |= bit;
      } else {
        std::atomic_ref(word).fetch_or(bit, std::memory_order_relaxed);
      }
    }
  });
}

// Does one stable pass of a radix sort: each thread counts its share, and then moves it to the
// place behind the numbers of smaller digits, and those of equal digits in earlier shares.
void SortByDigit(std::span<const uint32_t> from, std::span<uint32_t> to, uint32_t shift,
                 uint32_t threads) {
  std::vector<std::array<size_t, kDigits>> places(threads);
  const auto digit = [shift](uint32_t slot) { return slot >> shift & (kDigits - 1); };
  InParallel(threads, [&](uint32_t thread) {
    auto& counts = places[thread];
    counts.fill(0);
    const size_t end = ShareBegin(from.size(), thread + 1, threads);
    for (size_t i = ShareBegin(from.size(), thread, threads); i < end; ++i)
      ++counts[digit(from[i])];
  });
  size_t next = 0;
  for (uint32_t d = 0; d < kDigits; ++d) {
    for (auto& counts : places) {
      const size_t count = counts[d];
      counts[d] = next;
      next += count;
    }
  }
  InParallel(threads, [&](uint32_t thread) {
    auto& place = places[thread];
    const size_t end = ShareBegin(from.size(), thread + 1, threads);
    for (size_t i = ShareBegin(from.size(), thread, threads); i < end; ++i) {
      to[place[digit(from[i])]++] = from[i];
    }
  });
}

std::vector<uint32_t> Sorted(std::span<const uint32_t> free, uint64_t slot_count,
                             uint32_t threads) {
  std::vector<uint32_t> sorted(free.size());
  std::vector<uint32_t> other(free.size());
  std::span<const uint32_t> from = free;
  const auto bits = static_cast<uint32_t>(std::bit_width(slot_count - 1));
  for (uint32_t shift = 0; shift < bits; shift += kDigitBits) {
    SortByDigit(from, other, shift, threads);
    sorted.swap(other);
    from = sorted;
  }
  return sorted;
}

}  // namespace

MergedBlocks MergeByBitmap(std::span<const uint32_t> free, uint64_t slot_count, uint32_t threads) {
  std::vector<uint64_t> map(slot_count / 64);
  SetBits(free, map, threads);
  std::vector<MergedBlocks> parts(threads);
  InParallel(threads, [&](uint32_t thread) {
    const size_t end = ShareBegin(map.size(), thread + 1, threads);
    for (size_t i = ShareBegin(map.size(), thread, threads); i < end; ++i) {
      for (uint32_t group = 0; group < kWordGroups; ++group) {
        const auto bits = static_cast<uint32_t>(map[i] >> group * kMergeGroup & 0xffff);
        AddGroup(static_cast<uint32_t>(i * 64 + group * kMergeGroup), bits, parts[thread]);
      }
    }
  });
  return Join(parts);
}

MergedBlocks MergeBySort(std::span<const uint32_t> free, uint64_t slot_count, uint32_t threads) {
  const std::vector<uint32_t> sorted = Sorted(free, slot_count, threads);
  // Shares end at boundaries of groups.
  const auto share_begin = [&](uint32_t thread) {
    size_t at = ShareBegin(sorted.size(), thread, threads);
    while (at > 0 && at < sorted.size() &&
           sorted[at] / kMergeGroup == sorted[at - 1] / kMergeGroup) {
      ++at;
    }
    return at;
  };
  std::vector<MergedBlocks> parts(threads);
  InParallel(threads, [&](uint32_t thread) {
    const size_t end = share_begin(thread + 1);
    for (size_t i = share_begin(thread); i < end;) {
      const uint32_t group = sorted[i] / kMergeGroup;
      uint32_t bits = 0;
      for (; i < end && sorted[i] / kMergeGroup == group; ++i)
        bits |= 1u << sorted[i] % kMergeGroup;
      AddGroup(group * kMergeGroup, bits, parts[thread]);
    }
  });
  return Join(parts);
}

}  // namespace skep::bench
