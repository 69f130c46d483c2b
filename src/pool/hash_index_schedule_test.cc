// Clients that read the hash index word by word, between any two stores of the server.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "pool/bucket_reader.h"
#include "pool/hash_index.h"
#include "pool/index_memory_test.h"

namespace skep::pool {
namespace {

constexpr uint32_t kKeys = 100;
constexpr uint32_t kGets = 6;
constexpr uint32_t kAllWords = (1 << (kBucketSlots + 1)) - 1;

// What the schedules came upon; each must have happened for the test to mean something.
struct Counts {
  uint64_t found = 0;
  uint64_t absent = 0;
  uint64_t frozen = 0;        // found in a chain that the key had left
  uint64_t redirects = 0;     // R1
  uint64_t restarts = 0;      // R2
  uint64_t overflow = 0;      // images of overflow buckets that counted
  uint64_t held = 0;          // answers from cached slots that were read,
  uint64_t held_written = 0;  // or written
  uint64_t late = 0;          // R4
};

// All that a key ever was, oldest first: the bits of its slot, or 0.
struct History {
  std::vector<uint64_t> versions = {0};
  size_t completed = 0;  // the newest whose operation has ended
  size_t seen = 0;       // the newest that a GET has answered with

  size_t Floor() const { return std::max(completed, seen); }
};

// A GET under way.
struct Get {
  uint32_t key = 0;
  KeyDigest digest;
  std::optional<CachedSlot> cached;  // tried first
  ChainReader reader{0, 1};
  uint64_t begin = 0;    // of the reads that count
  size_t floor = 0;      // the oldest version that is not too old
  uint64_t buckets = 0;  // when these reads began
  BucketAddress at;      // what is read now
  BucketImage image = {};
  uint32_t words_left = 0;
  uint64_t paused_until = 0;
};

// One server and some clients in an order that a seed draws. A tick is a word read or stored.
class Schedule {
 public:
  Schedule(uint64_t seed, Counts& counts)
      : random_(seed),
        counts_(counts),
        limit_(60 + random_.Below(200)),
        memory_(128, 40),
        index_(memory_.Create({.first_depth = static_cast<uint32_t>(random_.Below(2)),
                               .items_per_bucket = 1 + static_cast<uint32_t>(random_.Below(6)),
                               .read_limit_ns = limit_})),
        histories_(kKeys),
        caches_(kKeys) {
    index_->set_store_hook({&Schedule::BeforeStore, this});
    for (Get& get : gets_) Begin(get);
  }

  void Run(uint32_t steps) {
    for (uint32_t step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      Serve(step < 200 ? 1 : 5);
      CheckRestarts();
      ReadSome(20);
      if (random_.Chance(1, 40)) now_ += random_.Below(2 * limit_);
      ASSERT_EQ(step % 16 == 0 ? index_->Verify() : nullptr, nullptr);
    }
  }

 private:
  static void BeforeStore(void* schedule) {
    auto& self = *static_cast<Schedule*>(schedule);
    ++self.now_;
    self.ReadSome(self.random_.Chance(1, 16) ? 60 : 6);
  }

  // Few signatures, so that clients look at each other's items.
  static KeyDigest DigestOfKey(uint32_t key) {
    const KeyDigest digest = DigestAt(key);
    return {.index = LowBits(digest.index, 56) | uint64_t{1 + key % 2} << 56, .tag = digest.tag};
  }

  void Serve(uint64_t removals) {
    const auto key = static_cast<uint32_t>(random_.Below(kKeys));
    if (random_.Chance(1, 2)) index_->Maintain(now_);
    if (random_.Chance(1, 8)) {
      for (const auto& [written, slot] : answers_) CacheWritten(written, slot);
      answers_.clear();
    }
    if (random_.Below(7) < removals) {
      Remove(key);
    } else {
      Set(key);
    }
  }

  void Set(uint32_t key) {
    History& history = histories_[key];
    const KeyDigest digest = DigestOfKey(key);
    const Slot slot = SlotAt(digest, key, static_cast<uint32_t>(history.versions.size()));
    history.versions.push_back(slot.bits());
    const Result<Slot> before = index_->Set(digest, slot);
    if (!before) return history.versions.pop_back();
    EXPECT_EQ(before->bits(), history.versions[history.completed]);
    history.completed = history.versions.size() - 1;
    if (random_.Chance(1, 2)) answers_.emplace_back(key, slot);
  }

  // As the client does that has put the key, once it hears of that; with any hint that was true
  // once.
  void CacheWritten(uint32_t key, Slot slot) {
    std::optional<CachedSlot>& cached = caches_[key];
    const uint64_t hint = 1 + random_.Below(index_->buckets());
    cached = WrittenSlot(slot, cached ? &*cached : nullptr, DigestOfKey(key).index,
                         random_.Chance(1, 2) ? hint : index_->buckets());
    is_written_[key] = true;
  }

  void Remove(uint32_t key) {
    History& history = histories_[key];
    if (history.versions.back() == 0) return;
    history.versions.push_back(0);
    const Slot before = index_->Remove(DigestOfKey(key));
    EXPECT_EQ(before.bits(), history.versions[history.completed]);
    history.completed = history.versions.size() - 1;
  }

  // A reader in time begins again only if there was a split since its reads began (G2).
  void CheckRestarts() {
    for (const uint64_t buckets : restarts_) ASSERT_GT(index_->buckets(), buckets);
    restarts_.clear();
  }

  void ReadSome(uint64_t words_max) {
    for (uint64_t n = random_.Below(words_max); n != 0; --n) {
      ++now_;
      Get& get = gets_[random_.Below(kGets)];
      if (now_ < get.paused_until) continue;
      ReadOne(get);
      if (random_.Chance(1, 20)) get.paused_until = now_ + random_.Below(limit_);
    }
  }

