#include "client/fat_root.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "wire/packed_top.h"

namespace skep::client {
namespace {

// Cuts off the links of leaves from `end` on, but for the first one; empty: there is no end. What
// lies there is known already.
void CutAt(std::string_view end, LeafLinks* answer) {
  if (end.empty() || (!answer->next.empty() && answer->next <= end)) return;
  auto& links = answer->links;
  while (links.size() > 1 && links.back().lower >= end) links.pop_back();
  answer->next = end;
}

constexpr uint32_t kStaleLimitMax = uint32_t{1} << 20;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// The 8 bytes of `key` from `at` on as a number, the first byte highest; zeros behind its end.
uint64_t NumberAt(std::string_view key, size_t at) {
  uint64_t number = 0;
  if (at + sizeof(number) <= key.size()) [[likely]] {
    std::memcpy(&number, key.data() + at, sizeof(number));
  } else if (at < key.size()) {
    std::memcpy(&number, key.data() + at, key.size() - at);
  }
  return __builtin_bswap64(number);
}

// Whether the server looks for the key's leaf before it does anything else.
bool BeginsAtLeaf(const Request& r) {
  const bool is_point = r.op < Op::kSample && r.op != Op::kMove;
  const bool is_range = (r.op == Op::kScan || r.op == Op::kCount) && !r.has(Request::kReverse);
  return is_point || is_range;
}

}  // namespace

void KeyNumbers::Assign(std::span<const std::string_view> keys) {
  prefix_.clear();
  numbers_.clear();
  if (keys.empty()) return;
  prefix_ = keys.front().substr(0, CommonPrefix(keys.front(), keys.back()));
  numbers_.reserve(keys.size());
  for (const std::string_view key : keys) numbers_.push_back(NumberAt(key, prefix_.size()));
}

size_t KeyNumbers::CountUpTo(std::string_view key) const {
  if (!key.starts_with(prefix_)) return key < prefix_ ? 0 : numbers_.size();
  const uint64_t number = NumberAt(key, prefix_.size());
  // A binary search without branches that depend on the keys.
  const uint64_t* at = numbers_.data();
  for (size_t left = numbers_.size(); left > 0;) {
    const size_t half = (left + 1) / 2;
    at += at[half - 1] <= number ? half : 0;
    left -= half;
  }
  return static_cast<size_t>(at - numbers_.data());
}

const FatRoot::PageRef& FatRoot::Table::PageOf(std::string_view key) const {
  size_t at = begins.CountUpTo(key);
  // Pages whose begins have equal numbers.
  while (key < pages[at]->begin) --at;
  return pages[at];
}

FatRoot::FatRoot(uint32_t stale_max) : stale_max_(stale_max) {
  const MutexLock lock(mutex_);
  auto table = std::make_shared<Table>();
  table->pages.push_back(GapAt({}));
  table_ = std::move(table);
}

std::shared_ptr<const FatRoot::Table> FatRoot::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

void FatRoot::FillIn(const Batch& batch, std::vector<Hint>* hints) {
  const auto table = this->table();
  uint64_t hinted = 0;
  hints->clear();
  hints->reserve(batch.size());
  for (const Request& request : batch.requests()) {
    Hint hint = request.hint;
    if (hint.bits == 0 && BeginsAtLeaf(request)) {
      const Page& page = *table->PageOf(request.key);
      if (!page.links.empty()) hint.bits = page.links[page.fences.CountUpTo(request.key)];
      hinted += hint.bits != 0;
    }
    hints->push_back(hint);
  }
  hinted_.fetch_add(hinted, std::memory_order_relaxed);
}

void FatRoot::NoteStale(std::string_view key) {
  stale_.fetch_add(1, std::memory_order_relaxed);
  const PageRef page = table()->PageOf(key);
  const uint32_t stale = page->stale.fetch_add(1, std::memory_order_relaxed) + 1;
  if (stale < page->stale_max || page->is_due.exchange(true, std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  due_.push_back(page);
}

std::optional<std::string> FatRoot::Question() {
  const MutexLock lock(mutex_);
  if (is_off_ || is_open_) return std::nullopt;
  while (asked_ == nullptr && !due_.empty()) {
    // A page that was replaced since is not needed any more.
    if (table_->PageOf(due_.front()->begin) == due_.front()) asked_ = due_.front();
    due_.pop_front();
  }
  if (asked_ == nullptr) return std::nullopt;
  std::string payload;
  packed::AppendTopQuestion(payload, {.links_max = 0, .from = asked_->begin});
  is_open_ = true;
  return payload;
}

void FatRoot::TakeAnswer(std::string_view payload) {
  LeafLinks answer;
  if (!packed::ReadTop(payload, &answer)) return TakeNone(/*is_final=*/true);
  const MutexLock lock(mutex_);
  CutAt(EndOf(*asked_), &answer);
  Install(NewPage(*asked_, answer), answer.next);
  ++pages_taken_;
  asked_.reset();
  is_open_ = false;
}

void FatRoot::TakeNone(bool is_final) {
  const MutexLock lock(mutex_);
  is_off_ |= is_final;
  is_open_ = false;
}

FatRoot::PageRef FatRoot::NewPage(const Page& old, const LeafLinks& answer) const {
  auto page = std::make_shared<Page>();
  page->stale_max = stale_max_;
  page->begin = old.begin;
  std::vector<std::string_view> fences;
  fences.reserve(answer.links.size());
  page->links.reserve(answer.links.size());
  for (const LeafLink& link : answer.links) {
    if (!page->links.empty()) fences.push_back(link.lower);
    page->links.push_back(link.hint.bits);
  }
  page->fences.Assign(fences);
  if (page->links == old.links) page->stale_max = std::min(2 * old.stale_max, kStaleLimitMax);
  return page;
}

// The begin of the next page; empty: there is none.
std::string_view FatRoot::EndOf(const Page& page) const {
  const auto next = std::ranges::upper_bound(table_->pages, page.begin, {}, BeginOf);
  return next == table_->pages.end() ? std::string_view() : BeginOf(*next);
}

FatRoot::PageRef FatRoot::GapAt(std::string_view begin) {
  auto gap = std::make_shared<Page>();
  gap->stale_max = stale_max_;
  gap->begin = begin;
  gap->is_due.store(true, std::memory_order_relaxed);
  due_.push_back(gap);
  return gap;
}

// Puts the page into the table, in place of all that lies between its begin and `end` (empty: no
// end). What is left of the page in which `end` lies becomes a gap.
void FatRoot::Install(const PageRef& page, std::string_view end) {
  auto table = std::make_shared<Table>();
  auto& pages = table->pages;
  const auto& before = table_->pages;
  pages.reserve(before.size() + 2);
  const auto first = std::ranges::lower_bound(before, page->begin, {}, BeginOf);
  pages.assign(before.begin(), first);
  pages.push_back(page);
  if (!end.empty()) {
    const auto rest = std::ranges::lower_bound(before, end, {}, BeginOf);
    if (rest == before.end() || (*rest)->begin != end) pages.push_back(GapAt(end));
    pages.insert(pages.end(), rest, before.end());
  }
  std::vector<std::string_view> begins;
  for (const PageRef& at : pages | std::views::drop(1)) begins.push_back(at->begin);
  table->begins.Assign(begins);
  table_ = std::move(table);
}

FatRootStatistics FatRoot::Statistics() const {
  FatRootStatistics statistics{.hinted = hinted_.load(std::memory_order_relaxed),
                               .stale = stale_.load(std::memory_order_relaxed)};
  const MutexLock lock(mutex_);
  statistics.pages = pages_taken_;
  statistics.bytes = table_->begins.bytes() + table_->pages.capacity() * sizeof(PageRef);
  for (const PageRef& page : table_->pages) {
    statistics.links += page->links.size();
    statistics.bytes += sizeof(Page) + page->begin.capacity() + page->fences.bytes() +
                        page->links.capacity() * sizeof(uint64_t);
  }
  return statistics;
}

}  // namespace skep::client
