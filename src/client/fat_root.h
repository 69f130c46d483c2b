// fat_root.h: the leaves of a server's tree as a client knows them, so that its requests can name
// the leaf of their key (Fat-B+Tree, section 4.1, whose fat root lies in a switch).
//
//   begins   first page | second page | ...   8 bytes of each begin, and the pages
//   a page   leaf | leaf | leaf ...           8 bytes of each leaf's lower fence, and its link
//
// A table is searched in two arrays of numbers: which page, and which leaf in it. The number of a
// key is the 8 bytes behind what all fences of the array begin with. Fences whose numbers are equal
// are not told apart, so a request may get the hint of a neighbour. That costs the server a way
// down from the root, as any stale hint does, and never an answer: the server believes no hint
// (btree/reader.h).
//
// A table is made of pages that the server has sent (wire/packed_top.h), and of gaps that it has
// not sent yet. At first there is one gap. A page is asked for again once kStaleMax requests on it,
// or as many as its owner wants, had stale hints. With kStaleMax the ways down have cost the server
// about as much as a page does, so both costs together are at most twice those of a client that
// knows beforehand which pages will be needed. If the new page is as the old one was (its fences
// cannot be told apart, or the requests were sent before a change), the next limit of that page is
// twice as high.
//
// FatRoot neither sends nor waits. Its owner asks Question() what to send, when it likes, and
// brings the answer; one question is open at a time. Pages that are replaced stay as they are, so a
// thread that fills in hints waits for nobody: it takes a reference to the table, under a mutex
// that is never held for long.
//
// Memory: 16 bytes a leaf, about 0.1 a key. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "engine/leaf_links.h"
#include "skep/batch.h"

namespace skep::client {

// Rising keys, each known by 8 bytes.
class KeyNumbers {
 public:
  // How many of the keys are not above `key`, as far as 8 bytes tell.
  size_t CountUpTo(std::string_view key) const;
  // Replaces the keys, which rise.
  void Assign(std::span<const std::string_view> keys);
  size_t bytes() const { return numbers_.capacity() * sizeof(uint64_t) + prefix_.capacity(); }

 private:
  std::string prefix_;  // of all keys
  std::vector<uint64_t> numbers_;
};

struct FatRootStatistics {
  uint64_t links = 0;   // leaves known now
  uint64_t bytes = 0;   // of the table
  uint64_t pages = 0;   // pages that the server has sent since the beginning
  uint64_t hinted = 0;  // requests that got a hint
  uint64_t stale = 0;   // those of them whose hint was stale
};

class FatRoot {
 public:
  static constexpr uint32_t kStaleMax = 64;

  // `stale_max`: requests of a page with stale hints until it is asked for again.
  explicit FatRoot(uint32_t stale_max = kStaleMax);

  // Sets a hint for each request of the batch; those of requests that have none, and that begin at
  // the leaf of their key. A hint of the request's own is kept. The batch may be sent with others.
  void FillIn(const Batch& batch, std::vector<Hint>* hints);
  // Whether the answer says that a hint was stale: it then names another node.
  static bool IsStale(Hint sent, Hint answered) {
    return sent.bits != 0 && answered.bits != 0 && sent.bits != answered.bits;
  }
  // Notes that the hint that was filled in for a request of this key was stale.
  void NoteStale(std::string_view key);

  // The payload of the next kTop message; none if all is known, or the last question is open.
  std::optional<std::string> Question();
  // Takes the payload of the answer to the open question. If it is malformed, nothing is asked any
  // more.
  void TakeAnswer(std::string_view payload);
  // The open question had no answer: it will be asked again, or, if the keyspace has no such links,
  // never.
  void TakeNone(bool is_final);

  FatRootStatistics Statistics() const;

 private:
  // A part of the key space. Immutable but for the counter.
  struct Page {
    std::string begin;            // to that of the next page
    std::vector<uint64_t> links;  // none: a gap
    KeyNumbers fences;            // of the links but the first, whose leaf has `begin`
    uint32_t stale_max;
    std::atomic<uint32_t> stale = 0;
    std::atomic<bool> is_due = false;
  };
  using PageRef = std::shared_ptr<Page>;
  struct Table {
    std::vector<PageRef> pages;  // the first one begins at the empty key
    KeyNumbers begins;           // of the pages but the first
    // The page of the key.
    const PageRef& PageOf(std::string_view key) const;
  };

  PageRef NewPage(const Page& old, const LeafLinks& answer) const;
  static std::string_view BeginOf(const PageRef& page) { return page->begin; }
  std::shared_ptr<const Table> table() const;
  std::string_view EndOf(const Page& page) const SKEP_REQUIRES(mutex_);
  PageRef GapAt(std::string_view begin) SKEP_REQUIRES(mutex_);
  void Install(const PageRef& page, std::string_view end) SKEP_REQUIRES(mutex_);

  const uint32_t stale_max_;
  mutable Mutex mutex_;
  std::shared_ptr<const Table> table_ SKEP_GUARDED_BY(mutex_);
  std::deque<PageRef> due_ SKEP_GUARDED_BY(mutex_);  // pages to ask for; some may be replaced
  PageRef asked_ SKEP_GUARDED_BY(mutex_);            // the page of the question; null: none
  bool is_open_ SKEP_GUARDED_BY(mutex_) = false;     // the question awaits its answer
  bool is_off_ SKEP_GUARDED_BY(mutex_) = false;
  uint64_t pages_taken_ SKEP_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> hinted_ = 0;
  std::atomic<uint64_t> stale_ = 0;
};

}  // namespace skep::client