  void ReadOne(Get& get) {
    uint32_t word = 0;
    do word = static_cast<uint32_t>(random_.Below(kBucketSlots + 1));
    while ((get.words_left >> word & 1) == 0);
    WordOf(get.image, word) = WordOf(memory_.At(get.at), word).load();
    get.words_left &= ~(1u << word);
    if (get.words_left == 0) Take(get);
  }

  void Begin(Get& get) {
    get.key = static_cast<uint32_t>(random_.Below(kKeys));
    get.digest = DigestOfKey(get.key);
    get.cached = random_.Chance(1, 2) ? caches_[get.key] : std::nullopt;
    if (!get.cached) return BeginWalk(get);
    BeginReads(get, get.cached->at);
  }

  // With any hint that was true once.
  void BeginWalk(Get& get) {
    get.cached.reset();
    const uint64_t buckets = memory_.bucket_count;
    const uint64_t hint = random_.Chance(1, 4) ? 1 + random_.Below(buckets) : buckets;
    get.reader = ChainReader(get.digest.index, hint);
    BeginReads(get, get.reader.next());
  }

  // Only the reads from now on count.
  void BeginReads(Get& get, const BucketAddress& at) {
    get.begin = now_;
    get.floor = histories_[get.key].Floor();
    get.buckets = index_->buckets();
    Read(get, at);
  }

  static void Read(Get& get, const BucketAddress& at) {
    get.at = at;
    get.words_left = kAllWords;
  }

  void Take(Get& get) {
    if (get.cached) {
      if (!Holds(*get.cached, get.digest.index, get.image)) return BeginWalk(get);
      ++(is_written_[get.key] ? counts_.held_written : counts_.held);
      return Answer(get, get.cached->slot);
    }
    const ChainReader::Step step = get.reader.Take(get.image);
    if (step == ChainReader::Step::kElsewhere) {
      if (get.at.is_overflow && !IsLate(get)) restarts_.push_back(get.buckets);
      ++(get.at.is_overflow ? counts_.restarts : counts_.redirects);
      return BeginReads(get, get.reader.next());
    }
    counts_.overflow += get.at.is_overflow ? 1 : 0;
    if (const Slot slot = FoundIn(get)) return Answer(get, slot);
    if (step == ChainReader::Step::kEnd) return Answer(get, Slot());
    Read(get, get.reader.next());
  }

  // The candidate whose item has the key.
  static Slot FoundIn(const Get& get) {
    const uint32_t candidates = CandidatesIn(get.image, get.digest.index);
    for (uint32_t i = 0; i < kBucketSlots; ++i) {
      const Slot slot(get.image.slots[i]);
      if ((candidates >> i & 1) != 0 && slot.chunk() == get.key) return slot;
    }
    return Slot();
  }

  bool IsLate(const Get& get) const { return now_ - get.begin > limit_; }

  void Answer(Get& get, Slot slot) {
    if (IsLate(get)) {
      ++counts_.late;
      return BeginWalk(get);
    }
    CheckAnswer(get, slot);
    ++(slot ? counts_.found : counts_.absent);
    const uint64_t chain = get.cached ? get.cached->chain : get.reader.chain();
    if (slot && chain != BucketOf(get.digest.index, index_->buckets())) ++counts_.frozen;
    if (slot) {
      caches_[get.key] = CachedSlot{.slot = slot, .at = get.at, .chain = chain};
      is_written_[get.key] = false;
    }
    Begin(get);
  }

  // Each write of a key takes effect once it has begun, before it has ended, and in order. So an
  // answer is right if it is a version not older than those that had ended, or were seen, when the
  // GET began. Of several, the oldest lets all later answers be right that can be.
  void CheckAnswer(const Get& get, Slot slot) {
    History& history = histories_[get.key];
    size_t version = get.floor;
    while (version < history.versions.size() && history.versions[version] != slot.bits()) ++version;
    ASSERT_LT(version, history.versions.size())
        << "key " << get.key << " version " << slot.unit() << " floor " << get.floor
        << " completed " << history.completed << " cached " << get.cached.has_value();
    history.seen = std::max(history.seen, version);
  }

  SeededRandom random_;
  Counts& counts_;
  const uint64_t limit_;  // L
  uint64_t now_ = 0;
  IndexMemory memory_;
  std::unique_ptr<HashIndex> index_;
  std::vector<History> histories_;
  std::vector<std::optional<CachedSlot>> caches_;
  std::vector<std::pair<uint32_t, Slot>> answers_;  // of puts, on their way
  std::array<bool, kKeys> is_written_ = {};         // the cached slot was
  std::array<Get, kGets> gets_;
  std::vector<uint64_t> restarts_;  // the buckets before the reads of those who began again
};

// Goal: every answer that rules R1 to R4 let count is one of a linearizable history, whatever
// instants the words of buckets are read at; and readers in time begin again for splits only.
// Method: six GETs at a time read single words, in any order within a bucket, between any two
// stores of a server that sets, removes, splits and clears. They pause for up to L, so that what
// waits for 2L ends while some are under way that began before it.
TEST(HashIndexSchedule, AnswersAreLinearizable) {
  Counts counts;
  for (uint64_t seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Schedule(seed, counts).Run(250);
  }
  for (const uint64_t count :
       {counts.found, counts.absent, counts.frozen, counts.redirects, counts.restarts,
        counts.overflow, counts.held, counts.held_written, counts.late}) {
    EXPECT_GT(count, 200u);
  }
}

}  // namespace
}  // namespace skep::pool
